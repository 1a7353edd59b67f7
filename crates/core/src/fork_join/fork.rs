//! Forks of futures: the block, and the call that begins it.
//!
//! The call polls the first half in place and then the second, unless another worker has taken it. Most forks end
//! within the call, without atomic operations, allocations or copies of the results. If a half is not ready or was
//! handed out, the rest of the block is initialised, that half runs separately from then on, and the join waits for it.
#![allow(
    unsafe_code,
    reason = "both halves of a fork lie in one block, which is freed by hand"
)]

use super::block::{Header, Home};
use super::half::{self, Half};
use super::job::Job;
use super::offer::Offer;
use super::state::Side;
use super::worker::Worker;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, offset_of};
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::task::{Context, Poll};
use std::thread;

/// The block of a fork.
#[repr(C)]
pub(super) struct Fork<A: Future, B: Future> {
    shared: Header,
    a: Half<A>,
    b: Half<B>,
}

/// The first half of a fork.
struct First<A, B>(PhantomData<(A, B)>);

/// The second half of a fork.
struct Second<A, B>(PhantomData<(A, B)>);

// SAFETY: `Fork` is `repr(C)` and begins with the header.
unsafe impl<A: Future, B: Future> Home for First<A, B> {
    type Future = A;
    const SIDE: Side = Side::First;
    const OFFSET: usize = offset_of!(Fork<A, B>, a);

    unsafe fn free(block: NonNull<Header>) {
        // SAFETY: as `Fork::free` requires, the block has no parties, and its halves and results are gone.
        unsafe { Fork::<A, B>::free(block) }
    }
}

// SAFETY: `Fork` is `repr(C)`, begins with the header, and has the second half at the offset of `b`.
unsafe impl<A: Future, B: Future> Home for Second<A, B> {
    type Future = B;
    const SIDE: Side = Side::Second;
    const OFFSET: usize = offset_of!(Fork<A, B>, b);

    unsafe fn free(block: NonNull<Header>) {
        // SAFETY: as `Fork::free` requires, the block has no parties, and its halves and results are gone.
        unsafe { Fork::<A, B>::free(block) }
    }
}

/// The results of both halves.
type Both<A, B> = (<A as Future>::Output, <B as Future>::Output);

/// The result of a half that was polled.
type HalfPoll<F> = Poll<thread::Result<<F as Future>::Output>>;

/// The join of a fork that has not ended within its call. It is a party to the block.
pub(super) struct Handle<A: Future, B: Future>(NonNull<Fork<A, B>>);

impl<A: Future, B: Future> Fork<A, B> {
    /// Starts a fork and runs the halves as far as possible at once.
    ///
    /// The bounds are necessary because the futures and their results move between threads, and the block may outlive
    /// the call.
    ///
    /// # Panics
    /// If a half panics, after the other half is over.
    #[inline(always)]
    pub(super) fn start(worker: &Worker, a: A, b: B) -> Result<Both<A, B>, Handle<A, B>>
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static,
    {
        let Some(fork) = worker.take_frame::<Fork<A, B>>() else {
            // In a separate function with boxed futures: if the futures were live across a call here, the rest of this
            // function would run out of registers.
            return Self::start_after_refill(worker, Box::new((a, b)));
        };
        let block = fork.cast::<Header>();
        let offer = Header::offer(block);
        // SAFETY: this is fresh memory for a fork, which no other thread accesses before the offer is linked. The block
        // stays until the join, which is this call or its handle, leaves it, and no halves run then.
        unsafe {
            Header::begin(block);
            half::place::<First<A, B>>(block, a);
            half::place::<Second<A, B>>(block, b);
            worker.offers.link(offer, Self::hand_out);
        }
        let here = MaybeUninit::<u8>::uninit();
        let here = here.as_ptr().addr();
        if worker.must_attend(here) && !worker.attend(here) {
            // SAFETY: this worker linked the offer last, and no half has been polled.
            return Err(unsafe { Self::queue(fork, worker) });
        }
        // SAFETY: this call runs the first half, and the second half after unlinking it. The waker is lent for these
        // two polls.
        unsafe {
            let waker = half::lent_waker::<First<A, B>, Second<A, B>>(block);
            let mut context = Context::from_waker(&waker);
            let a = half::poll::<First<A, B>>(block, &mut context);
            let Poll::Ready(Ok(a)) = a else {
                return Self::settle(fork, worker, a, None);
            };
            if !worker.offers.unlink(offer) {
                return Self::settle(fork, worker, Poll::Ready(Ok(a)), None);
            }
            Header::turn_to_second(block);
            let b = half::poll::<Second<A, B>>(block, &mut context);
            let Poll::Ready(Ok(b)) = b else {
                return Self::settle(fork, worker, Poll::Ready(Ok(a)), Some(b));
            };
            if Header::is_untouched(block) {
                worker.give_back_frame(fork);
            } else {
                Self::leave_to_wakers(fork, worker);
            }
            Ok((a, b))
        }
    }

