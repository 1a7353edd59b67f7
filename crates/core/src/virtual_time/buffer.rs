//! Buffers of events: chunks of one size, linked, and used again.
//!
//! A buffer grows by a chunk, so that no event moves once it is written, and is handed from shard
//! to shard as a whole. What buffers take depends on what is in them, not on what once was.

use super::scheduled::Scheduled;
use super::stored::Stored;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ptr::null_mut;

/// The begin of a chunk. Events follow.
struct Chunk {
    next: *mut Chunk,
    /// The end of the events; set when the next chunk is begun.
    end: *mut u8,
}

/// The bytes of a chunk, if no event is larger.
const CHUNK: usize = 8192;

/// Events in the order in which they were written.
pub(super) struct Buffer<M> {
    /// Where the next event goes.
    at: *mut u8,
    /// The end of the last chunk.
    limit: *mut u8,
    /// Null if the buffer is empty.
    first: *mut Chunk,
    last: *mut Chunk,
    /// The event written last.
    newest: *mut Stored<M>,
    /// How many events, from the first one on, are in the order in which they are to be run.
    sorted: usize,
    /// All of them are.
    in_order: bool,
    /// All events have the same size, that of one without a cause.
    even: bool,
    _events: PhantomData<Stored<M>>,
}

// SAFETY: a buffer owns its chunks and the messages in them.
unsafe impl<M: Send> Send for Buffer<M> {}

/// The chunks of a buffer, without its events.
pub(super) struct Spent<M> {
    first: *mut Chunk,
    last: *mut Chunk,
    _events: PhantomData<Stored<M>>,
}

// SAFETY: it owns its chunks, in which no event is.
unsafe impl<M> Send for Spent<M> {}

/// Chunks that are not in use.
pub(super) struct Pool<M> {
    free: *mut Chunk,
    _events: PhantomData<Stored<M>>,
}

// SAFETY: a pool owns its chunks, in which no event is.
unsafe impl<M> Send for Pool<M> {}

impl<M> Buffer<M> {
    const ALIGN: usize = max(Stored::<M>::ALIGN, align_of::<Chunk>());
    /// Where the first event of a chunk lies.
    const FIRST: usize = size_of::<Chunk>().next_multiple_of(Self::ALIGN);
    const SIZE: usize = max(CHUNK, Self::FIRST + 8 * Stored::<M>::MOST);

    pub(super) const fn new() -> Buffer<M> {
        Buffer {
            at: null_mut(),
            limit: null_mut(),
            first: null_mut(),
            last: null_mut(),
            newest: null_mut(),
            sorted: 0,
            in_order: true,
            even: true,
            _events: PhantomData,
        }
    }

    /// How many events, from the first one on, are in the order in which they are to be run, and
    /// whether those are all.
    pub(super) fn sorted(&self) -> (usize, bool) {
        (self.sorted, self.in_order)
    }

    /// The first event and the last one, if there are any.
    pub(super) fn ends(&self) -> Option<(*mut Stored<M>, *mut Stored<M>)> {
        // SAFETY: the first chunk of a buffer is valid, and has an event.
        let first = || unsafe { self.first.cast::<u8>().add(Self::FIRST).cast() };
        (!self.newest.is_null()).then(|| (first(), self.newest))
    }

    fn layout() -> Layout {
        Layout::from_size_align(Self::SIZE, Self::ALIGN).expect("a chunk fits into memory")
    }

    /// Adds an event that `write` writes to where it is told to; it says how many bytes it took.
    ///
    /// # Safety
    /// `write` writes one event, by [`Stored::write`] or one of its like, and does not unwind.
    #[inline(always)]
    pub(super) unsafe fn push_with(
        &mut self,
        pool: &mut Pool<M>,
        write: impl FnOnce(*mut u8) -> usize,
    ) {
        if self.limit.addr() - self.at.addr() < Stored::<M>::MOST {
            self.grow(pool);
        }
        let size = write(self.at);
        let event = self.at.cast::<Stored<M>>();
        if self.in_order {
            // SAFETY: both are events of this buffer.
            self.in_order =
                self.newest.is_null() || unsafe { Stored::is_before(self.newest, event) };
            self.sorted += usize::from(self.in_order);
        }
        self.newest = event;
        self.even &= size == size_of::<Stored<M>>();
        // SAFETY: an event takes no more than `MOST` bytes, which are there.
        self.at = unsafe { self.at.add(size) };
    }

    /// Adds an event.
    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool<M>, event: Scheduled<M>) {
        // SAFETY: there is room for any event, and chunks are aligned for events, whose sizes are
        // multiples of their alignment.
        unsafe { self.push_with(pool, |place| Stored::write(place, event)) }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, pool: &mut Pool<M>) {
        let chunk = pool.take();
        // SAFETY: the chunk is the pool's no longer, and is this buffer's. The chunks of a buffer
        // are valid.
        unsafe {
            (*chunk).next = null_mut();
            if self.last.is_null() {
                self.first = chunk;
            } else {
                (*self.last).end = self.at;
                (*self.last).next = chunk;
            }
            self.last = chunk;
            self.at = chunk.cast::<u8>().add(Self::FIRST);
            self.limit = chunk.cast::<u8>().add(Self::SIZE);
        }
    }

    /// Hands out all events in order. What each does with them is its own affair.
    #[inline]
    pub(super) fn for_each(&self, mut each: impl FnMut(*mut Stored<M>)) {
        let mut chunk = self.first;
        while !chunk.is_null() {
            // SAFETY: the chunks of a buffer are valid, and there are events from the first place
            // to the end.
            unsafe {
                let end = if chunk == self.last {
                    self.at
                } else {
                    (*chunk).end
                };
                let mut at = chunk.cast::<u8>().add(Self::FIRST);
                while self.even && at < end {
                    each(at.cast::<Stored<M>>());
                    at = at.add(size_of::<Stored<M>>());
                }
                while at < end {
                    let event = at.cast::<Stored<M>>();
                    at = at.add(Stored::<M>::size(&(*event).label));
                    each(event);
                }
                chunk = (*chunk).next;
            }
        }
    }

    /// The memory of a buffer, whose events are dropped.
    #[cfg(feature = "serde")]
    pub(super) fn into_cleared(self) -> Spent<M> {
        if needs_drop::<M>() {
            // SAFETY: from here on they are not there any more.
            self.for_each(|event| unsafe { Stored::drop_in_place(event) });
        }
        self.into_spent()
    }

    /// The memory of a buffer whose events have been moved out.
    pub(super) fn into_spent(mut self) -> Spent<M> {
        Spent {
            first: std::mem::replace(&mut self.first, null_mut()),
            last: self.last,
            _events: PhantomData,
        }
    }
}

