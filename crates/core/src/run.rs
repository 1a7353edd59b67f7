//! Running a scenario on any executor.

use crate::contract::{Config, Executor, Message, Report, RunError, Scenario, Script};
#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

/// Runs a scenario on an executor and returns its report.
///
/// ```
/// use corsair::{AsyncContext, Config, Executor, Message, Report, RunError, Scenario, Spawn, run};
///
/// #[derive(Message)]
/// struct Hello;
///
/// struct Greet {
///     count: u32,
/// }
///
/// impl Scenario<Hello> for Greet {
///     async fn root<C: AsyncContext<Hello>>(self, mut cx: C) {
///         let listeners = cx
///             .spawn(Spawn::many(self.count, "listener", ""), |mut cx, _| async move {
///                 cx.recv().await;
///             })
///             .await;
///         listeners.iter().for_each(|listener| {
///             cx.send(listener, Hello);
///         });
///         cx.settle().await;
///     }
/// }
///
/// let report: Report = run(Executor::Virtual, &Config::default(), Greet { count: 100 })?;
/// assert_eq!(report.delivered(), 100);
/// assert_eq!(report.ended, 100);
/// # Ok::<(), RunError>(())
/// ```
///
/// # Errors
/// See [`RunError`]. A cancelled run is not an error ([`Outcome::Cancelled`](crate::Outcome::Cancelled)).
pub fn run<M: Message>(
    executor: Executor,
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    match executor {
        Executor::Virtual => simulate(config, scenario),
        wall => run_on_wall_clock(wall, config, scenario),
    }
}

/// Runs a scenario like [`run`], on a wall-clock executor. Virtual time is not compiled for the scenario, so programs
/// that do not use virtual time build faster.
///
/// # Errors
/// See [`RunError`].
///
/// # Panics
/// If the executor is [`Executor::Virtual`].
pub fn run_on_wall_clock<M: Message>(
    executor: Executor,
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    config.check()?;
    match executor {
        Executor::Virtual => panic!("virtual time is not the wall clock; use `run`"),
        #[cfg(feature = "tokio")]
        Executor::Tokio => crate::wall::launch::on_tokio(config, scenario),
        #[cfg(feature = "threads")]
        Executor::Threads => crate::wall::launch::on_threads(config, scenario),
        #[cfg(feature = "threads")]
        Executor::Pool => crate::wall::launch::on_pool(config, scenario),
        #[cfg(not(all(feature = "tokio", feature = "threads")))]
        executor => {
            drop(scenario);
            let feature = if executor == Executor::Tokio {
                "tokio"
            } else {
                "threads"
            };
            Err(RunError::NotBuilt { executor, feature })
        }
    }
}

/// Runs a scenario in virtual time, like [`run`](run()) with [`Executor::Virtual`]. A program that uses no other
/// executor compiles in half the time.
///
/// ```
/// use corsair::{AsyncContext, Config, Message, RunError, Scenario, simulate};
///
/// #[derive(Message)]
/// struct Never;
///
/// struct Rest;
///
/// impl Scenario<Never> for Rest {
///     async fn root<C: AsyncContext<Never>>(self, mut cx: C) {
///         cx.sleep(std::time::Duration::from_secs(3600)).await;
///     }
/// }
///
/// let report = simulate(&Config::default(), Rest)?;
/// assert_eq!(report.time.as_nanos(), 3_600_000_000_000);
/// # Ok::<(), RunError>(())
/// ```
///
/// # Errors
/// See [`RunError`]. A cancelled run is not an error ([`Outcome::Cancelled`](crate::Outcome::Cancelled)).
pub fn simulate<M: Message>(
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    crate::virtual_time::run(config, scenario)
}

/// Runs a [`Script`] as the root of a run in virtual time, without an async body.
///
/// The digest equals that of [`simulate`] with a root that only [performs](crate::perform) the script. This form is
/// faster for a root that receives as many messages as all other actors together.
///
/// ```
/// use corsair::{Config, Context, Event, Message, RunError, Script, Wait, simulate_script};
/// use std::time::Duration;
///
/// #[derive(Message)]
/// struct Never;
///
/// /// Waits this many seconds.
/// struct Countdown(u32);
///
/// impl Script<Never> for Countdown {
///     fn resume<C: Context<Never>>(&mut self, _: Option<Event<Never>>, _: &mut C) -> Wait {
///         if self.0 == 0 {
///             return Wait::End;
///         }
///         self.0 -= 1;
///         Wait::Sleep(Duration::from_secs(1))
///     }
/// }
///
/// let report = simulate_script(&Config::default(), Countdown(5))?;
/// assert_eq!(report.time.elapsed(), Duration::from_secs(5));
/// # Ok::<(), RunError>(())
/// ```
///
/// # Errors
/// See [`RunError`]. A cancelled run is not an error ([`Outcome::Cancelled`](crate::Outcome::Cancelled)).
pub fn simulate_script<M: Message>(
    config: &Config,
    script: impl Script<M>,
) -> Result<Report, RunError> {
    config.check()?;
    crate::virtual_time::run_script(config, script)
}

/// Runs a scenario on an existing tokio runtime, with a task per actor, like [`Executor::Tokio`]. The actors can share
/// sockets and channels with other tasks of the runtime. [`Config::workers`] is ignored.
///
/// The calling thread waits until the run is over and every body has been dropped. It must not be a thread that runs
/// the runtime's tasks: use a separate thread, or one that may block.
///
/// If the runtime is shut down during the run, the run is cancelled, and so is [`Config::cancel`]. On a runtime that no
/// thread drives, the run makes no progress. If such a run is cancelled or reaches its [`Config::end`], the calling
/// thread drops the bodies.
///
/// # Errors
/// See [`RunError`].
#[cfg(feature = "tokio")]
pub fn run_on<M: Message>(
    runtime: &Handle,
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    config.check()?;
    crate::wall::launch::on_runtime(runtime, config, scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::AsyncContext;

    struct Nothing;

    impl Message for Nothing {
        const KINDS: &'static [&'static str] = &["Nothing"];
        fn kind(&self) -> usize {
            0
        }
        fn fingerprint(&self) -> u64 {
            0
        }
    }

    struct Rest;

    impl Scenario<Nothing> for Rest {
        async fn root<C: AsyncContext<Nothing>>(self, _: C) {}
    }

    #[test]
    fn an_executor_that_was_not_built_is_refused_with_its_feature() {
        let executors = [
            (Executor::Virtual, true, ""),
            (Executor::Tokio, cfg!(feature = "tokio"), "tokio"),
            (Executor::Threads, cfg!(feature = "threads"), "threads"),
            (Executor::Pool, cfg!(feature = "threads"), "threads"),
        ];
        for (executor, built, feature) in executors {
            match run(executor, &Config::default(), Rest) {
                Ok(_) => assert!(built, "{executor:?}"),
                Err(error) => {
                    assert!(!built, "{executor:?}: {error}");
                    assert!(error.report().is_none());
                    let said = error.to_string();
                    assert!(
                        said.ends_with(&format!("its feature is `{feature}`")),
                        "{said}"
                    );
                }
            }
        }
    }
}
