//! A session controls a simulation: it advances, pauses and rewinds the simulation, answers queries, and applies
//! commands. The commands form a list that can be saved. A replay of this list gives a bit-identical result.
//!
//! The session runs on the thread that calls [`Session::run`]; a [`Handle`] talks to it through a bounded channel. A
//! frame is published at most every 50 ms, and replaces the previous one even if nobody has read it. So a slow viewer
//! gets fewer frames, and the simulation never waits for a viewer. Without a viewer nothing is recorded or published.

mod advance;
mod checkpoints;
mod control;
mod handle;

use crate::clock::Instant;
use crate::command::Command;
use crate::condition::Condition;
use crate::frame::Frame;
use crate::history::History;
use crate::recording::Recording;
use crate::replay::{ReplayError, prepare};
use crate::series::Series;
use crate::world::{ExtraCapacity, GroupSample, Scene, World, unknown};
use advance::Pace;
pub use checkpoints::CheckpointInfo;
use checkpoints::Checkpoints;
pub use control::{Control, SessionRequest, StepBy, Until};
use corsair::{CancelToken, Time};
use handle::PendingRequest;
pub use handle::{Handle, Watching};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::sync::watch;

/// Capacity of the channel of requests.
const MOST_ASKED: usize = 64;

/// Minimum time between two frames.
const BETWEEN_FRAMES: Duration = Duration::from_millis(50);

/// The longest time that a paused session sleeps before it checks whether it was cancelled.
const NAP: Duration = Duration::from_millis(50);

/// Builds the world in its initial state, with capacity for more instances.
pub type Make<W> = Box<dyn FnMut(&ExtraCapacity) -> Result<W, String> + Send>;

/// A session with a simulation. The [crate documentation](crate) describes its commands.
pub struct Session<W: World> {
    world: W,
    make: Option<Make<W>>,
    flags: Map<String, Value>,
    /// The additional capacity with which the world was built.
    room: ExtraCapacity,
    commands: Vec<Command>,
    checkpoints: Checkpoints,
    asked: Receiver<PendingRequest>,
    frames: watch::Sender<Frame>,
    statuses: watch::Sender<Status>,
    scenes: watch::Sender<Arc<Scene>>,
    watchers: Arc<AtomicU32>,
    frame: Frame,
    series: Series,
    history: History,
    pace: Pace,
    goal: Option<Goal>,
    is_playing: bool,
    is_watched: bool,
    stopped: String,
    /// True if something has changed since the last frame or status.
    is_new: bool,
    sampled_at: Time,
    published: (Instant, Time),
}

/// The condition or time at which the run stops.
#[derive(Debug)]
struct Goal {
    until: Until,
    /// The numbers of errors and dead letters when the run was started.
    errors: u64,
    dead: u64,
    /// The samples of the group during the last second.
    second: VecDeque<(f64, GroupSample)>,
    /// The group to which the condition refers, if any.
    group: Option<usize>,
}

/// The state of a session, as every viewer sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// The virtual time, in seconds.
    pub now: f64,
    /// True while the run is advancing.
    pub is_playing: bool,
    /// True if the run is over.
    pub is_over: bool,
    /// Virtual seconds per second of wall-clock time; `None` is as fast as possible.
    pub speed: Option<f64>,
    /// The condition or time at which the session pauses.
    pub until: Option<String>,
    /// The reason why the session is paused.
    pub stopped: String,
    /// The commands so far in the order of time, each with its time in seconds.
    pub commands: Vec<(f64, String)>,
    /// The digest of the run, which is known while the session is paused.
    pub digest: Option<String>,
    /// The number of restarts and rewinds.
    pub epoch: u32,
    /// True if the session can be rewound.
    pub can_go_back: bool,
    /// The saved checkpoints, oldest first.
    pub checkpoints: Vec<CheckpointInfo>,
}

/// Returns a sentence about the end of a run.
fn ending(world: &impl World) -> String {
    let failure = world.failure();
    failure.unwrap_or_else(|| "the run is over".to_owned())
}

