//! Pirates and the Flying Spaghetti Monster: the first scenario, also used to measure the executors.
//!
//! The FSM, which is the root, spawns a population of pirates and sends each of them five messages: the pirate's name
//! and the FSM's address, two other pirates as possible buddies, some gold, and a chat period. The pirates exchange
//! messages for some time. Then the FSM says goodbye to each pirate, gets the gold back, and ends.
//!
//! Guarantees on every executor:
//! - A pirate knows at most ten buddies, none of them twice, and never itself.
//! - Pirates neither create nor lose gold: the gold that the FSM minted comes back with the pirates' goodbyes, or as
//!   coins that reached a pirate after its end ([`config`] makes the executor return such coins). - The FSM ends even
//!   if mailboxes drop messages; the [`Tally`] then counts the missing answers and gold.
//! - Both [forms](Form) of the pirate send the same messages and draw the same random numbers, so
//!   that in virtual time their runs have the same digest.
//! - The scenario reads no clock: events to record or measure go to a [`Watch`].
//!
//! ```
//! use corsair::fsm::{self, Fsm};
//! use corsair::{Config, Executor};
//! use std::time::Duration;
//!
//! let talk = Duration::from_secs(10);
//! let scenario = Fsm { population: 1000, talk, ..Fsm::default() };
//! let (report, tally) = fsm::run(Executor::Virtual, &Config::default(), scenario)?;
//! let tally = tally.expect("the run was not cancelled");
//! assert_eq!(tally.goodbyes, 1000);
//! assert_eq!(tally.missing_gold(), 0);
//! assert!(report.delivered() > 7000);
//! # Ok::<(), fsm::FsmError>(())
//! ```

mod message;
mod monster;
mod network;
mod pirate;
mod tally;
mod watch;

pub use message::Msg;
pub use monster::Monster;
#[cfg(feature = "serde")]
pub use monster::{FsmLocal, FsmParameters};
pub use network::{Network, NetworkError};
pub use pirate::{MAX_BUDDIES, Pirate};
pub use tally::Tally;
pub use watch::{PirateWatch, Watch};

use crate::sync::lock;
use crate::{AsyncContext, Config, DeadLetters, Executor, Report, RunError, Scenario};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The scenario: a number of pirates who exchange messages for a given time.
///
/// Run it with [`run`], or with [`corsair::run`](crate::run) and a configuration made by [`config`].
#[derive(Clone, Debug)]
pub struct Fsm<W: Watch = ()> {
    /// The first part of the pirates' names.
    pub arch: String,
    /// The number of pirates. The field is ignored if there is a [`network`](Fsm::network).
    pub population: u32,
    /// The duration of the talk before the FSM says goodbye; may be zero.
    pub talk: Duration,
    /// The form of the pirates.
    pub form: Form,
    /// Pirates and their buddies to start from, instead of random buddies.
    pub network: Option<Network>,
    /// The chat period of each pirate. Default: a random period from 100 ms to 9,999 ms for each.
    pub chat: Option<Duration>,
    /// The observer of the run.
    pub watch: W,
}

impl Default for Fsm {
    /// Returns a hundred pirates with random buddies and ten seconds of talk, without an observer.
    fn default() -> Self {
        Fsm {
            arch: "fsm".to_owned(),
            population: 100,
            talk: Duration::from_secs(10),
            form: Form::default(),
            network: None,
            chat: None,
            watch: (),
        }
    }
}

/// The form of the pirates. Both forms behave equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Form {
    /// An `async fn` that receives in a loop.
    Async,
    /// A handler, which is faster.
    #[default]
    Handler,
}

impl<W: Watch> Fsm<W> {
    /// Returns the number of pirates.
    pub fn count(&self) -> u32 {
        self.network.as_ref().map_or(self.population, Network::len)
    }

    /// Checks that the fields are valid.
    ///
    /// # Errors
    /// The error of the first invalid field.
    pub fn check(&self) -> Result<(), FsmError> {
        if self.count() < 2 {
            return Err(FsmError::Population(self.count()));
        }
        match self.chat {
            Some(chat) if message::millis(chat).is_none() => Err(FsmError::Chat(chat)),
            _ => Ok(()),
        }
    }

