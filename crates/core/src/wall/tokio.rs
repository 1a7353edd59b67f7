//! A tokio task per actor, on a runtime of its own with [`Config::workers`] threads.

use super::clock::Clock;
use super::mailbox::Queue;
use super::{Alarm, Runtime, launch, nothing};
use crate::{Config, Executor, Message, Report, RunError, Scenario, Time};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use tokio::runtime::{Builder, Handle};
use tokio::time::{Instant, Sleep, sleep_until};

/// Runs a scenario with a task per actor. The calling thread waits until it is over; it must not
/// be a thread that runs tasks of another tokio runtime.
pub(crate) fn run<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    let workers = config.workers.get();
    let built = Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("corsair")
        .enable_time()
        .build();
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(source) => {
            return Err(RunError::Thread {
                source,
                report: nothing(Executor::Tokio, config),
            });
        }
    };
    let tasks = Tasks {
        handle: runtime.handle().clone(),
    };
    // The end of the runtime drops every task.
    launch(Executor::Tokio, config, tasks, scenario, |_| drop(runtime))
}

struct Tasks {
    handle: Handle,
}

impl Runtime for Tasks {
    type Mailbox<M: Message> = Queue<M>;
    type Handle = ();
    type Alarm = SleepAlarm;

    fn start<F>(&self, _: &(), _: impl FnOnce() -> String, life: F) -> io::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(self.handle.spawn(life));
        Ok(())
    }
}

/// One sleep per actor, made when the actor sets its first timer. It is only moved when it is
/// later than the next timer, or over: a sleep that ends too early costs less than moving it with
/// every time-out that was not needed.
#[derive(Default)]
struct SleepAlarm {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm<Tasks> for SleepAlarm {
    fn poll<M: Message>(&mut self, clock: &Clock<M>, due: Time, task: &Waker) -> Poll<()> {
        let due = Instant::from_std(clock.instant(due));
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if sleep.is_elapsed() || sleep.deadline() > due {
            sleep.as_mut().reset(due);
        }
        sleep.as_mut().poll(&mut Context::from_waker(task))
    }
}
