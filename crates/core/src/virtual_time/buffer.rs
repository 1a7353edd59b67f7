//! Buffers of events: linked chunks of one size, which are reused.
//!
//! A buffer grows by a chunk, so an event never moves once it is written, and whole buffers are handed from
//! shard to shard. The memory of a buffer depends on its contents, not on its history.

use super::blocks::{Block, Blocks};
use super::event::{Label, ScheduledEvent};
use super::stored_event::StoredEvent;
use std::alloc::Layout;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, needs_drop};
use std::ptr::null_mut;

/// The header of a chunk. The events follow it.
struct Chunk {
    next: *mut Chunk,
    /// The end of the events; set when the next chunk is begun.
    end: *mut u8,
    /// The block of the chunk.
    block: *const Block,
}

/// The minimum size of a chunk in bytes. Chunks are larger if the largest event needs more.
const CHUNK: usize = 8192;

/// Events in the order in which they were written.
pub(super) struct Buffer<M> {
    /// The position of the next event.
    at: *mut u8,
    /// The end of the last chunk.
    limit: *mut u8,
    /// The first chunk; null if the buffer is empty.
    first: *mut Chunk,
    last: *mut Chunk,
    /// The event written last.
    newest: *mut StoredEvent<M>,
    /// The [order](Label::coarse_order) of the newest event; used only while all events are in order.
    newest_order: u64,
    /// The first event that is out of order; null if there is none.
    unsorted: *mut StoredEvent<M>,
    /// True if all events have the size of an event without a cause.
    even: bool,
    _events: PhantomData<StoredEvent<M>>,
}

// SAFETY: a buffer owns its chunks and the messages in them, and messages are `Send`.
unsafe impl<M: Send> Send for Buffer<M> {}

/// The chunks of a buffer, without its events.
pub(super) struct FreeChunks<M> {
    first: *mut Chunk,
    last: *mut Chunk,
    _events: PhantomData<StoredEvent<M>>,
}

// SAFETY: the value owns its chunks, which contain no events.
unsafe impl<M> Send for FreeChunks<M> {}

/// Chunks that are not in use.
pub(super) struct Pool<M> {
    free: *mut Chunk,
    blocks: Blocks,
    _events: PhantomData<StoredEvent<M>>,
}

// SAFETY: a pool owns its chunks, which contain no events.
unsafe impl<M> Send for Pool<M> {}

impl<M> Buffer<M> {
    const ALIGN: usize = max(StoredEvent::<M>::ALIGN, align_of::<Chunk>());
    /// The offset of the first event in a chunk.
    const FIRST: usize = size_of::<Chunk>().next_multiple_of(Self::ALIGN);
    const SIZE: usize =
        max(CHUNK, Self::FIRST + 8 * StoredEvent::<M>::MOST).next_multiple_of(Self::ALIGN);

    pub(super) const fn new() -> Buffer<M> {
        Buffer {
            at: null_mut(),
            limit: null_mut(),
            first: null_mut(),
            last: null_mut(),
            newest: null_mut(),
            newest_order: 0,
            unsorted: null_mut(),
            even: true,
            _events: PhantomData,
        }
    }

    fn layout() -> Layout {
        Layout::from_size_align(Self::SIZE, Self::ALIGN).expect("a chunk fits into memory")
    }

    /// True if `bytes` more bytes can be written behind the last event.
    #[inline(always)]
    pub(super) fn has_capacity(&self, bytes: usize) -> bool {
        self.limit.addr() - self.at.addr() >= bytes
    }

    /// Adds an event that `write` writes to the given address; `write` returns the number of bytes.
    ///
    /// # Safety
    /// `write` writes one event, with [`StoredEvent::write`] or a similar function, and does not unwind.
    #[inline(always)]
    pub(super) unsafe fn push_with(
        &mut self,
        pool: &mut Pool<M>,
        write: impl FnOnce(*mut u8) -> usize,
    ) {
        if !self.has_capacity(StoredEvent::<M>::MOST) {
            self.grow(pool);
        }
        // SAFETY: `grow` has provided space for any event, and `write` writes one event.
        unsafe { self.write_with(write) }
    }

