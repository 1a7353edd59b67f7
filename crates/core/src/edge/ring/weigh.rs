//! How much a message counts.

/// How much a message counts in the statistics, for messages that stand for many.
///
/// It is asked once when the message is collected and once when it leaves; the answers should agree.
/// [`One`], the default, costs nothing.
pub trait Weigh<T>: 'static {
    /// Whether every message weighs 1, so that positions tell how many there were.
    const ALL_ONE: bool = false;

    /// How much this message counts.
    fn weight(message: &T) -> u64;
}

/// Every message counts 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct One;

impl<T> Weigh<T> for One {
    const ALL_ONE: bool = true;

    #[inline]
    fn weight(_: &T) -> u64 {
        1
    }
}
