//! The steps of a recorded run.

/// An event that a node handled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A message.
    Message {
        /// The node that sent the message; `None` is the observer.
        from: Option<u32>,
        /// The send time in nanoseconds.
        sent: u64,
        /// The name of the message's kind.
        kind: &'static str,
    },
    /// A timer, by its name.
    Timer(u16),
    /// A crash of the plan.
    Crash,
    /// The start after a crash.
    Restart,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The time in nanoseconds.
    pub at: u64,
    /// The index of the node.
    pub node: u32,
    /// The handled event.
    pub cause: Cause,
    /// The texts of [`Node::describe`](crate::Node::describe) before and after the event.
    pub states: [String; 2],
}
