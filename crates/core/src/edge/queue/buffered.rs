//! A queue without weights that blocks when it is full: a [ring](crate::edge::ring()) whose sending end is protected by
//! a lock.
//!
//! The receiver is the ring's receiver and takes no lock. It shares only the two words of the ring with the senders;
//! operations on these words also decide whether an abort came first. Only senders contend for the lock.
//!
//! **The receiver serves the line.** While offers wait, *waits* is set in the head of the ring, with a special waker.
//! This waker takes the lock, moves the offers that fit into the ring, and wakes their senders. So the receiver serves
//! the line as it frees capacity, and an abort reaches the line, too. As long as offers remain, the waker is registered
//! again under the same lock. While the line is not empty, either *waits* is set, or a thread that has cleared it is
//! about to serve the line.

use super::deferred::DeferredWork;
use super::line::{Line, LineHint, OfferState};
use super::lock::Lock;
use super::sender::SendTarget;
use crate::edge::abort::Abort;
use crate::edge::batch::Batch;
use crate::edge::error::{Aborted, TrySendError};
use crate::edge::meter::{EdgeStatistics, Source, State};
use crate::edge::ring::{
    Deferred, NoCapacity, ReceiverView, RingEdge, RingSender, WakerRegistration,
};
use crate::edge::weigh::Weigh;
use crossbeam_utils::CachePadded;
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

/// The shared state of the sending ends. The receiver uses only the ring.
pub struct BufferedEdge<T: Send + 'static, W: Weigh<T>> {
    ring: Arc<RingEdge<T, W>>,
    entrance: CachePadded<Lock<Entrance<T, W>>>,
    line_hint: CachePadded<LineHint>,
}

/// The state under the lock.
struct Entrance<T: Send + 'static, W: Weigh<T>> {
    end: RingSender<T, W>,
    line: Line<T>,
    /// The number of senders that have not closed.
    senders: usize,
    /// The waker that serves the line.
    server: Waker,
}

impl<T: Send + 'static, W: Weigh<T>> BufferedEdge<T, W> {
    pub(super) fn new(ring: Arc<RingEdge<T, W>>) -> Arc<BufferedEdge<T, W>> {
        Arc::new_cyclic(|edge: &Weak<BufferedEdge<T, W>>| BufferedEdge {
            entrance: CachePadded::new(Lock::new(Entrance {
                end: RingSender::new(Arc::clone(&ring)).deferring(),
                line: Line::new(),
                senders: 1,
                server: Waker::from(Arc::new(Server(edge.clone()))),
            })),
            line_hint: CachePadded::new(LineHint::new()),
            ring,
        })
    }

    /// Puts messages into the ring under the lock, and does the deferred work after the lock is released.
    #[inline]
    fn put_with<R>(&self, put: impl FnOnce(&mut Entrance<T, W>) -> R) -> R {
        let (result, has_deferred) = self.entrance.with(|entrance| {
            let result = put(entrance);
            (result, entrance.end.has_deferred())
        });
        if has_deferred {
            self.act();
        }
        result
    }

    /// Does the deferred work, unless another thread is doing it. No thread can observe an abort before the deferred
    /// work is done.
    #[cold]
    fn act(&self) {
        let Deferred { woken, aborted } = self.entrance.with(|entrance| entrance.end.deferred());
        if let Some(receiver) = woken {
            receiver.wake();
        }
        self.ring.settle_aborted();
        if aborted {
            // Unless the abort has found *waits*, the senders in the line have not been woken yet.
            self.change(Entrance::serve);
        }
    }

    /// Changes the line, then does the wake-ups and drops that the change requires.
    fn change<R>(&self, change: impl FnOnce(&mut Entrance<T, W>, &mut DeferredWork<T>) -> R) -> R {
        let mut later = DeferredWork::new();
        let result = self.put_with(|entrance| {
            let result = change(entrance, &mut later);
            let line = &entrance.line;
            self.line_hint.update(line.decided(), !line.is_empty());
            result
        });
        later.act();
        result
    }
}

impl<T: Send + 'static, W: Weigh<T>> Entrance<T, W> {
    /// Moves as many offers as fit from the front of the line into the ring, and arranges that the others are served
    /// later.
    fn serve(&mut self, later: &mut DeferredWork<T>) {
        while !self.line.is_empty() {
            let seen = match self.end.read_head() {
                ReceiverView::Aborted => {
                    // Offers stay where they are: each sender takes its own message back.
                    self.line.take_wakers().for_each(|waker| later.wake(waker));
                    break;
                }
                ReceiverView::At(seen, 0) => seen,
                ReceiverView::At(..) => {
                    let Some(mut offer) = self.line.take_first() else {
                        break;
                    };
                    let refused = match offer.message.take() {
                        Some((message, weight)) => match self.end.reserve_and_put(message) {
                            Ok(()) => None,
                            Err((_, message)) => Some((message, weight)),
                        },
                        None => None,
                    };
                    if refused.is_some() {
                        // An abort has begun; when it is complete, the line is served again.
                        offer.message = refused;
                        self.line.put_back(offer);
                        break;
                    }
                    if let Some(waker) = offer.waker {
                        later.wake(waker);
                    }
                    continue;
                }
            };
            // A thread that is about to call the waker serves the line when it gets the lock.
            if self.end.begin_waiting(seen, &self.server) != WakerRegistration::Over {
                return;
            }
        }
        self.end.end_wait();
    }

    /// Adds an offer to the line. Returns its number.
    fn offer(
        &mut self,
        message: Option<(T, u64)>,
        waker: &Waker,
        later: &mut DeferredWork<T>,
    ) -> u64 {
        let begins = self.line.is_empty();
        let number = self.line.add(message, waker);
        if begins {
            self.serve(later);
        }
        number
    }
}

