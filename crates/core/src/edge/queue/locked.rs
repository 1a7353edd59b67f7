//! A queue with all of its state under one lock: a rendezvous, a queue of messages with weights, or one that
//! drops or aborts when it is full.

mod blocked;
mod contents;
mod receiver;

pub(super) use receiver::LockedReceiver;

use super::deferred::DeferredWork;
use super::line::{LineHint, OfferState};
use super::lock::Lock;
use super::sender::SendTarget;
use crate::edge::abort::Abort;
use crate::edge::batch::Batch;
use crate::edge::error::{Aborted, TrySendError};
use crate::edge::meter::{EdgeStatistics, Source, State};
use crate::edge::options::Options;
use crate::edge::weigh::Weigh;
use crate::sync::{AtomicBool, Ordering};
use contents::{Contents, SendRefusal};
use crossbeam_utils::CachePadded;
use std::marker::PhantomData;
use std::task::Waker;

/// The state that all ends of a queue under one lock share.
pub struct LockedEdge<T, W> {
    contents: CachePadded<Lock<Contents<T>>>,
    line_hint: CachePadded<LineHint>,
    /// True if the receiver has found the edge empty, and no message has arrived since. Written under the lock.
    vacant: CachePadded<AtomicBool>,
    weigh: PhantomData<fn() -> W>,
}

impl<T, W: Weigh<T>> LockedEdge<T, W> {
    pub(super) fn new(options: &Options) -> LockedEdge<T, W> {
        LockedEdge {
            contents: CachePadded::new(Lock::new(Contents::new(options, W::ALL_ONE))),
            line_hint: CachePadded::new(LineHint::new()),
            vacant: CachePadded::new(AtomicBool::new(false)),
            weigh: PhantomData,
        }
    }

    /// Changes the contents, then does the wake-ups and drops that the change requires.
    #[inline]
    fn change<R>(&self, change: impl FnOnce(&mut Contents<T>, &mut DeferredWork<T>) -> R) -> R {
        let mut later = DeferredWork::new();
        let result = self.contents.with(|contents| {
            let result = change(contents, &mut later);
            self.update(contents);
            result
        });
        later.act();
        result
    }

    fn update(&self, contents: &Contents<T>) {
        self.line_hint
            .update(contents.decided(), contents.is_crowded());
        let vacant = contents.is_vacant();
        if self.vacant.load(Ordering::Relaxed) != vacant {
            self.vacant.store(vacant, Ordering::Release);
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> SendTarget<T> for LockedEdge<T, W> {
    #[inline]
    fn line_hint(&self) -> &LineHint {
        &self.line_hint
    }

    fn is_full(&self) -> bool {
        self.line_hint.is_crowded()
    }

    #[inline]
    fn put(&self, message: T) -> Result<(), TrySendError<T>> {
        let weight = W::weight(&message);
        let put = self.change(|contents, later| contents.put(message, weight, later));
        put.map_err(|refused| match refused {
            SendRefusal::Full(message, _) => TrySendError::Full(message),
            SendRefusal::Aborted(message) => TrySendError::Aborted(message),
        })
    }

    fn put_all(&self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        let weights: Vec<u64> = match W::ALL_ONE {
            true => Vec::new(),
            false => batch.remaining().iter().map(W::weight).collect(),
        };
        self.change(|contents, later| contents.put_all(batch, weights, later))
    }

    fn put_or_offer(&self, message: T, waker: &Waker) -> Result<Option<u64>, Aborted<T>> {
        let weight = W::weight(&message);
        self.change(|contents, later| contents.put_or_offer(message, weight, waker, later))
    }

    fn find_capacity(&self, waker: &Waker) -> Result<Option<u64>, Aborted<()>> {
        self.change(|contents, later| contents.find_capacity(waker, later))
    }

    fn renew(&self, number: u64, waker: &Waker) -> OfferState<T> {
        self.change(|contents, later| contents.renew(number, waker, later))
    }

    fn withdraw(&self, number: u64) -> Option<T> {
        self.change(|contents, later| contents.withdraw(number, later))
    }

    fn join(&self) {
        self.change(|contents, _| contents.join());
    }

    fn leave(&self) {
        self.change(Contents::leave);
    }
}

impl<T: Send, W: Weigh<T>> Abort for LockedEdge<T, W> {
    #[cold]
    fn abort(&self) {
        self.change(Contents::abort);
    }
}

impl<T: Send, W: Weigh<T>> Source for LockedEdge<T, W> {
    fn read(&self) -> EdgeStatistics {
        self.contents.with(|contents| contents.read())
    }

    fn state(&self) -> State {
        self.contents.with(|contents| contents.state())
    }

    fn filled(&self) -> (usize, usize) {
        self.contents.with(|contents| contents.filled())
    }
}
