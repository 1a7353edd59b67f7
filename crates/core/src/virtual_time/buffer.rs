//! Buffers of events: linked chunks of one size, which are reused.
//!
//! A buffer grows by a chunk, so an event never moves once it is written, and whole buffers are handed from
//! shard to shard. The memory of a buffer depends on its contents, not on its history.

use super::blocks::{Block, Blocks};
use super::event::{Label, ScheduledEvent};
use super::stored_event::{EventPtr, EventRef, Place, StoredEvent, Written, write_row};
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

/// The size and contents of chunks that hold events with messages `M`.
struct ChunkLayout<M>(PhantomData<M>);

impl<M> ChunkLayout<M> {
    const ALIGN: usize = max(StoredEvent::<M>::ALIGN, align_of::<Chunk>());
    /// The offset of the first event in a chunk.
    const FIRST: usize = size_of::<Chunk>().next_multiple_of(Self::ALIGN);
    const SIZE: usize =
        max(CHUNK, Self::FIRST + 8 * StoredEvent::<M>::MOST).next_multiple_of(Self::ALIGN);

    fn layout() -> Layout {
        Layout::from_size_align(Self::SIZE, Self::ALIGN).expect("a chunk fits into memory")
    }

    /// Returns the place of the first event of a chunk.
    #[inline(always)]
    fn first_event(chunk: *mut Chunk) -> *mut u8 {
        chunk.cast::<u8>().wrapping_add(Self::FIRST)
    }
}

/// A list of chunks, which it owns. The events in them are not part of it.
///
/// # Invariant
/// The chunks were taken from a [`Pool`] for `M`, which has initialised the block of each. `last` and the `next` of each
/// other chunk are set; both pointers are null if the list is empty.
struct Chunks<M> {
    first: *mut Chunk,
    last: *mut Chunk,
    _layout: PhantomData<ChunkLayout<M>>,
}

// SAFETY: the list owns its chunks, and any thread may release a chunk to its block.
unsafe impl<M> Send for Chunks<M> {}

impl<M> Chunks<M> {
    const fn new() -> Chunks<M> {
        Chunks {
            first: null_mut(),
            last: null_mut(),
            _layout: PhantomData,
        }
    }

    #[inline(always)]
    fn take(&mut self) -> Chunks<M> {
        std::mem::replace(self, Chunks::new())
    }

    /// Appends a list of one chunk. The events of the previous last chunk end at `end`.
    fn append_one(&mut self, one: Chunks<M>, end: *mut u8) {
        let one = ManuallyDrop::new(one);
        if self.last.is_null() {
            self.first = one.first;
        } else {
            // SAFETY: the last chunk of a list exists.
            unsafe {
                (*self.last).end = end;
                (*self.last).next = one.first;
            }
        }
        self.last = one.last;
    }

    /// Moves the chunks of another list before those of this list.
    fn prepend(&mut self, other: Chunks<M>) {
        let mut other = ManuallyDrop::new(other);
        if other.first.is_null() {
            return;
        }
        if self.first.is_null() {
            self.last = other.last;
        } else {
            // SAFETY: the last chunk of a list exists.
            unsafe { (*other.last).next = self.first };
        }
        self.first = other.first;
    }

    /// Takes the first chunk out, as a list.
    fn pop(&mut self) -> Option<Chunks<M>> {
        let first = self.first;
        if first.is_null() {
            return None;
        }
        // SAFETY: the first chunk of a list exists.
        self.first = unsafe { std::mem::replace(&mut (*first).next, null_mut()) };
        if self.first.is_null() {
            self.last = null_mut();
        }
        Some(Chunks {
            first,
            last: first,
            _layout: PhantomData,
        })
    }

