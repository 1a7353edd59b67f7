//! Nodes that crash, pause and start again.

use crate::step::{Cause, Step};
use crate::{BUGGIFY, Disk, Fault, FaultPlan};
use corsair::{Actor, Addr, AddrRange, Context, Event, Flow, Message, Random, Time, Token};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The address of the first node: the second spawn of a run begins the second page.
pub(crate) const FIRST: u32 = 256;
/// The first of the timers that the plan sets; a node's own timers are below. The low 16 bits are the index of a fault
/// or of an absence.
const PLANNED: u32 = 1 << 30;
const CRASH: u32 = PLANNED;
const LEAVE: u32 = PLANNED | 1 << 16;
const START: u32 = PLANNED | 2 << 16;
const WORK: u32 = PLANNED | 3 << 16;

/// An event for a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<M> {
    /// A message arrives.
    Message {
        /// The address of the sender.
        from: Addr,
        /// The contents of the message.
        body: M,
    },
    /// A timer that was set by [`Machine::timer`], with its name.
    Timer(u16),
}

/// A node of a [`Program`](crate::Program). A crash drops it; the restarted node is a new value
/// with the same [`Machine`].
pub trait Node<M: Message>: Send + 'static {
    /// Starts the node, at the beginning and after each crash. The durable state is on the machine's disk.
    fn boot<C: Context<M>>(&mut self, cx: &mut C, machine: &mut Machine);

    /// Handles a message or a timer.
    fn on<C: Context<M>>(&mut self, input: Input<M>, cx: &mut C, machine: &mut Machine);

    /// Returns a number for the state. A search computes its coverage (the states of nodes and of pairs of nodes) from
    /// these numbers. There should be few values, for example one for each role. The number must not contain a counter that
    /// only increases.
    fn state(&self) -> u64 {
        0
    }

    /// Describes the state in words, for explanations.
    fn describe(&self) -> String {
        self.state().to_string()
    }
}

/// The part of a node that survives crashes.
#[derive(Debug)]
pub struct Machine {
    /// The index of the node, from 0.
    pub index: u32,
    /// All nodes of the program.
    pub nodes: AddrRange,
    /// The node's disk.
    pub disk: Disk,
    life: u16,
    calm: Time,
    /// The node's skews: from, until, and the speed of the clock.
    skews: Vec<(u64, u64, u32)>,
    is_buggy: bool,
}

impl Machine {
    /// True in the liveness phase, in which no more faults happen.
    pub fn is_calm<M: Message, C: Context<M>>(&self, cx: &C) -> bool {
        cx.now() >= self.calm
    }

    /// Sets a timer that fires after `after` milliseconds of the node's clock, unless the node crashes before.
    pub fn timer<M: Message, C: Context<M>>(&self, cx: &mut C, after: u32, name: u16) {
        let token = u32::from(self.life) << 16 | u32::from(name);
        let now = milliseconds(cx.now());
        let rate = (self.skews.iter())
            .find(|(from, until, _)| (*from..*until).contains(&now))
            .map_or(1_000, |(.., rate)| u64::from(*rate).max(1));
        let after = u64::from(after) * 1_000_000_000 / rate;
        cx.timer(Duration::from_nanos(after), Token::new(token));
    }

    /// Returns the time of the node's clock since the start of the run. It differs from the virtual time if the plan
    /// makes the clock run too fast or too slowly.
    pub fn clock<M: Message, C: Context<M>>(&self, cx: &C) -> Duration {
        let now = cx.now().elapsed();
        let (mut ahead, mut behind) = (Duration::ZERO, Duration::ZERO);
        for (from, until, rate) in &self.skews {
            let [from, until] = [from, until].map(|at| Duration::from_millis(*at));
            let lasted = now.min(until).saturating_sub(from);
            ahead += lasted * rate.saturating_sub(1_000) / 1_000;
            behind += lasted * 1_000u32.saturating_sub(*rate) / 1_000;
        }
        (now + ahead).saturating_sub(behind)
    }

    /// True in a fraction of the calls, given in thousandths, if the plan has [`Fault::Buggify`]. Like
    /// [`buggify!`](crate::buggify), but switched by the plan, so that a shrunk plan says whether the rare paths are
    /// necessary. Without the feature `buggify` it is always false.
    pub fn buggify<M: Message, C: Context<M>>(&self, cx: &mut C, thousandths: u32) -> bool {
        BUGGIFY && self.is_buggy && !self.is_calm(cx) && cx.below(1_000) < thousandths
    }

