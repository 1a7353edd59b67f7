//! The mailbox of an actor that is a thread: a bounded channel, and beside it what the channel
//! does not take.
//!
//! The channel holds the messages, up to the bound. Beside it, under a lock, lie messages above
//! the bound and events of the executor. As long as something lies there (`beside`), senders and
//! the receiver go through the lock: senders put nothing into the channel that would overtake what
//! they have beside it, and the receiver takes the channel first, then the messages beside it,
//! then the events, so the end of an actor is never told before what it had sent.
//!
//! Without anything beside it, no lock is taken unless the receiver waits. It says so (`waiting`)
//! before it looks a last time, and a sender looks at `waiting` after it has put something in, both
//! in an order that everybody sees (SeqCst), so one of the two sees the other. The same holds
//! between a sender that finds the channel full and the receiver (`beside`), and between a late
//! sender and [`Mailbox::close`] (`closed`).

use super::letter::Letter;
use super::mailbox::{Mailbox, Pushed};
use crate::contract::{Addr, Event, Message};
use crossbeam_channel::{Receiver, Sender, TrySendError};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// See the [module](self).
pub(crate) struct Channel<M> {
    sender: Sender<Letter<M>>,
    /// Also of those who make room by taking the oldest out.
    receiver: Receiver<Letter<M>>,
    side: Mutex<Side<M>>,
    /// Something lies beside the channel. Changed under the lock.
    beside: AtomicBool,
    waiting: AtomicBool,
    closed: AtomicBool,
}

/// What is rarely touched.
struct Side<M> {
    over: VecDeque<Letter<M>>,
    system: VecDeque<Letter<M>>,
    task: Option<Waker>,
}

impl<M: Message> Channel<M> {
    fn side(&self) -> MutexGuard<'_, Side<M>> {
        self.side.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the receiver if it waits for a letter.
    fn announce(&self) {
        fence(SeqCst);
        if self.waiting.load(SeqCst) && self.waiting.swap(false, SeqCst) {
            self.wake();
        }
    }

    /// Puts a message into the channel, if nothing of its sender lies beside it.
    fn try_push(&self, letter: Letter<M>) -> Result<(), Letter<M>> {
        self.sender
            .try_send(letter)
            .map_err(TrySendError::into_inner)
    }

    /// Puts a message beside the channel, unless there is room in it by now.
    fn push_beside(&self, letter: Letter<M>, wait: bool) -> Pushed<M> {
        let mut side = self.side();
        // From here on the receiver looks beside the channel when it has emptied it.
        self.beside.store(true, SeqCst);
        fence(SeqCst);
        let retried = if side.over.is_empty() {
            self.try_push(letter)
        } else {
            Err(letter)
        };
        let pushed = match retried {
            Ok(()) => Pushed::In,
            Err(letter) if wait && !self.closed.load(SeqCst) => {
                side.over.push_back(letter);
                Pushed::Over
            }
            Err(letter) => Pushed::Full(letter),
        };
        self.beside
            .store(!(side.over.is_empty() && side.system.is_empty()), SeqCst);
        pushed
    }

    /// Moves what is there to the end of `batch`; whether there was anything.
    fn drain(&self, batch: &mut VecDeque<Letter<M>>, released: &mut Vec<Addr>) -> bool {
        let before = batch.len();
        if self.beside.load(SeqCst) {
            let mut side = self.side();
            batch.extend(self.receiver.try_iter());
            released.extend(side.over.iter().map(|letter| match letter.event {
                Event::Message { from, .. } => from,
                _ => Addr::NONE,
            }));
            batch.append(&mut side.over);
            batch.append(&mut side.system);
            self.beside.store(false, SeqCst);
        } else {
            batch.extend(self.receiver.try_iter());
            // A sender that found the channel full a moment ago may have gone beside it.
            fence(SeqCst);
            if self.beside.load(SeqCst) {
                return self.drain(batch, released) || batch.len() > before;
            }
        }
        batch.len() > before
    }
}

impl<M: Message> Mailbox<M> for Channel<M> {
    fn new(capacity: usize) -> Channel<M> {
        let (sender, receiver) = crossbeam_channel::bounded(capacity);
        Channel {
            sender,
            receiver,
            side: Mutex::new(Side {
                over: VecDeque::new(),
                system: VecDeque::new(),
                task: None,
            }),
            beside: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    fn push(&self, letter: Letter<M>, _: usize, wait: bool) -> Pushed<M> {
        if self.closed.load(SeqCst) {
            return Pushed::Closed(letter);
        }
        let tried = if self.beside.load(SeqCst) {
            Err(letter)
        } else {
            self.try_push(letter)
        };
        let pushed = match tried {
            Ok(()) => Pushed::In,
            Err(letter) => self.push_beside(letter, wait),
        };
        match pushed {
            Pushed::Full(letter) if self.closed.load(SeqCst) => return Pushed::Closed(letter),
            Pushed::Full(_) | Pushed::Closed(_) => return pushed,
            Pushed::In | Pushed::Over => {}
        }
        fence(SeqCst);
        if matches!(pushed, Pushed::In) && self.closed.load(SeqCst) {
            // `close` may have looked before the letter was there. Every sender this late takes
            // one letter back, its own or that of another as late.
            return self.receiver.try_recv().map_or(Pushed::In, Pushed::Closed);
        }
        self.announce();
        pushed
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
        self.receiver.try_recv().ok()
    }

    fn take(
        &self,
        batch: &mut VecDeque<Letter<M>>,
        released: &mut Vec<Addr>,
        receiver: &Waker,
    ) -> bool {
        if self.drain(batch, released) {
            return true;
        }
        let mut side = self.side();
        if !side
            .task
            .as_ref()
            .is_some_and(|known| known.will_wake(receiver))
        {
            side.task = Some(receiver.clone());
        }
        drop(side);
        self.waiting.store(true, SeqCst);
        fence(SeqCst);
        let arrived = self.drain(batch, released);
        if arrived {
            self.waiting.store(false, SeqCst);
        }
        arrived
    }

    fn attach(&self, receiver: &Waker) {
        self.side().task = Some(receiver.clone());
    }

    fn receiver(&self) -> Option<Waker> {
        self.side().task.clone()
    }

    fn close(&self) -> (VecDeque<Letter<M>>, Vec<Addr>) {
        let mut side = self.side();
        self.closed.store(true, SeqCst);
        side.task = None;
        drop(side);
        let (mut left, mut released) = Default::default();
        self.drain(&mut left, &mut released);
        (left, released)
    }
}
