//! Mailboxes: bounded for messages, unbounded for events of the executor.
//!
//! A mailbox has one receiver, which takes out all entries at once, and any number of senders. It guarantees:
//! - Entries of one sender come out in the order in which they went in.
//! - A message for a full mailbox is reported as such. If its sender waits for capacity, the message is added to the
//!   mailbox anyway, in order, and the sender is [released](Mailbox::take) when the receiver takes the message out. So
//!   no sender has to try again, and a thousand waiting senders cost no more than one.
//! - Events of the executor, such as the end of an actor, are always accepted.
//! - A receiver that found no entry is woken by the next one.
//! - After [`Mailbox::close`] no entry is accepted any more, and no accepted entry is lost: the receiver has taken it
//!   out, or `close` or `push` returns it.
//!
//! [`System::post`](super::system::System::post) decides what happens to a message that finds the mailbox full.
//!
//! A mailbox is a queue under a lock that is held for a few instructions: a push, or the swap of the whole queue for
//! the receiver's empty one. The two queues swap their memory, too, so nothing is allocated in steady state, and one
//! lock serves a whole batch.

use super::mailbox_entry::MailboxEntry;
use crate::contract::{Addr, Event};
#[cfg(loom)]
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::iter;
use std::ops::DerefMut;
#[cfg(not(loom))]
use std::sync::Mutex;
use std::sync::PoisonError;
use std::task::Waker;

/// The reason why a mailbox refused a message.
#[derive(Debug)]
pub(crate) enum MailboxRefusal<M> {
    /// The mailbox is full.
    Full(MailboxEntry<M>),
    /// The receiver has ended.
    Closed(MailboxEntry<M>),
}

/// A mailbox; see the [module](self).
pub(crate) struct Mailbox<M> {
    inner: Mutex<Inner<M>>,
}

struct Inner<M> {
    entries: VecDeque<MailboxEntry<M>>,
    /// The number of entries that are messages.
    messages: usize,
    closed: bool,
    /// True if the receiver must be woken.
    waiting: bool,
    /// The waker of the receiver's task.
    task: Option<Waker>,
    /// The waker to use instead of the task's waker. It belongs to a combinator, which must learn which of its futures
    /// was woken.
    receiver: Option<Waker>,
    /// The senders of the messages above the capacity.
    over: Vec<Addr>,
}

/// The capacity above which an idle receiver frees memory.
const KEPT: usize = 32;

impl<M> Inner<M> {
    /// Adds messages like [`Mailbox::push`], without waking the receiver.
    #[inline]
    fn put(
        &mut self,
        row: &mut impl ExactSizeIterator<Item = MailboxEntry<M>>,
        capacity: usize,
        wait: bool,
    ) -> Result<usize, MailboxRefusal<M>> {
        if !self.closed {
            // Most actors of a large run wait for one message at a time, and `reserve` would allocate four.
            match self.entries.capacity() {
                0 => self.entries.reserve_exact(row.len()),
                _ => self.entries.reserve(row.len()),
            }
        }
        let mut over = 0;
        for entry in row {
            if self.closed {
                return Err(MailboxRefusal::Closed(entry));
            }
            if self.messages >= capacity {
                match entry.event {
                    Event::Message { from, .. } if wait => self.over.push(from),
                    _ => return Err(MailboxRefusal::Full(entry)),
                }
                over += 1;
            }
            self.messages += usize::from(entry.is_message());
            self.entries.push_back(entry);
        }
        Ok(over)
    }

    /// Returns the waker to call after entries were put in.
    #[inline]
    fn awaited(&mut self) -> Option<Waker> {
        if self.waiting && !self.entries.is_empty() {
            self.waiting = false;
            self.waker()
        } else {
            None
        }
    }

    fn waker(&self) -> Option<Waker> {
        self.receiver.as_ref().or(self.task.as_ref()).cloned()
    }
}

impl<M> Mailbox<M> {
    /// Creates an empty mailbox.
    pub(crate) fn new() -> Mailbox<M> {
        Mailbox {
            inner: Mutex::new(Inner {
                entries: VecDeque::new(),
                messages: 0,
                closed: false,
                waiting: false,
                task: None,
                receiver: None,
                over: Vec::new(),
            }),
        }
    }

