//! The properties of a message type.

/// The type of the messages that the actors of a run send each other.
///
/// A run has one message type, usually an enum with a variant per kind. It should be small (an event of the virtual
/// executor takes 40 bytes plus the message, or 16 without [`Config::traces`](crate::Config::traces)) and own its data.
///
/// ```
/// use corsair::Message;
///
/// #[derive(Message)]
/// enum Greeting {
///     Hello,
///     Number(u32),
/// }
/// assert_eq!(Greeting::KINDS, ["Hello", "Number"]);
/// assert_eq!(Greeting::Number(7).kind(), 1);
/// assert_eq!(Greeting::Number(7).fingerprint(), 7);
/// ```
///
/// # The derive macro
///
/// `#[derive(Message)]` makes each variant of an enum, or a struct, a kind, and computes a [`Fingerprint`] of all
/// fields, which must be [`Hash`] or floating-point numbers. Attributes change this:
///
/// | attribute | on | effect |
/// |---|---|---|
/// | `#[message(skip)]` | a field, a variant, a type | excludes it from the fingerprint |
/// | `#[message(fingerprint = f)]` | a field, a type | the function `f` computes its fingerprint: it gets a reference and returns a `u64` |
/// | `#[message(duplicate)]` | a type | allows networks to deliver messages twice; the type must be [`Clone`] |
/// | `#[message(kind = "Name")]` | a variant, a struct | the name of its kind; variants with the same name are one kind |
///
/// ```
/// use corsair::{Message, ReplyHandle};
///
/// #[derive(Message)]
/// enum Shop {
///     #[message(kind = "Order")]
///     Buy { pieces: u32, price: f64 },
///     #[message(kind = "Order")]
///     Sell { pieces: u32, price: f64 },
///     /// The pixels are not part of the digest.
///     Picture { name: String, #[message(skip)] pixels: Vec<f32> },
///     #[message(skip)]
///     Forward(Box<dyn FnOnce() + Send>),
///     Answer { #[message(fingerprint = sum)] prices: Vec<f64>, to: ReplyHandle },
/// }
///
/// fn sum(prices: &Vec<f64>) -> u64 {
///     prices.iter().sum::<f64>().to_bits()
/// }
///
/// assert_eq!(Shop::KINDS, ["Order", "Picture", "Forward", "Answer"]);
/// let (buy, sell) = (Shop::Buy { pieces: 1, price: 0.5 }, Shop::Sell { pieces: 1, price: 0.5 });
/// assert_eq!(buy.kind(), sell.kind());
/// assert_ne!(buy.fingerprint(), sell.fingerprint());
/// ```
///
/// The first example, implemented by hand:
///
/// ```
/// # use corsair::Message;
/// # enum Greeting {
/// #     Hello,
/// #     Number(u32),
/// # }
/// impl Message for Greeting {
///     const KINDS: &'static [&'static str] = &["Hello", "Number"];
///
///     fn kind(&self) -> usize {
///         match self {
///             Greeting::Hello => 0,
///             Greeting::Number(_) => 1,
///         }
///     }
///
///     fn fingerprint(&self) -> u64 {
///         match self {
///             Greeting::Hello => 0,
///             Greeting::Number(n) => u64::from(*n),
///         }
///     }
/// }
/// ```
///
/// [`Fingerprint`]: crate::Fingerprint
pub trait Message: Send + 'static {
    /// The names of the kinds, as reports print them.
    const KINDS: &'static [&'static str];

    /// True if [`Message::duplicate`] returns copies. A run whose [`Network`](crate::network::Network) delivers
    /// messages twice is refused if this is false. The derive macro sets the constant to true for
    /// `#[message(duplicate)]`.
    const DUPLICATES: bool = false;

    /// The index in [`Message::KINDS`] of this message's kind.
    fn kind(&self) -> usize;

    /// Returns a copy, for a [`Network`](crate::network::Network) that delivers some messages twice. If this method
    /// returns `None`, the message is delivered once. The derive macro implements this method for
    /// `#[message(duplicate)]` on a type that is [`Clone`]; an implementation by hand also sets
    /// [`Message::DUPLICATES`].
    fn duplicate(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns a hash of the contents: messages with different contents should have different fingerprints.
    ///
    /// Fingerprints are included in the digest of a run. Equal messages must have equal fingerprints. The fingerprint
    /// need not cover the kind.
    fn fingerprint(&self) -> u64;
}
