//! The end of a context, which is dropped with its body.
//!
//! During the run, the actor's [life](crate::wall::life) handles the remains: the event being handled, if the actor
//! panicked, and unread messages. After the run, the context records whether the actor was still waiting.

use super::WallContext;
use crate::contract::{Message, Token};
use crate::sync::lock;
use crate::wall::remains::ActorRemains;
use std::sync::atomic::Ordering::Relaxed;

/// The event that an actor was handling, for the report of its panic.
#[derive(Clone, Copy)]
pub(super) enum HandledEvent {
    Start,
    Message(usize),
    Timer(u32),
    Spawned,
    Down,
    Unanswered,
    DeadLetter(usize),
}

impl<M: Message> Drop for WallContext<M> {
    fn drop(&mut self) {
        self.cell.left.store(true, Relaxed);
        self.cell.mailbox.leave();
        self.alarm.cancel(&self.system.clock);
        self.ledger.flush(&self.system.counters);
        let system = &self.system;
        if system.config.per_actor {
            lock(&system.records).count(self.me, self.sendings.into(), self.received);
        }
        if system.is_ending() {
            // An actor that is ending by itself at this moment does not count as waiting.
            let ends = self.cell.is_stopping() || self.cell.polled.load(Relaxed);
            if !ends {
                lock(&system.records).wait(self.me, self.waiting, self.stash.len());
            }
            return;
        }
        let panicking = std::thread::panicking();
        if !panicking && self.stash.is_empty() && self.batch.is_empty() {
            return;
        }
        let handled = || {
            let from = || system.name(self.envelope.from);
            match self.handled {
                HandledEvent::Start => "its start".to_owned(),
                HandledEvent::Message(kind) => format!("{} from {}", M::KINDS[kind], from()),
                HandledEvent::Timer(token) if token >= Token::OWN => {
                    "the end of a sleep".to_owned()
                }
                HandledEvent::Timer(token) => format!("timer {token}"),
                HandledEvent::Spawned => "the addresses of actors it spawned".to_owned(),
                HandledEvent::Down => format!("the end of {}", from()),
                HandledEvent::Unanswered => format!("a request that {} will not answer", from()),
                HandledEvent::DeadLetter(kind) => {
                    format!("a dead letter, {} from {}", M::KINDS[kind], from())
                }
            }
        };
        // Stashed messages were counted as done, so they are counted as sent again; unread messages are counted as done
        // when they become dead letters.
        for entry in &mut self.stash {
            entry.epoch = system.counters.sent(1);
        }
        let mut unread = std::mem::take(&mut self.stash);
        unread.append(&mut self.batch);
        let handled = if panicking { handled() } else { String::new() };
        lock(&system.remains).insert(self.me, ActorRemains { handled, unread });
    }
}