    /// Sends a message to each other node.
    pub fn send_others<M: Message + Clone, C: Context<M>>(&self, cx: &mut C, message: &M) {
        for node in self.nodes.iter() {
            if node != cx.me() {
                cx.send(node, message.clone());
            }
        }
    }
}

/// The states that the nodes of a run have reached: those of single nodes, and those of pairs of nodes.
///
/// Some bugs need two nodes in certain states at the same time, for example two leaders with different members. Joint
/// states of all nodes would be too many: almost every run reaches new ones.
#[derive(Debug)]
pub(crate) struct Coverage {
    /// The state of each node.
    states: Vec<AtomicU64>,
    /// The kinds of changes that have happened to pairs of nodes.
    pairs: Vec<AtomicU64>,
    events: AtomicU64,
    changes: Mutex<Vec<Change>>,
}

/// A change of a node's state, or of the states of a pair of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The time in milliseconds.
    pub at: u32,
    /// A hash of the states before and after the change, or of the states of the pair.
    pub kind: u16,
}

/// The number of kinds of changes.
pub(crate) const KINDS: usize = 1 << u16::BITS;

// Relaxed accesses suffice: only the search reads the changes, and its runs have one worker.
impl Coverage {
    pub(crate) fn new(nodes: u32) -> Coverage {
        Coverage {
            states: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            pairs: (0..KINDS / 64).map(|_| AtomicU64::new(0)).collect(),
            events: AtomicU64::new(0),
            changes: Mutex::default(),
        }
    }

    /// Returns the number of messages and timers that the nodes have handled.
    pub(crate) fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    fn set(&self, node: u32, state: u64, now: Time) {
        let before = self.states[node as usize].swap(state, Ordering::Relaxed);
        if before == state {
            return;
        }
        let at = milliseconds(now) as u32;
        let change = |states: [u64; 2]| {
            let mut hasher = DefaultHasher::new();
            states.hash(&mut hasher);
            let kind = hasher.finish() as u16;
            Change { at, kind }
        };
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.push(change([before, state]));
        for (other, their) in (0..).zip(&self.states) {
            let their = their.load(Ordering::Relaxed);
            // Pairs are far more frequent than changes, so only the first of a kind is kept.
            let pair = change([state.min(their).wrapping_add(PAIR), state.max(their)]);
            let bit = 1 << (pair.kind % 64);
            let word = &self.pairs[usize::from(pair.kind / 64)];
            if other != node && word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                changes.push(pair);
            }
        }
    }

    /// Returns the changes in order.
    pub(crate) fn changes(&self) -> Vec<Change> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changes = changes.clone();
        changes.sort_unstable();
        changes
    }
}

/// Distinguishes the states of a pair from those before and after a change.
const PAIR: u64 = 1 << 63;

/// Creates nodes by their index.
pub(crate) type Make<N> = Arc<dyn Fn(u32) -> N + Send + Sync>;

/// The actor of a node: crashes it and starts it again as the plan says.
pub(crate) struct Host<M, N> {
    pub(crate) make: Make<N>,
    pub(crate) node: Option<N>,
    pub(crate) machine: Machine,
    pub(crate) plan: Arc<FaultPlan>,
    pub(crate) coverage: Arc<Coverage>,
    pub(crate) log: Option<Arc<Mutex<Vec<Step>>>>,
    /// Events that arrived while the node was paused or busy.
    waiting: VecDeque<(Input<M>, Option<Cause>)>,
    /// True if a timer is set for the first event that waits.
    is_working: bool,
}

fn milliseconds(time: Time) -> u64 {
    time.as_nanos() / 1_000_000
}

impl<M: Message, N: Node<M>> Host<M, N> {
    pub(crate) fn new(
        index: u32,
        count: u32,
        make: Make<N>,
        plan: Arc<FaultPlan>,
        coverage: Arc<Coverage>,
        log: Option<Arc<Mutex<Vec<Step>>>>,
    ) -> Host<M, N> {
        let nodes = AddrRange::new(Addr::from_u32(FIRST), count);
        let skew = |fault: &Fault| match *fault {
            Fault::Skew {
                nodes,
                from,
                until,
                rate,
            } if nodes.contains(index) => Some((from.into(), until.into(), rate)),
            _ => None,
        };
        let machine = Machine {
            index,
            nodes,
            disk: Disk::default(),
            life: 0,
            calm: Time::from_nanos(u64::from(plan.faults_until()) * 1_000_000),
            skews: plan.faults.iter().filter_map(skew).collect(),
            is_buggy: plan.faults.contains(&Fault::Buggify),
        };
        Host {
            make,
            node: None,
            machine,
            plan,
            coverage,
            log,
            waiting: VecDeque::new(),
            is_working: false,
        }
    }