    /// Allocates a chunk, as a list.
    fn allocate(blocks: &mut Blocks) -> Chunks<M> {
        let (chunk, block) = blocks.take(ChunkLayout::<M>::layout());
        let chunk = chunk.cast::<Chunk>().as_ptr();
        // SAFETY: the piece has the layout of a chunk, and nothing else uses it.
        unsafe {
            chunk.write(Chunk {
                next: null_mut(),
                end: null_mut(),
                block,
            });
        }
        Chunks {
            first: chunk,
            last: chunk,
            _layout: PhantomData,
        }
    }
}

impl<M> Drop for Chunks<M> {
    #[inline]
    fn drop(&mut self) {
        let mut chunk = self.first;
        while !chunk.is_null() {
            // SAFETY: this list owns its chunks, and each belongs to its block. Consecutive chunks often belong to one
            // block, so they are released together.
            unsafe {
                let (block, mut bytes) = ((*chunk).block, 0);
                while !chunk.is_null() && (*chunk).block == block {
                    chunk = (*chunk).next;
                    bytes += ChunkLayout::<M>::SIZE;
                }
                Block::release(block, bytes);
            }
        }
    }
}

/// Events in the order in which they were written.
pub(super) struct Buffer<M> {
    /// The position of the next event.
    at: *mut u8,
    /// The end of the last chunk.
    limit: *mut u8,
    chunks: Chunks<M>,
    /// The event written last; null if there is none.
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
pub(super) struct FreeChunks<M>(Chunks<M>);

/// Chunks that are not in use.
pub(super) struct Pool<M> {
    free: Chunks<M>,
    blocks: Blocks,
}

/// Capacity for an event of any size at the end of a buffer.
pub(super) struct Vacancy<'b, M>(&'b mut Buffer<M>);

impl<M> Vacancy<'_, M> {
    /// Adds the event that `write` writes.
    #[inline(always)]
    pub(super) fn write(self, write: impl for<'a> FnOnce(Place<'a, M>) -> Written<'a>) {
        let buffer = self.0;
        let at = buffer.at;
        // SAFETY: the last chunk, which the buffer owns, has capacity for any event. It is aligned for events, whose
        // sizes are multiples of their alignment. `write` has written an event to this place, because it has returned the
        // proof.
        let (size, event) = unsafe {
            let written = write(Place::new(at));
            (written.size, EventRef::new(at.cast()))
        };
        buffer.note_order(event);
        buffer.newest = event.as_ptr();
        buffer.even &= size == size_of::<StoredEvent<M>>();
        buffer.at = at.wrapping_add(size);
    }
}

/// Capacity for `N` messages without a cause at the end of a buffer; `N` is not 0.
pub(super) struct RowVacancy<'b, M, const N: usize>(&'b mut Buffer<M>);

impl<M, const N: usize> RowVacancy<'_, M, N> {
    /// Adds consecutive messages of one sender to one receiver, which are due at one time. The first one has this label.
    #[inline(always)]
    pub(super) fn write(self, label: Label, bodies: [M; N]) {
        let buffer = self.0;
        let first = buffer.at.cast::<StoredEvent<M>>();
        // SAFETY: the last chunk, which the buffer owns, has capacity for the events, and `first` is written here.
        let event = unsafe {
            write_row(first, label, bodies);
            EventRef::new(first)
        };
        // The events after the first one are in order.
        buffer.note_order(event);
        buffer.newest = first.wrapping_add(N - 1);
        buffer.at = first.wrapping_add(N).cast();
    }
}

impl<M> Buffer<M> {
    pub(super) const fn new() -> Buffer<M> {
        Buffer {
            at: null_mut(),
            limit: null_mut(),
            chunks: Chunks::new(),
            newest: null_mut(),
            newest_order: 0,
            unsorted: null_mut(),
            even: true,
            _events: PhantomData,
        }
    }

    /// True if `bytes` more bytes can be written behind the last event.
    #[inline(always)]
    fn has_capacity(&self, bytes: usize) -> bool {
        self.limit.addr() - self.at.addr() >= bytes
    }