    /// Starts a fork for which the worker had no free memory.
    #[cold]
    #[inline(never)]
    #[allow(
        clippy::boxed_local,
        reason = "without the box, the caller would store the futures in memory as well"
    )]
    fn start_after_refill(worker: &Worker, halves: Box<(A, B)>) -> Result<Both<A, B>, Handle<A, B>>
    where
        A: Future<Output: Send> + Send + 'static,
        B: Future<Output: Send> + Send + 'static,
    {
        worker.refill_frames::<Fork<A, B>>();
        let (a, b) = *halves;
        Self::start(worker, a, b)
    }

    /// Converts the second half of a fork to a job.
    ///
    /// # Safety
    /// The offer lies in a fork of `worker` and has left its list for good. The fork's call is running on this thread
    /// and has not polled the second half.
    unsafe fn hand_out(offer: *const Offer, worker: &Worker) -> NonNull<Job> {
        // SAFETY: the offer lies in a fork, whose call is running on this thread and has not polled the second half.
        unsafe {
            let block = Header::of_offer(NonNull::new_unchecked(offer.cast_mut()));
            Header::part(block, worker);
            half::detach::<Second<A, B>>(block)
        }
    }

    /// Takes the second half back for the call; false if another worker has taken it. Calls [`Header::part`] unless the
    /// hand-out has done so.
    ///
    /// # Safety
    /// `worker` belongs to this thread. This fork's offer is the newest linked offer, unless it was handed out. The
    /// call has not polled the second half.
    unsafe fn reclaim(fork: NonNull<Self>, worker: &Worker) -> bool {
        let offer = Header::offer(fork.cast());
        // SAFETY: the offer is the newest linked offer or was handed out, and this is the thread that linked it.
        unsafe {
            if worker.offers.unlink(offer) {
                Header::part(fork.cast(), worker);
                return true;
            }
            Offer::job(offer).is_some_and(|job| worker.mailbox().take_back(job))
        }
    }

    /// Queues both halves, because near the end of the stack nothing is polled in place.
    ///
    /// # Safety
    /// As for [`Fork::reclaim`]; in addition, the call has not polled the first half. Afterwards the call uses the fork
    /// only through the returned handle.
    #[cold]
    #[inline(never)]
    unsafe fn queue(fork: NonNull<Self>, worker: &Worker) -> Handle<A, B> {
        let block = fork.cast();
        // SAFETY: the call has polled no half, and queues the second half only if it got that half back.
        unsafe {
            if Self::reclaim(fork, worker) {
                worker.enqueue(half::detach::<Second<A, B>>(block));
            }
            worker.enqueue(half::detach::<First<A, B>>(block));
        }
        Handle(fork)
    }

    /// Continues a fork in which a half is not ready, has panicked, or was handed out. `b` is the result of the second
    /// half, if the call has polled it.
    ///
    /// # Safety
    /// The call has polled the first half to `a`. If `b` is `None`, the conditions of [`Fork::reclaim`] hold; otherwise
    /// the offer is unlinked, and the call has polled the second half to `b`. Afterwards the call uses the fork only
    /// through the returned handle.
    #[cold]
    #[inline(never)]
    unsafe fn settle(
        fork: NonNull<Self>,
        worker: &Worker,
        a: HalfPoll<A>,
        b: Option<HalfPoll<B>>,
    ) -> Result<Both<A, B>, Handle<A, B>> {
        let block = fork.cast();
        // SAFETY: the call is the runner of the first half, and of the second half unless another worker has taken it.
        unsafe {
            let mine = match b {
                Some(_) => {
                    Header::part(block, worker);
                    false
                }
                None => Self::reclaim(fork, worker),
            };
            match a {
                Poll::Ready(a) => half::store_result::<First<A, B>>(block, a),
                Poll::Pending => half::depart::<First<A, B>>(block),
            }
            let b = if mine {
                Header::turn_to_second(block);
                let waker = half::lent_waker::<First<A, B>, Second<A, B>>(block);
                let mut context = Context::from_waker(&waker);
                Some(half::poll::<Second<A, B>>(block, &mut context))
            } else {
                b
            };
            match b {
                Some(Poll::Ready(b)) => half::store_result::<Second<A, B>>(block, b),
                Some(Poll::Pending) => half::depart::<Second<A, B>>(block),
                None => {}
            }
        }
        let handle = Handle(fork);
        if handle.shared().is_finished() {
            Ok(handle.results())
        } else {
            Err(handle)
        }
    }

    /// Leaves the block to the clones of its wakers, after both halves are over and their results were taken.
    ///
    /// # Safety
    /// The call has run both halves in place and does not use the fork afterwards.
    #[cold]
    #[inline(never)]
    unsafe fn leave_to_wakers(fork: NonNull<Self>, worker: &Worker) {
        let block = fork.cast();
        // SAFETY: the call has run both halves, and leaves as the party of the join.
        unsafe {
            Header::part(block, worker);
            half::retire::<First<A, B>>(block);
            half::retire::<Second<A, B>>(block);
            Header::leave::<First<A, B>>(block);
        }
    }

    /// Returns the block's memory to the worker that owns it.
    ///
    /// # Safety
    /// The block was prepared by [`Header::part`], both halves and their results are gone, and no other party is left.
    unsafe fn free(block: NonNull<Header>) {
        // SAFETY: `home` is initialised, and no other thread accesses the block.
        unsafe {
            let home = block.as_ref().home();
            home.as_ref().return_frame(block.cast::<Self>());
        }
    }
}

