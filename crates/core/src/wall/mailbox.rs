//! Mailboxes: bounded for messages, open for what the executor itself has to tell.
//!
//! A mailbox has one receiver, which takes everything out at once, and any number of senders. It
//! guarantees that
//! - letters of one sender come out in the order in which they went in;
//! - at most `capacity` messages wait in it (the receiver may hold as many again, taken out and
//!   not yet handled), while events of the executor (the end of an actor, say) always find room;
//! - a receiver that found nothing is woken by the next letter, and senders that found no room are
//!   woken when the receiver has taken something out;
//! - after [`Mailbox::close`] nothing goes in any more, and nothing that had gone in is lost: it
//!   came out, or it comes back from `close` or from `push`.
//!
//! What happens to a message that finds no room is not decided here but by
//! [`Shared::post`](super::shared::Shared::post).
//!
//! Two implementations: [`Queue`] here, for executors that run many actors on few threads, and
//! [`Channel`](super::channel::Channel) for actors that are threads.

use super::letter::Letter;
use crate::Message;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What became of a letter.
#[derive(Debug)]
pub(crate) enum Pushed<M> {
    /// It is in the mailbox.
    In,
    /// There is no room.
    Full(Letter<M>),
    /// The receiver has ended.
    Closed(Letter<M>),
}

/// See the [module](self).
pub(crate) trait Mailbox<M: Message>: Send + Sync + 'static {
    /// An empty mailbox with room for so many messages.
    fn new(capacity: usize) -> Self;

    /// Puts a message in if there is room.
    fn push(&self, letter: Letter<M>, capacity: usize) -> Pushed<M>;

    /// Puts a letter in, room or not; gives it back if the mailbox is closed.
    fn push_always(&self, letter: Letter<M>) -> Result<(), Letter<M>>;

    /// Removes the message that has waited longest, to make room.
    fn pop_oldest(&self) -> Option<Letter<M>>;

    /// Moves everything to the end of `batch`. If there is nothing, answers `false`, and the next
    /// letter wakes `receiver`.
    fn take(&self, batch: &mut VecDeque<Letter<M>>, receiver: &Waker) -> bool;

    /// Whether a sender may try again. If not, `sender` is woken when it may.
    fn has_room(&self, capacity: usize, sender: &Waker) -> bool;

    /// Names the task of the receiver, for [`Mailbox::wake`].
    fn attach(&self, receiver: &Waker);

    /// The waker named last.
    fn receiver(&self) -> Option<Waker>;

    /// Wakes the receiver, whatever it waits for.
    fn wake(&self) {
        if let Some(receiver) = self.receiver() {
            receiver.wake();
        }
    }

    /// Lets nothing in any more, and gives back what had not been taken.
    fn close(&self) -> VecDeque<Letter<M>>;
}

/// A queue under a lock that is held for a few instructions: a push, or the exchange of the whole
/// queue for the receiver's empty one. The two exchange their memory with it, so in steady state
/// nothing is allocated, and a lock serves a whole batch.
pub(crate) struct Queue<M> {
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
    /// Senders that wait for room.
    senders: Vec<Waker>,
}

/// Memory for more letters than this is given back when the receiver has nothing to do.
const KEPT: usize = 32;

impl<M> Queue<M> {
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        // No code of an actor runs under the lock, so a poisoned one is as good as any.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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

impl<M: Message> Mailbox<M> for Queue<M> {
    fn new(_: usize) -> Queue<M> {
        Queue {
            inner: Mutex::new(Inner {
                letters: VecDeque::new(),
                messages: 0,
                closed: false,
                waiting: false,
                receiver: None,
                senders: Vec::new(),
            }),
        }
    }

    #[inline]
    fn push(&self, letter: Letter<M>, capacity: usize) -> Pushed<M> {
        let mut inner = self.lock();
        if inner.closed {
            return Pushed::Closed(letter);
        }
        if inner.messages >= capacity {
            return Pushed::Full(letter);
        }
        let receiver = inner.put(letter);
        drop(inner);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        Pushed::In
    }

    fn push_always(&self, letter: Letter<M>) -> Result<(), Letter<M>> {
        match self.push(letter, usize::MAX) {
            Pushed::In => Ok(()),
            Pushed::Full(letter) | Pushed::Closed(letter) => Err(letter),
        }
    }

    fn pop_oldest(&self) -> Option<Letter<M>> {
        let mut inner = self.lock();
        let oldest = inner.letters.iter().position(Letter::is_message)?;
        inner.messages -= 1;
        inner.letters.remove(oldest)
    }

    fn take(&self, batch: &mut VecDeque<Letter<M>>, receiver: &Waker) -> bool {
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
            drop(inner);
            if batch.capacity() > KEPT && batch.is_empty() {
                *batch = VecDeque::new();
            }
            return false;
        }
        if batch.is_empty() {
            std::mem::swap(batch, &mut inner.letters);
        } else {
            batch.append(&mut inner.letters);
        }
        inner.messages = 0;
        inner.waiting = false;
        let senders = std::mem::take(&mut inner.senders);
        drop(inner);
        senders.into_iter().for_each(Waker::wake);
        true
    }

    fn has_room(&self, capacity: usize, sender: &Waker) -> bool {
        let mut inner = self.lock();
        if inner.closed || inner.messages < capacity {
            return true;
        }
        if !inner.senders.iter().any(|known| known.will_wake(sender)) {
            inner.senders.push(sender.clone());
        }
        false
    }

    fn attach(&self, receiver: &Waker) {
        self.lock().receiver = Some(receiver.clone());
    }

    fn receiver(&self) -> Option<Waker> {
        self.lock().receiver.clone()
    }

    fn close(&self) -> VecDeque<Letter<M>> {
        let mut inner = self.lock();
        inner.closed = true;
        inner.receiver = None;
        let senders = std::mem::take(&mut inner.senders);
        let letters = std::mem::take(&mut inner.letters);
        drop(inner);
        senders.into_iter().for_each(Waker::wake);
        letters
    }
}