    /// Returns capacity for an event, if the last chunk has any.
    #[inline(always)]
    pub(super) fn vacant(&mut self) -> Option<Vacancy<'_, M>> {
        match self.has_capacity(StoredEvent::<M>::MOST) {
            true => Some(Vacancy(self)),
            false => None,
        }
    }

    /// Returns capacity for an event, in a new chunk if the last chunk is full.
    #[inline(always)]
    pub(super) fn vacancy(&mut self, pool: &mut Pool<M>) -> Vacancy<'_, M> {
        if !self.has_capacity(StoredEvent::<M>::MOST) {
            self.grow(pool);
        }
        Vacancy(self)
    }

    /// Returns capacity for `N` messages without a cause, if the last chunk has it and `N` is not 0.
    #[inline(always)]
    pub(super) fn vacant_row<const N: usize>(&mut self) -> Option<RowVacancy<'_, M, N>> {
        match N > 0 && self.has_capacity(N * size_of::<StoredEvent<M>>()) {
            true => Some(RowVacancy(self)),
            false => None,
        }
    }

    /// Records whether an event is in order after `newest`, the event written before it.
    #[inline(always)]
    fn note_order(&mut self, event: EventRef<'_, M>) {
        let order = event.label().coarse_order();
        if order > self.newest_order {
            self.newest_order = order;
        } else if self.unsorted.is_null() {
            self.compare_with_newest(event)
        }
    }

    /// The slow path of [`Buffer::note_order`]: for the first event, and for events whose receiver and time do not show
    /// that they follow the previous event.
    #[inline(never)]
    fn compare_with_newest(&mut self, event: EventRef<'_, M>) {
        // SAFETY: a non-null `newest` leads to an event in a chunk of this buffer.
        let newest = (!self.newest.is_null()).then(|| unsafe { EventRef::new(self.newest) });
        if newest.is_some_and(|newest| !newest.is_before(event)) {
            self.unsorted = event.as_ptr();
        }
        self.newest_order = event.label().coarse_order();
    }

    /// Adds an event.
    #[inline(always)]
    pub(super) fn push(&mut self, pool: &mut Pool<M>, event: ScheduledEvent<M>) {
        self.vacancy(pool).write(|place| place.write(event));
    }

    /// Adds a chunk. An empty buffer has none.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(&mut self, pool: &mut Pool<M>) -> Vacancy<'_, M> {
        self.chunks.append_one(pool.take(), self.at);
        let chunk = self.chunks.last;
        self.at = ChunkLayout::<M>::first_event(chunk);
        self.limit = chunk.cast::<u8>().wrapping_add(ChunkLayout::<M>::SIZE);
        Vacancy(self)
    }

    /// Calls `each` with the start of each chunk and the end of its events.
    #[inline]
    fn for_each_chunk(&self, mut each: impl FnMut(*mut u8, *mut u8)) {
        let mut chunk = self.chunks.first;
        while !chunk.is_null() {
            // SAFETY: the chunks of a buffer exist, and the end of all but the last is set.
            let (end, next) = unsafe { ((*chunk).end, (*chunk).next) };
            let end = if chunk == self.chunks.last {
                self.at
            } else {
                end
            };
            each(ChunkLayout::<M>::first_event(chunk), end);
            chunk = next;
        }
    }

    /// Calls `each` with every event in order. The closure may move the events out.
    #[inline]
    pub(super) fn for_each(&self, mut each: impl FnMut(EventRef<'_, M>)) {
        self.for_each_chunk(|mut at, end| {
            while at < end {
                // SAFETY: the bytes from the first event of a chunk to `end` are consecutive events.
                let event = unsafe { EventRef::new(at.cast()) };
                at = at.wrapping_add(StoredEvent::<M>::size(event.label()));
                each(event);
            }
        });
    }

    /// Calls `each` with every event in order and its message, if its kind has one, until it returns an error, and
    /// returns that.
    #[inline]
    #[cfg(feature = "serde")]
    pub(super) fn try_for_each<E>(
        &self,
        mut each: impl FnMut(EventRef<'_, M>, Option<&M>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        self.for_each(|event| {
            if result.is_ok() {
                // SAFETY: the events of a buffer have not been moved out: the code that moves them out forgets them before
                // the buffer is used otherwise. So a kind with a body has one.
                let message = |()| unsafe { &*event.body() };
                let has_body = event.label().kind().has_body();
                result = each(event, has_body.then_some(()).map(message));
            }
        });
        result
    }

    /// Returns the number of bytes that the events take.
    #[cfg(feature = "serde")]
    pub(super) fn bytes(&self) -> usize {
        let mut bytes = 0;
        self.for_each_chunk(|at, end| bytes += end.addr() - at.addr());
        bytes
    }

    /// Returns the number of chunks.
    #[cfg(all(test, feature = "serde"))]
    pub(super) fn chunks(&self) -> usize {
        let mut count = 0;
        self.for_each_chunk(|_, _| count += 1);
        count
    }

    /// Appends pointers to all events, in order. Returns the number of leading events that are sorted.
    ///
    /// # Safety
    /// The chunks of this buffer exist as long as the pointers are used.
    #[inline]
    pub(super) unsafe fn append_to(&self, places: &mut Vec<EventPtr<M>>) -> usize {
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
                // SAFETY: the buffer is even, so these are `count` consecutive events of this size. They are written
                // behind the old length.
                unsafe {
                    for place in spare {
                        place.write(EventRef::new(event));
                        event = event.wrapping_add(1);
                    }
                    places.set_len(places.len() + count);
                }
            });
        } else {
            self.for_each(|event| {
                if event.as_ptr() == self.unsorted {
                    sorted = Some(places.len());
                }
                // SAFETY: the caller has promised that the event exists as long as the pointer is used.
                places.push(unsafe { EventRef::new(event.as_ptr()) });
            });
        }
        sorted.unwrap_or(places.len()) - before
    }

    /// Calls `each` with pointers to all events until it returns `None`. Also returns `None` if there is more than one
    /// chunk.
    ///
    /// # Safety
    /// As for [`Buffer::append_to`].
    #[inline]
    pub(super) unsafe fn try_each(
        &self,
        mut each: impl FnMut(EventPtr<M>) -> Option<()>,
    ) -> Option<()> {
        if self.chunks.first != self.chunks.last {
            return None;
        }
        let mut at = ChunkLayout::<M>::first_event(self.chunks.first);
        while at < self.at {
            // SAFETY: the bytes from the first event of the chunk to `self.at` are consecutive events.
            let event = unsafe { EventRef::new(at.cast()) };
            at = at.wrapping_add(StoredEvent::<M>::size(event.label()));
            each(event)?;
        }
        Some(())
    }

    /// Takes the event and its memory out of a buffer that contains exactly one event. The event exists as long as the
    /// memory, and must be moved out; otherwise it is leaked.
    #[inline(always)]
    pub(super) fn take_only(&mut self) -> Option<(EventPtr<M>, FreeChunks<M>)> {
        let first = ChunkLayout::<M>::first_event(self.chunks.first);
        if first != self.newest.cast() {
            return None;
        }
        // SAFETY: the first event of the first chunk is the newest event, so it was written.
        let event = unsafe { EventRef::new(std::mem::replace(&mut self.newest, null_mut())) };
        let spent = FreeChunks(self.chunks.take());
        (self.at, self.limit) = (null_mut(), null_mut());
        (self.newest_order, self.even) = (0, true);
        Some((event, spent))
    }

    /// Drops the events and returns the memory.
    #[cfg(any(test, feature = "serde"))]
    pub(super) fn into_cleared(self) -> FreeChunks<M> {
        self.drop_events();
        self.into_free_chunks()
    }

    /// Drops the events in place. They are not used afterwards: the caller forgets them.
    fn drop_events(&self) {
        if needs_drop::<M>() {
            // SAFETY: the events have not been moved out, because `into_free_chunks` leaves an empty buffer. Both callers
            // forget the events afterwards, so each is dropped once.
            self.for_each(|event| drop(unsafe { event.read(0) }));
        }
    }

    /// Calls `each` with every event in order; times are relative to the window.
    pub(super) fn take_all(self, mut each: impl FnMut(ScheduledEvent<M>)) {
        let this = ManuallyDrop::new(self);
        // SAFETY: each event is moved out once. If `each` panics, the buffer is not dropped.
        this.for_each(|event| each(unsafe { event.read(0) }));
        drop(ManuallyDrop::into_inner(this).into_free_chunks());
    }

    /// Converts a buffer whose events have been moved out to its free memory.
    pub(super) fn into_free_chunks(mut self) -> FreeChunks<M> {
        FreeChunks(self.chunks.take())
    }
}

