//! Weights of messages.

/// The weight of a message, for messages that contain many items or use much memory.
///
/// Statistics count messages by weight, and an edge with a [limit by weight](super::Options::weight_limit) buffers
/// messages of at most that total weight. A message is weighed when it is sent and may be weighed again when it leaves;
/// both results must be equal. [`One`], the default, costs nothing.
///
/// ```
/// use corsair::edge::Weigh;
///
/// struct Rows;
/// impl Weigh<Vec<f64>> for Rows {
///     fn weight(table: &Vec<f64>) -> u64 {
///         table.len() as u64
///     }
/// }
/// ```
pub trait Weigh<T>: 'static {
    /// True if every message weighs 1, so that positions count messages.
    const ALL_ONE: bool = false;

    /// Returns the weight of a message.
    fn weight(message: &T) -> u64;
}

/// The default weights: every message weighs 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct One;

impl<T> Weigh<T> for One {
    const ALL_ONE: bool = true;

    #[inline]
    fn weight(_: &T) -> u64 {
        1
    }
}

/// Weighs a message by its number of bytes.
///
/// ```
/// use corsair::edge::{self, Bytes, Options};
///
/// let options = Options::new(1_000).weight_limit(10);
/// let (mut tx, mut rx) = edge::ring_weighed::<String, Bytes>(options);
/// tx.try_send("seven b".to_owned()).expect("7 of 10 bytes");
/// assert!(tx.try_send("four".to_owned()).is_err(), "11 bytes are too many");
/// rx.try_recv().expect("there is one");
/// assert!(tx.try_send("four".to_owned()).is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Bytes;

impl<T: AsRef<[u8]>> Weigh<T> for Bytes {
    #[inline]
    fn weight(message: &T) -> u64 {
        message.as_ref().len() as u64
    }
}