    /// Adds an event like [`Buffer::push_with`], without a check whether it fits into the current chunk.
    ///
    /// # Safety
    /// As for [`Buffer::push_with`], and [`StoredEvent::MOST`] bytes [fit](Buffer::has_capacity) into the buffer.
    #[inline(always)]
    pub(super) unsafe fn write_with(&mut self, write: impl FnOnce(*mut u8) -> usize) {
        let size = write(self.at);
        let event = self.at.cast::<StoredEvent<M>>();
        // SAFETY: `write` has just written the event.
        unsafe { self.note_order(event) };
        self.newest = event;
        self.even &= size == size_of::<StoredEvent<M>>();
        // SAFETY: an event takes at most `MOST` bytes, and the chunk has this space.
        self.at = unsafe { self.at.add(size) };
    }

    /// Adds consecutive messages of one sender to one receiver, which are due at one time. The first one has this
    /// label.
    ///
    /// # Safety
    /// The messages [fit](Buffer::has_capacity) into the buffer, and there is at least one.
    #[inline(always)]
    pub(super) unsafe fn write_row<const N: usize>(&mut self, label: Label, bodies: [M; N]) {
        let first = self.at.cast::<StoredEvent<M>>();
        let bodies = ManuallyDrop::new(bodies);
        // SAFETY: the caller guarantees that all events fit. They are written one after the other, and each body is
        // moved out once. The events after the first one are in order.
        unsafe {
            for index in 0..N {
                let event = first.add(index);
                label.later(index as u32).write_to(&raw mut (*event).label);
                StoredEvent::body(event).write(bodies.as_ptr().add(index).read());
            }
            self.note_order(first);
            self.newest = first.add(N - 1);
            self.at = first.add(N).cast();
        }
    }

    /// Records whether an event is in order after the event written before it.
    ///
    /// # Safety
    /// The event was written to this buffer last, and `newest` is still the event before it.
    #[inline(always)]
    unsafe fn note_order(&mut self, event: *mut StoredEvent<M>) {
        // SAFETY: the event has just been written to this buffer, so its label is initialised.
        let order = unsafe { (*event).label.coarse_order() };
        if order > self.newest_order {
            self.newest_order = order;
        } else if self.unsorted.is_null() {
            // SAFETY: the event has just been written to this buffer, and `newest` is the event before it.
            unsafe { self.compare_with_newest(event) }
        }
    }

    /// The slow path of [`Buffer::note_order`]: for the first event, and for events whose receiver and time do not show
    /// that they follow the previous event.
    ///
    /// # Safety
    /// As for [`Buffer::note_order`].
    #[inline(never)]
    unsafe fn compare_with_newest(&mut self, event: *mut StoredEvent<M>) {
        // SAFETY: both events are in this buffer, whose events do not move.
        unsafe {
            if !self.newest.is_null() && !StoredEvent::is_before(self.newest, event) {
                self.unsorted = event;
            }
            self.newest_order = (*event).label.coarse_order();
        }
    }

    /// Adds an event.
    #[inline(always)]
    pub(super) fn push(&mut self, pool: &mut Pool<M>, event: ScheduledEvent<M>) {
        // SAFETY: any event fits, and the chunk is aligned for events, whose sizes are multiples of their alignment.
        unsafe { self.push_with(pool, |place| StoredEvent::write(place, event)) }
    }

    /// Adds a chunk. An empty buffer has none.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(&mut self, pool: &mut Pool<M>) {
        let chunk = pool.take();
        // SAFETY: the pool has given the chunk to this buffer. All chunks of a buffer are valid.
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

    /// Calls `each` with the start of each chunk and the end of its events.
    #[inline]
    pub(super) fn for_each_chunk(&self, mut each: impl FnMut(*mut u8, *mut u8)) {
        let mut chunk = self.first;
        while !chunk.is_null() {
            // SAFETY: the chunks of a buffer are valid.
            unsafe {
                let end = if chunk == self.last {
                    self.at
                } else {
                    (*chunk).end
                };
                each(chunk.cast::<u8>().add(Self::FIRST), end);
                chunk = (*chunk).next;
            }
        }
    }

