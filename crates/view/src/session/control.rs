//! What a session is asked for.

use super::Session;
use crate::command::{Action, Command};
use crate::condition::Condition;
use crate::recording::{MOST_COMMANDS, Recording};
use crate::world::World;
use corsair::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;

/// Something that a session is asked for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// To do something; for the holder of the controls.
    Control(Control),
    /// About one thing; see [`World::look`].
    Look(Value),
    /// What was measured of a group over time.
    Series(String),
    /// What was done so far, as [`Recording`]s have it.
    Save,
    /// What was done so far, as parts of a definition.
    Definition,
}

/// What the controls do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// Go on.
    Play,
    /// Stand still.
    Pause,
    /// Go on a little.
    Step(StepBy),
    /// Virtual seconds per second of wall-clock time; none: as fast as it goes.
    Speed(Option<f64>),
    /// Go on until something.
    Until(Until),
    /// Do something, at a time in nanoseconds; without one, now.
    Do {
        /// What.
        what: Action,
        /// When.
        #[serde(default)]
        at: Option<u64>,
    },
    /// Go to a time in nanoseconds, also one that has passed: what was done later is forgotten.
    Goto(u64),
    /// Save how things are, to go back to.
    Checkpoint,
    /// Go back to the checkpoint of this number: what was done since is forgotten.
    Back(u32),
    /// Drop the checkpoint of this number.
    Forget(u32),
}

/// How far a step goes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepBy {
    /// Through the next window in which there is anything.
    Window,
    /// For this long, in nanoseconds.
    Nanos(u64),
    /// Until an actor has handled its next event.
    Actor(String),
}

/// What a run goes on until.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// A time in nanoseconds.
    Time(u64),
    /// What is measured.
    Condition(Condition),
}

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Until::Time(nanos) => {
                write!(f, "it is {} s", Duration::from_nanos(*nanos).as_secs_f64())
            }
            Until::Condition(condition) => condition.fmt(f),
        }
    }
}

/// The slowest and the fastest pace.
const SPEEDS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

impl<W: World> Session<W> {
    /// Does what was asked for.
    pub(super) fn answer(&mut self, asked: Asked) -> Result<Value, String> {
        match asked {
            Asked::Control(control) => self.control(control).map(|()| Value::Null),
            Asked::Look(question) => self.world.look(&question),
            Asked::Series(group) => {
                let number = self.group(&group)?;
                let known = self.world.points(number);
                let points = known.unwrap_or_else(|| self.series.points(number).collect());
                Ok(json!({ "group": group, "points": points }))
            }
            Asked::Definition => self.world.as_definition(&self.commands),
            Asked::Save => {
                // After a step of one actor, others have still to handle what is due now.
                let now = self.world.now();
                self.world.run_until(now);
                let digest = self.world.digest();
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
                "a speed of {factor} is not possible; give {} to {}, or none",
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
                        "that time has passed, it is {}; go back instead",
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
        self.check_alive()?;
        self.is_playing = true;
        self.pace.restart();
        Ok(())
    }

    fn step(&mut self, by: StepBy) -> Result<(), String> {
        /// A step is done at once, and nothing is listened to meanwhile.
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
            self.stop("the run is over");
        } else if !has_happened {
            self.stop("there is nothing to come");
        }
        Ok(())
    }

    /// Lets something happen, and remembers it.
    fn act(&mut self, what: Action, at: Option<u64>) -> Result<(), String> {
        self.check_alive()?;
        if self.commands.len() >= MOST_COMMANDS {
            return Err(format!(
                "{MOST_COMMANDS} commands were given, which is the most"
            ));
        }
        let now = self.world.now().as_nanos();
        let command = Command {
            at: at.unwrap_or(now + 1),
            what,
        };
        if command.at <= now {
            return Err(format!(
                "that time has passed, it is {}; choose a later time",
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
