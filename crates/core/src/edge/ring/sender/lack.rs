//! Reasons why a sender finds no capacity.

/// Why a sender finds no capacity.
pub(in crate::edge) enum Lack {
    /// The edge is full as long as the head has this value, and its policy is to block.
    Full(u64),
    /// The policy is to drop the message.
    Drop,
    Aborted,
}

/// The sender's view of the other end.
pub(in crate::edge) enum Look {
    /// The head, and the capacity in messages.
    At(u64, u64),
    Aborted,
}