    /// Calls `each` with every event in order. The closure may move the events out.
    #[inline]
    pub(super) fn for_each(&self, mut each: impl FnMut(*mut StoredEvent<M>)) {
        self.for_each_chunk(|mut at, end| {
            while at < end {
                let event = at.cast::<StoredEvent<M>>();
                // SAFETY: the bytes from the first event of a chunk to `end` are consecutive events.
                at = unsafe { at.add(StoredEvent::<M>::size(&(*event).label)) };
                each(event);
            }
        });
    }

    /// Appends pointers to all events, in order. Returns the number of leading events that are sorted.
    #[inline]
    pub(super) fn append_to(&self, places: &mut Vec<*mut StoredEvent<M>>) -> usize {
        let (before, mut sorted) = (places.len(), None);
        if self.even {
            self.for_each_chunk(|at, end| {
                let first = at.cast::<StoredEvent<M>>();
                let count = (end.addr() - at.addr()) / size_of::<StoredEvent<M>>();
                let unsorted =
                    self.unsorted.addr().wrapping_sub(at.addr()) / size_of::<StoredEvent<M>>();
                if unsorted < count && sorted.is_none() {
                    sorted = Some(places.len() + unsorted);
                }
                places.reserve(count);
                let spare = &mut places.spare_capacity_mut()[..count];
                let mut event = first;
                for place in spare {
                    place.write(event);
                    event = event.wrapping_add(1);
                }
                // SAFETY: `count` pointers have been written behind the old length.
                unsafe { places.set_len(places.len() + count) };
            });
        } else {
            self.for_each(|event| {
                if event == self.unsorted {
                    sorted = Some(places.len());
                }
                places.push(event);
            });
        }
        sorted.unwrap_or(places.len()) - before
    }

    /// Appends pointers to all events to `few`, from `count` on. Returns the new count, or `None` if they do
    /// not all fit.
    #[inline]
    pub(super) fn append_few<const N: usize>(
        &self,
        few: &mut [*mut StoredEvent<M>; N],
        mut count: usize,
    ) -> Option<usize> {
        if self.first != self.last {
            return None;
        }
        let mut at = self.first.cast::<u8>().wrapping_add(Self::FIRST);
        while at < self.at {
            *few.get_mut(count)? = at.cast();
            count += 1;
            // SAFETY: the bytes from the first event of the chunk to `self.at` are consecutive events.
            at = unsafe {
                at.add(StoredEvent::<M>::size(
                    &(*at.cast::<StoredEvent<M>>()).label,
                ))
            };
        }
        Some(count)
    }

    /// Takes the event and its memory out of a buffer that contains exactly one event. The caller must move the event
    /// out; otherwise the event is leaked.
    #[inline(always)]
    pub(super) fn take_only(&mut self) -> Option<(*mut StoredEvent<M>, FreeChunks<M>)> {
        let first = self.first.cast::<u8>().wrapping_add(Self::FIRST);
        if first != self.newest.cast() {
            return None;
        }
        let event = std::mem::replace(&mut self.newest, null_mut());
        let spent = FreeChunks {
            first: std::mem::replace(&mut self.first, null_mut()),
            last: std::mem::replace(&mut self.last, null_mut()),
            _events: PhantomData,
        };
        (self.at, self.limit) = (null_mut(), null_mut());
        (self.newest_order, self.even) = (0, true);
        Some((event, spent))
    }

    /// Drops the events and returns the memory.
    #[cfg(feature = "serde")]
    pub(super) fn into_cleared(self) -> FreeChunks<M> {
        if needs_drop::<M>() {
            // SAFETY: each event is dropped once, because `into_free_chunks` then forgets the events.
            self.for_each(|event| unsafe { StoredEvent::drop_in_place(event) });
        }
        self.into_free_chunks()
    }

