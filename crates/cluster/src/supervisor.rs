//! Who is still there: signs of life, progress, and the end of all if one ends.
//!
//! The first process and each other one tell each other every second in which window they are. A process
//! that has ended is noticed by its connection; one that is stopped, or behind a broken network, by its silence;
//! one whose actors do not come to an end, by its window. Whatever is noticed first becomes the one sentence
//! with which all processes end.

use crate::link::{Answer, Event, Frame, Link, OnHang, OnTold, Order, PART};
use crate::listening::Listening;
use crate::local;
use crate::{ClusterError, Limits};
use std::fmt;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// How long a run that is over by another process may take to notice it.
const LEAVING: Duration = Duration::from_secs(5);
/// The most bytes of what a process has to tell at the end.
const MOST_RESULT: usize = 1 << 30;

/// How much is kept that was told before anybody listened.
const MOST_UNHEARD: usize = 4096;

/// What the threads of a run know of its processes.
#[derive(Clone)]
pub struct Health(Arc<Shared>);

struct Shared {
    lost: OnceLock<String>,
    /// Meetings that have begun, and how many workers are in one.
    windows: AtomicU64,
    meeting: AtomicUsize,
    workers: usize,
    left: AtomicBool,
    wake: Sender<Event>,
}

impl Health {
    /// Of a process that nobody supervises.
    #[cfg(test)]
    pub(crate) fn alone() -> Health {
        Health::new(1, channel().0)
    }

    fn new(workers: usize, wake: Sender<Event>) -> Health {
        Health(Arc::new(Shared {
            lost: OnceLock::new(),
            windows: AtomicU64::new(0),
            meeting: AtomicUsize::new(0),
            workers,
            left: AtomicBool::new(false),
            wake,
        }))
    }

    /// Why the run is over, if it is because of a process or a connection.
    pub fn lost(&self) -> Option<&str> {
        self.0.lost.get().map(String::as_str)
    }

    /// The run is over for all, for this reason, unless there was one before.
    pub fn fail(&self, why: String) {
        if self.0.lost.set(why).is_ok() {
            // Whoever supervises no longer has told the others already.
            let _ = self.0.wake.send(Event::Woken);
        }
    }

    /// A worker has come to the end of a window, and meets the others.
    #[inline]
    pub fn meets(&self) {
        self.0.windows.fetch_add(1, Ordering::Relaxed);
        self.0.meeting.fetch_add(1, Ordering::Relaxed);
    }

    /// It has met them.
    #[inline]
    pub fn met(&self) {
        self.0.meeting.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many meetings have begun, and whether all workers wait in one.
    fn progress(&self) -> (u64, bool) {
        let waits = self.0.meeting.load(Ordering::Relaxed) >= self.0.workers;
        (self.0.windows.load(Ordering::Relaxed), waits)
    }
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Health")
            .field("lost", &self.lost())
            .finish()
    }
}

/// Watches over the processes of a run.
pub struct Supervisor {
    /// What this process is called in sentences.
    name: String,
    health: Health,
    orders: Sender<Event>,
    thread: Option<JoinHandle<()>>,
    is_finished: bool,
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor")
            .field("health", &self.health)
            .finish()
    }
}

/// What is watched over.
pub(crate) struct Watched {
    pub(crate) process: usize,
    /// Of this process.
    pub(crate) workers: usize,
    /// What each process is called in sentences.
    pub(crate) names: Vec<String>,
    pub(crate) limits: Limits,
    /// The first process has one to each other; each other has one to the first.
    pub(crate) links: Vec<Option<Link>>,
    /// Closed if the run is lost, so that nothing waits for what they carry.
    pub(crate) streams: Vec<Option<TcpStream>>,
    pub(crate) listening: Listening,
    /// The process that has started this one, without which it does not go on.
    pub(crate) parent: Option<u32>,
}

