//! The requests that a session handles.

use super::{Session, ending};
use crate::command::{Action, Command};
use crate::condition::Condition;
use crate::frame::Level;
use crate::recording::{MOST_COMMANDS, Recording};
use crate::world::World;
use corsair::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// A request to a session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionRequest {
    /// A command; only the viewer that has control may send one.
    Control(Control),
    /// A query about one actor, edge or trace; see [`World::look`].
    Look(Value),
    /// The time series of a group.
    Series(String),
    /// Returns the state at an earlier time in seconds, as the bytes of a frame.
    At(f64, Level),
    /// Returns the commands so far, as a [`Recording`].
    Save,
    /// Returns the commands so far, as faults and loads of a definition.
    Definition,
}

/// A command of the controls.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// Runs the simulation.
    Play,
    /// Pauses the simulation.
    Pause,
    /// Runs one step.
    Step(StepBy),
    /// Sets the speed in virtual seconds per second of wall-clock time; `None` is as fast as
    /// possible.
    Speed(Option<f64>),
    /// Run until a time or condition.
    Until(Until),
    /// Applies an action at a time in nanoseconds, or now if no time is given.
    Do {
        /// The action to apply.
        what: Action,
        /// The time in nanoseconds; `None` is now.
        #[serde(default)]
        at: Option<u64>,
    },
    /// Seeks to a time in nanoseconds. Seeking back discards later commands.
    Goto(u64),
    /// Saves a checkpoint.
    Checkpoint,
    /// Restores the checkpoint with this number. Discards later commands.
    Back(u32),
    /// Deletes the checkpoint with this number.
    Forget(u32),
}

/// The length of a step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepBy {
    /// The next window that has an event.
    Window,
    /// An interval in nanoseconds.
    Nanos(u64),
    /// Runs until the actor with this name has handled its next event.
    Actor(String),
}

/// The time or condition at which a run stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// A time in nanoseconds.
    Time(u64),
    /// A condition on a measurement.
    Condition(Condition),
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Time(nanos) => {
                write!(f, "t = {} s", Duration::from_nanos(*nanos).as_secs_f64())
            }
            Until::Condition(condition) => condition.fmt(f),
        }
    }
}

/// The answer to a request for the digest if the world has no digest.
pub(super) const NOTHING_RUNS: &str =
    "these are the files of a finished run, which has no session to save";

/// The range of speeds.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

impl<W: World> Session<W> {
    /// Handles a request.
    pub(super) fn answer(&mut self, asked: SessionRequest) -> Result<Value, String> {
        match asked {
            SessionRequest::Control(control) => self.control(control).map(|()| Value::Null),
            SessionRequest::Look(query) => self.world.look(&query),
            SessionRequest::Series(group) => {
                let number = self.group(&group)?;
                let known = self.world.points(number);
                let points = known.unwrap_or_else(|| self.series.points(number));
                Ok(json!({ "group": group, "points": points }))
            }
            SessionRequest::At(time, level) => {
                let known = self.world.at(time);
                let past = known.as_ref().or_else(|| self.history.at(time));
                let past =
                    past.ok_or("no state was recorded; states are recorded while a page is open")?;
                Ok(json!(past.encode(0, level)))
            }
            SessionRequest::Definition => self.world.as_definition(&self.commands),
            SessionRequest::Save => {
                // After a step of one actor, other actors may still have events that are due now.
                let now = self.world.now();
                self.world.run_until(now);
                let digest = self.world.digest().ok_or(NOTHING_RUNS)?;
                let (flags, commands) = (self.flags.clone(), self.commands.clone());
                let mut recording = Recording::new(flags, commands, now.as_nanos(), digest);
                recording.room.clone_from(&self.room);
                self.is_new = true;
                serde_json::to_value(recording).map_err(|error| error.to_string())
            }
        }
    }

    pub(super) fn control(&mut self, control: Control) -> Result<(), String> {
        self.is_new = true;
        match control {
            Control::Play => self.play(),
            Control::Pause => {
                self.stop("paused");
                Ok(())
            }
            Control::Speed(Some(factor)) if !SPEEDS.contains(&factor) => Err(format!(
                "a speed of {factor} is not possible; give a number from {} to {}, or none for the maximum",
                SPEEDS.start(),
                SPEEDS.end()
            )),
            Control::Speed(factor) => {
                self.pace.set(factor);
                Ok(())
            }
            Control::Step(by) => self.step(by),
            Control::Until(until) => {
                if let Until::Time(time) = until
                    && time <= self.world.now().as_nanos()
                {
                    return Err(format!(
                        "that time has passed; the run is at {}. Seek back instead, or give a later time",
                        self.world.now()
                    ));
                }
                self.check_alive()?;
                self.begin(until)?;
                self.play()
            }
            Control::Do { what, at } => self.act(what, at),
            Control::Goto(time) => self.go_to(Time::from_nanos(time)),
            Control::Checkpoint => self.save_checkpoint(),
            Control::Back(number) => self.go_back(number),
            Control::Forget(number) => self.checkpoints.forget(number),
        }
    }

    pub(super) fn check_alive(&self) -> Result<(), String> {
        if self.world.is_over() {
            return Err("the run is over".to_owned());
        }
        Ok(())
    }

    pub(super) fn play(&mut self) -> Result<(), String> {
        if self.world.is_over() && self.world.seek(Time::ZERO) {
            self.has_gone_back(false);
        }
        self.check_alive()?;
        self.is_playing = true;
        self.pace.restart();
        Ok(())
    }

    fn step(&mut self, by: StepBy) -> Result<(), String> {
        /// The longest step in nanoseconds, because the session does not handle other requests
        /// during a step.
        const MOST: u64 = 10_000_000_000;
        self.check_alive()?;
        self.stop("paused");
        let has_happened = match by {
            StepBy::Window => self.world.step(),
            StepBy::Nanos(nanos) if nanos > MOST => {
                return Err("a step is at most 10 s; run until a time instead".to_owned());
            }
            StepBy::Nanos(nanos) => {
                let end = self.world.now().after(Duration::from_nanos(nanos));
                self.world.run_until(end);
                true
            }
            StepBy::Actor(who) => self.world.step_actor(&who)?,
        };
        if self.world.is_over() {
            self.stop(ending(&self.world));
        } else if !has_happened {
            self.stop("no events are left");
        }
        Ok(())
    }

    /// Applies an action, and records it as a command.
    fn act(&mut self, what: Action, at: Option<u64>) -> Result<(), String> {
        self.check_alive()?;
        if self.commands.len() >= MOST_COMMANDS {
            return Err(format!(
                "the session has {MOST_COMMANDS} commands already, which is the limit; save it and start another one"
            ));
        }
        let now = self.world.now().as_nanos();
        let command = Command {
            at: at.unwrap_or(now + 1),
            what,
        };
        if command.at <= now {
            return Err(format!(
                "that time has passed; the run is at {}. Give a later time",
                self.world.now()
            ));
        }
        if let Some((service, count)) = self.world.lacks_room(&command.what) {
            self.make_room(service, count)?;
        }
        self.world.apply(&command)?;
        self.commands.push(command);
        Ok(())
    }
}
