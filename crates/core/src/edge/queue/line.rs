//! The line of waiting senders, with their offers in order.

use crate::sync::{AtomicBool, AtomicU64, Ordering};
use std::collections::VecDeque;
use std::task::Waker;

/// The state of an offer.
pub enum OfferState<T> {
    Accepted,
    Waiting,
    /// The edge was aborted; contains the message, if there was one.
    Aborted(Option<T>),
}

/// A summary of the line, which senders read without the lock. It is written under the lock, but not for every message,
/// so it usually stays in the caches of its readers.
pub struct LineHint {
    /// The number of the first offer in the line.
    decided: AtomicU64,
    /// True if a sender would have to wait in the line; a hint.
    crowded: AtomicBool,
}

impl LineHint {
    pub(super) fn new() -> LineHint {
        LineHint {
            decided: AtomicU64::new(0),
            crowded: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(super) fn update(&self, decided: u64, crowded: bool) {
        if self.decided.load(Ordering::Relaxed) != decided {
            self.decided.store(decided, Ordering::Release);
        }
        if self.crowded.load(Ordering::Relaxed) != crowded {
            self.crowded.store(crowded, Ordering::Relaxed);
        }
    }

    /// True if an offer has left the line, which happens when it is accepted.
    #[inline]
    pub(super) fn is_decided(&self, number: u64) -> bool {
        self.decided.load(Ordering::Acquire) > number
    }

    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }
}

/// An entry of the line.
pub(super) struct Offer<T> {
    number: u64,
    /// The message and its weight; `None` if the sender waits only for capacity.
    pub(super) message: Option<(T, u64)>,
    /// The sender's waker; `None` after the abort has taken it.
    pub(super) waker: Option<Waker>,
}

/// Offers in the order of their numbers.
pub(super) struct Line<T> {
    offers: VecDeque<Offer<T>>,
    /// The number of the next offer.
    next: u64,
}

impl<T> Line<T> {
    pub(super) fn new() -> Line<T> {
        Line {
            offers: VecDeque::new(),
            next: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    /// Returns the number of the first offer; all earlier offers have left the line.
    #[inline]
    pub(super) fn decided(&self) -> u64 {
        self.offers.front().map_or(self.next, |offer| offer.number)
    }

    /// Adds an offer, and returns its number.
    pub(super) fn add(&mut self, message: Option<(T, u64)>, waker: &Waker) -> u64 {
        let number = self.next;
        self.next += 1;
        self.offers.push_back(Offer {
            number,
            message,
            waker: Some(waker.clone()),
        });
        number
    }

    /// Puts an offer back at the front.
    pub(super) fn put_back(&mut self, offer: Offer<T>) {
        self.offers.push_front(offer);
    }

    /// Returns the first offer.
    pub(super) fn first(&self) -> Option<&Offer<T>> {
        self.offers.front()
    }

    pub(super) fn take_first(&mut self) -> Option<Offer<T>> {
        self.offers.pop_front()
    }

    /// True if an offer contains a message.
    pub(super) fn has_message(&self) -> bool {
        self.offers.iter().any(|offer| offer.message.is_some())
    }

    /// Takes the first offer with a message.
    pub(super) fn take_first_message(&mut self) -> Option<Offer<T>> {
        let at = self
            .offers
            .iter()
            .position(|offer| offer.message.is_some())?;
        self.offers.remove(at)
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.find(number).is_some()
    }

    /// Removes an offer, if it is still in the line.
    pub(super) fn remove(&mut self, number: u64) -> Option<Offer<T>> {
        self.offers.remove(self.find(number)?)
    }

    /// Replaces the waker of an offer. Returns the previous waker if it differs.
    pub(super) fn renew(&mut self, number: u64, waker: &Waker) -> Option<Waker> {
        let at = self.find(number)?;
        let current = &mut self.offers[at].waker;
        match current {
            Some(current) if current.will_wake(waker) => None,
            _ => current.replace(waker.clone()),
        }
    }

    /// Takes the wakers of all offers; the offers stay.
    pub(super) fn take_wakers(&mut self) -> impl Iterator<Item = Waker> {
        self.offers
            .iter_mut()
            .filter_map(|offer| offer.waker.take())
    }

    fn find(&self, number: u64) -> Option<usize> {
        self.offers
            .binary_search_by_key(&number, |offer| offer.number)
            .ok()
    }
}
