//! Events as they are stored in a [buffer](super::buffer): the label, the message, and the cause only if the event has
//! one. In a run without traces, a message takes 16 bytes plus its own size.

use super::event::{Cause, Head, Kind, Label, ScheduledEvent, TIMER_FROM, TIMER_SEQ};
use crate::contract::Addr;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

/// An event in a buffer, followed by its [`Cause`] if its kind [has one](Label::has_cause).
#[repr(C)]
pub(super) struct StoredEvent<M> {
    label: Label,
    content: Content<M>,
}

#[repr(C)]
union Content<M> {
    /// The message, which is initialised if and only if the label's kind has a body.
    _body: ManuallyDrop<MaybeUninit<M>>,
    /// The token of a timer.
    token: u32,
}

/// A stored event and its cause.
#[repr(C)]
struct StoredWithCause<M> {
    stored: StoredEvent<M>,
    /// The cause as 32-bit halves, so that it needs no stricter alignment than a label.
    cause: [u32; 6],
}

impl<M> StoredEvent<M> {
    /// The maximum size of an event.
    pub(super) const MOST: usize = size_of::<StoredWithCause<M>>();
    /// The alignment of an event.
    pub(super) const ALIGN: usize = align_of::<StoredWithCause<M>>();

    /// Returns the number of bytes that an event with this label takes.
    #[inline(always)]
    pub(super) fn size(label: &Label) -> usize {
        if label.has_cause() {
            size_of::<StoredWithCause<M>>()
        } else {
            size_of::<StoredEvent<M>>()
        }
    }
}

/// Memory for one event of any size. An event is written by one of the methods.
pub(super) struct Place<'a, M>(*mut StoredEvent<M>, PhantomData<&'a mut &'a ()>);

/// The proof that an event was written to the [`Place`] with the same lifetime.
pub(super) struct Written<'a> {
    /// The event's size in bytes.
    pub(super) size: usize,
    _place: PhantomData<&'a mut &'a ()>,
}

impl<'a, M> Place<'a, M> {
    /// # Safety
    /// During `'a`, `place` is valid for writes of [`StoredEvent::MOST`] bytes, and aligned for events. `'a` is the
    /// lifetime of this place only.
    #[inline(always)]
    pub(super) unsafe fn new(place: *mut u8) -> Place<'a, M> {
        Place(place.cast(), PhantomData)
    }

    #[inline(always)]
    fn written(size: usize) -> Written<'a> {
        Written {
            size,
            _place: PhantomData,
        }
    }

    /// Writes an event.
    #[inline(always)]
    pub(super) fn write(self, event: ScheduledEvent<M>) -> Written<'a> {
        let Head { label, cause } = event.head;
        let stored = self.0;
        // SAFETY: the place is valid for writes of any event, and aligned.
        unsafe {
            (&raw mut (*stored).label).write(label);
            if label.kind() == Kind::Timer {
                (&raw mut (*stored).content.token).write(cause.parent as u32);
            } else {
                let body = (&raw mut (*stored).content).cast::<MaybeUninit<M>>();
                body.write(event.into_body());
            }
            if label.has_cause() {
                let halves = |whole: u64| [whole as u32, (whole >> 32) as u32];
                let [a, b, c] = [cause.sent, cause.trace, cause.parent].map(halves);
                let place = &raw mut (*stored.cast::<StoredWithCause<M>>()).cause;
                place.write([a[0], a[1], b[0], b[1], c[0], c[1]]);
            }
        }
        Self::written(StoredEvent::<M>::size(&label))
    }

    /// Writes a message with only its sender as metadata.
    #[inline(always)]
    pub(super) fn write_plain(self, label: Label, body: M) -> Written<'a> {
        debug_assert!(label.kind() == Kind::Plain);
        let stored = self.0;
        // SAFETY: the place is valid for writes of any event, and aligned.
        unsafe {
            (&raw mut (*stored).label).write(label);
            (&raw mut (*stored).content).cast::<M>().write(body);
        }
        Self::written(size_of::<StoredEvent<M>>())
    }

    /// Writes a timer.
    #[inline(always)]
    pub(super) fn write_timer(self, offset: u32, actor: u32, token: u32) -> Written<'a> {
        let head = Head::new(offset, Kind::Timer, actor, TIMER_FROM, TIMER_SEQ, 0);
        let stored = self.0;
        // SAFETY: the place is valid for writes of any event, and aligned.
        unsafe {
            (&raw mut (*stored).label).write(head.label);
            (&raw mut (*stored).content.token).write(token);
        }
        Self::written(size_of::<StoredEvent<M>>())
    }
}

/// Writes consecutive plain messages of one sender to one receiver, which are due at one time. The first one has this
/// label.
///
/// # Safety
/// `first` is valid for writes of `N` events without a cause.
#[inline(always)]
pub(super) unsafe fn write_row<M, const N: usize>(
    first: *mut StoredEvent<M>,
    label: Label,
    bodies: [M; N],
) {
    let bodies = ManuallyDrop::new(bodies);
    // SAFETY: the events are written one after the other, and each body is moved out once.
    unsafe {
        for index in 0..N {
            let event = first.add(index);
            label.later(index as u32).write_to(&raw mut (*event).label);
            let body = bodies.as_ptr().add(index).read();
            (&raw mut (*event).content).cast::<M>().write(body);
        }
    }
}