impl<M> Drop for Buffer<M> {
    fn drop(&mut self) {
        self.drop_events();
    }
}

impl<M> Pool<M> {
    pub(super) const fn new() -> Pool<M> {
        Pool {
            free: Chunks::new(),
            blocks: Blocks::new(),
        }
    }

    /// Returns chunks to the pool.
    pub(super) fn put(&mut self, spent: FreeChunks<M>) {
        self.free.prepend(spent.0);
    }

    /// Takes a chunk, as a list.
    fn take(&mut self) -> Chunks<M> {
        let free = self.free.pop();
        free.unwrap_or_else(|| Chunks::allocate(&mut self.blocks))
    }
}

const fn max(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Head, Kind};
    use super::super::stored_event::FewEvents;
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
                let event = unsafe { stored.read(9) };
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
        // Returns the events, up to three of them.
        let few = |buffer: &Buffer<Arc<u32>>| {
            let mut few = FewEvents::<_, 3>::new();
            // SAFETY: the chunks exist until the end of the test.
            unsafe { buffer.try_each(|event| few.push(event)) }?;
            Some(few.as_mut_slice().to_vec())
        };
        assert_eq!(few(&buffer), Some(Vec::new()));
        assert!(buffer.take_only().is_none());
        for round in 0..2 {
            buffer.push(&mut pool, event(Kind::Message, 1, Arc::clone(&body)));
            let noted = few(&buffer);
            let (only, spent) = buffer.take_only().unwrap();
            assert_eq!(noted, Some(vec![only]));
            // SAFETY: the event is moved out once, and its memory still exists.
            assert_eq!(unsafe { only.read(9) }.head.seq, 1);
            pool.put(spent);
            assert_eq!(Arc::strong_count(&body), 1, "round {round}");
        }
        for seq in 0..4 {
            let kind = KINDS[seq as usize];
            buffer.push(&mut pool, event(kind, seq, Arc::clone(&body)));
            let all = few(&buffer).map(|all| all.len());
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
            if buffer.vacant_row::<3>().is_none() {
                buffer.grow(&mut pool);
            }
            let vacancy = buffer
                .vacant_row()
                .expect("three messages fit into a chunk");
            vacancy.write(label(row, 3 * row), bodies);
        }
        // SAFETY: the buffer exists until the end of the test's use of the pointers.
        let places = |buffer: &Buffer<_>, places: &mut Vec<_>| unsafe { buffer.append_to(places) };
        let mut before = Vec::new();
        let sorted = places(&buffer, &mut before);
        assert_eq!(sorted, 3 * rows as usize, "by receiver and sequence");
        let plain = buffer.vacancy(&mut pool);
        plain.write(|place| place.write_plain(label(0, 7), Arc::clone(&body)));
        let mut after = vec![before[0]];
        let sorted = places(&buffer, &mut after);
        assert_eq!(sorted, 3 * rows as usize, "back to receiver 0");
        let after = &after[1..];
        let mut walked = Vec::new();
        buffer.for_each(|event| walked.push(event.as_ptr()));
        assert!(after.iter().map(|event| event.as_ptr()).eq(walked));
        let labels = after.iter().map(|event| *event.label());
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
