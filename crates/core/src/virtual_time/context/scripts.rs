//! The form of scripts. Their waits are data, so waiting scripts can be saved.

use super::forms::{Maker, return_arrival};
use super::waits::next_event;
use super::{ForEvent, VirtualContext};
use crate::contract::{Event, Flow, Message, Script, Token, Wait, WaitReason, time::nanos};
use crate::virtual_time::delivery::MessageDelivery;
use crate::virtual_time::event::{Head, Kind};
use crate::virtual_time::form::Form;
use crate::virtual_time::shard::Shard;
use crate::virtual_time::shard::ShardCell;
#[cfg(feature = "serde")]
use crate::virtual_time::travel::{CodecError, get, put};
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

/// Actors that are scripts.
pub(super) struct Scripts<S, F> {
    pub(super) make: F,
    pub(super) _script: PhantomData<fn() -> S>,
}

/// A script and its current wait.
pub(super) struct ScriptActor<S> {
    until: Until,
    script: S,
}

/// A wait of a script.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Until {
    /// The script has just begun and does not wait.
    Now,
    Event,
    Spawned(u32),
    /// Until a timer of the library with this token fires.
    Due(u32),
}

/// An existing script, for its single actor.
struct Once<S>(Mutex<Option<S>>);

impl<S: Send + 'static> Maker<S> for Once<S> {
    fn make(&self, _: u32) -> S {
        let mut script = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        script.take().expect("a run has one root")
    }
}

/// Returns the form of a root that is a script.
pub(in super::super) fn root_script<M: Message, S: Script<M>>(script: S) -> impl Form<M> {
    Scripts {
        make: Once(Mutex::new(Some(script))),
        _script: PhantomData,
    }
}

impl<M: Message, S: Script<M>, F: Maker<S>> Form<M> for Scripts<S, F> {
    type Actor = ScriptActor<S>;

    fn make(&self, _: ShardCell<M>, index: u32) -> ScriptActor<S> {
        ScriptActor {
            until: Until::Now,
            script: self.make.make(index),
        }
    }

    #[cfg(feature = "serde")]
    const KIND: Option<&'static str> = F::KIND;

    #[cfg(feature = "serde")]
    fn parameters(&self, to: &mut Vec<u8>) -> Result<(), CodecError> {
        self.make.parameters(to)
    }

    #[cfg(feature = "serde")]
    fn save(actor: &ScriptActor<S>, to: &mut Vec<u8>) -> Result<(), CodecError> {
        put(to, &actor.until)?;
        F::save(&actor.script, to)
    }

    #[cfg(feature = "serde")]
    fn load(&self, from: &mut &[u8]) -> Result<ScriptActor<S>, CodecError> {
        Ok(ScriptActor {
            until: get(from)?,
            script: self.make.load(from)?,
        })
    }

    /// Does nothing, because a script has no work before its first event.
    fn begin(_: &mut ScriptActor<S>, _: ShardCell<M>) {}

    #[inline(always)]
    fn handle(actor: &mut ScriptActor<S>, shard: ShardCell<M>) -> Flow {
        loop {
            let until = actor.until;
            let mut event = match until {
                Until::Now => None,
                Until::Event => next_event(shard),
                Until::Spawned(request) => take_awaited(shard, |head| {
                    head.kind() == Kind::Spawned && head.seq == request
                }),
                Until::Due(token) => take_awaited(shard, |head| {
                    head.kind() == Kind::Timer && head.cause.parent == u64::from(token)
                }),
            };
            match until {
                Until::Now => {}
                _ if event.is_none() => return Flow::Continue,
                // The script does not receive timers of the library.
                Until::Due(_) => event = None,
                Until::Event | Until::Spawned(_) => {}
            }
            if run_to_next_wait(actor, shard, event) == Flow::Stop {
                return Flow::Stop;
            }
        }
    }

    #[inline(always)]
    fn receive(
        actor: &mut ScriptActor<S>,
        shard: ShardCell<M>,
        message: MessageDelivery<M>,
    ) -> Flow {
        if !matches!(actor.until, Until::Event) || shard.with(Shard::has_stashed_events) {
            shard.with(|shard| shard.turn.arrival = Some(message.into_unread()));
            return Self::handle(actor, shard);
        }
        let context = &mut VirtualContext::new(ForEvent(shard));
        let wait = actor.script.resume(Some(message.take()), context);
        // The script waits for events again, none is stashed, and it has received the arrived one.
        if wait == Wait::Event {
            return Flow::Continue;
        }
        wait_for(actor, shard, wait)
    }

    #[cfg(feature = "serde")]
    fn state(_: &ScriptActor<S>) -> Option<serde_json::Value> {
        None
    }

    fn finish(_: &mut ScriptActor<S>, _: ShardCell<M>) {}

    fn ask(actor: &mut ScriptActor<S>, shard: ShardCell<M>) {
        let waiting = match actor.until {
            Until::Now | Until::Event => WaitReason::Message,
            Until::Spawned(_) => WaitReason::Spawn,
            Until::Due(_) => WaitReason::Sleep,
        };
        shard.with(|shard| shard.turn.waiting = waiting);
    }
}

/// Runs a script to its next wait.
#[inline(always)]
fn run_to_next_wait<M: Message, S: Script<M>>(
    actor: &mut ScriptActor<S>,
    shard: ShardCell<M>,
    event: Option<Event<M>>,
) -> Flow {
    let context = &mut VirtualContext::new(ForEvent(shard));
    let wait = actor.script.resume(event, context);
    wait_for(actor, shard, wait)
}

/// Records the wait of a script.
#[inline(always)]
fn wait_for<M: Message, S>(actor: &mut ScriptActor<S>, shard: ShardCell<M>, wait: Wait) -> Flow {
    actor.until = match wait {
        Wait::Event => Until::Event,
        Wait::Spawned(request) => Until::Spawned(request),
        Wait::Sleep(time) => sleep(shard, nanos(time)),
        Wait::Yield => sleep(shard, shard.with(|shard| shard.min_latency())),
        Wait::Settle => sleep(shard, shard.with(|shard| shard.time_to_settle())),
        Wait::End => {
            return_arrival(shard);
            return Flow::Stop;
        }
    };
    Flow::Continue
}

/// Sets an internal timer for a wait. Its token is never shown to the script.
fn sleep<M: Message>(shard: ShardCell<M>, time: u64) -> Until {
    shard.with(|shard| {
        let Token(token) = shard.waits.own_token();
        shard.set_timer(time, token);
        Until::Due(token)
    })
}

/// Returns the awaited event, if it has arrived; any other event is stashed.
fn take_awaited<M: Message>(
    shard: ShardCell<M>,
    is_wanted: impl FnOnce(&Head) -> bool,
) -> Option<Event<M>> {
    let event = shard.with(Shard::take_arrival)?;
    if is_wanted(&event.head) {
        shard.with(|shard| shard.resume_stashed(event.head, None));
        return event.into_event();
    }
    if !event.is_own() {
        shard.with(|shard| shard.stash_event(event));
    }
    None
}