    fn describe(&self) -> String {
        match (&self.log, &self.node) {
            (Some(_), Some(node)) => node.describe(),
            (Some(_), None) => "down".to_owned(),
            (None, _) => String::new(),
        }
    }

    fn note<C: Context<M>>(&self, cause: Option<Cause>, before: String, cx: &C) {
        if let (Some(log), Some(cause)) = (&self.log, cause) {
            let step = Step {
                at: cx.now().as_nanos(),
                node: self.machine.index,
                cause,
                states: [before, self.describe()],
            };
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(step);
        }
    }

    fn cause<C: Context<M>>(&self, input: &Input<M>, cx: &C) -> Option<Cause> {
        self.log.as_ref()?;
        Some(match input {
            Input::Timer(name) => Cause::Timer(*name),
            Input::Message { from, body } => Cause::Message {
                from: self.machine.nodes.index_of(*from),
                sent: cx.envelope().sent.as_nanos(),
                kind: M::KINDS[body.kind()],
            },
        })
    }

    fn boot<C: Context<M>>(&mut self, cx: &mut C) {
        let mut node = (self.make)(self.machine.index);
        node.boot(cx, &mut self.machine);
        self.node = Some(node);
    }

    /// True if the plan says that the node is down at this time, or does not take part.
    fn is_down(&self, at: u64) -> bool {
        let index = self.machine.index;
        let crashes = |fault: &&Fault| matches!(fault, Fault::Crash { .. });
        let mut crashes = self.plan.faults.iter().filter(crashes);
        crashes.any(|fault| fault.affects(index, at)) || self.plan.is_absent(index, at)
    }

    /// Ends the node's life. Its timers and waiting events are lost.
    fn stop(&mut self, now: Time) {
        self.node = None;
        self.waiting.clear();
        self.machine.life = (self.machine.life + 1) & 0x3fff;
        self.coverage.set(self.machine.index, u64::MAX, now);
    }

