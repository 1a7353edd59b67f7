//! What a context leaves when it is dropped, with the body that owned it.
//!
//! While the run goes on this is for the actor's [life](crate::wall::life) to settle: what it was
//! handling, if it panicked, and what it had not read. When the run is over, it is what the report
//! says of an actor that still waited.

use super::WallContext;
use crate::contract::{Message, Token};
use crate::wall::Runtime;
use crate::wall::letter::Letter;
use crate::wall::shared::lock;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;

/// What an actor was handling, for the report of its panic.
#[derive(Clone, Copy)]
pub(super) enum Handled {
    Start,
    Message(usize),
    Timer(u32),
    Spawned,
    Down,
    DeadLetter(usize),
}

/// What an actor leaves when its context is dropped.
pub(crate) struct Remains<M> {
    /// What it was handling.
    pub(in crate::wall) handled: String,
    /// What it had received and not handled.
    pub(in crate::wall) unread: VecDeque<Letter<M>>,
}

impl<M> Default for Remains<M> {
    fn default() -> Remains<M> {
        Remains {
            handled: "making its body".to_owned(),
            unread: VecDeque::new(),
        }
    }
}

impl<M: Message, R: Runtime> Drop for WallContext<M, R> {
    fn drop(&mut self) {
        self.ledger.tell(&self.shared.tally);
        let shared = &self.shared;
        if shared.config.per_actor {
            lock(&shared.left).count(self.me, self.sendings.into(), self.received);
        }
        if shared.is_ending() {
            // What ends by itself in this moment does not wait.
            let ends = self.cell().is_stopping() || self.cell().polled.load(Relaxed);
            if !ends {
                lock(&shared.left).wait(self.me, self.waiting, self.stash.len());
            }
            return;
        }
        let panicking = std::thread::panicking();
        if !panicking && self.stash.is_empty() && self.batch.is_empty() {
            return;
        }
        let handled = || {
            let from = || shared.name(self.envelope.from);
            match self.handled {
                Handled::Start => "its start".to_owned(),
                Handled::Message(kind) => format!("{} from {}", M::KINDS[kind], from()),
                Handled::Timer(token) if token >= Token::OWN => "the end of a sleep".to_owned(),
                Handled::Timer(token) => format!("timer {token}"),
                Handled::Spawned => "the addresses of actors it spawned".to_owned(),
                Handled::Down => format!("the end of {}", from()),
                Handled::DeadLetter(kind) => {
                    format!("a dead letter, {} from {}", M::KINDS[kind], from())
                }
            }
        };
        // Kept letters count as done already; those not looked at do when they are buried.
        for letter in &mut self.stash {
            letter.epoch = shared.tally.sent();
        }
        let mut unread = std::mem::take(&mut self.stash);
        unread.append(&mut self.batch);
        let handled = if panicking { handled() } else { String::new() };
        lock(&shared.remains).insert(self.me, Remains { handled, unread });
    }
}
