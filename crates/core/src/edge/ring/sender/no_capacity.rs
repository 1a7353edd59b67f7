//! Reasons why a sender finds no capacity.

/// The reasons why a sender finds no capacity.
pub(in crate::edge) enum NoCapacity {
    /// The edge is full as long as the receiver's position has this value, and its policy is to block.
    Full(u64),
    /// The policy is to drop the message.
    Drop,
    Aborted,
}

/// The sender's view of the other end.
pub(in crate::edge) enum ReceiverView {
    /// The receiver's position, and the free capacity in messages.
    At(u64, u64),
    Aborted,
}