impl Supervisor {
    pub(crate) fn start(
        watched: Watched,
        tell: Sender<Event>,
        events: Receiver<Event>,
    ) -> Result<Supervisor, ClusterError> {
        let name = watched.names[watched.process].clone();
        let health = Health::new(watched.workers, tell.clone());
        let now = Instant::now();
        let other = |link| Other {
            link,
            heard: now,
            windows: 0,
            waits: false,
            part: Vec::new(),
            has_told: false,
            is_done: false,
        };
        let watch = Watch {
            process: watched.process,
            names: watched.names,
            limits: watched.limits,
            others: watched
                .links
                .into_iter()
                .map(|link| link.map(other))
                .collect(),
            streams: watched.streams,
            _listening: watched.listening,
            parent: watched.parent,
            health: health.clone(),
            finish: None,
            on_hang: None,
            on_told: None,
            unheard: Vec::new(),
            least: 0,
            moved: now,
        };
        let thread = thread::Builder::new().name("supervisor".to_owned());
        let thread = thread.spawn(move || watch.run(&events));
        Ok(Supervisor {
            name,
            health,
            orders: tell,
            thread: Some(
                thread.map_err(ClusterError::system("no thread to watch over the others"))?,
            ),
            is_finished: false,
        })
    }

    /// What the threads of the run need of it.
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Says what is done with this process if the run is over because of another one and does not
    /// notice it within five seconds, because an actor does not return.
    pub fn on_hang(&self, act: impl FnOnce(&str) + Send + 'static) {
        // Without a supervisor the run is over, and noticed it.
        let _ = self
            .orders
            .send(Event::Ordered(Order::OnHang(Box::new(act))));
    }

    /// What tells something, at most a mebibyte each time, to who [listens](Supervisor::on_told) in the first process.
    pub fn teller(&self) -> impl Fn(Vec<u8>) + Send + use<> {
        let orders = self.orders.clone();
        move |what| {
            // Without a supervisor the run is over, and nothing matters any more.
            let _ = orders.send(Event::Ordered(Order::Tell(what)));
        }
    }

    /// Says who listens in the first process to what processes tell during the run. It is called by the thread of the
    /// supervisor, and must return at once.
    pub fn on_told(&self, listen: impl Fn(usize, Vec<u8>) + Send + 'static) {
        let order = Order::OnTold(Box::new(listen));
        // As above.
        let _ = self.orders.send(Event::Ordered(order));
    }

    /// The run is over here, with something to be told to the first process. Waits until it is over
    /// everywhere. The first process gets what all have told, in the order of their numbers; others nothing.
    ///
    /// # Errors
    /// [`ClusterError::Lost`] if a process did not come so far.
    pub fn finish(mut self, part: Vec<u8>) -> Result<Vec<Vec<u8>>, ClusterError> {
        self.health.0.left.store(true, Ordering::Relaxed);
        let (answer, answered) = channel();
        let order = Event::Ordered(Order::Finish { part, answer });
        let told = self
            .orders
            .send(order)
            .ok()
            .and_then(|()| answered.recv().ok());
        self.is_finished = told.is_some();
        told.ok_or_else(|| {
            let why = self
                .health
                .lost()
                .unwrap_or("the supervisor of the run has failed");
            ClusterError::Lost(why.to_owned())
        })
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if !self.is_finished {
            self.health.fail(format!("{} has given up", self.name));
        }
        self.health.0.left.store(true, Ordering::Relaxed);
        // It ends within a beat; meanwhile the others are told.
        if let Some(thread) = self.thread.take() {
            // A panic of it was told where it was noticed.
            let _ = thread.join();
        }
    }
}

/// Another process, as far as this one hears of it.
struct Other {
    link: Link,
    heard: Instant,
    windows: u64,
    waits: bool,
    part: Vec<u8>,
    /// All that it has to tell has come.
    has_told: bool,
    is_done: bool,
}

