//! Nodes that crash and start again.

use crate::explain::{Cause, Step};
use crate::{Disk, FaultPlan};
use corsair::{Actor, Addr, AddrRange, Context, Event, Flow, Message, Random, Time, Token};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The address of the first node: the second spawn of a run begins the second page.
pub(crate) const FIRST: u32 = 256;
const CRASH: u32 = (1 << 31) - 2;
const RESTART: u32 = (1 << 31) - 1;

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

    /// Returns a number for the state. A search computes its coverage (the joint states of the nodes) from these
    /// numbers. There should be few values, for example one for each role. The number must not contain a counter that
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
}

impl Machine {
    /// True in the liveness phase, in which no more faults happen.
    pub fn is_calm<M: Message, C: Context<M>>(&self, cx: &C) -> bool {
        cx.now() >= self.calm
    }

    /// Sets a timer that fires after `after` milliseconds, unless the node crashes before.
    pub fn timer<M: Message, C: Context<M>>(&self, cx: &mut C, after: u32, name: u16) {
        let token = u32::from(self.life) << 16 | u32::from(name);
        cx.timer(Duration::from_millis(after.into()), Token::new(token));
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

/// The joint states that the nodes of a run have reached, as bits of their hashes.
#[derive(Debug)]
pub(crate) struct Coverage {
    /// The state of each node.
    states: Vec<AtomicU64>,
    bits: Vec<AtomicU64>,
}

/// Size of the coverage map, in bits.
pub(crate) const STATES: u64 = 1 << 14;

// Relaxed accesses suffice: only the search reads the map, and its runs have one worker.
impl Coverage {
    pub(crate) fn new(nodes: u32) -> Coverage {
        Coverage {
            states: (0..nodes).map(|_| AtomicU64::new(0)).collect(),
            bits: (0..STATES / 64).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn set(&self, node: u32, state: u64) {
        if self.states[node as usize].swap(state, Ordering::Relaxed) == state {
            return;
        }
        let mut hasher = DefaultHasher::new();
        for state in &self.states {
            state.load(Ordering::Relaxed).hash(&mut hasher);
        }
        let bit = hasher.finish() % STATES;
        self.bits[(bit / 64) as usize].fetch_or(1 << (bit % 64), Ordering::Relaxed);
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        let words = self.bits.iter();
        words.map(|word| word.load(Ordering::Relaxed)).collect()
    }
}

/// Creates nodes by their index.
pub(crate) type Make<N> = Arc<dyn Fn(u32) -> N + Send + Sync>;

/// The actor of a node: crashes it and starts it again as the plan says.
pub(crate) struct Host<N> {
    pub(crate) make: Make<N>,
    pub(crate) node: Option<N>,
    pub(crate) machine: Machine,
    pub(crate) plan: Arc<FaultPlan>,
    pub(crate) coverage: Arc<Coverage>,
    pub(crate) log: Option<Arc<Mutex<Vec<Step>>>>,
}

impl<N> Host<N> {
    pub(crate) fn new(
        index: u32,
        count: u32,
        make: Make<N>,
        plan: Arc<FaultPlan>,
        coverage: Arc<Coverage>,
        log: Option<Arc<Mutex<Vec<Step>>>>,
    ) -> Host<N> {
        let nodes = AddrRange::new(Addr::from_u32(FIRST), count);
        let machine = Machine {
            index,
            nodes,
            disk: Disk::default(),
            life: 0,
            calm: Time::from_nanos(u64::from(plan.faults_until()) * 1_000_000),
        };
        Host {
            make,
            node: None,
            machine,
            plan,
            coverage,
            log,
        }
    }

    fn describe<M: Message>(&self) -> String
    where
        N: Node<M>,
    {
        match (&self.log, &self.node) {
            (Some(_), Some(node)) => node.describe(),
            (Some(_), None) => "down".to_owned(),
            (None, _) => String::new(),
        }
    }

    fn note<M: Message, C: Context<M>>(&self, cause: Option<Cause>, before: String, cx: &C)
    where
        N: Node<M>,
    {
        if let (Some(log), Some(cause)) = (&self.log, cause) {
            let step = Step {
                at: cx.now().as_nanos(),
                node: self.machine.index,
                cause,
                states: [before, self.describe::<M>()],
            };
            log.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(step);
        }
    }

    fn cause<M: Message, C: Context<M>>(&self, input: &Input<M>, cx: &C) -> Option<Cause> {
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

    fn boot<M: Message, C: Context<M>>(&mut self, cx: &mut C)
    where
        N: Node<M>,
    {
        let mut node = (self.make)(self.machine.index);
        node.boot(cx, &mut self.machine);
        self.node = Some(node);
    }
}

impl<M: Message, N: Node<M>> Actor<M> for Host<N> {
    fn start<C: Context<M>>(&mut self, cx: &mut C) {
        let at = |time: u32| Duration::from_millis(time.into());
        for crash in &self.plan.crashes {
            if crash.node == self.machine.index {
                cx.timer(at(crash.at), Token::new(CRASH));
                cx.timer(at(crash.at + crash.down), Token::new(RESTART));
            }
        }
        self.boot(cx);
    }

    fn on<C: Context<M>>(&mut self, event: Event<M>, cx: &mut C) -> Flow {
        let input = match event {
            Event::Timer(token) if token.number() == CRASH => {
                let before = self.describe::<M>();
                if self.node.take().is_some() {
                    self.machine.life = (self.machine.life + 1) & 0x3fff;
                    let mut random = Random::new(cx.random());
                    self.machine.disk.crash(&mut random);
                    self.coverage.set(self.machine.index, u64::MAX);
                    self.note::<M, C>(Some(Cause::Crash), before, cx);
                }
                return Flow::Continue;
            }
            Event::Timer(token) if token.number() == RESTART => {
                if self.node.is_none() {
                    let before = self.describe::<M>();
                    self.boot(cx);
                    self.note::<M, C>(Some(Cause::Restart), before, cx);
                }
                return Flow::Continue;
            }
            Event::Timer(token) if token.number() >> 16 == u32::from(self.machine.life) => {
                Input::Timer(token.number() as u16)
            }
            Event::Message { from, body } => Input::Message { from, body },
            _ => return Flow::Continue,
        };
        let (cause, before) = (self.cause(&input, cx), self.describe::<M>());
        if let Some(node) = &mut self.node {
            node.on(input, cx, &mut self.machine);
            let state = node.state().wrapping_add(1);
            self.coverage.set(self.machine.index, state);
            self.note::<M, C>(cause, before, cx);
        }
        Flow::Continue
    }
}