impl<W: World> Session<W> {
    /// Creates a session with a simulation, and a handle to it. `flags` are the flags of the run by their long names.
    /// `make` builds the simulation again; without it the session cannot be rewound.
    ///
    /// ```
    /// use corsair::{CancelToken, Config};
    /// use corsair_arch::{Plan, Scale, Topology, read};
    /// use corsair_view::{Control, Services, Session, SessionRequest};
    /// use std::{path::Path, thread};
    ///
    /// let topology = Topology::new(&read("lamp", Path::new("json_arch"))?, Scale::default())?;
    /// let lamp = Services::new(&Config::default(), topology, &Plan::default())?;
    /// let (session, handle) = Session::new(lamp, Default::default(), None);
    ///
    /// let cancel = CancelToken::default();
    /// let stop = cancel.clone();
    /// let running = thread::spawn(move || session.run(&stop));
    /// handle.ask_blocking(SessionRequest::Control(Control::Goto(1_000_000_000)))?;
    /// cancel.cancel();
    /// running.join().expect("the session does not panic");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
            true => ending(&world),
            false => "not started".to_owned(),
        };
        let mut session = Session {
            world,
            make,
            flags,
            room: ExtraCapacity::new(),
            commands: Vec::new(),
            checkpoints: Checkpoints::default(),
            asked,
            frames,
            statuses,
            scenes,
            watchers,
            frame: Frame::default(),
            series: Series::default(),
            history: History::default(),
            pace: Pace::default(),
            goal: None,
            is_playing: false,
            is_watched: false,
            stopped,
            is_new: true,
            sampled_at: now,
            published: (Instant::now(), now),
        };
        session.publish();
        (session, handle)
    }

    /// Applies all commands of a recorded session to this one.
    ///
    /// # Errors
    /// If a command fails or the digests differ. The error names the first such command.
    pub fn load(&mut self, recording: &Recording) -> Result<(), ReplayError> {
        prepare(&mut self.world, recording)?;
        self.room.clone_from(&recording.room);
        self.commands.extend(recording.commands.iter().cloned());
        self.publish();
        Ok(())
    }

    /// Runs until the session is cancelled or no handle is left. Returns the simulation in its current state.
    pub fn run(mut self, cancel: &CancelToken) -> W {
        while !cancel.is_cancelled() {
            match self.asked.recv_timeout(self.wait()) {
                Ok(request) => self.reply(request),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.turn();
        }
        self.world
    }

    /// Handles the waiting requests. If the run is playing, runs for about ten milliseconds at most. Then publishes the
    /// state. This method is for a caller that has no thread for [`Session::run`]; the result is the time that the
    /// caller may wait before the next turn.
    pub fn turn(&mut self) -> Duration {
        while let Ok(request) = self.asked.try_recv() {
            self.reply(request);
        }
        self.watch();
        if self.is_playing {
            self.advance();
        }
        let (at, _) = self.published;
        if self.is_new || self.is_playing && at.elapsed() >= BETWEEN_FRAMES {
            self.publish();
        }
        self.wait()
    }

    /// Returns the time to wait for a request before the next turn.
    fn wait(&self) -> Duration {
        match self.is_playing {
            true => self.pace.wait(),
            false => NAP,
        }
    }

    /// Handles a request. Publishes its effect before the reply.
    fn reply(&mut self, request: PendingRequest) {
        self.watch();
        let answer = self.answer(request.asked);
        if self.is_new {
            self.publish();
        }
        // The requester may have disconnected.
        let _ = request.answer.send(answer);
    }

    /// Records samples while there are viewers or a condition.
    fn watch(&mut self) {
        let wants = self.watchers.load(Ordering::Relaxed) > 0 || self.goal.is_some();
        if wants != self.is_watched {
            self.is_watched = wants;
            self.world.watch(wants);
            self.sampled_at = self.world.now();
            self.is_new = true;
        }
    }

    /// Takes a sample, and adds it to the time series. Returns the measurements of the group of the condition.
    fn sample(&mut self) -> Option<GroupSample> {
        let now = self.world.now();
        let mut sampled = self.world.sample();
        let groups = std::mem::take(&mut sampled.groups);
        let condition = self.goal.as_ref().and_then(|goal| goal.group);
        let measured = condition.and_then(|group| groups.get(group).cloned());
        let seconds = |time: Time| time.elapsed().as_secs_f64();
        let (from, to) = (seconds(self.sampled_at), seconds(now));
        self.series.add(from, to, groups);
        self.sampled_at = now;
        self.frame.next(sampled);
        self.frame.now = to;
        self.history.add(&self.frame);
        measured
    }

    fn publish(&mut self) {
        // A frame of a fast run shows the last sample, even if the run has advanced a little since then.
        if self.is_watched && (self.is_new || self.sampled_at <= self.published.1) {
            self.sample();
        }
        self.is_new = false;
        let now = self.world.now();
        let (at, before) = self.published;
        let speed = now.since(before).as_secs_f64() / at.elapsed().as_secs_f64().max(1e-3);
        self.published = (Instant::now(), now);
        self.frame.speed = match self.is_playing {
            true => self.frame.speed + 0.2 * (speed - self.frame.speed),
            false => 0.0,
        };
        self.frame.now = now.elapsed().as_secs_f64();
        self.frame.is_playing = self.is_playing;
        self.frame.is_over = self.world.is_over();
        if !self.is_watched {
            self.frame.version += 1;
        }
        self.frames.send_replace(self.frame.clone());
        let status = self.status();
        self.statuses.send_if_modified(|old| {
            // A new time alone does not cause a new status, because frames contain the time.
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
        let digest = (!self.is_playing).then(|| self.world.digest()).flatten();
        // The digest is 0 until something has happened.
        let digest = digest.filter(|&digest| digest != 0);
        let mut commands: Vec<&Command> = self.commands.iter().collect();
        commands.sort_by_key(|command| command.at);
        Status {
            now: self.world.now().elapsed().as_secs_f64(),
            is_playing: self.is_playing,
            is_over: self.world.is_over(),
            speed: self.pace.factor(),
            until: self.goal.as_ref().map(|goal| goal.until.to_string()),
            stopped: match self.is_playing {
                true => String::new(),
                false => self.stopped.clone(),
            },
            commands: (commands.iter())
                .map(|c| (seconds(c.at), c.what.to_string()))
                .collect(),
            digest: digest.map(|digest| format!("{digest:016x}")),
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

    /// Starts to run until a time or condition.
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

    /// Returns the group to which a condition refers.
    fn group_of(&mut self, condition: &Condition) -> Result<Option<usize>, String> {
        use crate::Measure::{Dead, Errors, P99, Queue, State};
        match &condition.measure {
            P99 { of } | Queue { of } | Errors { of } => self.group(of).map(Some),
            Dead => Ok(None),
            State { who, pointer } => self.number_of(who, pointer).map(|_| None),
        }
    }

    /// Returns a number in the state of an actor.
    fn number_of(&mut self, who: &str, pointer: &str) -> Result<f64, String> {
        let state = self.world.look(&serde_json::json!({ "actor": who }))?;
        let found = state.pointer(pointer);
        found
            .and_then(|value| {
                value
                    .as_f64()
                    .or(value.as_bool().map(u8::from).map(f64::from))
            })
            .ok_or_else(|| format!("{who} has no number at '{pointer}'; give a JSON pointer, for example /state/queue"))
    }

    /// Returns the index of the group with this name.
    fn group(&self, name: &str) -> Result<usize, String> {
        let scene = self.scenes.borrow();
        let groups = || scene.groups.iter().map(String::as_str);
        let place = groups().position(|group| group == name);
        place.ok_or_else(|| unknown("group", name, groups()))
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