    /// Handles a timer of the plan.
    fn on_plan<C: Context<M>>(&mut self, token: u32, cx: &mut C) {
        let before = self.describe();
        match token & !0xffff {
            CRASH if self.node.is_some() => {
                self.stop(cx.now());
                let mut random = Random::new(cx.random());
                self.machine.disk.crash(&mut random);
                if let Some(Fault::Crash {
                    loses_disk: true, ..
                }) = self.plan.faults.get(token as usize & 0xffff)
                {
                    self.machine.disk = Disk::default();
                }
                self.note(Some(Cause::Crash), before, cx);
            }
            LEAVE if self.node.is_some() => self.stop(cx.now()),
            START if self.node.is_none() && !self.is_down(milliseconds(cx.now())) => {
                self.boot(cx);
                self.note(Some(Cause::Restart), before, cx);
            }
            WORK => {
                self.is_working = false;
                if let Some(pause) = self.pause(cx) {
                    self.work_after(pause, cx);
                } else if let Some((input, cause)) = self.waiting.pop_front() {
                    self.handle(input, cause, cx);
                    if !self.waiting.is_empty() {
                        let delay = self.delay(cx).unwrap_or_default();
                        self.work_after(delay, cx);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the time until the end of the pause, if the node is paused.
    fn pause<C: Context<M>>(&self, cx: &C) -> Option<Duration> {
        let (now, index) = (milliseconds(cx.now()), self.machine.index);
        let pauses = |fault: &&Fault| matches!(fault, Fault::Pause { .. });
        let pauses = (self.plan.faults.iter().filter(pauses))
            .filter(|fault| fault.affects(index, now))
            .filter_map(|fault| fault.span());
        let end = pauses.map(|span| span.end).max()?;
        Some(Time::from_nanos(end * 1_000_000).since(cx.now()))
    }

    /// Returns the time for which the next event has to wait, if the node is paused or slow.
    fn delay<C: Context<M>>(&self, cx: &C) -> Option<Duration> {
        let (now, index) = (milliseconds(cx.now()), self.machine.index);
        let slow = |fault: &Fault| match fault {
            Fault::Slow { by, .. } if fault.affects(index, now) => {
                Some(Duration::from_millis((*by).into()))
            }
            _ => None,
        };
        let slow = || self.plan.faults.iter().filter_map(slow).max();
        self.pause(cx).or_else(slow)
    }

    fn work_after<C: Context<M>>(&mut self, delay: Duration, cx: &mut C) {
        if !self.is_working {
            self.is_working = true;
            cx.timer(delay, Token::new(WORK));
        }
    }

    /// Handles an event now, or after those that already wait.
    fn arrive<C: Context<M>>(&mut self, input: Input<M>, cx: &mut C) {
        if self.node.is_none() {
            return;
        }
        let cause = self.cause(&input, cx);
        match self.delay(cx) {
            None if self.waiting.is_empty() => self.handle(input, cause, cx),
            delay => {
                self.waiting.push_back((input, cause));
                self.work_after(delay.unwrap_or_default(), cx);
            }
        }
    }

    fn handle<C: Context<M>>(&mut self, input: Input<M>, cause: Option<Cause>, cx: &mut C) {
        let before = self.describe();
        if let Some(node) = &mut self.node {
            node.on(input, cx, &mut self.machine);
            let state = node.state().wrapping_add(1);
            self.coverage.events.fetch_add(1, Ordering::Relaxed);
            self.coverage.set(self.machine.index, state, cx.now());
            self.note(cause, before, cx);
        }
    }
}

impl<M: Message, N: Node<M>> Actor<M> for Host<M, N> {
    fn start<C: Context<M>>(&mut self, cx: &mut C) {
        let (plan, index, now) = (Arc::clone(&self.plan), self.machine.index, cx.now());
        // An actor starts some time after the run; a timer at the end of the run would come too late.
        let mut timer = |at: u64, token: u32| {
            if at < plan.end().into() {
                let after = Duration::from_millis(at).saturating_sub(now.elapsed());
                cx.timer(after, Token::new(token));
            }
        };
        for (number, fault) in (0..).zip(&plan.faults) {
            let nodes = fault.nodes().unwrap_or_default();
            if let (Fault::Crash { .. }, Some(span)) = (fault, fault.span())
                && nodes.contains(index)
            {
                timer(span.start, CRASH | number);
                timer(span.end, START);
            }
        }
        let absent = || plan.absent.iter().filter(|absence| absence.node == index);
        for absence in absent() {
            timer(absence.from.into(), LEAVE);
            timer(absence.until.into(), START);
        }
        if !plan.is_absent(index, milliseconds(now)) {
            self.boot(cx);
        }
    }

    fn on<C: Context<M>>(&mut self, event: Event<M>, cx: &mut C) -> Flow {
        match event {
            Event::Timer(token) if token.number() >= PLANNED => self.on_plan(token.number(), cx),
            Event::Timer(token) if token.number() >> 16 == u32::from(self.machine.life) => {
                self.arrive(Input::Timer(token.number() as u16), cx);
            }
            Event::Message { from, body } => self.arrive(Input::Message { from, body }, cx),
            _ => {}
        }
        Flow::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_states_are_noted_once_whichever_node_changes_last() {
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let kinds = |sets: [(u32, u64); 2]| {
            let coverage = Coverage::new(2);
            for (ms, (node, state)) in (1..).zip(sets) {
                coverage.set(node, state, at(ms));
            }
            let changes = coverage.changes();
            let last: Vec<u16> = (changes.iter().filter(|change| change.at == 2))
                .map(|change| change.kind)
                .collect();
            // One change of a node and one of a pair.
            assert_eq!(last.len(), 2, "{changes:?}");
            last
        };
        let (one, other) = (kinds([(0, 7), (1, 9)]), kinds([(0, 9), (1, 7)]));
        let same = one.iter().filter(|kind| other.contains(kind));
        assert_eq!(same.count(), 1, "{one:?} {other:?}");

        let coverage = Coverage::new(2);
        for ms in 1..100 {
            coverage.set(0, ms % 2, at(ms));
        }
        // The pairs (0, 0) and (0, 1) are noted once; the first call and all others change the node's state.
        assert_eq!(coverage.changes().len(), 99 + 2);
    }
}
