//! Errors of a run.

use super::config::{ConfigError, Executor};
use super::report::{Outcome, PanicReport, Report, WaitingActor};
use super::time::Time;
use std::fmt;

/// The error of a run that failed. An error after the start contains the report up to that moment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The library was built without this executor.
    #[error("corsair was built without the executor {executor:?}; its feature is `{feature}`")]
    NotBuilt {
        /// The requested executor.
        executor: Executor,
        /// The feature that adds the executor.
        feature: &'static str,
    },
    /// The processes of a run have reported contradictory data.
    #[error(
        "the processes of the run contradict each other: {what}; start all of them with the same program and options"
    )]
    Parts {
        /// The contradiction and its remedy, as a sentence.
        what: String,
    },
    /// No event was left, but the root had not ended.
    #[error("deadlock at {}: no event is left, {} still waiting\n{}", report.time, actors(report.waiting_total), Lines(&report.waiting, report.waiting_total))]
    Deadlock {
        /// The report; [`Report::waiting`] lists the waiting actors and their reasons.
        report: Box<Report>,
    },
    /// An actor panicked in virtual time, or the root panicked on any executor.
    #[error("{panic}")]
    Panicked {
        /// The actor, the time and the text of the panic.
        panic: Box<PanicReport>,
        /// The report up to the panic.
        report: Box<Report>,
    },
    /// An actor in virtual time received more events from itself at one instant than
    /// [`Config::most_at_once`](crate::Config::most_at_once) allows: an endless loop in which no time passes.
    #[error(
        "{name} keeps time from advancing: {events} events at {time}, each caused by the one before; give its timers a delay, or raise Config::most_at_once"
    )]
    Livelock {
        /// The name of the actor.
        name: String,
        /// The instant at which all of the events are due.
        time: Time,
        /// The number of events at that instant.
        events: u64,
        /// The report up to that time.
        report: Box<Report>,
    },
    /// An actor sent more messages than it has sequence numbers.
    #[error(
        "{name} has sent 2^32 messages, the maximum of one actor; distribute the work over several actors"
    )]
    TooManySends {
        /// The name of the actor.
        name: String,
        /// The time of the actor's last send.
        time: Time,
        /// The report up to that time.
        report: Box<Report>,
    },
    /// The next event would be after the configured end.
    #[error(
        "time ran past the end: the next event is due at {next}, the run ends at {end}; set a later end or none"
    )]
    PastEnd {
        /// The end that was set.
        end: Time,
        /// The time of the next event.
        next: Time,
        /// The report up to the end.
        report: Box<Report>,
    },
    /// In a strict run, messages were sent to actors that had ended.
    #[error("strict: {count} messages for actors that had ended; the first was {first}")]
    DeadLetters {
        /// The number of dead letters.
        count: u64,
        /// Kind, sender, receiver and time of the first dead letter.
        first: String,
        /// The complete report.
        report: Box<Report>,
    },
    /// In a strict run, actors were still waiting when the root had ended.
    #[error("strict: the root has ended and left {} waiting\n{}", actors(report.waiting_total), Lines(&report.waiting, report.waiting_total))]
    LeftWaiting {
        /// The complete report.
        report: Box<Report>,
    },
    /// The root of a run in virtual time has ended while an actor awaits something that is not an event of the run,
    /// such as a timer or socket of tokio, or a channel. Nothing can wake this actor.
    #[error(
        "{name} awaits something that is not an event of the run, so nothing can wake it; await messages and sleeps of its context, or run the program as a host: see \"Test your service\" in crates/host/README.md"
    )]
    ForeignFuture {
        /// The name of the actor; the one with the lowest address if there are several.
        name: String,
        /// The complete report.
        report: Box<Report>,
    },
    /// A mailbox overflowed, and the policy is [`Overflow::Fail`](crate::Overflow::Fail).
    #[error(
        "the mailbox of {name} is full ({capacity} events); raise its capacity or choose another overflow policy"
    )]
    Overflow {
        /// The owner of the mailbox.
        name: String,
        /// The capacity of the mailbox.
        capacity: usize,
        /// The report up to the overflow.
        report: Box<Report>,
    },
    /// The actors need more threads than the executor allows.
    #[error(
        "{asked} actors with a thread each are more than the limit of {limit} threads; use the pool executor, which runs any number"
    )]
    TooManyThreads {
        /// The number of actors, each of which needs a thread.
        asked: u64,
        /// The maximum number of threads.
        limit: u64,
        /// The report up to that time.
        report: Box<Report>,
    },
    /// The operating system could not start a thread.
    #[error(
        "cannot start a thread: {source}; use fewer workers, or the pool executor instead of a thread per actor"
    )]
    Thread {
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
        /// The report up to that time.
        report: Box<Report>,
    },
    /// The root of an experiment returned no value: the run was cancelled, or the root stopped.
    #[error(
        "the run ended at {} before its root returned a value: {}",
        report.time,
        if report.outcome == Outcome::Cancelled { "it was cancelled" } else { "the root was stopped" }
    )]
    NoValue {
        /// The report up to the end.
        report: Box<Report>,
    },
    /// The run needs more actors than there are addresses.
    #[error("more actors than addresses: a run holds about four billion, in pages of {page}")]
    TooManyActors {
        /// The number of addresses in a page. Each group of actors that are spawned together takes whole pages.
        page: u32,
        /// The report up to that time.
        report: Box<Report>,
    },
}

impl RunError {
    /// Returns the report up to the failure, if the run had begun.
    pub fn report(&self) -> Option<&Report> {
        match self {
            RunError::Config(_) | RunError::NotBuilt { .. } | RunError::Parts { .. } => None,
            RunError::Deadlock { report }
            | RunError::Panicked { report, .. }
            | RunError::Livelock { report, .. }
            | RunError::TooManySends { report, .. }
            | RunError::PastEnd { report, .. }
            | RunError::DeadLetters { report, .. }
            | RunError::LeftWaiting { report }
            | RunError::ForeignFuture { report, .. }
            | RunError::Overflow { report, .. }
            | RunError::TooManyThreads { report, .. }
            | RunError::Thread { report, .. }
            | RunError::NoValue { report }
            | RunError::TooManyActors { report, .. } => Some(report),
        }
    }
}

/// Formats a number of actors: "1 actor", "2 actors".
fn actors(count: u64) -> impl fmt::Display {
    format!("{count} actor{}", if count == 1 { "" } else { "s" })
}

/// Formats the waiting actors, one per line, and the number of actors that are not listed.
struct Lines<'a>(&'a [WaitingActor], u64);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for actor in self.0 {
            writeln!(f, "  {actor}")?;
        }
        match self.1.saturating_sub(self.0.len() as u64) {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more"),
        }
    }
}
