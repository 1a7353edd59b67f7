//! The identity of an exchange of messages in its trace.

use corsair::{Envelope, SpanId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::NonZeroU64;

/// The place of one exchange (a message, or a request and its response) in its trace.
///
/// The numbers of the trace and of the span are never 0. Both are printed as 16 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TraceContext {
    trace: NonZeroU64,
    span: NonZeroU64,
    parent: Option<NonZeroU64>,
}

impl TraceContext {
    /// Creates a context with these numbers; a `parent` of 0 means that there is no parent. Returns `None` if `trace`
    /// or `span` is 0.
    #[inline]
    pub const fn new(trace: u64, span: u64, parent: u64) -> Option<TraceContext> {
        match (NonZeroU64::new(trace), NonZeroU64::new(span)) {
            (Some(trace), Some(span)) => Some(TraceContext {
                trace,
                span,
                parent: NonZeroU64::new(parent),
            }),
            _ => None,
        }
    }

    /// Returns the context of the exchange that a received message began.
    ///
    /// Returns `None` for timers, which belong to no message.
    #[inline]
    pub const fn of(envelope: &Envelope) -> Option<TraceContext> {
        TraceContext::new(
            envelope.trace.as_u64(),
            envelope.span.as_u64(),
            envelope.parent.as_u64(),
        )
    }

    /// Returns the context of the request that a received message answers. The message does not contain the parent of
    /// the request; the parent is added when the two ends of the exchange are joined.
    ///
    /// Returns `None` if the message is not an answer.
    #[inline]
    pub const fn answered(envelope: &Envelope) -> Option<TraceContext> {
        TraceContext::new(envelope.trace.as_u64(), envelope.answers.as_u64(), 0)
    }

    /// Returns the context of a message that is sent as `span` while `cause` is handled. Without a cause, the message
    /// begins a new trace.
    ///
    /// Returns `None` if `span` is [`SpanId::NONE`].
    #[inline]
    pub const fn sent(span: SpanId, cause: Option<TraceContext>) -> Option<TraceContext> {
        match cause {
            Some(cause) => TraceContext::new(cause.trace.get(), span.as_u64(), cause.span.get()),
            None => TraceContext::new(span.as_u64(), span.as_u64(), 0),
        }
    }

    /// Returns the number of the trace, which is the number of its first span.
    #[inline]
    pub const fn trace(&self) -> NonZeroU64 {
        self.trace
    }

    /// Returns the number of the span.
    #[inline]
    pub const fn span(&self) -> NonZeroU64 {
        self.span
    }

    /// Returns the number of the span that caused this span, if there is one and it is known.
    #[inline]
    pub const fn parent(&self) -> Option<NonZeroU64> {
        self.parent
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}/{:016x}", self.trace, self.span)?;
        match self.parent {
            Some(parent) => write!(f, "<{parent:016x}"),
            None => Ok(()),
        }
    }
}

/// The response that a client expects to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Exchange {
    /// No response: the span is complete when the server has received the message.
    OneWay,
    /// A response: the span is complete when the client has received the response.
    Request,
}

/// The outcome of an exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default, Serialize, Deserialize)]
pub enum Status {
    /// The request succeeded.
    #[default]
    Ok,
    /// The request failed: the server answered with an error, or the client gave up waiting.
    Error,
}
