//! Scripts: actors that wait, written as state machines, whose next wait is a value.

use super::async_context::AsyncContext;
use super::context::Context;
use super::event::Event;
use super::message::Message;
use super::waiting::{LibraryWait, WaitReason};
use std::time::Duration;

/// The next wait of a [`Script`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Wait {
    /// Waits for the next event, including events that arrived during another wait, and passes it to the script.
    Event,
    /// Waits for the addresses of actors that the script has just requested ([`Context::spawn_request`]), and passes
    /// the [`Event::Spawned`] with this number to the script.
    Spawned(u32),
    /// Sleeps for this time, like [`AsyncContext::sleep`].
    Sleep(Duration),
    /// Waits until every ready actor has run, like [`AsyncContext::yield_now`].
    Yield,
    /// Waits until all sent messages have been handled, like [`AsyncContext::settle`].
    Settle,
    /// Ends the actor.
    End,
}

/// An actor that waits, written as a state machine: each call runs from one wait to the next.
///
/// [`perform`] runs it as an async body, on any executor. A script with a [`Kind`](crate::Kind) can also be the root of
/// a run that can be saved; such a root runs without an async body, with the same digest.
///
/// ```
/// use corsair::{AsyncContext, Config, Context, Event, Message, Scenario, Script, Wait, perform, simulate};
/// use std::time::Duration;
///
/// #[derive(Message)]
/// struct Tick(u32);
///
/// /// Sends itself a number every second.
/// struct Clock {
///     ticks: u32,
/// }
///
/// impl Script<Tick> for Clock {
///     fn resume<C: Context<Tick>>(&mut self, _: Option<Event<Tick>>, cx: &mut C) -> Wait {
///         if self.ticks == 3 {
///             return Wait::End;
///         }
///         let me = cx.me();
///         cx.send(me, Tick(self.ticks));
///         self.ticks += 1;
///         Wait::Sleep(Duration::from_secs(1))
///     }
/// }
///
/// struct Root;
/// impl Scenario<Tick> for Root {
///     async fn root<C: AsyncContext<Tick>>(self, cx: C) {
///         perform(Clock { ticks: 0 }, cx).await;
///     }
/// }
///
/// let report = simulate(&Config::default(), Root)?;
/// assert_eq!(report.time.elapsed(), Duration::from_secs(3));
/// # Ok::<(), corsair::RunError>(())
/// ```
pub trait Script<M: Message>: Send + 'static {
    /// Runs the script to its next wait. `event` is the event that ended the previous wait, if the script waited for an
    /// event.
    fn resume<C: Context<M>>(&mut self, event: Option<Event<M>>, cx: &mut C) -> Wait;
}

/// Runs a script as an async body. Returns the script when it has ended.
pub async fn perform<M: Message, S: Script<M>, C: AsyncContext<M>>(mut script: S, mut cx: C) -> S {
    let mut event = None;
    loop {
        event = match script.resume(event, &mut cx) {
            Wait::Event => Some(cx.recv().await),
            Wait::Spawned(request) => {
                let own = LibraryWait::Spawned(request);
                Some(cx.wait_own(WaitReason::Spawn, own).await)
            }
            Wait::Sleep(time) => {
                cx.sleep(time).await;
                None
            }
            Wait::Yield => {
                cx.yield_now().await;
                None
            }
            Wait::Settle => {
                cx.settle().await;
                None
            }
            Wait::End => return script,
        };
    }
}