    // Locks the mailbox. No code of an actor runs under the lock, so the state is consistent even if the lock is
    // poisoned.
    #[inline]
    fn lock(&self) -> impl DerefMut<Target = Inner<M>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds messages of one sender in order, with one lock and one wake-up. A message is accepted if fewer than
    /// `capacity` messages are waiting, or if the sender will `wait` for capacity. Returns the number of messages above
    /// the capacity, for whose release the sender must wait. The first refused message is returned; those after it stay
    /// in `row`.
    #[inline]
    pub(crate) fn push(
        &self,
        row: &mut impl ExactSizeIterator<Item = MailboxEntry<M>>,
        capacity: usize,
        wait: bool,
    ) -> Result<usize, MailboxRefusal<M>> {
        let mut inner = self.lock();
        let pushed = inner.put(row, capacity, wait);
        let receiver = inner.awaited();
        drop(inner);
        if let Some(receiver) = receiver {
            receiver.wake();
        }
        pushed
    }

    /// Puts an entry in, even above the capacity; returns it if the mailbox is closed.
    pub(crate) fn push_always(&self, entry: MailboxEntry<M>) -> Result<(), MailboxEntry<M>> {
        match self.push(&mut iter::once(entry), usize::MAX, false) {
            Ok(_) => Ok(()),
            Err(MailboxRefusal::Full(entry) | MailboxRefusal::Closed(entry)) => Err(entry),
        }
    }

    /// Removes the oldest message, to free capacity.
    pub(crate) fn pop_oldest(&self) -> Option<MailboxEntry<M>> {
        let mut inner = self.lock();
        let oldest = inner.entries.iter().position(MailboxEntry::is_message)?;
        inner.messages -= 1;
        inner.entries.remove(oldest)
    }

    /// Moves all entries to the end of `batch`, and the senders of those above the capacity to `released`. If
    /// there are no entries, returns `false`, and the next entry wakes `receiver`, or else the poller of the
    /// receiver.
    #[inline]
    pub(crate) fn take(
        &self,
        batch: &mut VecDeque<MailboxEntry<M>>,
        released: &mut Vec<Addr>,
        receiver: Option<&Waker>,
    ) -> bool {
        let mut inner = self.lock();
        if inner.entries.is_empty() {
            inner.waiting = true;
            let before = std::mem::replace(&mut inner.receiver, receiver.cloned());
            // An idle actor needs only one of the two queues.
            if batch.is_empty() && batch.capacity() > inner.entries.capacity() {
                std::mem::swap(batch, &mut inner.entries);
            }
            drop(inner);
            drop(before);
            if batch.is_empty() && batch.capacity() > KEPT {
                *batch = VecDeque::new();
            }
            return false;
        }
        if batch.is_empty() {
            std::mem::swap(batch, &mut inner.entries);
        } else {
            batch.append(&mut inner.entries);
        }
        released.append(&mut inner.over);
        inner.messages = 0;
        inner.waiting = false;
        true
    }

    /// Stores the waker of the receiver's task.
    pub(crate) fn attach(&self, task: &Waker) {
        self.lock().task = Some(task.clone());
    }

    /// Returns the waker of the receiver's task, from its first poll to its end.
    pub(crate) fn task(&self) -> Option<Waker> {
        self.lock().task.clone()
    }

    /// Drops the receiver's waker, because the receiver takes nothing out any more.
    pub(crate) fn leave(&self) {
        let receiver = self.lock().receiver.take();
        drop(receiver);
    }

    /// Wakes the receiver, whatever it waits for.
    pub(crate) fn wake(&self) {
        let receiver = self.lock().waker();
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    /// Closes the mailbox, and returns the remaining entries, like [`Mailbox::take`].
    pub(crate) fn close(&self) -> (VecDeque<MailboxEntry<M>>, Vec<Addr>) {
        let mut inner = self.lock();
        inner.closed = true;
        let wakers = (inner.task.take(), inner.receiver.take());
        let left = std::mem::take(&mut inner.entries);
        let released = std::mem::take(&mut inner.over);
        drop(inner);
        drop(wakers);
        (left, released)
    }
}

/// Loom models: `RUSTFLAGS="--cfg loom" cargo test -p corsair --release --lib mailbox::loom`.
#[cfg(all(test, loom))]
mod loom {
    use super::{Mailbox, MailboxEntry, MailboxRefusal};
    use crate::contract::{Addr, Event, SpanId, Time};
    use crate::sync::{AtomicBool, Ordering::SeqCst};
    use loom::sync::{Arc, Notify};
    use loom::thread;
    use std::collections::VecDeque;
    use std::task::{Wake, Waker};

