//! What all ends of a queue share: the contents under their lock, and what may be read without it.

use super::contents::Contents;
use super::later::Later;
use crate::edge::abort::Abort;
use crate::edge::meter::{EdgeStatistics, Source, State};
use crate::edge::options::Options;
use crate::edge::park::spin_briefly;
use crate::edge::weigh::Weigh;
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard, Ordering};
use crossbeam_utils::CachePadded;
use std::marker::PhantomData;
use std::sync::PoisonError;

/// What all ends of a queue share.
pub struct QueueEdge<T, W> {
    contents: CachePadded<Mutex<Contents<T>>>,
    /// The number of the first offer in the line. Written under the lock.
    pub(super) decided: CachePadded<AtomicU64>,
    /// Whether a collector would have to wait; a hint. Written under the lock.
    pub(super) crowded: AtomicBool,
    /// Counts messages, offers, the close and the abort. Written under the lock.
    pub(super) arrivals: CachePadded<AtomicU64>,
    weigh: PhantomData<fn() -> W>,
}

impl<T, W: Weigh<T>> QueueEdge<T, W> {
    pub(super) fn new(options: &Options) -> QueueEdge<T, W> {
        QueueEdge {
            contents: CachePadded::new(Mutex::new(Contents::new(options, W::ALL_ONE))),
            decided: CachePadded::new(AtomicU64::new(0)),
            crowded: AtomicBool::new(false),
            arrivals: CachePadded::new(AtomicU64::new(0)),
            weigh: PhantomData,
        }
    }

    /// Changes the contents, then wakes and drops what that has brought about.
    #[inline]
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Contents<T>, &mut Later<T>) -> R) -> R {
        let mut later = Later::new();
        let mut contents = self.lock();
        let result = change(&mut contents, &mut later);
        self.decided.store(contents.decided(), Ordering::Release);
        self.crowded.store(contents.is_crowded(), Ordering::Relaxed);
        self.arrivals.store(contents.arrivals(), Ordering::Release);
        drop(contents);
        later.act();
        result
    }

    /// Nothing panics with the lock held, so it is never poisoned.
    #[inline]
    fn lock(&self) -> MutexGuard<'_, Contents<T>> {
        match self.contents.try_lock() {
            Ok(contents) => contents,
            Err(_) => self.lock_contended(),
        }
    }

    /// The lock is held for some dozens of instructions: to wait for it awake costs less than to sleep and to be
    /// woken, unless the thread that holds it was interrupted.
    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, Contents<T>> {
        let mut found = None;
        spin_briefly(|| {
            found = self.contents.try_lock().ok();
            found.is_some()
        });
        match found {
            Some(contents) => contents,
            None => self.contents.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

impl<T: Send, W: Weigh<T>> Abort for QueueEdge<T, W> {
    #[cold]
    fn abort(&self) {
        self.change(Contents::abort);
    }
}

impl<T: Send, W: Weigh<T>> Source for QueueEdge<T, W> {
    fn read(&self) -> EdgeStatistics {
        self.lock().read()
    }

    fn state(&self) -> State {
        self.lock().state()
    }

    fn filled(&self) -> (usize, usize) {
        self.lock().filled()
    }
}