/// The supervisor's thread.
struct Watch {
    process: usize,
    names: Vec<String>,
    limits: Limits,
    others: Vec<Option<Other>>,
    streams: Vec<Option<TcpStream>>,
    /// Who comes too late is told so.
    _listening: Listening,
    parent: Option<u32>,
    health: Health,
    finish: Option<(Vec<u8>, Answer)>,
    on_hang: Option<OnHang>,
    on_told: Option<OnTold>,
    /// What was told before there was anybody who listens.
    unheard: Vec<(usize, Vec<u8>)>,
    /// The window of who is last, and since when.
    least: u64,
    moved: Instant,
}

impl Watch {
    fn run(mut self, events: &Receiver<Event>) {
        let beat = BEAT.min(self.limits.silence / 4);
        let mut next = Instant::now() + beat;
        loop {
            let left = next.saturating_duration_since(Instant::now());
            match events.recv_timeout(left) {
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if now >= next {
                if now > next + self.limits.silence / 2 {
                    // This process was stopped itself: what the others said meanwhile is still to be read.
                    self.others
                        .iter_mut()
                        .flatten()
                        .for_each(|other| other.heard = now);
                    self.moved = now;
                }
                next = now + beat;
                self.beat(now);
            }
            if let Some(why) = self.health.lost() {
                let why = why.to_owned();
                return self.end(&why, events);
            }
            if self.is_over() {
                return;
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Said { link, from, frame } => {
                let other = self.others[from]
                    .as_mut()
                    .filter(|other| other.link.number == link);
                let Some(other) = other else { return };
                other.heard = Instant::now();
                match frame {
                    Frame::Beat { windows, waits } => {
                        (other.windows, other.waits) = (windows, waits)
                    }
                    Frame::Failed(why) => self.health.fail(why),
                    Frame::Part { last, bytes } => {
                        other.part.extend_from_slice(&bytes);
                        other.has_told |= last;
                        if other.part.len() > MOST_RESULT {
                            let what = "has more to tell than this one can hold";
                            self.health.fail(format!("{} {what}", self.names[from]));
                        }
                    }
                    Frame::Told(what) => self.told(from, what),
                    Frame::Done => other.is_done = true,
                    Frame::Start { .. } | Frame::Ready | Frame::Go => {
                        self.health
                            .fail(format!("{} said something out of turn", self.names[from]));
                    }
                }
            }
            Event::Closed { link, from, why } => {
                let other = self.others[from].as_ref();
                let other = other.filter(|other| other.link.number == link && !other.is_done);
                if other.is_some() {
                    let name = &self.names[from];
                    self.health
                        .fail(format!("{name} has ended before the run did ({why})"));
                }
            }
            Event::Arrived(mut introduced) => {
                // Whether it listens is its own affair.
                let _ = introduced.answer(Some(
                    "the run has begun without it; start all processes again",
                ));
            }
            Event::Ordered(Order::OnHang(act)) => self.on_hang = Some(act),
            Event::Ordered(Order::Tell(what)) => match self.process {
                0 => self.told(0, what),
                _ => self.tell_first(&Frame::Told(what)),
            },
            Event::Ordered(Order::OnTold(listen)) => {
                let unheard = std::mem::take(&mut self.unheard);
                unheard
                    .into_iter()
                    .for_each(|(from, what)| listen(from, what));
                self.on_told = Some(listen);
            }
            Event::Ordered(Order::Finish { part, answer }) => {
                for (number, bytes) in part.chunks(PART).enumerate() {
                    let last = (number + 1) * PART >= part.len();
                    let bytes = bytes.to_vec();
                    self.tell_first(&Frame::Part { last, bytes });
                }
                if part.is_empty() {
                    let (last, bytes) = (true, part.clone());
                    self.tell_first(&Frame::Part { last, bytes });
                }
                self.tell_first(&Frame::Done);
                self.finish = Some((part, answer));
            }
            Event::TurnedAway { .. }
            | Event::Connected(..)
            | Event::NotConnected(_)
            | Event::Woken => {}
        }
    }

    fn told(&mut self, from: usize, what: Vec<u8>) {
        match &self.on_told {
            Some(listen) => listen(from, what),
            None if self.unheard.len() < MOST_UNHEARD => self.unheard.push((from, what)),
            None => {
                let what = "says more than this one hears";
                self.health.fail(format!("{} {what}", self.names[from]));
            }
        }
    }

    /// Tells the first process, unless this is it.
    fn tell_first(&mut self, frame: &Frame) {
        if self.process != 0
            && let Some(first) = self.others[0].as_mut()
        {
            first.link.send(frame);
        }
    }

    /// Tells that this process is there, and looks who else is.
    fn beat(&mut self, now: Instant) {
        let (windows, waits) = match self.finish {
            Some(_) => (u64::MAX, true),
            None => self.health.progress(),
        };
        let silence = self.limits.silence;
        for (number, other) in self.others.iter_mut().enumerate() {
            let Some(other) = other else { continue };
            other.link.send(&Frame::Beat { windows, waits });
            if now.saturating_duration_since(other.heard) > silence {
                let name = &self.names[number];
                self.health.fail(format!(
                    "{name} has not been heard of for {silence:?}: it is stopped, or the network is"
                ));
            }
        }
        if self.parent.is_some_and(|parent| parent != local::parent()) {
            self.health.fail(format!(
                "{} has ended: what had started it is gone",
                self.names[self.process]
            ));
        }
        if self.process == 0 {
            self.check_progress(now, windows, waits);
        }
    }

    /// Looks whether windows still end. All wait for the one that is last.
    fn check_progress(&mut self, now: Instant, windows: u64, waits: bool) {
        let others = self.others.iter().enumerate();
        let others = others.filter_map(|(number, other)| {
            let other = other.as_ref()?;
            let windows = if other.has_told {
                u64::MAX
            } else {
                other.windows
            };
            Some((windows, other.waits, number))
        });
        let last = others.chain([(windows, waits, 0)]).min();
        let Some((least, waits, number)) = last else {
            return;
        };
        if least != self.least || least == u64::MAX {
            (self.least, self.moved) = (least, now);
        }
        let stall = self.limits.stall;
        if now.saturating_duration_since(self.moved) > stall {
            let name = &self.names[number];
            self.health.fail(if waits {
                format!("no window has ended for {stall:?}, for which {name} waits: the network between two processes carries nothing")
            } else {
                format!("{name} has been in one window for {stall:?}: an actor does not return, or the window needs longer")
            });
        }
    }

    /// Whether the run is over everywhere. Gives what was told to who waits for it.
    fn is_over(&mut self) -> bool {
        let is_first = self.process == 0;
        let heard = |other: &Other| {
            if is_first {
                other.has_told
            } else {
                other.is_done
            }
        };
        if self.finish.is_none() || !self.others.iter().flatten().all(heard) {
            return false;
        }
        let Some((own, answer)) = self.finish.take() else {
            return false;
        };
        let mut parts = Vec::new();
        if is_first {
            parts.push(own);
            for other in self.others.iter_mut().flatten() {
                other.link.send(&Frame::Done);
                parts.push(std::mem::take(&mut other.part));
            }
        }
        // Who gave the order waits for this.
        let _ = answer.send(parts);
        true
    }

    /// The run is lost.
    fn end(mut self, why: &str, events: &Receiver<Event>) {
        let failed = Frame::Failed(why.to_owned());
        for other in self.others.iter_mut().flatten() {
            other.link.send(&failed);
        }
        for stream in self.streams.iter().flatten() {
            // What is closed already is closed.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Who waits for the end of the run learns that it is lost.
        self.finish = None;
        let left = &self.health.0.left;
        let until = Instant::now() + LEAVING;
        while !left.load(Ordering::Relaxed) && Instant::now() < until {
            // What else is said does not matter any more; an order to finish is dropped, which is an answer.
            let event = events.recv_timeout(Duration::from_millis(10));
            if let Ok(Event::Ordered(Order::OnHang(act))) = event {
                self.on_hang = Some(act);
            }
        }
        if !left.load(Ordering::Relaxed)
            && let Some(act) = self.on_hang.take()
        {
            act(why);
        }
    }
}