    /// A waker that wakes a waiting thread.
    struct Task(Notify);

    impl Wake for Task {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.notify();
        }
    }

    fn entry(from: u32, body: u32) -> MailboxEntry<u32> {
        let event = Event::Message {
            from: Addr(from),
            body,
        };
        MailboxEntry {
            span: SpanId::new(Addr(from), body),
            ..MailboxEntry::system(event, Time::ZERO)
        }
    }

    /// Two senders each put in a row of messages, and the first one sends `again` further messages. The receiver takes
    /// messages until it has all of them. If a wake-up is lost, loom reports an endless wait.
    fn all_arrive(capacity: usize, again: u32) {
        loom::model(move || {
            let mailbox = Arc::new(Mailbox::new());
            let senders = [(1, again), (2, 0)].map(|(from, again)| {
                let mailbox = Arc::clone(&mailbox);
                thread::spawn(move || {
                    let mut row = [entry(from, 1), entry(from, 2)].into_iter();
                    let mut over = mailbox.push(&mut row, capacity, true).unwrap();
                    for more in 0..again {
                        let mut row = [entry(from, 3 + more)].into_iter();
                        over += mailbox.push(&mut row, capacity, true).unwrap();
                    }
                    over
                })
            });
            let task = std::sync::Arc::new(Task(Notify::new()));
            let waker = Waker::from(task.clone());
            mailbox.attach(&waker);
            let (mut batch, mut released) = (VecDeque::new(), Vec::new());
            let mut seen = [0; 3];
            while seen[1] + seen[2] < 4 + again {
                if !mailbox.take(&mut batch, &mut released, None) {
                    task.0.wait();
                }
                for MailboxEntry { event, .. } in batch.drain(..) {
                    let Event::Message { from, body } = event else {
                        unreachable!("messages alone were sent")
                    };
                    let seen = &mut seen[from.0 as usize];
                    *seen += 1;
                    assert_eq!(body, *seen, "in the order of sending");
                }
            }
            let over: usize = senders.map(|sender| sender.join().unwrap()).iter().sum();
            assert_eq!(over, released.len(), "waiting senders are released");
        });
    }

    #[test]
    fn rows_arrive_in_order_and_wake_the_receiver() {
        all_arrive(usize::MAX, 0);
        all_arrive(1, 0);
        all_arrive(usize::MAX, 1);
    }

    #[test]
    fn what_goes_in_before_the_end_comes_out_and_what_comes_later_comes_back() {
        loom::model(|| {
            let mailbox = Arc::new(Mailbox::new());
            let went_in = Arc::new(AtomicBool::new(false));
            let sender = {
                let (mailbox, went_in) = (Arc::clone(&mailbox), Arc::clone(&went_in));
                thread::spawn(move || {
                    let mut row = [entry(1, 1), entry(1, 2)].into_iter();
                    match mailbox.push(&mut row, 1, true) {
                        Ok(over) => {
                            assert_eq!(over, 1);
                            went_in.store(true, SeqCst);
                        }
                        Err(MailboxRefusal::Closed(first)) => {
                            assert_eq!(first.span, SpanId::new(Addr(1), 1));
                            assert_eq!(row.len(), 1, "the others are the sender's");
                        }
                        Err(MailboxRefusal::Full(_)) => {
                            unreachable!("the sender waits for capacity")
                        }
                    }
                })
            };
            let (left, released) = mailbox.close();
            sender.join().unwrap();
            let whole_row = if went_in.load(SeqCst) { 2 } else { 0 };
            assert_eq!((left.len(), released.len()), (whole_row, whole_row / 2));
        });
    }
}
