//! The report of a run.

use super::address::Addr;
use super::config::Executor;
use super::event::Reason;
use super::probes::Probes;
use super::time::Time;
use super::waiting::WaitReason;
use std::fmt;
use std::time::Duration;

/// The report of a complete or incomplete run.
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
    /// The executor of the run.
    pub executor: Executor,
    /// The seed of the run.
    pub seed: u64,
    /// The number of worker threads, or of actors' threads on the executor `Threads`.
    pub workers: usize,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// Messages delivered, by kind, in the order of [`Message::KINDS`](crate::Message::KINDS).
    pub messages: Vec<KindCount>,
    /// Timers that fired.
    pub timers: u64,
    /// Actors spawned, the root included.
    pub spawned: u64,
    /// The number of actors, without the root, that returned, were stopped or panicked before the run ended.
    pub ended: u64,
    /// Messages for actors that had ended, by kind.
    pub dead_letters: Vec<KindCount>,
    /// Messages dropped by the overflow policy of full mailboxes.
    pub dropped: u64,
    /// Messages that the [network](crate::network::Network) lost.
    pub lost: u64,
    /// Messages that the network delivered a second time.
    pub duplicated: u64,
    /// The panics of actors, in the order in which the executor noticed them.
    pub panics: Vec<PanicReport>,
    /// Actors that were still waiting when the run ended: at most [`Report::MOST_WAITING`] of them.
    pub waiting: Vec<WaitingActor>,
    /// The number of actors that were still waiting, including those that are not listed.
    pub waiting_total: u64,
    /// The time at the end of the run: virtual time, or wall-clock time since the start.
    pub time: Time,
    /// The duration on the wall clock, from before the first actor's start to after the last actor's end.
    pub wall: Duration,
    /// The peak resident memory of the process in bytes, if the system reports it.
    pub peak_memory: Option<u64>,
    /// In virtual time, a digest of every event (time, receiver, sender, sequence, contents). Equal digests mean equal
    /// runs.
    pub digest: Option<u64>,
    /// The number of windows of virtual time with at least one event.
    pub windows: u64,
    /// The measurements of actors.
    pub probes: Probes,
    /// Totals per actor in the order of addresses, if [`Config::per_actor`](crate::Config::per_actor) requests them.
    pub per_actor: Vec<ActorTotals>,
}

/// The way in which a run ended without an error, or [`Outcome::Running`] before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Outcome {
    /// The root returned.
    #[default]
    Completed,
    /// A [`CancelToken`](crate::CancelToken) cancelled the run.
    Cancelled,
    /// The run has not ended: the report belongs to a paused [`Simulation`](crate::Simulation).
    Running,
}

/// The number of messages of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindCount {
    /// The kind's name.
    pub kind: &'static str,
    /// The number of messages.
    pub count: u64,
}

/// An actor that panicked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PanicReport {
    /// The actor that panicked.
    pub who: Addr,
    /// The name of the actor.
    pub name: String,
    /// The time of the panic in the run.
    pub time: Time,
    /// The event that the actor was handling.
    pub event: String,
    /// The text of the panic.
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

/// An actor that was waiting when the run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingActor {
    /// The address of the actor.
    pub who: Addr,
    /// The name of the actor.
    pub name: String,
    /// The reason for waiting.
    pub waiting: WaitReason,
    /// The name of the actor whose answer is awaited; `None` for other waits.
    pub callee: Option<String>,
    /// The number of stashed events.
    pub stashed: usize,
}

impl fmt::Display for WaitingActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waits for ", self.name)?;
        match (&self.waiting, &self.callee) {
            (WaitReason::Message, _) => f.write_str("a message")?,
            (WaitReason::Selected(place), _) => write!(f, "the event selected at {place}")?,
            (WaitReason::Answer(_), Some(callee)) => write!(f, "an answer of {callee}")?,
            (WaitReason::Answer(callee), None) => write!(f, "an answer of {callee}")?,
            (WaitReason::Sleep, _) => f.write_str("the end of a sleep")?,
            (WaitReason::Spawn, _) => f.write_str("actors it spawned")?,
            (WaitReason::Other | WaitReason::Foreign, _) => f.write_str(
                "something that is not an event of the run; timers and sockets of tokio belong to hosts, \
                 see \"Test your service\" in crates/host/README.md",
            )?,
        }
        if self.stashed > 0 {
            write!(f, " ({} stashed)", self.stashed)?;
        }
        Ok(())
    }
}

/// Totals of one actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ActorTotals {
    /// The address of the actor.
    pub who: Addr,
    /// Messages that the actor sent, including requests and answers.
    pub sent: u64,
    /// Messages that the actor handled.
    pub received: u64,
    /// The reason of the actor's end, if the actor ended before the run.
    pub ended: Option<Reason>,
}

impl Report {
    /// The maximum number of panics that a report lists in virtual time; further panics are left out.
    pub const MOST_PANICS: usize = 10_000;

    /// The maximum number of listed waiting actors.
    pub const MOST_WAITING: usize = 100;

    /// Returns the number of delivered messages of all kinds.
    pub fn delivered(&self) -> u64 {
        self.messages.iter().map(|kind| kind.count).sum()
    }

    /// Returns the number of dead letters of all kinds.
    pub fn dead(&self) -> u64 {
        self.dead_letters.iter().map(|kind| kind.count).sum()
    }

    /// Messages delivered per second of wall-clock time.
    pub fn rate(&self) -> f64 {
        self.delivered() as f64 / self.wall.as_secs_f64().max(1e-9)
    }
}

/// Returns the text of a panic, if its payload is text.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".to_owned(),
    }
}
