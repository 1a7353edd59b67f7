//! Returns to a checkpoint, or to an earlier time. If the state of the world can be saved, it is restored. Otherwise
//! the world is rebuilt and replays all commands up to that time, with a bit-identical result.

use super::control::NOTHING_RUNS;
use super::{Session, Until};
use crate::command::Command;
use crate::session::Control;
use crate::world::World;
use corsair::{Snapshot, Time};
use serde::Serialize;

/// The maximum number of checkpoints, and the maximum number of bytes of all checkpoints together.
const MOST: usize = 32;
const MOST_BYTES: u64 = 1 << 30;

/// The state of a session at a point in virtual time.
#[derive(Debug)]
struct Checkpoint {
    number: u32,
    at: Time,
    digest: u64,
    /// The commands given so far; some of them may be scheduled for later.
    commands: Vec<Command>,
    /// The state of the world. If it is `None`, the checkpoint is restored by a replay from the start.
    state: Option<Snapshot>,
}

/// The checkpoints that a session can restore.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    saved: Vec<Checkpoint>,
    last: u32,
}

/// A checkpoint as viewers see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckpointInfo {
    /// The number by which requests refer to the checkpoint.
    pub number: u32,
    /// The virtual time of the checkpoint in seconds.
    pub at: f64,
    /// The digest at the checkpoint: 16 hexadecimal digits.
    pub digest: String,
    /// The number of commands given before the checkpoint.
    pub commands: usize,
    /// The size of the saved state; 0 if the checkpoint is restored by a replay from the start.
    pub bytes: u64,
}

fn size(checkpoint: &Checkpoint) -> u64 {
    checkpoint.state.as_ref().map_or(0, Snapshot::bytes)
}

impl Checkpoints {
    pub(super) fn shown(&self) -> Vec<CheckpointInfo> {
        let shown = self.saved.iter().map(|checkpoint| CheckpointInfo {
            number: checkpoint.number,
            at: checkpoint.at.elapsed().as_secs_f64(),
            digest: format!("{:016x}", checkpoint.digest),
            commands: checkpoint.commands.len(),
            bytes: size(checkpoint),
        });
        shown.collect()
    }

    pub(super) fn forget(&mut self, number: u32) -> Result<(), String> {
        let place = self.find(number)?;
        self.saved.remove(place);
        Ok(())
    }

    fn find(&self, number: u32) -> Result<usize, String> {
        let found = self.saved.iter().position(|saved| saved.number == number);
        found.ok_or_else(|| format!("there is no checkpoint {number}"))
    }

    /// Drops the saved states, because the world was rebuilt with more capacity and cannot restore them. The
    /// checkpoints stay; they are restored by a replay from the start.
    fn drop_states(&mut self) {
        for checkpoint in &mut self.saved {
            checkpoint.state = None;
        }
    }

    /// Returns the latest checkpoint from which `time` can be reached, given that `commands` are the commands until
    /// `time`.
    fn before(&self, time: Time, commands: &[Command]) -> Option<&Checkpoint> {
        let fits = |saved: &&Checkpoint| {
            saved.state.is_some() && saved.at <= time && commands.starts_with(&saved.commands)
        };
        self.saved.iter().filter(fits).max_by_key(|saved| saved.at)
    }
}

const WRITES: &str =
    "a run that writes files cannot go back in time; run it again without -j, -g, -c and -m";

impl<W: World> Session<W> {
    /// Saves a checkpoint of the current state.
    pub(super) fn save_checkpoint(&mut self) -> Result<(), String> {
        if self.make.is_none() {
            return Err(WRITES.to_owned());
        }
        self.check_alive()?;
        if self.checkpoints.saved.len() == MOST {
            return Err(format!(
                "there are {MOST} checkpoints already; delete one first"
            ));
        }
        // After a step of one actor, other actors may still have events that are due now.
        let now = self.world.now();
        self.world.run_until(now);
        let state = self.world.checkpoint()?;
        let bytes: u64 = self.checkpoints.saved.iter().map(size).sum();
        let bytes = bytes + state.as_ref().map_or(0, Snapshot::bytes);
        if bytes > MOST_BYTES {
            return Err(format!(
                "the checkpoints would have {bytes} bytes in total, and the limit is {MOST_BYTES}; delete one first"
            ));
        }
        let digest = self.world.digest().ok_or(NOTHING_RUNS)?;
        self.checkpoints.last += 1;
        let checkpoint = Checkpoint {
            number: self.checkpoints.last,
            at: now,
            digest,
            commands: self.commands.clone(),
            state,
        };
        self.checkpoints.saved.push(checkpoint);
        Ok(())
    }

