//! What a sender finds when it looks for room.

/// Why there is no room.
pub(in crate::edge) enum Lack {
    /// The edge is full as long as the head is this, and its policy is to block.
    Full(u64),
    /// The policy is to drop the message.
    Drop,
    Aborted,
}

/// What the sender sees of the other end.
pub(in crate::edge) enum Look {
    /// The head, and for how many messages there is room.
    At(u64, u64),
    Aborted,
}
