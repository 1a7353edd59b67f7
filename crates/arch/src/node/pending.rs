//! Requests that an instance works on, and those it has made and waits for.

use crate::message::{Call, Key};
use corsair::{Addr, Envelope, SpanId};
use corsair_observe::TraceContext;

/// What somebody wants of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A value.
    Get,
    /// That a value is kept.
    Put,
    /// That a value is kept here, whose place this is.
    PutOwned,
    /// That a copy is kept.
    Copy,
    /// That a copy is kept and passed on in the region.
    CopyRegion,
}

/// Something that an instance was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) want: Want,
    pub(crate) key: Key,
    /// Who asks.
    pub(crate) client: Addr,
    /// The client's number for it.
    pub(crate) id: u32,
    /// When it arrived, in nanoseconds.
    pub(crate) arrived: u64,
    /// For how long it waited for others.
    pub(crate) waited: u64,
    /// Whether it takes one of the places of a limited instance.
    pub(crate) placed: bool,
    /// The message that asked.
    pub(crate) trace: SpanId,
    pub(crate) span: SpanId,
    pub(crate) parent: SpanId,
}

impl Job {
    pub(crate) fn new(want: Want, call: Call, envelope: &Envelope, now: u64) -> Job {
        Job {
            want,
            key: call.key,
            client: envelope.from,
            id: call.id,
            arrived: now,
            waited: 0,
            placed: false,
            trace: envelope.trace,
            span: envelope.span,
            parent: envelope.parent,
        }
    }

    /// Where it belongs in the flow of messages.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        let (trace, span, parent) = (self.trace, self.span, self.parent);
        TraceContext::new(trace.as_u64(), span.as_u64(), parent.as_u64())
    }
}

/// A request that an instance has made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    /// On account of what.
    pub(crate) job: Job,
    /// When it was sent, in nanoseconds.
    pub(crate) sent: u64,
    pub(crate) span: SpanId,
    /// Whom it asked.
    pub(crate) server: u32,
    /// How many kinds of storage have been asked before.
    pub(crate) stage: u8,
}

/// Requests made and not yet answered, by number.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    slots: Vec<Option<Pending>>,
    free: Vec<u32>,
}

impl Waiting {
    /// A number for a request that is about to be made.
    pub(crate) fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        })
    }

    /// The request with this number has been made.
    pub(crate) fn put(&mut self, id: u32, pending: Pending) {
        self.slots[id as usize] = Some(pending);
    }

    /// The request with this number is answered; none if it has been before.
    pub(crate) fn take(&mut self, id: u32) -> Option<Pending> {
        let pending = self.slots.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(pending)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
