//! What a type must say of itself to travel between actors.

/// A message: what actors of one run send each other.
///
/// One run has one message type, usually an enum with a variant per kind. It should be small
/// (an event of the virtual executor is 40 bytes plus the message) and own what it carries.
///
/// ```
/// # use corsair::Message;
/// enum Greeting {
///     Hello,
///     Number(u32),
/// }
/// impl Message for Greeting {
///     const KINDS: &'static [&'static str] = &["Hello", "Number"];
///     fn kind(&self) -> usize {
///         match self {
///             Greeting::Hello => 0,
///             Greeting::Number(_) => 1,
///         }
///     }
///     fn fingerprint(&self) -> u64 {
///         match self {
///             Greeting::Hello => 0,
///             Greeting::Number(n) => *n as u64,
///         }
///     }
/// }
/// ```
pub trait Message: Send + 'static {
    /// The names of the kinds, as reports print them.
    const KINDS: &'static [&'static str];

    /// The index in [`Message::KINDS`] of this message's kind.
    fn kind(&self) -> usize;

    /// A number that differs, as well as 64 bits can, where the contents differ.
    ///
    /// It enters the digest of a run; equal messages must have equal fingerprints. The kind need
    /// not be part of it.
    fn fingerprint(&self) -> u64;
}