    /// Restores a checkpoint, with the commands that were scheduled for later at that time.
    pub(super) fn go_back(&mut self, number: u32) -> Result<(), String> {
        let place = self.checkpoints.find(number)?;
        let checkpoint = &self.checkpoints.saved[place];
        let (at, commands) = (checkpoint.at, checkpoint.commands.clone());
        let until = |all: &[Command]| -> Vec<Command> {
            all.iter()
                .filter(|command| command.time() <= at)
                .cloned()
                .collect()
        };
        let is_same = until(&commands) == until(&self.commands);
        match &checkpoint.state {
            Some(state) => self.world.restore(state)?,
            None => self.world = self.rebuilt(&commands)?,
        }
        self.commands = commands;
        self.has_gone_back(is_same);
        self.run_quietly(at)
    }

    /// Seeks to `time`. Seeking back restores the latest earlier checkpoint, or replays from the start, and discards later
    /// commands.
    pub(super) fn go_to(&mut self, time: Time) -> Result<(), String> {
        if time > self.world.now() {
            return self.control(Control::Until(Until::Time(time.as_nanos())));
        }
        if self.world.seek(time) {
            self.has_gone_back(false);
            return Ok(());
        }
        let mut commands = self.commands.clone();
        commands.retain(|command| command.time() <= time);
        match self.checkpoints.before(time, &commands) {
            Some(checkpoint) => {
                let known = checkpoint.commands.len();
                let state = checkpoint.state.as_ref();
                self.world.restore(state.ok_or("there is no state")?)?;
                for command in &commands[known..] {
                    self.world.apply(command)?;
                }
            }
            None => self.world = self.rebuilt(&commands)?,
        }
        self.commands = commands;
        self.has_gone_back(true);
        self.run_quietly(time)
    }

    /// Rebuilds the world with capacity for more instances of a service, and replays all commands up to now. The actors
    /// get other addresses, so the run is not bit-identical to the previous one.
    pub(super) fn make_room(&mut self, service: String, count: u32) -> Result<(), String> {
        if self.make.is_none() {
            return Err(format!(
                "{service} has no capacity for {count} instances, and a run that writes files cannot be restarted with more; run it without -j, -g, -c and -m, or give the definition more instances"
            ));
        }
        let room = self.room.clone();
        self.room.insert(service, count);
        let commands = self.commands.clone();
        let (now, is_playing) = (self.world.now(), self.is_playing);
        let until = self.goal.take().map(|goal| goal.until);
        match self.rebuilt(&commands) {
            Ok(world) => self.world = world,
            Err(error) => {
                self.room = room;
                if let Some(until) = until {
                    self.begin(until)?;
                }
                return Err(error);
            }
        }
        self.checkpoints.drop_states();
        self.scenes.send_replace(self.world.scene().into());
        self.has_gone_back(false);
        self.run_quietly(now)?;
        self.stopped = "restarted with more instances".to_owned();
        if !is_playing {
            return Ok(());
        }
        if let Some(until) = until {
            self.begin(until)?;
        }
        self.play()
    }

    /// Builds the world in its initial state, with these commands.
    fn rebuilt(&mut self, commands: &[Command]) -> Result<W, String> {
        let make = self.make.as_mut().ok_or(WRITES)?;
        let mut world = make(&self.room)?;
        for command in commands {
            world.apply(command)?;
        }
        Ok(world)
    }

    /// Discards the samples after the present time, or all samples if the run until now may differ from the earlier
    /// one.
    pub(super) fn has_gone_back(&mut self, is_same: bool) {
        self.frame.begin_anew();
        self.sampled_at = self.world.now();
        let kept = if is_same {
            self.sampled_at.elapsed().as_secs_f64()
        } else {
            -1.0
        };
        self.series.truncate(kept);
        self.history.truncate(kept);
        self.is_watched = false;
        self.stop("gone back");
        self.watch();
    }

    /// Runs until a time at maximum speed, without frames.
    fn run_quietly(&mut self, time: Time) -> Result<(), String> {
        if time > self.world.now() {
            self.begin(Until::Time(time.as_nanos()))?;
            let factor = self.pace.factor();
            self.pace.set(None);
            self.is_playing = true;
            while self.is_playing {
                self.advance();
            }
            self.pace.set(factor);
            self.stop("gone back");
        }
        Ok(())
    }
}
