//! Descriptions of actors to spawn: their number, names and lifecycle.

use std::borrow::Cow;
use std::sync::Arc;

/// Describes the actors that a spawn makes.
///
/// ```
/// use corsair::Spawn;
/// let crew = Spawn::many(100, "ship.blackbeard", ".pirate").on_demand();
/// assert_eq!(crew.name(7), "ship.blackbeard7.pirate");
/// assert_eq!(Spawn::one("captain").name(0), "captain");
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Spawn {
    pub(crate) count: u32,
    pub(crate) names: Names,
    pub(crate) on_demand: bool,
    pub(crate) watched: bool,
}

impl Spawn {
    /// Describes one actor with this name.
    pub fn one(name: impl Into<Cow<'static, str>>) -> Spawn {
        Spawn::with(1, Names::One(name.into()))
    }

    /// Describes `count` actors with the names `<prefix><index><suffix>`. A name is built when it is needed, and not
    /// stored.
    pub fn many(
        count: u32,
        prefix: impl Into<Cow<'static, str>>,
        suffix: impl Into<Cow<'static, str>>,
    ) -> Spawn {
        Spawn::with(count, Names::Numbered(prefix.into(), suffix.into()))
    }

    /// Describes one actor for each name.
    ///
    /// # Panics
    /// If there are 2^32 names or more.
    pub fn named(names: Arc<[String]>) -> Spawn {
        let count = u32::try_from(names.len()).expect("fewer than 2^32 names");
        Spawn::with(count, Names::Listed(names))
    }

    fn with(count: u32, names: Names) -> Spawn {
        Spawn {
            count,
            names,
            on_demand: false,
            watched: false,
        }
    }

    /// Starts each actor when its first event arrives instead of at once. This saves one event for each actor, and
    /// memory until its first event. It is useful for a large population that waits for messages.
    pub fn on_demand(mut self) -> Spawn {
        self.on_demand = true;
        self
    }

    /// Notifies the parent ([`Event::Down`](crate::Event::Down)) when an actor of this spawn ends, whatever the reason.
    /// By default the parent is notified only of panics.
    pub fn watched(mut self) -> Spawn {
        self.watched = true;
        self
    }

    /// Returns the number of actors.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the name of the actor with this index.
    pub fn name(&self, index: u32) -> String {
        self.names.get(index)
    }
}

/// The names of the actors of one spawn.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum Names {
    /// The name of a single actor.
    One(Cow<'static, str>),
    /// The text before and after the index.
    Numbered(Cow<'static, str>, Cow<'static, str>),
    /// A name for each actor.
    Listed(Arc<[String]>),
}

impl Names {
    pub(crate) fn get(&self, index: u32) -> String {
        match self {
            Names::One(name) => name.clone().into_owned(),
            Names::Numbered(prefix, suffix) => format!("{prefix}{index}{suffix}"),
            Names::Listed(names) => names.get(index as usize).cloned().unwrap_or_default(),
        }
    }
}
