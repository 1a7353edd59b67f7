//! Events, which the sender's shard writes once, and the receiver's shard reads once.

use super::header::Header;
use crate::contract::{Addr, Envelope, Event, Reason, SpanId, Time, Token};
use std::mem::{ManuallyDrop, MaybeUninit, needs_drop};

/// The kind of an event. Up to [`Kind::DeadLetter`] an event carries a message.
///
/// At one instant, events with the same sender and sequence number are handled in the order of this enum: a stop has
/// the sequence number of the last message before it, and is handled after that message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    /// A message with only its sender as metadata: the run keeps no traces.
    Plain,
    Message,
    /// A message whose sender is notified if the receiver has ended.
    Request,
    /// A request of [`ask`](crate::AsyncContext::ask), whose answer goes to the wait of `ask`.
    Ask,
    /// A message that answers the request in `parent`.
    Reply,
    /// A message returned to the root; `from` is its intended receiver.
    DeadLetter,
    /// A timer; `parent` is its token.
    Timer,
    /// The actor begins.
    Start,
    /// The actor ends.
    Stop,
    /// `seq` is the request, `parent` the first address and the count.
    Spawned,
    /// `from` has ended; `parent` is the reason.
    Down,
    /// `from` has ended and will not answer the request in `parent`.
    Unanswered,
    /// The failure of a [`Kind::Ask`], of which only the wait for the answer is notified.
    AskUnanswered,
}

impl Kind {
    /// All kinds by number; numbers without a kind stand for a timer.
    const ALL: [Kind; 1 << KIND_BITS] = [
        Kind::Plain,
        Kind::Message,
        Kind::Request,
        Kind::Ask,
        Kind::Reply,
        Kind::DeadLetter,
        Kind::Timer,
        Kind::Start,
        Kind::Stop,
        Kind::Spawned,
        Kind::Down,
        Kind::Unanswered,
        Kind::AskUnanswered,
        Kind::Timer,
        Kind::Timer,
        Kind::Timer,
    ];

    /// Returns the kind with this number, if there is one.
    #[cfg(feature = "serde")]
    pub(super) fn from_number(number: u8) -> Option<Kind> {
        let kind = *Kind::ALL.get(usize::from(number))?;
        (kind as u8 == number).then_some(kind)
    }

    /// True if the event carries a message.
    #[inline]
    pub(super) fn has_body(self) -> bool {
        self <= Kind::DeadLetter
    }

    /// True if the event is a message that one actor sent to another.
    #[inline]
    pub(super) fn is_message(self) -> bool {
        self <= Kind::Reply
    }
}

/// The number of bits of [`Label::key`] that contain the kind.
const KIND_BITS: u32 = 4;
const KIND_MASK: u32 = (1 << KIND_BITS) - 1;
/// The maximum width of a window, 2^28 ns, so that an offset and a kind fit into 32 bits.
pub(super) const MAX_WINDOW_BITS: u32 = 32 - KIND_BITS;
/// The sender of timers. It is greater than every actor, so that messages come first at one instant.
pub(super) const TIMER_FROM: u32 = u32::MAX;
/// The sequence number of timers, above that of every message, so that messages with the sender
/// [`Addr::NONE`](crate::Addr::NONE), which stands for no sender, also come before them. Timers of one actor
/// and one instant stay in the order in which they were set.
pub(super) const TIMER_SEQ: u32 = u32::MAX;

/// The label that every event has: 16 bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Label {
    /// Nanoseconds since the beginning of the event's window, and its kind.
    key: u32,
    pub(super) to: u32,
    pub(super) from: u32,
    /// The sender's sequence number.
    pub(super) seq: u32,
}

impl Label {
    /// Returns the label as bytes, for another process.
    #[cfg(feature = "serde")]
    #[inline(always)]
    pub(super) fn to_bytes(self) -> [u8; 16] {
        // Written out, because closures over arrays would not be inlined.
        let bits = u128::from(self.key)
            | u128::from(self.to) << 32
            | u128::from(self.from) << 64
            | u128::from(self.seq) << 96;
        bits.to_le_bytes()
    }

