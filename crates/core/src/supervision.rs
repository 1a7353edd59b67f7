//! Actors that restart after a panic.

mod group;
mod incarnation;

use crate::contract::{Actor, AsyncContext, Flow, Message, Time};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

pub use group::{Strategy, Supervised, Supervisor};
use incarnation::Incarnation;

/// The policy for restarting an actor that panics.
///
/// ```
/// use corsair::{RestartPolicy, FinalAction};
/// use std::time::Duration;
///
/// // At once, after 100 ms, after 200 ms; a fourth panic within a minute is its parent's.
/// let policy = RestartPolicy {
///     max_restarts: 3,
///     within: Duration::from_secs(60),
///     backoff: Duration::from_millis(100),
///     ..RestartPolicy::default()
/// };
/// assert_eq!(policy.delay(0), Duration::ZERO);
/// assert_eq!(policy.delay(2), Duration::from_millis(200));
/// assert_eq!(policy.on_exhausted, FinalAction::Escalate);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RestartPolicy {
    /// The maximum number of restarts within `within`; a further panic is final.
    pub max_restarts: u32,
    /// The interval in which restarts are counted.
    pub within: Duration,
    /// The pause before the second restart within that interval; there is no pause before the first restart.
    pub backoff: Duration,
    /// The factor by which each further pause is longer than the previous one.
    pub factor: f64,
    /// The longest pause.
    pub max_backoff: Duration,
    /// The action after the final panic.
    pub on_exhausted: FinalAction,
}

impl Default for RestartPolicy {
    /// Returns a policy of ten restarts in a minute. Pauses start at 10 ms and double up to ten seconds. A further
    /// panic is escalated.
    fn default() -> Self {
        RestartPolicy {
            max_restarts: 10,
            within: Duration::from_secs(60),
            backoff: Duration::from_millis(10),
            factor: 2.0,
            max_backoff: Duration::from_secs(10),
            on_exhausted: FinalAction::Escalate,
        }
    }
}

impl RestartPolicy {
    /// Returns the pause of an actor that was already restarted `restarts` times.
    pub fn delay(&self, restarts: u32) -> Duration {
        let Some(doublings) = restarts.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = power(self.factor, doublings);
        let seconds = self.backoff.as_secs_f64() * factor;
        Duration::try_from_secs_f64(seconds)
            .unwrap_or(self.max_backoff)
            .min(self.max_backoff)
    }
}

/// Computes a power by repeated squaring. Only multiplications are used, so the result is equal on every machine.
fn power(mut base: f64, mut exponent: u32) -> f64 {
    let mut power = 1.0;
    while exponent > 0 {
        if exponent % 2 == 1 {
            power *= base;
        }
        base *= base;
        exponent /= 2;
    }
    power
}

/// The action after an actor's final panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FinalAction {
    /// The actor ends with the panic. Then its parent is notified ([`Event::Down`](crate::Event::Down) with
    /// [`Reason::Panicked`](crate::Reason::Panicked)), or the run ends, depending on
    /// [`Config::panics`](crate::Config::panics).
    #[default]
    Escalate,
    /// The actor ends as if it had returned.
    GiveUp,
}