    /// Calls `each` with every event in order; times are relative to the window.
    pub(super) fn take_all(self, mut each: impl FnMut(ScheduledEvent<M>)) {
        let this = ManuallyDrop::new(self);
        // SAFETY: each event is moved out once. If `each` panics, the buffer is not dropped.
        this.for_each(|event| each(unsafe { StoredEvent::read(event, 0) }));
        drop(ManuallyDrop::into_inner(this).into_free_chunks());
    }

    /// Converts a buffer whose events have been moved out to its free memory.
    pub(super) fn into_free_chunks(mut self) -> FreeChunks<M> {
        FreeChunks {
            first: std::mem::replace(&mut self.first, null_mut()),
            last: self.last,
            _events: PhantomData,
        }
    }
}

impl<M> Drop for Buffer<M> {
    fn drop(&mut self) {
        if needs_drop::<M>() {
            // SAFETY: the events have not been moved out, because `into_free_chunks` leaves an empty buffer.
            self.for_each(|event| unsafe { StoredEvent::drop_in_place(event) });
        }
        // SAFETY: the buffer owns its chunks, which were taken from a pool for `M`.
        unsafe { free::<M>(self.first) };
    }
}

impl<M> Drop for FreeChunks<M> {
    fn drop(&mut self) {
        // SAFETY: only this value owns the chunks, which were taken from a pool for `M`.
        unsafe { free::<M>(self.first) };
    }
}

impl<M> Pool<M> {
    pub(super) const fn new() -> Pool<M> {
        Pool {
            free: null_mut(),
            blocks: Blocks::new(),
            _events: PhantomData,
        }
    }

    /// Returns chunks to the pool.
    pub(super) fn put(&mut self, mut spent: FreeChunks<M>) {
        let first = std::mem::replace(&mut spent.first, null_mut());
        if !first.is_null() {
            // SAFETY: the chunks are valid, and this pool owns them now.
            unsafe { (*spent.last).next = self.free };
            self.free = first;
        }
    }

    fn take(&mut self) -> *mut Chunk {
        if self.free.is_null() {
            let (chunk, block) = self.blocks.take(Buffer::<M>::layout());
            let chunk = chunk.cast::<Chunk>().as_ptr();
            // SAFETY: the pool owns the piece, which has the layout of a chunk.
            unsafe { (&raw mut (*chunk).block).write(block) };
            return chunk;
        }
        let chunk = self.free;
        // SAFETY: the chunks of a pool are valid.
        self.free = unsafe { (*chunk).next };
        chunk
    }
}

impl<M> Drop for Pool<M> {
    fn drop(&mut self) {
        // SAFETY: the pool owns its chunks.
        unsafe { free::<M>(self.free) };
    }
}

