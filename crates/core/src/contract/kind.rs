//! Kinds of actors: actors that can be serialized and created again in another process.

use serde::de::DeserializeOwned;
use serde::{Deserializer, Serialize, Serializer};

/// A kind of actor, declared once: a name, parameters from which actors are created, and the serialization of their
/// state. Its handler is its [`Actor`](crate::Actor) implementation, or its [`Script`](crate::Script) if it is a root.
///
/// Actors that are spawned by kind ([`Context::spawn_kind_request`](crate::Context::spawn_kind_request)) can be saved
/// ([`Simulation::snapshot`](crate::Simulation::snapshot)) and created in another process, because the spawn contains
/// parameters instead of closures. Actors need no kind for any other use.
///
/// `#[derive(Kind)]` implements this trait for a state that is plain data: the parameters are the initial state, and
/// there are no local values.
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

    /// Values that the actors of a process share and that are not serialized, such as a recorder; each process creates
    /// its own. An actor's behaviour may depend only on values that are equal in all processes.
    type Local: Clone + Send + Sync + 'static;

    /// Creates the actor that has this index within its spawn.
    fn make(parameters: &Self::Parameters, local: &Self::Local, index: u32) -> Self;

    /// Writes the actor's state.
    ///
    /// # Errors
    /// The errors of the serializer.
    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error>;

    /// Reads a state that [`Kind::save`] has written.
    ///
    /// # Errors
    /// If the data is not a state of this kind.
    fn restore<'de, D: Deserializer<'de>>(from: D, local: &Self::Local) -> Result<Self, D::Error>;
}

/// Data from which any worker, even in another process, can create the messages for each of many receivers
/// ([`Context::send_each_kind`](crate::Context::send_each_kind)).
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

    /// Returns the messages for the actor with this index; every call must return the same messages.
    fn bodies(&self, index: u32) -> [M; N];
}

/// State that the actors of a process share and change, such as totals to which actors add when they end. When a run is
/// saved, each process writes its state once. On restoring, one process gets the sum of all states
/// ([`Kinds::with_state`](crate::Kinds::with_state)). The behaviour of actors must not depend on this state.
pub trait ProcessState: Send + Sync + 'static {
    /// The serialized form.
    type Snapshot: Serialize + DeserializeOwned;

    /// Returns the current state.
    fn save(&self) -> Self::Snapshot;

    /// Adds the state that one process of the saved run has written.
    fn add(&self, saved: Self::Snapshot);
}