impl<A: Future, B: Future> Handle<A, B> {
    /// Returns the header that the join shares with the halves and their wakers.
    pub(super) fn shared(&self) -> &Header {
        // SAFETY: the handle is a party, so the block exists; `part` has initialised the header.
        unsafe { self.0.cast::<Header>().as_ref() }
    }

    /// Returns both results. Both halves must be over.
    ///
    /// # Panics
    /// If a half panicked.
    pub(super) fn results(self) -> Both<A, B> {
        assert!(
            self.shared().is_finished(),
            "the results are read before the halves are over"
        );
        let block = self.0.cast();
        std::mem::forget(self);
        // SAFETY: both halves are over and were not cancelled, because only `drop` cancels them, and the handle was
        // forgotten.
        let (a, b) = unsafe {
            let a = half::take_result::<First<A, B>>(block);
            let b = half::take_result::<Second<A, B>>(block);
            Header::leave::<First<A, B>>(block);
            (a, b)
        };
        match (a, b) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(panic), _) | (_, Err(panic)) => resume_unwind(panic),
        }
    }
}

impl<A: Future, B: Future> Drop for Handle<A, B> {
    fn drop(&mut self) {
        let block = self.0.cast();
        // Nested joins are dropped recursively only while the stack has space.
        let defer = super::stack::is_low();
        // SAFETY: the handle is a party until `leave`, and does not take the results.
        unsafe {
            self.shared().wait_no_more();
            half::cancel::<First<A, B>>(block, defer);
            half::cancel::<Second<A, B>>(block, defer);
            Header::leave::<First<A, B>>(block);
        }
    }
}