    /// Reads a label that another process has written.
    #[cfg(feature = "serde")]
    #[inline(always)]
    pub(super) fn from_bytes(bytes: [u8; 16]) -> Label {
        let bits = u128::from_le_bytes(bytes);
        Label {
            key: bits as u32,
            to: (bits >> 32) as u32,
            from: (bits >> 64) as u32,
            seq: (bits >> 96) as u32,
        }
    }

    /// The offset of the receiver and the sender in a label.
    pub(super) const PARTIES: usize = std::mem::offset_of!(Label, to);

    /// Writes the label in two halves, because compilers would write each field separately.
    ///
    /// # Safety
    /// `place` is valid for writes.
    #[inline(always)]
    pub(super) unsafe fn write_to(self, place: *mut Label) {
        let Label { key, to, from, seq } = self;
        let half = |first: u32, second: u32| {
            if cfg!(target_endian = "little") {
                (second as u64) << 32 | first as u64
            } else {
                (first as u64) << 32 | second as u64
            }
        };
        // SAFETY: `place` is valid for writes, and a label consists of four numbers of 32 bits in this order, without
        // padding.
        unsafe {
            let halves = place.cast::<[u64; 2]>();
            halves.write_unaligned([half(key, to), half(from, seq)]);
        }
    }

    /// Returns the nanoseconds since the beginning of the window.
    #[inline(always)]
    pub(super) fn offset(&self) -> u32 {
        self.key >> KIND_BITS
    }

    /// Returns the label of the event that the same sender sends `events` messages later.
    #[inline(always)]
    pub(super) fn later(self, events: u32) -> Label {
        let seq = self.seq + events;
        Label { seq, ..self }
    }

    /// Moves the event within its window.
    #[inline(always)]
    pub(super) fn set_offset(&mut self, offset: u32) {
        debug_assert!(offset < 1 << MAX_WINDOW_BITS);
        self.key = offset << KIND_BITS | self.key & KIND_MASK;
    }

    #[inline(always)]
    pub(super) fn kind(&self) -> Kind {
        // The mask keeps the index within the table; a label always contains a valid kind.
        Kind::ALL[(self.key & KIND_MASK) as usize]
    }

    /// True for a message from one actor to another, without decoding the kind.
    #[inline(always)]
    pub(super) fn is_message(&self) -> bool {
        self.key & KIND_MASK <= Kind::Reply as u32
    }

    /// True for a timer, without decoding the kind.
    #[inline(always)]
    pub(super) fn is_timer(&self) -> bool {
        self.key & KIND_MASK == Kind::Timer as u32
    }

    /// True if a buffer stores the event's [`Cause`].
    #[inline(always)]
    pub(super) fn has_cause(&self) -> bool {
        let kind = self.key & KIND_MASK;
        kind != Kind::Plain as u32 && kind != Kind::Timer as u32
    }

    /// Returns the span of this message.
    #[inline(always)]
    pub(super) fn span(&self) -> u64 {
        SpanId::new(Addr(self.from), self.seq).as_u64()
    }

    /// True if both events have the same sender and receiver, and this one was sent earlier and is not due later.
    #[inline(always)]
    pub(super) fn is_just_before(&self, other: &Label) -> bool {
        (self.to, self.from) == (other.to, other.from)
            && self.seq < other.seq
            && self.offset() <= other.offset()
    }

    /// Returns a part of the [order](Label::order) that consists of receiver and time. An event with a larger number
    /// also has a larger order.
    #[inline(always)]
    pub(super) fn coarse_order(&self) -> u64 {
        (self.to as u64) << 32 | (self.key & !KIND_MASK) as u64
    }

    /// True if both have the same kind and receiver, and are due at the same instant of a window.
    #[inline(always)]
    pub(super) fn is_alike(&self, other: &Label) -> bool {
        // One comparison, because compilers would compare the two numbers one after the other.
        let both = |label: &Label| u64::from(label.to) << 32 | u64::from(label.key);
        both(self) == both(other)
    }

