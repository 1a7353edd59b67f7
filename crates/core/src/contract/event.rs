//! Events that an actor receives, and their metadata.

use super::address::Addr;
use super::time::Time;
use std::fmt;

/// An event that an actor receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<M> {
    /// A message. [`Context::envelope`](crate::Context::envelope) has its send time and its trace.
    Message {
        /// The sender, to which an answer is sent.
        from: Addr,
        /// The contents of the message.
        body: M,
    },
    /// A timer set by [`Context::timer`](crate::Context::timer) is due.
    Timer(Token),
    /// The actors of a [`Context::spawn_request`](crate::Context::spawn_request) were created.
    Spawned {
        /// The number that the request returned.
        request: u32,
        /// The address of the first new actor; the others have the addresses after it.
        first: Addr,
        /// The number of new actors.
        count: u32,
    },
    /// An actor that this actor spawned has ended. This event arrives if the ended actor panicked, or if it was spawned
    /// [`watched`](crate::Spawn::watched).
    Down {
        /// The actor that ended.
        who: Addr,
        /// The reason of the actor's end.
        reason: Reason,
    },
    /// A [`request`](crate::Context::request) will not be answered, because its receiver had ended, never existed, or
    /// ended without reading it. [`AsyncContext::ask`](crate::AsyncContext::ask) returns an error instead.
    Unanswered {
        /// The actor that was asked.
        who: Addr,
        /// The span that [`request`](crate::Context::request) returned.
        request: SpanId,
    },
    /// A message that could not be delivered because its receiver had ended. Only the root gets these events, and only
    /// with [`DeadLetters::ToRoot`](crate::DeadLetters::ToRoot).
    DeadLetter {
        /// The intended receiver.
        to: Addr,
        /// The undelivered message.
        body: M,
    },
}

/// The reason why an actor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Reason {
    /// The body of the actor returned, or its handler returned [`Flow::Stop`](crate::Flow::Stop).
    Returned,
    /// Another actor stopped the actor.
    Stopped,
    /// The actor panicked.
    Panicked,
}

/// A number by which an actor identifies a timer. Several timers may have the same token.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Token(pub(crate) u32);

impl Token {
    /// The first number that is reserved for tokens of the library, for sleeps and time-outs.
    pub(crate) const OWN: u32 = 1 << 31;

    /// Creates the token with this number, which must be below 2^31.
    ///
    /// # Panics
    /// If `number` is 2^31 or more.
    #[inline]
    pub const fn new(number: u32) -> Token {
        assert!(number < Token::OWN, "timer tokens are below 2^31");
        Token(number)
    }

    /// Returns the token's number.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A handle with which the actor that set a timer can cancel it, by [`Context::cancel`](crate::Context::cancel).
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TimerHandle(pub(crate) Token);

impl fmt::Debug for TimerHandle {
    /// Formats the handle without its number, because the number differs between runs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TimerHandle")
    }
}

/// The identity of one sent message in a run: the sender and its sequence number.
///
/// A span is unique within a run: an actor that would send its 2^32nd message ends the run. Spans are equal in every
/// repetition of the run, and creating one needs no shared counter. A span is printed as 16 hexadecimal digits, as
/// trace formats expect.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SpanId(pub(crate) u64);

impl SpanId {
    /// The absent span: the parent of the first message of a trace.
    pub const NONE: SpanId = SpanId(0);

    /// Creates a span. Sequence numbers start at 1, so no span equals [`SpanId::NONE`].
    #[inline]
    pub(crate) const fn new(from: Addr, sequence: u32) -> SpanId {
        SpanId((from.0 as u64) << 32 | sequence as u64)
    }

    /// Returns the span as a number; 0 is [`SpanId::NONE`].
    #[inline]
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Returns the actor that sent the message.
    #[inline]
    pub const fn sender(self) -> Addr {
        Addr((self.0 >> 32) as u32)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Metadata of the event being handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The sender of the message; the actor itself for timers.
    pub from: Addr,
    /// The send time; the due time for timers.
    pub sent: Time,
    /// The span of the first message of the causal chain to which this message belongs.
    pub trace: SpanId,
    /// The span of the message during whose handling this message was sent, if any.
    pub parent: SpanId,
    /// The span of this message.
    pub span: SpanId,
    /// The span of the request that this message answers, if it is an answer.
    pub answers: SpanId,
}

impl Envelope {
    /// Returns the handle for a reply to this message; store it until the answer is available.
    #[inline]
    pub const fn reply_handle(&self) -> ReplyHandle {
        ReplyHandle {
            to: self.from,
            request: self.span,
        }
    }
}

/// The destination of a reply, for [`Context::reply`](crate::Context::reply). It may be stored, or passed in a message
/// to an actor that can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, super::Plain)
)]
pub struct ReplyHandle {
    pub(crate) to: Addr,
    pub(crate) request: SpanId,
}
