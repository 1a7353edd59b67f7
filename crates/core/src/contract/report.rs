//! The report of a run.

use super::address::Addr;
use super::config::Executor;
use super::event::Reason;
use super::probes::Probes;
use super::time::Time;
use super::waiting::Waiting;
use std::fmt;
use std::time::Duration;

/// The report of a run, complete or not.
///
/// ```
/// use corsair::fsm::{self, Fsm};
/// use corsair::{Config, Executor, Outcome};
///
/// let scenario = Fsm { population: 10, ..Fsm::default() };
/// let (report, _) = fsm::run(Executor::Virtual, &Config::default(), scenario)?;
/// assert_eq!(report.outcome, Outcome::Completed);
/// let delivered: u64 = report.messages.iter().map(|kind| kind.count).sum();
/// assert_eq!(report.delivered(), delivered);
/// println!("{} actors, {:.0} messages/s, until {}", report.spawned, report.rate(), report.time);
/// for panic in &report.panics {
///     eprintln!("{panic}");
/// }
/// # Ok::<(), corsair::fsm::FsmError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The executor that ran it.
    pub executor: Executor,
    /// The seed.
    pub seed: u64,
    /// Worker threads (or actors' threads) that took part.
    pub workers: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// Messages delivered, by kind, in the order of [`Message::KINDS`](crate::Message::KINDS).
    pub messages: Vec<KindCount>,
    /// Timers that fired.
    pub timers: u64,
    /// Actors spawned, the root included.
    pub spawned: u64,
    /// Actors that ended by themselves, were stopped or panicked before the run ended; the root,
    /// with whose end the run ends, is not counted.
    pub ended: u64,
    /// Messages for actors that had ended, by kind.
    pub dead_letters: Vec<KindCount>,
    /// Messages dropped by the overflow policy of full mailboxes.
    pub dropped: u64,
    /// Messages that the [network](crate::network::Network) lost.
    pub lost: u64,
    /// Messages that it delivered a second time.
    pub duplicated: u64,
    /// Actors that panicked, in the order in which it was noticed.
    pub panics: Vec<PanicReport>,
    /// Actors that still waited when the run ended: at most [`Report::MOST_WAITING`] of them.
    pub waiting: Vec<WaitingActor>,
    /// How many still waited, listed or not.
    pub waiting_total: u64,
    /// The time at which the run ended, in its own time.
    pub time: Time,
    /// How long it took on the wall clock, from before the first actor to after the last.
    pub wall: Duration,
    /// The most memory that the process had resident so far, in bytes, where the system tells.
    pub peak_memory: Option<u64>,
    /// Virtual time only: a digest of every event (time, receiver, sender, sequence, contents).
    /// Two runs with the same digest did the same.
    pub digest: Option<u64>,
    /// Windows of virtual time in which anything happened.
    pub windows: u64,
    /// What actors have recorded.
    pub probes: Probes,
    /// Totals per actor in the order of addresses, if [`Config::per_actor`](crate::Config::per_actor).
    pub per_actor: Vec<ActorTotals>,
}

/// How a run ended if it did not fail, or that it has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The root returned.
    #[default]
    Completed,
    /// It was cancelled from outside with a [`CancelToken`](crate::CancelToken).
    Cancelled,
    /// It has not ended: the report is of a paused [`Simulation`](crate::Simulation).
    Running,
}

/// A number of messages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind's name.
    pub kind: &'static str,
    /// How many.
    pub count: u64,
}

/// An actor that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PanicReport {
    /// Who.
    pub who: Addr,
    /// Its name.
    pub name: String,
    /// When, in the time of the run.
    pub time: Time,
    /// The event that it was handling.
    pub event: String,
    /// What the panic said.
    pub message: String,
}

impl fmt::Display for PanicReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PanicReport {
            name,
            time,
            event,
            message,
            ..
        } = self;
        write!(f, "{name} panicked at {time} on {event}: {message}")
    }
}

/// An actor that waits and will wait forever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingActor {
    /// Who.
    pub who: Addr,
    /// Its name.
    pub name: String,
    /// For what.
    pub waiting: Waiting,
    /// Whose answer it waits for, by name.
    pub whose: Option<String>,
    /// How many events it has skipped and kept.
    pub kept: usize,
}

impl fmt::Display for WaitingActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waits for ", self.name)?;
        match (&self.waiting, &self.whose) {
            (Waiting::Message, _) => f.write_str("a message")?,
            (Waiting::Selected(place), _) => write!(f, "the event selected at {place}")?,
            (Waiting::Answer(_), Some(whose)) => write!(f, "an answer of {whose}")?,
            (Waiting::Answer(whose), None) => write!(f, "an answer of {whose}")?,
            (Waiting::Sleep, _) => f.write_str("the end of a sleep")?,
            (Waiting::Spawn, _) => f.write_str("actors it spawned")?,
            (Waiting::Other | Waiting::Foreign, _) => f.write_str(
                "something that is not an event of the run; timers and sockets of tokio belong to hosts, \
                 see \"Test your service\" in crates/host/README.md",
            )?,
        }
        if self.kept > 0 {
            write!(f, " ({} kept)", self.kept)?;
        }
        Ok(())
    }
}

/// Totals of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ActorTotals {
    /// Who.
    pub who: Addr,
    /// Messages it sent, requests and answers included.
    pub sent: u64,
    /// Messages it was given.
    pub received: u64,
    /// How it ended, if it did before the run.
    pub ended: Option<Reason>,
}

impl Report {
    /// At most this many panics are listed of a run in virtual time that survives them: the first.
    pub const MOST_PANICS: usize = 10_000;

    /// At most this many waiting actors are listed.
    pub const MOST_WAITING: usize = 100;

    /// Messages delivered, of all kinds.
    pub fn delivered(&self) -> u64 {
        self.messages.iter().map(|kind| kind.count).sum()
    }

    /// Messages for actors that had ended, of all kinds.
    pub fn dead(&self) -> u64 {
        self.dead_letters.iter().map(|kind| kind.count).sum()
    }

    /// Messages delivered per second of wall-clock time.
    pub fn rate(&self) -> f64 {
        self.delivered() as f64 / self.wall.as_secs_f64().max(1e-9)
    }
}

/// What a panic said, if it said it in words.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    }
}
