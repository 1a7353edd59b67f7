//! Events as they are stored in a [buffer](super::buffer): the label, the message, and the cause only if the event has
//! one. In a run without traces, a message takes 16 bytes plus its own size.

use super::event::{Cause, Head, Kind, Label, ScheduledEvent, TIMER_FROM, TIMER_SEQ};
use std::mem::{ManuallyDrop, MaybeUninit};

/// An event in a buffer, followed by its [`Cause`] if its kind [has one](Label::has_cause).
#[repr(C)]
pub(super) struct StoredEvent<M> {
    pub(super) label: Label,
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

/// Memory for any event, outside a buffer.
pub(super) struct EventSpace<M>(MaybeUninit<StoredWithCause<M>>);

impl<M> EventSpace<M> {
    pub(super) const fn new() -> EventSpace<M> {
        EventSpace(MaybeUninit::uninit())
    }
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

    /// Writes an event. Returns its size in bytes.
    ///
    /// # Safety
    /// `place` must be valid for writes of [`StoredEvent::MOST`] bytes, and aligned.
    #[inline(always)]
    pub(super) unsafe fn write(place: *mut u8, event: ScheduledEvent<M>) -> usize {
        let Head { label, cause } = event.head;
        // SAFETY: `place` is valid for writes of any event, and aligned.
        unsafe {
            let stored = place.cast::<StoredEvent<M>>();
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
                let place = &raw mut (*place.cast::<StoredWithCause<M>>()).cause;
                place.write([a[0], a[1], b[0], b[1], c[0], c[1]]);
            }
        }
        Self::size(&label)
    }

    /// Writes a message with only its sender as metadata. Returns its size in bytes.
    ///
    /// # Safety
    /// See [`StoredEvent::write`].
    #[inline(always)]
    pub(super) unsafe fn write_plain(place: *mut u8, label: Label, body: M) -> usize {
        debug_assert!(label.kind() == Kind::Plain);
        // SAFETY: `place` is valid for writes of any event, and aligned.
        unsafe {
            let stored = place.cast::<StoredEvent<M>>();
            (&raw mut (*stored).label).write(label);
            (&raw mut (*stored).content).cast::<M>().write(body);
        }
        size_of::<StoredEvent<M>>()
    }

    /// Writes a timer. Returns its size in bytes.
    ///
    /// # Safety
    /// See [`StoredEvent::write`].
    #[inline(always)]
    pub(super) unsafe fn write_timer(place: *mut u8, offset: u32, actor: u32, token: u32) -> usize {
        let head = Head::new(offset, Kind::Timer, actor, TIMER_FROM, TIMER_SEQ, 0);
        // SAFETY: `place` is valid for writes of any event, and aligned.
        unsafe {
            let stored = place.cast::<StoredEvent<M>>();
            (&raw mut (*stored).label).write(head.label);
            (&raw mut (*stored).content.token).write(token);
        }
        size_of::<StoredEvent<M>>()
    }

    /// Returns a stored event without its message; `now` is the time of handling.
    ///
    /// # Safety
    /// `this` must be a stored event, of which at most the message has been moved out.
    #[inline(always)]
    pub(super) unsafe fn head(this: *const StoredEvent<M>, now: u64) -> Head {
        // SAFETY: `this` is a stored event. If its kind has a cause, the cause follows the event.
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
    ///
    /// # Safety
    /// Both pointers lead to stored events.
    #[inline(always)]
    pub(super) unsafe fn is_before(
        this: *const StoredEvent<M>,
        next: *const StoredEvent<M>,
    ) -> bool {
        // SAFETY: both pointers lead to stored events, whose labels are initialised.
        let (a, b) = unsafe { (&(*this).label, &(*next).label) };
        // Most pairs have different receivers, or are messages of one sender at one time, so the full order is rarely
        // needed.
        a.to < b.to || a.to == b.to && (a.is_just_before(b) || a.order() <= b.order())
    }

    /// Returns the receiver and the sender of an event as one number.
    ///
    /// # Safety
    /// `this` must be a stored event.
    #[inline(always)]
    pub(super) unsafe fn parties(this: *const StoredEvent<M>) -> u64 {
        // SAFETY: `this` is a stored event, in whose label the sender directly follows the receiver. One load replaces
        // the two that compilers would emit.
        let both = unsafe {
            (&raw const (*this).label)
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

    /// Returns the token of a timer.
    ///
    /// # Safety
    /// `this` must be a stored timer.
    #[inline(always)]
    pub(super) unsafe fn token(this: *const StoredEvent<M>) -> u32 {
        // SAFETY: `this` is a stored timer, whose content is a token.
        unsafe { (*this).content.token }
    }

    /// Replaces the token of a timer.
    ///
    /// # Safety
    /// `this` must be a stored timer.
    pub(super) unsafe fn set_token(this: *mut StoredEvent<M>, token: u32) {
        // SAFETY: `this` is a stored timer, whose content is a token.
        unsafe { (*this).content.token = token }
    }

    /// Returns a pointer to the message of an event.
    ///
    /// # Safety
    /// `this` must be a stored event; its message is initialised if and only if its kind has a body that has not been
    /// moved out.
    #[inline(always)]
    pub(super) unsafe fn body(this: *mut StoredEvent<M>) -> *mut M {
        // SAFETY: `this` is a stored event, so the address is within it.
        unsafe { (&raw mut (*this).content).cast() }
    }

    /// Moves a stored event out; `now` is the time at which it is handled.
    ///
    /// # Safety
    /// `this` must be a stored event that has not been moved out; after the call it counts as moved out.
    #[inline(always)]
    pub(super) unsafe fn read(this: *mut StoredEvent<M>, now: u64) -> ScheduledEvent<M> {
        // SAFETY: `this` is a stored event that has not been moved out, so a kind with a body has one.
        unsafe {
            let head = StoredEvent::head(this, now);
            if head.kind().has_body() {
                ScheduledEvent::with_body(head, StoredEvent::body(this).read())
            } else {
                ScheduledEvent::bare(head)
            }
        }
    }

    /// Drops a stored event.
    ///
    /// # Safety
    /// See [`StoredEvent::read`].
    pub(super) unsafe fn drop_in_place(this: *mut StoredEvent<M>) {
        // SAFETY: `this` is a stored event that has not been moved out, so a kind with a body has one.
        unsafe {
            if (*this).label.kind().has_body() {
                StoredEvent::body(this).drop_in_place();
            }
        }
    }
}