/// Runs a handler as an async body, and rebuilds the handler after a panic. The actor keeps its address. Events wait
/// during the pause before a restart; the event on which the handler panicked is lost. This function works on every
/// executor.
///
/// ```
/// use corsair::*;
///
/// #[derive(Message)]
/// struct Job(u32);
///
/// struct Fragile { done: u32 }
///
/// impl Actor<Job> for Fragile {
///     fn on<C: Context<Job>>(&mut self, event: Event<Job>, cx: &mut C) -> Flow {
///         if let Event::Message { from, body: Job(number) } = event {
///             assert!(number != 2, "cannot do 2");
///             self.done += 1;
///             cx.send(from, Job(self.done));
///         }
///         Flow::Continue
///     }
/// }
///
/// struct Root;
///
/// impl Scenario<Job> for Root {
///     async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
///         let policy = RestartPolicy::default();
///         let worker = cx.spawn_one("worker", move |cx| {
///             restarting(policy, || Fragile { done: 0 }, cx)
///         }).await;
///         for number in 1..=4 {
///             cx.send(worker, Job(number));
///         }
///         let mut done = Vec::new();
///         while done.len() < 3 {
///             if let Event::Message { body: Job(count), .. } = cx.recv().await {
///                 done.push(count);
///             }
///         }
///         assert_eq!(done, [1, 1, 2]); // rebuilt after the second job
///     }
/// }
///
/// simulate(&Config::default(), Root)?;
/// # Ok::<(), RunError>(())
/// ```
///
/// A timer that was set before the panic reaches the new handler. Periodic timers
/// ([`Context::every`](crate::Context::every)) belong to the handler that set them, and end with it.
pub async fn restarting<M: Message, A: Actor<M>, C: AsyncContext<M>>(
    policy: RestartPolicy,
    mut make: impl FnMut() -> A,
    mut cx: C,
) {
    let mut restarts = Restarts::new(policy);
    loop {
        let panic = match attempt(&mut make) {
            Ok(actor) => match live(actor, &mut cx).await {
                Some(panic) => panic,
                None => return,
            },
            Err(panic) => panic,
        };
        let Some(rest) = restarts.next(cx.now()) else {
            match policy.on_exhausted {
                FinalAction::Escalate => resume_unwind(panic),
                FinalAction::GiveUp => return,
            }
        };
        // The payload of a panic may panic when it is dropped; that panic is ignored.
        let _ = attempt(|| drop(panic));
        if !rest.is_zero() {
            cx.sleep(rest).await;
        }
    }
}

/// The recent restarts of an actor.
struct Restarts {
    policy: RestartPolicy,
    /// The times of the counted restarts.
    times: VecDeque<Time>,
}

impl Restarts {
    fn new(policy: RestartPolicy) -> Restarts {
        let times = VecDeque::new();
        Restarts { policy, times }
    }

    /// Returns the pause before a restart at this time; `None` if there were too many.
    fn next(&mut self, now: Time) -> Option<Duration> {
        while let Some(&first) = self.times.front()
            && now.since(first) > self.policy.within
        {
            self.times.pop_front();
        }
        let before = u32::try_from(self.times.len()).unwrap_or(u32::MAX);
        if before >= self.policy.max_restarts {
            return None;
        }
        self.times.push_back(now);
        Some(self.policy.delay(before))
    }
}

type Panic = Box<dyn Any + Send>;

/// Runs a function and catches its panic. After a panic the value is not used again, and a context has no state that
/// could be inconsistent.
fn attempt<T>(act: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(act))
}

/// Runs a handler until it ends or panics.
async fn live<M: Message, A: Actor<M>, C: AsyncContext<M>>(actor: A, cx: &mut C) -> Option<Panic> {
    let mut actor = Some(actor);
    let mut periods = Vec::new();
    let mut ended = attempt(|| {
        let cx = &mut Incarnation::new(cx, &mut periods);
        actor.iter_mut().for_each(|actor| actor.start(cx));
    });
    loop {
        if let Err(panic) = ended {
            let _ = attempt(|| drop(actor.take()));
            for period in periods {
                cx.cancel(period);
            }
            return Some(panic);
        }
        let event = cx.recv().await;
        let flow = attempt(|| {
            let cx = &mut Incarnation::new(cx, &mut periods);
            actor.as_mut().map(|actor| actor.on(event, cx))
        });
        ended = match flow {
            Ok(Some(Flow::Continue)) => Ok(()),
            Ok(_) => return None,
            Err(panic) => Err(panic),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: core-40.
    #[test]
    fn rests_grow_by_their_factor_up_to_the_longest() {
        let policy = RestartPolicy {
            backoff: Duration::from_millis(10),
            factor: 3.0,
            max_backoff: Duration::from_millis(200),
            ..RestartPolicy::default()
        };
        let rests: Vec<u128> = (0..6).map(|n| policy.delay(n).as_millis()).collect();
        assert_eq!(rests, [0, 10, 30, 90, 200, 200]);
        assert_eq!(policy.delay(u32::MAX), policy.max_backoff);
        let slowly = RestartPolicy {
            backoff: Duration::from_secs(1),
            factor: 1.01,
            max_backoff: Duration::from_secs(3600),
            ..RestartPolicy::default()
        };
        let hundred = slowly.delay(101).as_secs_f64();
        assert!((hundred - 1.01_f64.powi(100)).abs() < 1e-6, "{hundred}");
        assert_eq!(slowly.delay(2000), slowly.max_backoff);
    }
}
