//! Bodies that a queue delivers: their counters, and the function that delivers them.

use crate::node::counter::Counter;
use crate::pending::PendingWrite;

/// A body that a sink delivers at once.
pub(crate) struct Body {
    /// The sequence number of the body within its node; a repeated delivery has the same number.
    pub(crate) number: u64,
    pub(crate) text: String,
    /// The number that this body adds to the counters.
    pub(crate) count: usize,
    pub(crate) counts: Counts,
    /// The write of the body, which is pending until this is dropped.
    pub(crate) pending: Option<PendingWrite>,
}

/// A body that has not been delivered, for the next start.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Undelivered {
    pub(crate) number: u64,
    pub(crate) text: String,
}

/// The counters of bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) delivered: Counter,
    /// The number of bodies whose delivery failed.
    pub(crate) failed: Counter,
    /// The number of bodies that were dropped because the queue was full.
    pub(crate) dropped: Counter,
    /// Bodies that wait on disk.
    pub(crate) on_disk: Counter,
}

/// The result of an attempt to deliver a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Delivered,
    /// The receiver refuses the body, and would refuse it again.
    Refused,
    /// The receiver cannot be reached, or may accept the body later.
    Unavailable,
}

/// A function that delivers bodies together, and waits if necessary. There is more than one body only if the queue has
/// [`Together`]. The second argument returns true when the delivery must be abandoned.
pub(crate) type Deliver = Box<dyn FnMut(&[Undelivered], &dyn Fn() -> bool) -> Delivery + Send>;

/// The rule for the bodies, with consecutive numbers, that one delivery may contain.
#[derive(Clone, Copy)]
pub(crate) struct Together {
    /// The maximum bytes of all texts in a delivery.
    pub(crate) bytes: usize,
    /// True if a later body may be delivered with the first one.
    pub(crate) fit: fn(&str, &str) -> bool,
}
