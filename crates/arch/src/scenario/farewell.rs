//! The end of a run: all actors are asked to leave.

use crate::log;
use crate::message::Msg;
use crate::model::Model;
use crate::scenario::CHUNK;
use corsair::{AddrRange, Context, Event, Token, Wait};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::time::Duration;

/// The longest silence between two goodbyes; a longer one means that a full mailbox has dropped a goodbye.
const SILENCE: Duration = Duration::from_secs(2);
const TO_SILENCE: Token = Token::new(3);

/// The progress of the farewell. One group of actors after the other is asked to leave, and each actor answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Farewell {
    group: usize,
    /// The number of actors that were asked to leave, and the number of actors that have left.
    notified: u32,
    left: u32,
    /// During a wait, the number of actors that had left when the timer was set.
    waits: Option<u32>,
}

/// The groups of actors in the order in which they leave: controllers, instances, registries, and the log. In
/// this order the last messages of a group still reach the groups after it.
fn groups(model: &Model) -> impl Iterator<Item = Range<u32>> {
    let (instances, edda) = (model.topology.len(), model.edda());
    let controllers = model.first_controller()..model.actors();
    let groups = [controllers, 0..instances, instances..edda, edda..edda + 1];
    groups.into_iter().filter(|group| !group.is_empty())
}

impl Farewell {
    /// Continues the farewell. `event` is the event for which the root has waited, if any.
    pub(super) fn resume<C: Context<Msg>>(
        &mut self,
        event: Option<Event<Msg>>,
        model: &Model,
        actors: AddrRange,
        cx: &mut C,
    ) -> Wait {
        let Some(group) = groups(model).nth(self.group) else {
            return Wait::End;
        };
        let has_given_up = event.is_some_and(|event| self.is_silent(event, model, cx));
        if !has_given_up {
            if self.waits.is_some() && self.waits_for_more(&group) {
                return Wait::Event;
            }
            self.waits = None;
            while self.notified < group.len() as u32 {
                cx.send(actors.get(group.start + self.notified), Msg::Goodbye);
                self.notified += 1;
                if self.waits_for_more(&group) {
                    self.waits = Some(self.left);
                    cx.timer(SILENCE, TO_SILENCE);
                    return Wait::Event;
                }
            }
        }
        *self = Farewell {
            group: self.group + 1,
            ..Farewell::default()
        };
        Wait::Sleep(Duration::from_nanos(model.settled / 4))
    }

    /// True if too many of the actors that were asked to leave are still present: more than `CHUNK`, or any of them if
    /// the complete group has been asked.
    fn waits_for_more(&self, group: &Range<u32>) -> bool {
        let is_last = self.notified == group.len() as u32;
        self.notified - self.left > if is_last { 0 } else { CHUNK }
    }

    /// Counts an actor that has left. Returns true if no actor has left for too long.
    fn is_silent<C: Context<Msg>>(&mut self, event: Event<Msg>, model: &Model, cx: &mut C) -> bool {
        if let Event::Message { body, .. } = &event {
            log::received(model, body, cx);
        }
        match event {
            Event::Message {
                body: Msg::Goodbye, ..
            } => self.left += 1,
            // A timer that fires after further actors have left starts a new wait.
            Event::Timer(TO_SILENCE) if self.waits == Some(self.left) => return true,
            Event::Timer(TO_SILENCE) => {
                self.waits = Some(self.left);
                cx.timer(SILENCE, TO_SILENCE);
            }
            _ => {}
        }
        false
    }
}
