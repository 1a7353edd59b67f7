//! A simulation that is held in the hand: it goes on as far as it is told, answers questions, and
//! does what it is told. What was done is a list that can be saved and replayed to the same bits.
//!
//! The session runs on the thread that calls [`Session::run`]; a [`Handle`] speaks to it
//! through a bounded channel. Frames are published a few times a second, the newest replaces those
//! that no watcher has taken: a slow watcher gets fewer, and the simulation never waits for one.
//! Without a watcher nothing is remembered and nothing is published.

mod advance;
mod checkpoints;
mod control;
mod handle;

use crate::command::Command;
use crate::condition::Condition;
use crate::frame::Frame;
use crate::recording::Recording;
use crate::replay::{ReplayError, prepare};
use crate::series::Series;
use crate::world::{GroupSample, Room, Scene, World};
use advance::Pace;
use checkpoints::Checkpoints;
pub use checkpoints::Shown;
pub use control::{Asked, Control, StepBy, Until};
use corsair::{CancelToken, Time};
use handle::Question;
pub use handle::{Handle, Watching};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The most questions that wait.
const MOST_ASKED: usize = 64;

/// Frames come at most once in so long.
const BETWEEN_FRAMES: Duration = Duration::from_millis(50);

/// How long a session that is paused sleeps at most before it looks whether it was cancelled.
const NAP: Duration = Duration::from_millis(50);

/// Makes the world as it was in the beginning, with room for more.
pub type Make<W> = Box<dyn FnMut(&Room) -> Result<W, String> + Send>;

/// A session with a simulation: it goes on as far as it is told, answers questions, and remembers what was
/// done.
pub struct Session<W: World> {
    world: W,
    make: Option<Make<W>>,
    flags: Map<String, Value>,
    /// What the world was made with room for.
    room: Room,
    commands: Vec<Command>,
    checkpoints: Checkpoints,
    asked: Receiver<Question>,
    frames: watch::Sender<Frame>,
    statuses: watch::Sender<Status>,
    scenes: watch::Sender<Arc<Scene>>,
    watchers: Arc<AtomicU32>,
    frame: Frame,
    series: Series,
    pace: Pace,
    goal: Option<Goal>,
    is_playing: bool,
    is_watched: bool,
    stopped: String,
    /// Something was done since the last frame or status.
    is_new: bool,
    sampled_at: Time,
    published: (Instant, Time),
}

/// What the run goes on until.
#[derive(Debug)]
struct Goal {
    until: Until,
    /// Errors and dead letters before.
    errors: u64,
    dead: u64,
    /// What the last second has brought to the group in question.
    second: VecDeque<(f64, GroupSample)>,
    /// The group in question, if it is about one.
    group: Option<usize>,
}

/// What every watcher is told of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// How far it has come, in seconds.
    pub now: f64,
    /// Whether it goes on by itself.
    pub is_playing: bool,
    /// Whether it has ended.
    pub is_over: bool,
    /// How fast it may go; none: as fast as it goes.
    pub speed: Option<f64>,
    /// What it runs until.
    pub until: Option<String>,
    /// Why it stands still.
    pub stopped: String,
    /// What was done: when in seconds, and what.
    pub commands: Vec<(f64, String)>,
    /// The digest, while it stands still.
    pub digest: Option<String>,
    /// It was begun anew so often.
    pub epoch: u32,
    /// Whether one can go back.
    pub can_go_back: bool,
    /// What one can go back to, the oldest first.
    pub checkpoints: Vec<Shown>,
}

impl<W: World> Session<W> {
    /// A session that holds a simulation, and the handle to it. The flags are those of its run, by
    /// their long names; `make` makes it anew, if one may go back.
    pub fn new(world: W, flags: Map<String, Value>, make: Option<Make<W>>) -> (Session<W>, Handle) {
        let (asked_sender, asked) = sync_channel(MOST_ASKED);
        let (frames, frames_receiver) = watch::channel(Frame::default());
        let (statuses, statuses_receiver) = watch::channel(Status::default());
        let watchers = Arc::new(AtomicU32::new(0));
        let (scenes, scenes_receiver) = watch::channel(Arc::new(world.scene()));
        let handle = Handle {
            asked: asked_sender,
            frames: frames_receiver,
            statuses: statuses_receiver,
            scenes: scenes_receiver,
            watchers: Arc::clone(&watchers),
        };
        let now = world.now();
        let stopped = match world.is_over() {
            true => "the run is over",
            false => "nothing has happened yet",
        };
        let mut session = Session {
            world,
            make,
            flags,
            room: Room::new(),
            commands: Vec::new(),
            checkpoints: Checkpoints::default(),
            asked,
            frames,
            statuses,
            scenes,
            watchers,
            frame: Frame::default(),
            series: Series::default(),
            pace: Pace::default(),
            goal: None,
            is_playing: false,
            is_watched: false,
            stopped: stopped.to_owned(),
            is_new: true,
            sampled_at: now,
            published: (Instant::now(), now),
        };
        session.publish();
        (session, handle)
    }

    /// Lets all that was done in another session happen in this one.
    ///
    /// # Errors
    /// The first command that does not fit.
    pub fn load(&mut self, recording: &Recording) -> Result<(), ReplayError> {
        prepare(&mut self.world, recording)?;
        self.room.clone_from(&recording.room);
        self.commands.extend(recording.commands.iter().cloned());
        self.publish();
        Ok(())
    }

