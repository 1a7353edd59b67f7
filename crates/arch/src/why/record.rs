//! The records that a run makes of requests whose response time is explained.

/// A part of the life of a request. Times are in nanoseconds; a span names a visit of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// A service has answered.
    Visit {
        span: u64,
        service: u32,
        arrived: u64,
        began: u64,
        ended: u64,
    },
    /// Work during a visit, with the time of waiting for shared processors and the delay by a fault.
    Work {
        span: u64,
        from: u64,
        to: u64,
        waited: u64,
        slowed: u64,
    },
    /// An answered call, made during the visit `parent`.
    Call {
        parent: u64,
        span: u64,
        service: u32,
        sent: u64,
        received: u64,
    },
    /// A call that timed out, made during the visit `parent`.
    GivenUp {
        parent: u64,
        service: u32,
        sent: u64,
        until: u64,
    },
}