    /// Returns the sort key within a window: receiver, then time, sender, sequence, kind.
    ///
    /// Two events with equal keys have the same sender and time; they stay in the order in which the sender's shard
    /// scheduled them.
    #[inline(always)]
    pub(super) fn order(&self) -> u128 {
        let (to, from, seq) = (self.to as u64, self.from as u64, self.seq as u64);
        let high = to << 32 | (self.key & !KIND_MASK) as u64 | from >> (32 - KIND_BITS);
        let low = from << (32 + KIND_BITS) | seq << KIND_BITS | (self.key & KIND_MASK) as u64;
        (high as u128) << 64 | low as u128
    }
}

/// An event without its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) label: Label,
    pub(super) cause: Cause,
}

/// The cause of an event, stored only for events whose receiver may request it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cause {
    /// The send time.
    pub(super) sent: u64,
    /// The first span of the trace; with 0, messages that are sent while this event is handled start a new trace.
    pub(super) trace: u64,
    /// The span that caused the event, or other data as described at [`Kind`].
    pub(super) parent: u64,
}

impl std::ops::Deref for Head {
    type Target = Label;

    #[inline(always)]
    fn deref(&self) -> &Label {
        &self.label
    }
}

impl Head {
    #[inline(always)]
    pub(super) fn new(offset: u32, kind: Kind, to: u32, from: u32, seq: u32, sent: u64) -> Head {
        debug_assert!(offset < 1 << MAX_WINDOW_BITS);
        let key = offset << KIND_BITS | kind as u32;
        Head {
            label: Label { key, to, from, seq },
            cause: Cause {
                sent,
                trace: 0,
                parent: 0,
            },
        }
    }

    /// Returns the metadata for the receiver.
    pub(super) fn envelope(&self) -> Envelope {
        let kind = self.kind();
        let none = SpanId::NONE;
        if kind.has_body() {
            let parent = SpanId(self.cause.parent);
            let answers = if kind == Kind::Reply { parent } else { none };
            return Envelope {
                from: Addr(self.from),
                sent: Time(self.cause.sent),
                trace: SpanId(self.cause.trace),
                parent,
                span: SpanId(self.span()),
                answers,
            };
        }
        Envelope {
            from: if kind == Kind::Timer {
                Addr(self.to)
            } else {
                Addr(self.from)
            },
            sent: Time(self.cause.sent),
            trace: none,
            parent: none,
            span: none,
            answers: match kind {
                Kind::Unanswered | Kind::AskUnanswered => SpanId(self.cause.parent),
                _ => none,
            },
        }
    }
}

/// An event and its message, if it has one.
#[derive(Debug)]
pub(super) struct ScheduledEvent<M> {
    pub(super) head: Head,
    /// Initialised if and only if the head's kind has a body.
    body: MaybeUninit<M>,
}

impl<M> ScheduledEvent<M> {
    /// Creates an event with a message.
    #[inline(always)]
    pub(super) fn with_body(head: Head, body: M) -> ScheduledEvent<M> {
        debug_assert!(head.kind().has_body());
        ScheduledEvent {
            head,
            body: MaybeUninit::new(body),
        }
    }

    /// Creates an event without a message.
    #[inline(always)]
    pub(super) fn bare(head: Head) -> ScheduledEvent<M> {
        debug_assert!(!head.kind().has_body());
        ScheduledEvent {
            head,
            body: MaybeUninit::uninit(),
        }
    }

    /// Returns the memory of the message, to which ownership moves.
    #[inline(always)]
    pub(super) fn into_body(self) -> MaybeUninit<M> {
        let mut this = ManuallyDrop::new(self);
        std::mem::replace(&mut this.body, MaybeUninit::uninit())
    }

    /// Returns the message of an event whose kind has one; otherwise panics.
    #[inline(always)]
    fn into_message(self) -> M {
        assert!(self.head.kind().has_body());
        // SAFETY: every constructor initialises the body of an event whose kind has one, and it is moved out once.
        unsafe { self.into_body().assume_init() }
    }

    /// Returns the message, if there is one.
    #[inline(always)]
    pub(super) fn body(&self) -> Option<&M> {
        // SAFETY: every constructor initialises the body of an event whose kind has one.
        self.head
            .kind()
            .has_body()
            .then(|| unsafe { self.body.assume_init_ref() })
    }

