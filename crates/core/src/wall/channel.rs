//! The mailbox of an actor that is a thread: a bounded channel, and beside it what is never
//! refused.
//!
//! The channel bounds the messages. Events of the executor lie in a list of their own; the
//! receiver empties the list first and the channel second, and puts the list's events behind the
//! messages, so the end of an actor is never told before what it had sent.
//!
//! Waking needs no lock unless somebody waits. A receiver says so (`waiting`) before it looks a
//! last time, and a sender looks at `waiting` after it has put something in; both in the order
//! that everybody sees (SeqCst), so one of the two sees the other. The same holds between senders
//! that wait for room (`blocked`) and the receiver, and between a late sender and
//! [`Mailbox::close`] (`closed`).

use super::letter::Letter;
use super::mailbox::{Mailbox, Pushed};
use crate::Message;
use crossbeam_channel::{Receiver, Sender, TrySendError};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// See the [module](self).
pub(crate) struct Channel<M> {
    messages: (Sender<Letter<M>>, Receiver<Letter<M>>),
    side: Mutex<Side<M>>,
    /// The side list may hold something.
    beside: AtomicBool,
    waiting: AtomicBool,
    blocked: AtomicBool,
    closed: AtomicBool,
}

/// What is rarely touched.
struct Side<M> {
    system: VecDeque<Letter<M>>,
    receiver: Option<Waker>,
    senders: Vec<Waker>,
}

impl<M> Channel<M> {
    fn side(&self) -> MutexGuard<'_, Side<M>> {
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the receiver if it waits for a letter.
    fn announce(&self) {
        fence(SeqCst);
        if self.waiting.load(SeqCst) && self.waiting.swap(false, SeqCst) {
            let receiver = self.side().receiver.clone();
            receiver.into_iter().for_each(Waker::wake);
        }
    }

    /// Wakes the senders that wait for room.
    fn invite(&self) {
        fence(SeqCst);
        if self.blocked.load(SeqCst) && self.blocked.swap(false, SeqCst) {
            let senders = std::mem::take(&mut self.side().senders);
            senders.into_iter().for_each(Waker::wake);
        }
    }

    /// Moves what is there to the end of `batch`; whether there was anything.
    fn drain(&self, batch: &mut VecDeque<Letter<M>>) -> bool {
        let before = batch.len();
        let mut system = VecDeque::new();
        if self.beside.swap(false, SeqCst) {
            system = std::mem::take(&mut self.side().system);
        }
        batch.extend(self.messages.1.try_iter());
        batch.append(&mut system);
        batch.len() > before
    }
}

impl<M: Message> Mailbox<M> for Channel<M> {
    fn new(capacity: usize) -> Channel<M> {
        Channel {
            messages: crossbeam_channel::bounded(capacity),
            side: Mutex::new(Side {
                system: VecDeque::new(),
                receiver: None,
                senders: Vec::new(),
            }),
            beside: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    fn push(&self, letter: Letter<M>, _: usize) -> Pushed<M> {
        if self.closed.load(SeqCst) {
            return Pushed::Closed(letter);
        }
        match self.messages.0.try_send(letter) {
            Err(TrySendError::Full(letter)) => return Pushed::Full(letter),
            Err(TrySendError::Disconnected(letter)) => return Pushed::Closed(letter),
            Ok(()) => fence(SeqCst),
        }
        if self.closed.load(SeqCst) {
            // `close` may have looked before the letter was there. Every sender this late takes
            // one letter back, its own or that of another as late.
            return self
                .messages
                .1
                .try_recv()
                .map_or(Pushed::In, Pushed::Closed);
        }
        self.announce();
        Pushed::In
    }

    fn push_always(&self, letter: Letter<M>) -> Result<(), Letter<M>> {
        let mut side = self.side();
        // `close` sets this under the lock, so nothing is put in after it has looked.
        if self.closed.load(SeqCst) {
            return Err(letter);
        }
        side.system.push_back(letter);
        self.beside.store(true, SeqCst);
        drop(side);
        self.announce();
        Ok(())
    }

    fn pop_oldest(&self) -> Option<Letter<M>> {
        self.messages.1.try_recv().ok()
    }

    fn take(&self, batch: &mut VecDeque<Letter<M>>, receiver: &Waker) -> bool {
        if !self.drain(batch) {
            let mut side = self.side();
            if !side
                .receiver
                .as_ref()
                .is_some_and(|known| known.will_wake(receiver))
            {
                side.receiver = Some(receiver.clone());
            }
            drop(side);
            self.waiting.store(true, SeqCst);
            fence(SeqCst);
            if !self.drain(batch) {
                return false;
            }
            self.waiting.store(false, SeqCst);
        }
        self.invite();
        true
    }

    fn has_room(&self, _: usize, sender: &Waker) -> bool {
        let mut side = self.side();
        if !side.senders.iter().any(|known| known.will_wake(sender)) {
            side.senders.push(sender.clone());
        }
        drop(side);
        self.blocked.store(true, SeqCst);
        fence(SeqCst);
        self.closed.load(SeqCst) || !self.messages.0.is_full()
    }

    fn attach(&self, receiver: &Waker) {
        self.side().receiver = Some(receiver.clone());
    }

    fn receiver(&self) -> Option<Waker> {
        self.side().receiver.clone()
    }

    fn close(&self) -> VecDeque<Letter<M>> {
        let mut side = self.side();
        self.closed.store(true, SeqCst);
        side.receiver = None;
        drop(side);
        fence(SeqCst);
        let mut left = VecDeque::new();
        self.beside.store(true, SeqCst);
        self.drain(&mut left);
        self.invite();
        left
    }
}