/// The address of a stored event, whose memory exists for `'a`.
///
/// # Invariant
/// The address leads to a stored event; at most its message has been moved out. So its label, its cause and the token
/// of a timer can always be read. The message can be moved out once: the code that does so, or that claims the right to
/// do so as an [`UnreadEvent`], ensures that nothing else uses the message.
pub(super) struct EventRef<'a, M>(NonNull<StoredEvent<M>>, PhantomData<&'a ()>);

/// The address of a stored event whose memory exists as long as a copy of the address is used. The code that makes the
/// address ensures this.
pub(super) type EventPtr<M> = EventRef<'static, M>;

impl<M> Clone for EventRef<'_, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for EventRef<'_, M> {}

impl<M> PartialEq for EventRef<'_, M> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<M> std::fmt::Debug for EventRef<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<M> EventRef<'_, M> {
    /// # Safety
    /// The invariant of the type holds while a copy of the address is used: `event` leads to a stored event, whose
    /// memory exists.
    #[inline(always)]
    pub(super) unsafe fn new(event: *mut StoredEvent<M>) -> Self {
        // SAFETY: an event has a memory address, which is not null.
        EventRef(unsafe { NonNull::new_unchecked(event) }, PhantomData)
    }

    #[inline(always)]
    pub(super) fn as_ptr(self) -> *mut StoredEvent<M> {
        self.0.as_ptr()
    }

    /// Returns the label of the event.
    #[inline(always)]
    pub(super) fn label(&self) -> &Label {
        // SAFETY: by the invariant, the event is stored and its memory exists; its label does not change.
        unsafe { &(*self.as_ptr()).label }
    }

    /// Returns the event without its message; `now` is the time of handling.
    #[inline(always)]
    pub(super) fn head(self, now: u64) -> Head {
        let this = self.as_ptr();
        // SAFETY: by the invariant, the event is stored. If its kind has a cause, the cause follows the event; a timer
        // has a token.
        unsafe {
            let label = (*this).label;
            let cause = if label.has_cause() {
                let [a, b, c, d, e, f] = (*this.cast::<StoredWithCause<M>>()).cause;
                let whole = |low: u32, high: u32| (high as u64) << 32 | low as u64;
                Cause {
                    sent: whole(a, b),
                    trace: whole(c, d),
                    parent: whole(e, f),
                }
            } else {
                let timer = label.kind() == Kind::Timer;
                Cause {
                    sent: now,
                    trace: 0,
                    parent: if timer {
                        (*this).content.token.into()
                    } else {
                        0
                    },
                }
            };
            Head { label, cause }
        }
    }

    /// Returns true if two events of a window may run in this order.
    #[inline(always)]
    pub(super) fn is_before(self, next: Self) -> bool {
        let (a, b) = (self.label(), next.label());
        // Most pairs have different receivers, or are messages of one sender at one time, so the full order is rarely
        // needed.
        a.to < b.to || a.to == b.to && (a.is_just_before(b) || a.order() <= b.order())
    }

    /// Returns the receiver and the sender of the event as one number.
    #[inline(always)]
    pub(super) fn parties(self) -> u64 {
        // SAFETY: by the invariant, the event is stored; in its label the sender directly follows the receiver. One
        // load replaces the two that compilers would emit.
        let both = unsafe {
            (&raw const (*self.as_ptr()).label)
                .cast::<u8>()
                .add(Label::PARTIES)
                .cast::<u64>()
                .read_unaligned()
        };
        both.rotate_left(if cfg!(target_endian = "little") {
            32
        } else {
            0
        })
    }

    /// Returns the event as a timer, if it is one.
    #[inline(always)]
    pub(super) fn timer(self) -> Option<TimerPtr<M>> {
        self.label().is_timer().then_some(TimerPtr(self.0))
    }

    /// Returns a pointer to the message; it is initialised if and only if the event's kind has a body that has not been
    /// moved out.
    #[inline(always)]
    pub(super) fn body(self) -> *mut M {
        // SAFETY: by the invariant, the event is stored, so the address is within it.
        unsafe { (&raw mut (*self.as_ptr()).content).cast() }
    }

    /// Moves the event out; `now` is the time at which it is handled.
    ///
    /// # Safety
    /// The event has not been moved out; after the call it counts as moved out. If it is in a buffer, the events of the
    /// buffer are forgotten before the buffer is used otherwise.
    #[inline(always)]
    pub(super) unsafe fn read(self, now: u64) -> ScheduledEvent<M> {
        let head = self.head(now);
        if head.kind().has_body() {
            // SAFETY: the event has not been moved out, so a kind with a body has one.
            ScheduledEvent::with_body(head, unsafe { self.body().read() })
        } else {
            ScheduledEvent::bare(head)
        }
    }
}

/// The address of a stored timer; see [`EventPtr`].
pub(super) struct TimerPtr<M>(NonNull<StoredEvent<M>>);