/// Frees linked chunks.
///
/// # Safety
/// The chunks were taken from a [`Pool`] for `M`, and nothing uses them any more.
unsafe fn free<M>(mut chunk: *mut Chunk) {
    while !chunk.is_null() {
        // SAFETY: the caller owns the list, and each chunk belongs to its block. Consecutive chunks often belong to one
        // block, so they are released together.
        unsafe {
            let (block, mut bytes) = ((*chunk).block, 0);
            while !chunk.is_null() && (*chunk).block == block {
                chunk = (*chunk).next;
                bytes += Buffer::<M>::SIZE;
            }
            Block::release(block, bytes);
        }
    }
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Head, Kind};
    use super::*;
    use std::sync::Arc;

    fn event(kind: Kind, seq: u32, body: Arc<u32>) -> ScheduledEvent<Arc<u32>> {
        let mut head = Head::new(5, kind, 1, 2, seq, 77);
        head.cause.parent = u64::from(seq) << 33;
        if kind == Kind::Timer {
            head.cause.parent = seq.into();
        }
        if kind.has_body() {
            ScheduledEvent::with_body(head, body)
        } else {
            ScheduledEvent::bare(head)
        }
    }

    const KINDS: [Kind; 4] = [Kind::Plain, Kind::Message, Kind::Timer, Kind::Down];

    #[test]
    fn events_of_all_sizes_come_out_as_they_went_in() {
        let body = Arc::new(3);
        let (mut pool, mut buffer) = (Pool::new(), Buffer::new());
        // More events than fit into one chunk.
        let count = if cfg!(miri) { 250 } else { 1000 };
        for round in 0..2 {
            for seq in 0..count {
                let kind = KINDS[seq as usize % 4];
                buffer.push(&mut pool, event(kind, seq, Arc::clone(&body)));
            }
            let mut seq = 0;
            buffer.for_each(|stored| {
                // SAFETY: the event is moved out once, and the buffer is forgotten below.
                let event = unsafe { StoredEvent::read(stored, 9) };
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
            pool.put(std::mem::replace(&mut buffer, Buffer::new()).into_free_chunks());
        }
    }

    #[test]
    fn a_few_events_are_noted_and_a_single_one_is_taken() {
        let body = Arc::new(3);
        let (mut pool, mut buffer) = (Pool::new(), Buffer::new());
        let mut few = [null_mut(); 3];
        assert_eq!(buffer.append_few(&mut few, 1), Some(1));
        assert!(buffer.take_only().is_none());
        for round in 0..2 {
            buffer.push(&mut pool, event(Kind::Message, 1, Arc::clone(&body)));
            assert_eq!(buffer.append_few(&mut few, 1), Some(2));
            let (only, spent) = buffer.take_only().unwrap();
            assert_eq!(few[1], only);
            // SAFETY: the event is moved out once, and its memory still exists.
            assert_eq!(unsafe { StoredEvent::read(only, 9) }.head.seq, 1);
            pool.put(spent);
            assert_eq!(Arc::strong_count(&body), 1, "round {round}");
        }
        for seq in 0..4 {
            let kind = KINDS[seq as usize];
            buffer.push(&mut pool, event(kind, seq, Arc::clone(&body)));
            let all = buffer.append_few(&mut few, 0);
            assert_eq!(all, (seq < 3).then_some(seq as usize + 1));
        }
        assert!(buffer.take_only().is_none());
    }

    #[test]
    fn rows_of_messages_cross_chunks_and_their_order_is_noted() {
        let body = Arc::new(3);
        let (mut pool, mut buffer) = (Pool::new(), Buffer::new());
        let rows = if cfg!(miri) { 100 } else { 400 };
        let label = |to: u32, seq: u32| Head::new(5, Kind::Plain, to, 2, seq, 0).label;
        for row in 0..rows {
            let bodies = [(); 3].map(|()| Arc::clone(&body));
            if !buffer.has_capacity(3 * size_of::<StoredEvent<Arc<u32>>>()) {
                buffer.grow(&mut pool);
            }
            // SAFETY: `has_capacity` has just returned true.
            unsafe { buffer.write_row(label(row, 3 * row), bodies) };
        }
        let sorted = buffer.append_to(&mut Vec::new());
        assert_eq!(sorted, 3 * rows as usize, "by receiver and sequence");
        // SAFETY: the closure writes one event.
        unsafe {
            buffer.push_with(&mut pool, |place| {
                StoredEvent::write_plain(place, label(0, 7), Arc::clone(&body))
            });
        }
        let mut places = vec![null_mut()];
        let sorted = buffer.append_to(&mut places);
        assert_eq!(sorted, 3 * rows as usize, "back to receiver 0");
        places.remove(0);
        let mut walked = Vec::new();
        buffer.for_each(|event| walked.push(event));
        assert_eq!(places, walked);
        // SAFETY: the buffer still contains the events.
        let labels = places.iter().map(|&event| unsafe { (*event).label });
        let expected = (0..3 * rows).map(|seq| (seq / 3, seq)).chain([(0, 7)]);
        assert!(labels.map(|label| (label.to, label.seq)).eq(expected));
        assert_eq!(Arc::strong_count(&body), 3 * rows as usize + 2);
        drop(buffer);
        assert_eq!(Arc::strong_count(&body), 1);
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