impl<T: Send + 'static, W: Weigh<T>> SendTarget<T> for BufferedEdge<T, W> {
    #[inline]
    fn line_hint(&self) -> &LineHint {
        &self.line_hint
    }

    fn is_full(&self) -> bool {
        self.line_hint.is_crowded() || self.ring.is_full()
    }

    #[inline]
    fn put(&self, message: T) -> Result<(), TrySendError<T>> {
        self.put_with(|entrance| {
            if !entrance.line.is_empty() {
                return Err(match entrance.end.read_head() {
                    ReceiverView::Aborted => TrySendError::Aborted(message),
                    ReceiverView::At(..) => TrySendError::Full(message),
                });
            }
            entrance
                .end
                .reserve_and_put(message)
                .map_err(|refused| match refused {
                    (NoCapacity::Aborted, message) => TrySendError::Aborted(message),
                    (_, message) => TrySendError::Full(message),
                })
        })
    }

    fn put_all(&self, batch: &mut Batch<'_, T>) -> Result<bool, Aborted<()>> {
        self.put_with(|entrance| match entrance.line.is_empty() {
            true => Ok(entrance.end.put_all(batch)?.is_none()),
            false => match entrance.end.read_head() {
                ReceiverView::Aborted => Err(Aborted(())),
                ReceiverView::At(..) => Ok(false),
            },
        })
    }

    fn put_or_offer(&self, message: T, waker: &Waker) -> Result<Option<u64>, Aborted<T>> {
        self.change(|entrance, later| {
            let message = match entrance.line.is_empty() {
                true => match entrance.end.reserve_and_put(message) {
                    Ok(()) => return Ok(None),
                    Err((NoCapacity::Aborted, message)) => return Err(Aborted(message)),
                    Err((_, message)) => message,
                },
                false => match entrance.end.read_head() {
                    ReceiverView::Aborted => return Err(Aborted(message)),
                    ReceiverView::At(..) => message,
                },
            };
            Ok(Some(entrance.offer(Some((message, 1)), waker, later)))
        })
    }

    fn find_capacity(&self, waker: &Waker) -> Result<Option<u64>, Aborted<()>> {
        self.change(|entrance, later| match entrance.end.read_head() {
            ReceiverView::Aborted => Err(Aborted(())),
            ReceiverView::At(_, 1..) if entrance.line.is_empty() => Ok(None),
            ReceiverView::At(..) => Ok(Some(entrance.offer(None, waker, later))),
        })
    }

    fn renew(&self, number: u64, waker: &Waker) -> OfferState<T> {
        self.change(|entrance, later| {
            if !entrance.line.contains(number) {
                return OfferState::Accepted;
            }
            if let ReceiverView::Aborted = entrance.end.read_head() {
                let offer = entrance.line.remove(number);
                return OfferState::Aborted(offer.and_then(|offer| {
                    later.old = offer.waker;
                    offer.message.map(|(message, _)| message)
                }));
            }
            later.old = entrance.line.renew(number, waker);
            OfferState::Waiting
        })
    }

    fn withdraw(&self, number: u64) -> Option<T> {
        self.change(|entrance, later| {
            let offer = entrance.line.remove(number)?;
            later.old = offer.waker;
            if entrance.line.is_empty() {
                entrance.end.end_wait();
            }
            offer.message.map(|(message, _)| message)
        })
    }

    fn join(&self) {
        self.entrance.with(|entrance| entrance.senders += 1);
    }

    fn leave(&self) {
        let last = self.entrance.with(|entrance| {
            entrance.senders -= 1;
            entrance.senders == 0
        });
        if last {
            self.ring.close();
        }
    }
}

impl<T: Send + 'static, W: Weigh<T>> Abort for BufferedEdge<T, W> {
    fn abort(&self) {
        self.ring.abort();
    }
}

impl<T: Send + 'static, W: Weigh<T>> Source for BufferedEdge<T, W> {
    fn read(&self) -> EdgeStatistics {
        self.ring.read()
    }

    fn state(&self) -> State {
        self.ring.state()
    }

    fn filled(&self) -> (usize, usize) {
        self.ring.filled()
    }
}

/// A waker that serves the line.
struct Server<T: Send + 'static, W: Weigh<T>>(Weak<BufferedEdge<T, W>>);

impl<T: Send + 'static, W: Weigh<T>> Wake for Server<T, W> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(edge) = self.0.upgrade() {
            edge.change(Entrance::serve);
        }
    }
}
