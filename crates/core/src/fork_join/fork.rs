//! Forks of futures: the block, and the call that begins it.
//!
//! The call polls the first half in place and then the second, unless another worker has taken it. Most forks end
//! within the call, without atomic operations, allocations or copies of the results. If a half is not ready or was
//! handed out, the rest of the block is initialised, that half runs separately from then on, and the join waits for it.
#![allow(
    unsafe_code,
    reason = "both halves of a fork lie in one block, which is freed by hand"
)]

use super::block::{Block, BlockPtr, Header, Party};
use super::half::{self, Finished, Half, Held, Home, Polled};
use super::job::JobHandle;
use super::offer::Offer;
use super::state::Side;
use super::worker::Worker;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit, offset_of};
use std::panic::resume_unwind;
use std::ptr::NonNull;
use std::task::Context;

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

// SAFETY: `Fork` is `repr(C)`, begins with the header, and has the first half at the offset of `a`.
unsafe impl<A: Future, B: Future> Home for First<A, B> {
    type Future = A;
    type Block = Fork<A, B>;
    const SIDE: Side = Side::First;
    const OFFSET: usize = offset_of!(Fork<A, B>, a);
}

// SAFETY: `Fork` is `repr(C)`, begins with the header, and has the second half at the offset of `b`.
unsafe impl<A: Future, B: Future> Home for Second<A, B> {
    type Future = B;
    type Block = Fork<A, B>;
    const SIDE: Side = Side::Second;
    const OFFSET: usize = offset_of!(Fork<A, B>, b);
}

impl<A: Future, B: Future> Block for Fork<A, B> {
    /// Returns the block's memory to the worker that owns it.
    unsafe fn free(block: NonNull<Header>) {
        // SAFETY: the block is parted, so its home is initialised and owns the memory; no other thread accesses the
        // block.
        unsafe { block.as_ref().home().return_frame(block.cast::<Self>()) };
    }
}

/// The results of both halves.
type Both<A, B> = (<A as Future>::Output, <B as Future>::Output);