    /// Returns the message readdressed to the root, because its receiver could not accept it.
    pub(super) fn returned_to(self, root: u32, now: u64) -> ScheduledEvent<M> {
        let head = self.head;
        let mut returned = Head::new(0, Kind::DeadLetter, root, head.to, head.seq, now);
        (returned.cause.trace, returned.cause.parent) = (head.cause.trace, head.cause.parent);
        debug_assert!(head.kind().has_body());
        ScheduledEvent {
            head: returned,
            body: self.into_body(),
        }
    }

    /// Converts to the actor's event; `None` for internal events of the engine.
    #[inline(always)]
    pub(super) fn into_event(self) -> Option<Event<M>> {
        let head = self.head;
        match head.kind() {
            Kind::Plain | Kind::Message | Kind::Request | Kind::Ask | Kind::Reply => {
                Some(Event::Message {
                    from: Addr(head.from),
                    body: self.into_message(),
                })
            }
            Kind::DeadLetter => Some(Event::DeadLetter {
                to: Addr(head.from),
                body: self.into_message(),
            }),
            Kind::Timer => Some(Event::Timer(Token(head.cause.parent as u32))),
            Kind::Spawned => Some(Event::Spawned {
                request: head.seq,
                first: Addr((head.cause.parent >> 32) as u32),
                count: head.cause.parent as u32,
            }),
            Kind::Down => Some(Event::Down {
                who: Addr(head.from),
                reason: Header::reason_of(head.cause.parent as u32),
            }),
            Kind::Unanswered | Kind::AskUnanswered => Some(Event::Unanswered {
                who: Addr(head.from),
                request: SpanId(head.cause.parent),
            }),
            Kind::Start | Kind::Stop => None,
        }
    }

    /// Creates an event from an actor's event and its head: the inverse of [`ScheduledEvent::into_event`].
    pub(super) fn from_event(head: Head, event: Event<M>) -> ScheduledEvent<M> {
        match event {
            Event::Message { body, .. } | Event::DeadLetter { body, .. } => {
                ScheduledEvent::with_body(head, body)
            }
            Event::Timer(_)
            | Event::Spawned { .. }
            | Event::Down { .. }
            | Event::Unanswered { .. } => ScheduledEvent::bare(head),
        }
    }

    /// True for an event that only the library's own waits receive: a time-out, or the failure of a request.
    /// Other waits ignore it.
    #[inline(always)]
    pub(super) fn is_own(&self) -> bool {
        match self.head.kind() {
            Kind::Timer => self.head.cause.parent as u32 >= Token::OWN,
            Kind::AskUnanswered => true,
            _ => false,
        }
    }

    /// Converts to the event for an actor that waits for any event; `None` for an event of the library's own
    /// waits.
    #[inline(always)]
    pub(super) fn for_actor(self) -> Option<Event<M>> {
        if self.head.is_message() {
            return Some(Event::Message {
                from: Addr(self.head.from),
                body: self.into_message(),
            });
        }
        if self.is_own() {
            None
        } else {
            self.into_event()
        }
    }

    /// Returns the index of the message kind, if the event is a message that one actor sent to another.
    pub(super) fn message_kind(&self) -> Option<usize>
    where
        M: crate::contract::Message,
    {
        self.body().filter(|_| self.head.is_message()).map(M::kind)
    }
}

impl<M> Drop for ScheduledEvent<M> {
    #[inline(always)]
    fn drop(&mut self) {
        if needs_drop::<M>() && self.head.kind().has_body() {
            // SAFETY: the body of an event whose kind has one is initialised, and is dropped once.
            unsafe { self.body.assume_init_drop() }
        }
    }
}

impl Header {
    /// Returns the reason that a [`Kind::Down`] carries as a number.
    pub(super) fn reason_of(number: u32) -> Reason {
        match number {
            0 => Reason::Returned,
            1 => Reason::Stopped,
            _ => Reason::Panicked,
        }
    }

    /// Returns the number of a reason: the inverse of [`Header::reason_of`].
    pub(super) fn reason_number(reason: Reason) -> u32 {
        match reason {
            Reason::Returned => 0,
            Reason::Stopped => 1,
            Reason::Panicked => 2,
        }
    }
}