impl<M> TimerPtr<M> {
    /// Returns the token of the timer.
    #[inline(always)]
    pub(super) fn token(&self) -> u32 {
        // SAFETY: `EventRef::timer` has found that the event is a timer, whose content is a token.
        unsafe { (*self.0.as_ptr()).content.token }
    }

    /// Replaces the token of the timer.
    #[inline(always)]
    pub(super) fn set_token(&self, token: u32) {
        // SAFETY: `EventRef::timer` has found that the event is a timer, whose content is a token. References to an
        // event lead to its label or its message, not to the token.
        unsafe { (*self.0.as_ptr()).content.token = token }
    }

    /// Returns the event, which is unread: a timer can be read any number of times.
    #[inline(always)]
    pub(super) fn into_unread(self) -> UnreadEvent<M> {
        UnreadEvent(EventRef(self.0, PhantomData))
    }
}

/// The right to move an event out of its memory. If it is not used, the event is leaked.
pub(super) struct UnreadEvent<M>(EventPtr<M>);

impl<M> UnreadEvent<M> {
    /// # Safety
    /// The event has not been moved out, and nothing else moves it out as long as the returned value exists.
    #[inline(always)]
    pub(super) unsafe fn new(event: EventPtr<M>) -> UnreadEvent<M> {
        UnreadEvent(event)
    }

    /// Returns the address of the event.
    #[inline(always)]
    pub(super) fn event(&self) -> EventPtr<M> {
        self.0
    }

    /// Moves the event out; `now` is the time at which it is handled.
    #[inline(always)]
    pub(super) fn read(self, now: u64) -> ScheduledEvent<M> {
        // SAFETY: `self` is the right to move the event out, and is consumed.
        unsafe { self.0.read(now) }
    }

    /// Moves the message out, if the event is a [message](Label::is_message).
    #[inline(always)]
    pub(super) fn read_message(self) -> Result<(Addr, M), UnreadEvent<M>> {
        if !self.0.label().is_message() {
            return Err(self);
        }
        // SAFETY: `self` is the right to move the event out, and is consumed. A message has a body.
        let body = unsafe { self.0.body().read() };
        Ok((Addr(self.0.label().from), body))
    }
}

/// Memory for `N` events outside of all buffers. It is a separate allocation, so that no borrow of its owner covers it.
pub(super) struct EventSpaces<M, const N: usize>(NonNull<[MaybeUninit<StoredWithCause<M>>; N]>);

impl<M, const N: usize> EventSpaces<M, N> {
    pub(super) fn new() -> EventSpaces<M, N> {
        let spaces = Box::new([const { MaybeUninit::uninit() }; N]);
        EventSpaces(NonNull::from(Box::leak(spaces)))
    }

    /// Writes an event to the memory with this number. Its address may be used as long as `self` exists; the event
    /// itself is there until the next call for this number.
    #[inline(always)]
    fn write_with(
        &self,
        number: usize,
        write: impl for<'a> FnOnce(Place<'a, M>) -> Written<'a>,
    ) -> EventPtr<M> {
        assert!(number < N);
        let space = self.0.as_ptr().cast::<StoredWithCause<M>>();
        let space = space.wrapping_add(number).cast();
        // SAFETY: the memory exists as long as `self`, and has the size and alignment of any event. `write` writes an
        // event to it.
        unsafe {
            write(Place::new(space));
            EventRef::new(space.cast())
        }
    }

    /// Writes a timer to the memory with this number; see the [type](EventSpaces).
    #[inline(always)]
    pub(super) fn set_timer(
        &self,
        number: usize,
        offset: u32,
        actor: u32,
        token: u32,
    ) -> EventPtr<M> {
        self.write_with(number, |place| place.write_timer(offset, actor, token))
    }

    /// Writes an event to the memory with this number, from which it must be moved out before the next call.
    #[inline(always)]
    pub(super) fn set(&self, number: usize, event: ScheduledEvent<M>) -> UnreadEvent<M> {
        UnreadEvent(self.write_with(number, |place| place.write(event)))
    }
}

impl<M, const N: usize> Drop for EventSpaces<M, N> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from a box, which is recreated only here.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Up to `N` addresses of events.
pub(super) struct FewEvents<M, const N: usize> {
    events: [MaybeUninit<EventPtr<M>>; N],
    count: usize,
}

impl<M, const N: usize> FewEvents<M, N> {
    #[inline(always)]
    pub(super) fn new() -> FewEvents<M, N> {
        FewEvents {
            events: [const { MaybeUninit::uninit() }; N],
            count: 0,
        }
    }

    /// Adds an event. Returns `None` if there are `N` events already.
    #[inline(always)]
    pub(super) fn push(&mut self, event: EventPtr<M>) -> Option<()> {
        self.events.get_mut(self.count)?.write(event);
        self.count += 1;
        Some(())
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    pub(super) fn as_mut_slice(&mut self) -> &mut [EventPtr<M>] {
        let events = &mut self.events[..self.count];
        // SAFETY: `push` has initialised the first `count` entries.
        unsafe { std::slice::from_raw_parts_mut(events.as_mut_ptr().cast(), events.len()) }
    }
}