/// The join of a fork that has not ended within its call. It is a party to the block.
pub(super) struct Handle<A: Future, B: Future>(Party<Fork<A, B>>);

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
        // SAFETY: this is fresh memory for a fork, which no other thread accesses before the offer is linked. The block
        // stays until the join, which is this call or its handle, leaves it, and no halves run then. The right to run
        // the second half is in the list of offers until the offer is unlinked or handed out.
        let (block, first) = unsafe {
            let block = BlockPtr::begin(fork.cast());
            let first = Held::<First<A, B>>::place(block, a);
            let _offered = Held::<Second<A, B>>::place(block, b);
            worker.offers.link(block.offer(), Self::hand_out);
            (block, first)
        };
        let here = MaybeUninit::<u8>::uninit();
        let here = here.as_ptr().addr();
        if worker.must_attend(here) && !worker.attend(here) {
            // SAFETY: this worker linked the offer last, and no half has been polled.
            return Err(unsafe { Self::queue(first, block, worker) });
        }
        // SAFETY: this call runs the first half, and the second half after unlinking its offer, which is the newest. The
        // waker is lent for these two polls. If no party has cloned a waker, nothing uses the block when both halves are
        // over.
        unsafe {
            let waker = half::lent_waker::<First<A, B>, Second<A, B>>(block);
            let mut context = Context::from_waker(&waker);
            let (first, a) = match first.poll(&mut context) {
                Polled::Over(first, Ok(a)) => (first, a),
                first => return Self::settle(first, None, block, worker),
            };
            if !worker.offers.unlink(block.offer()) {
                return Self::settle(Polled::Over(first, Ok(a)), None, block, worker);
            }
            block.turn().set(Side::Second);
            let (second, b) = match Held::<Second<A, B>>::new(block).poll(&mut context) {
                Polled::Over(second, Ok(b)) => (second, b),
                second => {
                    return Self::settle(Polled::Over(first, Ok(a)), Some(second), block, worker);
                }
            };
            if first.is_untouched() {
                worker.frames.give_back(fork);
            } else {
                Self::leave_to_wakers(first, second, block, worker);
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
    unsafe fn hand_out(offer: *const Offer, worker: &Worker) -> JobHandle {
        // SAFETY: the offer lies at the beginning of a fork, whose call is running on this thread. The right to run the
        // second half leaves the list here. The block is parted once, because the offer is handed out once and the call
        // does not part a block whose offer was handed out.
        unsafe {
            let block = BlockPtr::new(NonNull::new_unchecked(offer.cast_mut()).cast());
            block.part(worker);
            Held::<Second<A, B>>::new(block).detach()
        }
    }

    /// Leaves the block to the clones of its wakers, after both halves are over and their results were taken.
    ///
    /// # Safety
    /// As for [`Fork::part`]. The call does not use the fork afterwards.
    #[cold]
    #[inline(never)]
    unsafe fn leave_to_wakers(
        first: Finished<First<A, B>>,
        second: Finished<Second<A, B>>,
        block: BlockPtr,
        worker: &Worker,
    ) {
        // SAFETY: no half runs separately, because the call has run both.
        let join = unsafe { Self::part(block, worker) };
        first.retire();
        second.retire();
        drop(join);
    }

    /// Parts the block, and returns the party of the join.
    ///
    /// # Safety
    /// Called once, by the fork's call on its worker, before any half runs separately.
    unsafe fn part(block: BlockPtr, worker: &Worker) -> Party<Self> {
        // SAFETY: no half runs separately. The state counts the join as a party from the beginning.
        unsafe {
            block.part(worker);
            Party::new(block)
        }
    }

    /// Takes the second half back for the call; `None` if another worker has taken it. Parts the block unless the
    /// hand-out has done so, and returns the party of the join.
    ///
    /// # Safety
    /// `worker` belongs to this thread. This fork's offer is the newest linked offer, unless it was handed out. The
    /// call has not polled the second half.
    unsafe fn reclaim(
        block: BlockPtr,
        worker: &Worker,
    ) -> (Option<Held<Second<A, B>>>, Party<Self>) {
        let offer = block.offer();
        // SAFETY: the offer is the newest linked offer or was handed out, and this is the thread that linked it. If the
        // offer is unlinked or its job is taken back, no other thread runs the second half. A handed-out block is
        // parted.
        unsafe {
            if worker.offers.unlink(offer) {
                let join = Self::part(block, worker);
                return (Some(Held::new(block)), join);
            }
            let back = Offer::job(offer).is_some_and(|job| worker.mailbox().take_back(job));
            (back.then(|| Held::new(block)), Party::new(block))
        }
    }

    /// Queues both halves, because near the end of the stack nothing is polled in place.
    ///
    /// # Safety
    /// As for [`Fork::reclaim`]; in addition, the call has not polled the first half. Afterwards the call uses the fork
    /// only through the returned handle.
    #[cold]
    #[inline(never)]
    unsafe fn queue(first: Held<First<A, B>>, block: BlockPtr, worker: &Worker) -> Handle<A, B> {
        // SAFETY: the call has polled no half. The block is parted, and the jobs are made here.
        unsafe {
            let (second, join) = Self::reclaim(block, worker);
            if let Some(second) = second {
                worker.enqueue(second.detach());
            }
            worker.enqueue(first.detach());
            Handle(join)
        }
    }

    /// Continues a fork in which a half is not ready, has panicked, or was handed out. `second` is the second half, if
    /// the call has polled it.
    ///
    /// # Safety
    /// If `second` is `None`, the conditions of [`Fork::reclaim`] hold; otherwise the offer is unlinked. Afterwards the
    /// call uses the fork only through the returned handle.
    #[cold]
    #[inline(never)]
    unsafe fn settle(
        first: Polled<First<A, B>>,
        second: Option<Polled<Second<A, B>>>,
        block: BlockPtr,
        worker: &Worker,
    ) -> Result<Both<A, B>, Handle<A, B>> {
        // SAFETY: the call is the runner of the first half, and of the second half unless another worker has taken it.
        // The waker is lent for the poll of the second half. The block is parted before halves depart.
        let join = unsafe {
            let (mine, join) = match second {
                Some(_) => (None, Self::part(block, worker)),
                None => Self::reclaim(block, worker),
            };
            match first {
                Polled::Over(first, a) => first.store(a),
                Polled::Pending(first) => first.depart(),
            }
            let second = match mine {
                Some(mine) => {
                    block.turn().set(Side::Second);
                    let waker = half::lent_waker::<First<A, B>, Second<A, B>>(block);
                    Some(mine.poll(&mut Context::from_waker(&waker)))
                }
                None => second,
            };
            match second {
                Some(Polled::Over(second, b)) => second.store(b),
                Some(Polled::Pending(second)) => second.depart(),
                None => {}
            }
            join
        };
        let handle = Handle(join);
        if handle.shared().is_finished() {
            Ok(handle.results())
        } else {
            Err(handle)
        }
    }
}

impl<A: Future, B: Future> Handle<A, B> {
    /// Returns the header that the join shares with the halves and their wakers.
    pub(super) fn shared(&self) -> &Header {
        self.0.header()
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
        let this = ManuallyDrop::new(self);
        // SAFETY: both halves are over and were not cancelled, because only `drop` cancels them, and the handle is not
        // dropped. It is a party until this party leaves.
        let (a, b) = unsafe {
            let join = Party::new(this.0.block());
            let a = half::take_result::<First<A, B>>(&join);
            let b = half::take_result::<Second<A, B>>(&join);
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
        // Nested joins are dropped recursively only while the stack has space.
        let defer = super::stack::is_low();
        self.shared().wait_no_more();
        half::cancel::<First<A, B>>(&self.0, defer);
        half::cancel::<Second<A, B>>(&self.0, defer);
    }
}
