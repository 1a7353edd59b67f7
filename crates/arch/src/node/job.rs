//! The jobs of an instance, and its own requests.

use crate::message::{Call, Key};
use corsair::{Addr, Envelope, SpanId};
use corsair_observe::TraceContext;
use serde::{Deserialize, Serialize};

/// The operation of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Operation {
    /// Returns a value.
    Get,
    /// Stores a value.
    Put,
    /// Stores a value whose token this instance owns.
    PutOwned,
    /// Stores a copy.
    Copy,
    /// Stores a copy, and passes it on within the region.
    CopyRegion,
}

impl Operation {
    /// True if the client waits for a response.
    #[inline]
    pub(crate) fn is_answered(self) -> bool {
        self == Operation::Get
    }
}

/// The deadline of a job that has none.
pub(crate) const NO_DEADLINE: u64 = u64::MAX;

/// A job of an instance: a request, or a value to store.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) operation: Operation,
    pub(crate) key: Key,
    pub(crate) client: Addr,
    /// The client's number for the request.
    pub(crate) id: u32,
    /// The number of passes through a service that may call itself.
    pub(crate) rounds: u8,
    /// The time of arrival in nanoseconds.
    pub(crate) arrived: u64,
    /// The time at which the job left the queue, in nanoseconds.
    pub(crate) began: u64,
    /// The time spent waiting for responses of other instances, in nanoseconds.
    pub(crate) waited: u64,
    /// True if the job holds a slot of an instance with limited concurrency.
    pub(crate) holds_slot: bool,
    /// The time in nanoseconds after which the client does not need the answer; [`NO_DEADLINE`] if there is none.
    pub(crate) deadline: u64,
    /// The trace of the message that brought the job.
    pub(crate) trace: SpanId,
    pub(crate) span: SpanId,
    pub(crate) parent: SpanId,
}

impl Job {
    pub(crate) fn new(operation: Operation, call: Call, envelope: &Envelope, now: u64) -> Job {
        Job {
            operation,
            key: call.key,
            client: envelope.from,
            id: call.id(),
            rounds: call.rounds(),
            arrived: now,
            began: now,
            waited: 0,
            holds_slot: false,
            deadline: NO_DEADLINE,
            trace: envelope.trace,
            span: envelope.span,
            parent: envelope.parent,
        }
    }

    /// Creates a job without a message, which starts its own trace.
    pub(crate) fn of_own_accord(operation: Operation, key: Key, now: u64) -> Job {
        Job {
            operation,
            key,
            client: Addr::NONE,
            id: 0,
            rounds: 0,
            arrived: now,
            began: now,
            waited: 0,
            holds_slot: false,
            deadline: NO_DEADLINE,
            trace: SpanId::NONE,
            span: SpanId::NONE,
            parent: SpanId::NONE,
        }
    }

    /// Returns the span of the message that brought the job.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        let (trace, span, parent) = (self.trace, self.span, self.parent);
        TraceContext::new(trace.as_u64(), span.as_u64(), parent.as_u64())
    }

    /// Returns the span of a message that is sent on behalf of this job.
    pub(crate) fn child_context(&self, span: SpanId) -> Option<TraceContext> {
        let trace = match self.trace {
            SpanId::NONE => span,
            trace => trace,
        };
        TraceContext::new(trace.as_u64(), span.as_u64(), self.span.as_u64())
    }
}

/// A request that an instance has made.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PendingRequest {
    /// The job on whose behalf the request was made.
    pub(crate) job: Job,
    /// The send time in nanoseconds.
    pub(crate) sent: u64,
    pub(crate) span: SpanId,
    /// The instance that was asked.
    pub(crate) server: u32,
    /// The state with which the package handles the response; see the package's `resume`.
    pub(crate) stage: u64,
    /// The travel time in nanoseconds; 0 if the request was lost.
    pub(crate) travelled: u64,
    /// True if the instance was killed after it made the request, so that the response is dropped.
    pub(crate) is_abandoned: bool,
    /// The index at which calls to the server are counted while they are watched.
    #[serde(skip)]
    pub(crate) seen_at: u32,
}

/// The requests of an instance that have no response yet, by number.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct PendingRequests {
    slots: Vec<Option<PendingRequest>>,
    free: Vec<u32>,
}

impl PendingRequests {
    /// True if another request can be made.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty() || self.slots.len() < Call::MOST_IDS as usize
    }

    /// Reserves the number of a request that is about to be made.
    pub(crate) fn reserve(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() as u32 - 1
        })
    }

    /// Stores the request of a reserved number.
    pub(crate) fn insert(&mut self, id: u32, request: PendingRequest) {
        self.slots[id as usize] = Some(request);
    }

    /// Removes the request with this number; `None` if it was answered before.
    pub(crate) fn remove(&mut self, id: u32) -> Option<PendingRequest> {
        let request = self.slots.get_mut(id as usize)?.take()?;
        self.free.push(id);
        Some(request)
    }

    /// Marks all requests as abandoned, and calls `job` with the job of each.
    pub(crate) fn abandon(&mut self, mut job: impl FnMut(Job)) {
        for request in self.slots.iter_mut().flatten() {
            if !std::mem::replace(&mut request.is_abandoned, true) {
                job(request.job);
            }
        }
    }

    /// Iterates over the requests whose answers are still needed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingRequest> {
        self.slots
            .iter()
            .flatten()
            .filter(|request| !request.is_abandoned)
    }
}