impl<M> Drop for Buffer<M> {
    fn drop(&mut self) {
        if needs_drop::<M>() {
            // SAFETY: a buffer whose events have been moved out is one no longer.
            self.for_each(|event| unsafe { Stored::drop_in_place(event) });
        }
        // SAFETY: the chunks are this buffer's.
        unsafe { free::<M>(self.first) };
    }
}

impl<M> Drop for Spent<M> {
    fn drop(&mut self) {
        // SAFETY: the chunks are in no other hands.
        unsafe { free::<M>(self.first) };
    }
}

impl<M> Pool<M> {
    pub(super) const fn new() -> Pool<M> {
        Pool {
            free: null_mut(),
            _events: PhantomData,
        }
    }

    /// Takes chunks back.
    pub(super) fn put(&mut self, mut spent: Spent<M>) {
        let first = std::mem::replace(&mut spent.first, null_mut());
        if !first.is_null() {
            // SAFETY: the chunks are valid, and this pool's from here on.
            unsafe { (*spent.last).next = self.free };
            self.free = first;
        }
    }

    fn take(&mut self) -> *mut Chunk {
        if self.free.is_null() {
            let layout = Buffer::<M>::layout();
            // SAFETY: the layout's size is not zero.
            let chunk = unsafe { alloc(layout) };
            if chunk.is_null() {
                handle_alloc_error(layout);
            }
            return chunk.cast();
        }
        let chunk = self.free;
        // SAFETY: the chunks of a pool are valid.
        self.free = unsafe { (*chunk).next };
        chunk
    }
}

impl<M> Drop for Pool<M> {
    fn drop(&mut self) {
        // SAFETY: the chunks are this pool's.
        unsafe { free::<M>(self.free) };
    }
}

/// Gives linked chunks back to the allocator.
///
/// # Safety
/// They were allocated by a [`Pool`] for `M`, and nothing uses them any more.
unsafe fn free<M>(mut chunk: *mut Chunk) {
    while !chunk.is_null() {
        // SAFETY: the contract.
        unsafe {
            let next = (*chunk).next;
            dealloc(chunk.cast(), Buffer::<M>::layout());
            chunk = next;
        }
    }
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::super::scheduled::{Head, Kind};
    use super::*;
    use std::sync::Arc;

    fn event(kind: Kind, seq: u32, body: Arc<u32>) -> Scheduled<Arc<u32>> {
        let mut head = Head::new(5, kind, 1, 2, seq, 77);
        head.cause.parent = u64::from(seq) << 33;
        if kind == Kind::Timer {
            head.cause.parent = seq.into();
        }
        if kind.has_body() {
            Scheduled::with_body(head, body)
        } else {
            Scheduled::bare(head)
        }
    }

    const KINDS: [Kind; 4] = [Kind::Plain, Kind::Message, Kind::Timer, Kind::Down];

    #[test]
    fn events_of_all_sizes_come_out_as_they_went_in() {
        let body = Arc::new(3);
        let (mut pool, mut buffer) = (Pool::new(), Buffer::new());
        // More than a chunk.
        let count = if cfg!(miri) { 250 } else { 1000 };
        for round in 0..2 {
            for seq in 0..count {
                let kind = KINDS[seq as usize % 4];
                buffer.push(&mut pool, event(kind, seq, Arc::clone(&body)));
            }
            let mut seq = 0;
            buffer.for_each(|stored| {
                // SAFETY: it is moved out once, and forgotten below.
                let event = unsafe { Stored::read(stored, 9) };
                assert_eq!((event.head.seq, event.head.offset()), (seq, 5));
                let kind = event.head.kind();
                assert_eq!(kind, KINDS[seq as usize % 4]);
                let sent = if event.head.has_cause() { 77 } else { 9 };
                assert_eq!(event.head.cause.sent, sent);
                match kind {
                    Kind::Timer => assert_eq!(event.head.cause.parent, u64::from(seq)),
                    Kind::Plain => assert_eq!(event.head.cause.parent, 0),
                    _ => assert_eq!(event.head.cause.parent, u64::from(seq) << 33),
                }
                seq += 1;
            });
            assert_eq!((seq, Arc::strong_count(&body)), (count, 1), "round {round}");
            pool.put(std::mem::replace(&mut buffer, Buffer::new()).into_spent());
        }
    }

    #[test]
    fn what_was_not_taken_out_is_dropped_once() {
        let body = Arc::new(3);
        let (mut pool, mut buffer) = (Pool::new(), Buffer::new());
        for seq in 0..500 {
            buffer.push(
                &mut pool,
                event(KINDS[seq as usize % 4], seq, Arc::clone(&body)),
            );
        }
        assert_eq!(Arc::strong_count(&body), 251);
        drop(buffer);
        assert_eq!(Arc::strong_count(&body), 1);
    }
}