    /// Runs until it is cancelled, or no handle is left, and gives back the simulation as it is then.
    pub fn run(mut self, cancel: &CancelToken) -> W {
        while !cancel.is_cancelled() {
            let wait = if self.is_playing {
                self.pace.wait()
            } else {
                NAP
            };
            match self.asked.recv_timeout(wait) {
                Ok(question) => {
                    self.reply(question);
                    // Others may have asked as well.
                    while let Ok(question) = self.asked.try_recv() {
                        self.reply(question);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.watch();
            if self.is_playing {
                self.advance();
            }
            let (at, _) = self.published;
            if self.is_new || self.is_playing && at.elapsed() >= BETWEEN_FRAMES {
                self.publish();
            }
        }
        self.world
    }

    /// Does what was asked for. What has changed by it is published before it is answered.
    fn reply(&mut self, question: Question) {
        self.watch();
        let answer = self.answer(question.asked);
        if self.is_new {
            self.publish();
        }
        // The one who asked may be gone.
        let _ = question.answer.send(answer);
    }

    /// Remembers what happens while there are watchers or a condition.
    fn watch(&mut self) {
        let wants = self.watchers.load(Ordering::Relaxed) > 0 || self.goal.is_some();
        if wants != self.is_watched {
            self.is_watched = wants;
            self.world.watch(wants);
            self.sampled_at = self.world.now();
            self.is_new = true;
        }
    }

    /// Takes a sample, adds it to the series, and returns what it has by group.
    fn sample(&mut self) -> Vec<GroupSample> {
        let now = self.world.now();
        let sampled = self.world.sample();
        let groups = sampled.groups.clone();
        let seconds = |time: Time| time.elapsed().as_secs_f64();
        let (from, to) = (seconds(self.sampled_at), seconds(now));
        self.series.add(from, to, groups.clone());
        self.sampled_at = now;
        self.frame.next(sampled);
        groups
    }

    fn publish(&mut self) {
        self.is_new = false;
        if self.is_watched {
            self.sample();
        }
        let now = self.world.now();
        let (at, before) = self.published;
        let wall = at.elapsed().as_secs_f64();
        let speed = now.since(before).as_secs_f64() / wall.max(1e-3);
        self.published = (Instant::now(), now);
        let part = if self.is_playing { 0.2 } else { 1.0 };
        self.frame.speed += part * (speed - self.frame.speed);
        if !self.is_playing {
            self.frame.speed = 0.0;
        }
        self.frame.now = now.elapsed().as_secs_f64();
        self.frame.is_playing = self.is_playing;
        self.frame.is_over = self.world.is_over();
        if !self.is_watched {
            self.frame.version += 1;
        }
        self.frames.send_replace(self.frame.clone());
        let status = self.status();
        self.statuses.send_if_modified(|old| {
            // The time alone comes with frames.
            let is_new = Status {
                now: old.now,
                ..status.clone()
            } != *old;
            *old = status;
            is_new
        });
    }

    fn status(&mut self) -> Status {
        let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
        let digest = (!self.is_playing).then(|| format!("{:016x}", self.world.digest()));
        let commands = self.commands.iter();
        Status {
            now: self.world.now().elapsed().as_secs_f64(),
            is_playing: self.is_playing,
            is_over: self.world.is_over(),
            speed: self.pace.factor(),
            until: self.goal.as_ref().map(|goal| goal.until.to_string()),
            stopped: if self.is_playing {
                String::new()
            } else {
                self.stopped.clone()
            },
            commands: commands
                .map(|c| (seconds(c.at), c.what.to_string()))
                .collect(),
            digest,
            epoch: self.frame.epoch,
            can_go_back: self.make.is_some(),
            checkpoints: self.checkpoints.shown(),
        }
    }

    fn stop(&mut self, why: impl Into<String>) {
        self.is_playing = false;
        self.goal = None;
        self.stopped = why.into();
        self.is_new = true;
    }

    /// Begins to run until something.
    fn begin(&mut self, until: Until) -> Result<(), String> {
        let group = match &until {
            Until::Condition(condition) => self.group_of(condition)?,
            Until::Time(_) => None,
        };
        self.goal = Some(Goal {
            until,
            errors: 0,
            dead: self.world.dead_letters(),
            second: VecDeque::new(),
            group,
        });
        Ok(())
    }

    /// The group that a condition is about.
    fn group_of(&mut self, condition: &Condition) -> Result<Option<usize>, String> {
        use crate::Measure::{Dead, Errors, P99, Queue, State};
        match &condition.measure {
            P99 { of } | Queue { of } | Errors { of } => self.group(of).map(Some),
            Dead => Ok(None),
            State { who, pointer } => self.number_of(who, pointer).map(|_| None),
        }
    }

    /// A number in the state of an actor.
    fn number_of(&mut self, who: &str, pointer: &str) -> Result<f64, String> {
        let state = self.world.look(&serde_json::json!({ "actor": who }))?;
        let found = state.pointer(pointer);
        found
            .and_then(|value| {
                value
                    .as_f64()
                    .or(value.as_bool().map(u8::from).map(f64::from))
            })
            .ok_or_else(|| format!("{who} has no number at '{pointer}'; write it as /state/queue"))
    }

    /// The number of a group.
    fn group(&self, name: &str) -> Result<usize, String> {
        let scene = self.scenes.borrow();
        let groups = &scene.groups;
        groups
            .iter()
            .position(|group| group == name)
            .ok_or_else(|| {
                let near = corsair_arch::nearest(name, groups.iter().map(String::as_str));
                let near = near.map(|near| format!("; did you mean {near}?"));
                format!("there is no group '{name}'{}", near.unwrap_or_default())
            })
    }
}

impl<W: World> std::fmt::Debug for Session<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("now", &self.world.now())
            .field("is_playing", &self.is_playing)
            .field("commands", &self.commands.len())
            .finish_non_exhaustive()
    }
}
