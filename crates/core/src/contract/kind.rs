//! Kinds of actors: what can be written down and made again elsewhere.

use serde::de::DeserializeOwned;
use serde::{Deserializer, Serialize, Serializer};

/// A kind of actor, declared once: a name, what its actors are made from, and how the state of one is
/// written and read. Its handler is its [`Actor`](crate::Actor), or its [`Script`](crate::Script) if it is a root.
///
/// What is spawned by kind ([`Context::spawn_kind_request`](crate::Context::spawn_kind_request)) can be saved
/// ([`Simulation::snapshot`](crate::Simulation::snapshot)) and made again in another process, because parameters travel
/// instead of closures. Nothing else needs kinds.
///
/// For a state that is plain data, `#[derive(Kind)]` does it: the parameters are a state to begin with, and nothing
/// is local.
///
/// ```
/// use corsair::{Kind, Message};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Serialize, Deserialize, Kind)]
/// #[kind(name = "purse")]
/// struct Purse {
///     coins: u32,
/// }
///
/// assert_eq!(Purse::NAME, "purse");
/// assert_eq!(Purse::make(&Purse { coins: 3 }, &(), 0).coins, 3);
/// ```
pub trait Kind: Sized + Send + 'static {
    /// The name, unique among the kinds of a program.
    const NAME: &'static str;

    /// The parameters of the actors of a spawn; they are serialized with the spawn.
    type Parameters: Serialize + DeserializeOwned + Send + Sync + 'static;

    /// Values that each process creates for itself and its actors share, such as a recorder. An actor's
    /// behaviour may depend only on values that are equal in all processes.
    type Local: Clone + Send + Sync + 'static;

    /// Makes the actor with this index in a spawn.
    fn make(parameters: &Self::Parameters, local: &Self::Local, index: u32) -> Self;

    /// Writes its state.
    ///
    /// # Errors
    /// Those of the serializer.
    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// Reads what [`Kind::save`] has written.
    ///
    /// # Errors
    /// If it is not a state of this kind.
    fn restore<'de, D: Deserializer<'de>>(from: D, local: &Self::Local) -> Result<Self, D::Error>;
}

/// A kind of messages that are sent to each of many actors, as data from which those for one of them are made: by any
/// worker, also of another process ([`Context::send_each_kind`](crate::Context::send_each_kind)).
///
/// ```
/// use corsair::{EachKind, Message};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Message)]
/// struct Seat(u32);
///
/// #[derive(Serialize, Deserialize)]
/// struct Seats { first: u32 }
///
/// impl EachKind<Seat, 1> for Seats {
///     const NAME: &'static str = "seats";
///
///     fn bodies(&self, index: u32) -> [Seat; 1] {
///         [Seat(self.first + index)]
///     }
/// }
///
/// let [Seat(seat)] = Seats { first: 10 }.bodies(3);
/// assert_eq!(seat, 13);
/// ```
pub trait EachKind<M, const N: usize>:
    Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The name, unique among the kinds of a program.
    const NAME: &'static str;

    /// Returns the messages for the actor with this index; every call must return the same.
    fn bodies(&self, index: u32) -> [M; N];
}

/// State that the actors of a process share and change, such as totals that they hand in as they end. When a
/// run is saved, each process writes it once; on restoring, one process gets the sum of all processes' values
/// ([`Kinds::with_state`](crate::Kinds::with_state)). The behaviour of actors must not depend on it.
pub trait ProcessState: Send + Sync + 'static {
    /// The serialized form.
    type Snapshot: Serialize + DeserializeOwned;

    /// Returns the current state.
    fn save(&self) -> Self::Snapshot;

    /// Adds what there was in a process of the run that was saved.
    fn add(&self, saved: Self::Snapshot);
}