    /// Returns the same scenario with another watch.
    pub fn watched_by<V: Watch>(self, watch: V) -> Fsm<V> {
        let Fsm {
            arch,
            population,
            talk,
            form,
            network,
            chat,
            watch: _,
        } = self;
        Fsm {
            arch,
            population,
            talk,
            form,
            network,
            chat,
            watch,
        }
    }
}

impl<W: Watch> Scenario<Msg> for Fsm<W> {
    async fn root<C: AsyncContext<Msg>>(self, cx: C) {
        monster::rule(self, cx).await;
    }
}

/// The reasons why the scenario did not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FsmError {
    /// Fewer than two pirates.
    #[error("a population of {0} has no one to talk to; give at least 2 pirates")]
    Population(u32),
    /// A chat period that is zero, too long, or not a whole number of milliseconds.
    #[error(
        "pirates cannot chat every {0:?}; give a whole number of milliseconds from 1ms to 65535ms"
    )]
    Chat(Duration),
    /// The executor failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The saved run cannot be restored.
    #[cfg(feature = "serde")]
    #[error(transparent)]
    Saved(crate::SnapshotError),
}

#[cfg(feature = "serde")]
impl From<crate::SnapshotError> for FsmError {
    fn from(error: crate::SnapshotError) -> FsmError {
        match error {
            crate::SnapshotError::Run(error) => FsmError::Run(error),
            error => FsmError::Saved(error),
        }
    }
}

/// Returns the configuration with the setting that this scenario needs: dead letters, such as coins for pirates that
/// have ended, are returned to the FSM.
pub fn config(base: Config) -> Config {
    Config {
        dead_letters: DeadLetters::ToRoot,
        ..base
    }
}

/// Runs the scenario, with [`config`] applied, and returns the executor's report and the FSM's
/// tally. A run that was cancelled has no tally.
///
/// # Errors
/// See [`FsmError`].
pub fn run<W: Watch>(
    executor: Executor,
    base: &Config,
    fsm: Fsm<W>,
) -> Result<(Report, Option<Tally>), FsmError> {
    fsm.check()?;
    let tally = Arc::new(Mutex::new(None));
    let config = Config {
        // Nothing else looks at envelopes.
        traces: base.traces && W::Pirate::MESSAGES,
        ..config(base.clone())
    };
    let report = if executor == Executor::Virtual && fsm.form == Form::Handler {
        // The FSM receives as many messages as all others together, and has no use for an async body.
        let monster = Monster::new(fsm, Arc::clone(&tally));
        crate::simulate_script(&config, monster)?
    } else {
        let tallied = TallyingFsm {
            fsm,
            tally: Arc::clone(&tally),
        };
        crate::run(executor, &config, tallied)?
    };
    let tally = lock(&tally).take();
    Ok((report, tally))
}

/// Returns the kinds of actors of a run of pirates, with the observers of this process.
#[cfg(feature = "serde")]
pub fn kinds<W: Watch>(local: &FsmLocal<W>) -> crate::Kinds<Msg> {
    crate::Kinds::plain()
        .with_script::<Monster<W>>(local.clone())
        .with::<Pirate<W::Pirate>>(local.watch().pirate())
        .with_each::<monster::Introduction, 5>()
        .with_each::<monster::Share, 2>()
        .with_each::<monster::Goodbye, 1>()
}

/// The scenario, with the cell in which its tally is stored at the end.
struct TallyingFsm<W: Watch> {
    fsm: Fsm<W>,
    tally: Arc<Mutex<Option<Tally>>>,
}

impl<W: Watch> Scenario<Msg> for TallyingFsm<W> {
    async fn root<C: AsyncContext<Msg>>(self, cx: C) {
        let tally = monster::rule(self.fsm, cx).await;
        *lock(&self.tally) = Some(tally);
    }
}

/// The part of a pirate's name before the number, without the architecture.
const BEFORE_NUMBER: &str = ".atlantic.bermuda.blackbeard";
/// The part of a pirate's name after the number.
const AFTER_NUMBER: &str = ".pirate";

/// Returns the name of the pirate with this index; it equals the name that [`Spawn`](crate::Spawn) builds.
///
/// ```
/// assert_eq!(corsair::fsm::pirate_name("fsm", 7), "fsm.atlantic.bermuda.blackbeard7.pirate");
/// ```
pub fn pirate_name(arch: &str, index: u32) -> String {
    format!("{arch}{BEFORE_NUMBER}{index}{AFTER_NUMBER}")
}
