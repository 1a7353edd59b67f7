//! Mailboxes: bounded for messages, open for what the executor itself has to tell.
//!
//! A mailbox has one receiver, which takes everything out at once, and any number of senders. It
//! guarantees that
//! - letters of one sender come out in the order in which they went in;
//! - it says so when a message found `capacity` others waiting; a sender that is to wait for room
//!   then has its message in the mailbox all the same, in its turn, and is
//!   [released](Mailbox::take) when the receiver takes it out. So no sender has to try again, and a
//!   thousand senders of a full mailbox cost no more than one;
//! - events of the executor (the end of an actor, say) always find room;
//! - a receiver that found nothing is woken by the next letter;
//! - after [`Mailbox::close`] nothing goes in any more, and nothing that had gone in is lost: it
//!   came out, or it comes back from `close` or from `push`.
//!
//! What happens to a message that finds no room is decided by
//! [`System::post`](super::system::System::post).
//!
//! It is a queue under a lock that is held for a few instructions: a push, or the exchange of the
//! whole queue for the receiver's empty one. The two exchange their memory with it, so in steady
//! state nothing is allocated, and a lock serves a whole batch.

use super::letter::Letter;
use crate::contract::{Addr, Event};
use crate::sync::lock;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

/// What became of a letter.
#[derive(Debug)]
pub(crate) enum Pushed<M> {
    /// It is in the mailbox.
    In,
    /// It is in the mailbox, above the bound: its sender is to wait until it is released.
    Over,
    /// There is no room.
    Full(Letter<M>),
    /// The receiver has ended.
    Closed(Letter<M>),
}

/// See the [module](self).
pub(crate) struct Mailbox<M> {
    inner: Mutex<Inner<M>>,
}

struct Inner<M> {
    letters: VecDeque<Letter<M>>,
    /// How many of them are messages.
    messages: usize,
    closed: bool,
    /// Whether the receiver is to be woken.
    waiting: bool,
    receiver: Option<Waker>,
    /// The senders of what lies above the bound.
    over: Vec<Addr>,
}

/// A receiver that has nothing to do gives memory for more letters than this back.
const KEPT: usize = 32;

impl<M> Inner<M> {
    #[inline]
    fn put(&mut self, letter: Letter<M>) -> Option<Waker> {
        self.messages += usize::from(letter.is_message());
        self.letters.push_back(letter);
        if self.waiting {
            self.waiting = false;
            self.receiver.clone()
        } else {
            None
        }
    }
}

impl<M> Mailbox<M> {
    /// An empty mailbox.
    pub(crate) fn new() -> Mailbox<M> {
        Mailbox {
            inner: Mutex::new(Inner {
                letters: VecDeque::new(),
                messages: 0,
                closed: false,
                waiting: false,
                receiver: None,
                over: Vec::new(),
            }),
        }
    }

    // No code of an actor runs under the lock.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        lock(&self.inner)
    }

    /// Puts a message in if fewer than `capacity` wait, or if the sender will `wait` for room.
    #[inline]
    pub(crate) fn push(&self, letter: Letter<M>, capacity: usize, wait: bool) -> Pushed<M> {
        let mut inner = self.lock();
        if inner.closed {
            return Pushed::Closed(letter);
        }
        let over = inner.messages >= capacity;
        if over {
            match letter.event {
                Event::Message { from, .. } if wait => inner.over.push(from),
                _ => return Pushed::Full(letter),
            }
        }
        let receiver = inner.put(letter);
        drop(inner);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        if over { Pushed::Over } else { Pushed::In }
    }

    /// Puts a letter in, room or not; gives it back if the mailbox is closed.
    pub(crate) fn push_always(&self, letter: Letter<M>) -> Result<(), Letter<M>> {
        match self.push(letter, usize::MAX, false) {
            Pushed::In | Pushed::Over => Ok(()),
            Pushed::Full(letter) | Pushed::Closed(letter) => Err(letter),
        }
    }

    /// Removes the message that has waited longest, to make room.
    pub(crate) fn pop_oldest(&self) -> Option<Letter<M>> {
        let mut inner = self.lock();
        let oldest = inner.letters.iter().position(Letter::is_message)?;
        inner.messages -= 1;
        inner.letters.remove(oldest)
    }

    /// Moves everything to the end of `batch`, and the senders of what lay above the bound to
    /// `released`. If there is nothing, returns `false`, and the next letter wakes `receiver`.
    #[inline]
    pub(crate) fn take(
        &self,
        batch: &mut VecDeque<Letter<M>>,
        released: &mut Vec<Addr>,
        receiver: &Waker,
    ) -> bool {
        let mut inner = self.lock();
        if inner.letters.is_empty() {
            inner.waiting = true;
            if !inner
                .receiver
                .as_ref()
                .is_some_and(|known| known.will_wake(receiver))
            {
                inner.receiver = Some(receiver.clone());
            }
            // An actor that has nothing to do needs the memory of one batch, not of two.
            if batch.is_empty() && batch.capacity() > inner.letters.capacity() {
                std::mem::swap(batch, &mut inner.letters);
            }
            drop(inner);
            if batch.is_empty() && batch.capacity() > KEPT {
                *batch = VecDeque::new();
            }
            return false;
        }
        if batch.is_empty() {
            std::mem::swap(batch, &mut inner.letters);
        } else {
            batch.append(&mut inner.letters);
        }
        released.append(&mut inner.over);
        inner.messages = 0;
        inner.waiting = false;
        true
    }

    /// Names the task of the receiver, for [`Mailbox::wake`].
    pub(crate) fn attach(&self, receiver: &Waker) {
        self.lock().receiver = Some(receiver.clone());
    }

    /// The waker named last.
    pub(crate) fn receiver(&self) -> Option<Waker> {
        self.lock().receiver.clone()
    }

    /// Wakes the receiver, whatever it waits for.
    pub(crate) fn wake(&self) {
        if let Some(receiver) = self.receiver() {
            receiver.wake();
        }
    }

    /// Lets nothing in any more, and returns what had not been taken, as [`Mailbox::take`].
    pub(crate) fn close(&self) -> (VecDeque<Letter<M>>, Vec<Addr>) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.receiver = None;
        (
            std::mem::take(&mut inner.letters),
            std::mem::take(&mut inner.over),
        )
    }
}
