//! Nodes that crash and start again.

use crate::{Disk, FaultPlan};
use corsair::{Actor, Addr, AddrRange, Context, Event, Flow, Message, Random, Token};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The address of the first node: the second spawn of a run begins the second page.
pub(crate) const FIRST: u32 = 256;
const CRASH: u32 = (1 << 31) - 2;
const RESTART: u32 = (1 << 31) - 1;

/// What a node handles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<M> {
    /// A message.
    Message {
        /// Who sent it.
        from: Addr,
        /// The message.
        body: M,
    },
    /// A timer of [`Machine::timer`].
    Timer(u16),
}

/// A node of a [`Program`](crate::Program). A crash drops it; what starts again is a new one, with
/// the same [`Machine`].
pub trait Node<M: Message>: Send + 'static {
    /// Called at the beginning and after each crash; durable state is on the machine's disk.
    fn boot<C: Context<M>>(&mut self, cx: &mut C, machine: &mut Machine);

    /// Handles a message or a timer.
    fn on<C: Context<M>>(&mut self, input: Input<M>, cx: &mut C, machine: &mut Machine);

    /// What guides the search: runs that bring nodes into new states are varied further. It should
    /// have few values, such as a role, and no number that only grows.
    fn state(&self) -> u64 {
        0
    }
}

/// What survives the crashes of a node.
#[derive(Debug)]
pub struct Machine {
    /// Which node this is, from 0.
    pub index: u32,
    /// All nodes of the program.
    pub nodes: AddrRange,
    /// The node's disk.
    pub disk: Disk,
    life: u16,
}

impl Machine {
    /// Sets a timer that comes after `after` milliseconds, unless the node crashes before.
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

/// Which states were seen, as bits of their hashes.
#[derive(Debug)]
pub(crate) struct Coverage {
    bits: Vec<AtomicU64>,
}

/// Bits of a coverage map.
pub(crate) const COVERAGE: u64 = 1 << 14;

impl Coverage {
    pub(crate) fn new() -> Coverage {
        let bits = (0..COVERAGE / 64).map(|_| AtomicU64::new(0)).collect();
        Coverage { bits }
    }

    pub(crate) fn add(&self, value: impl Hash) {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        let bit = hasher.finish() % COVERAGE;
        // Bits are only ever set, and read when the run is over.
        self.bits[(bit / 64) as usize].fetch_or(1 << (bit % 64), Ordering::Relaxed);
    }

    pub(crate) fn words(&self) -> Vec<u64> {
        self.bits
            .iter()
            .map(|word| word.load(Ordering::Relaxed))
            .collect()
    }
}

/// The actor of a node: crashes it and starts it again as the plan says.
pub(crate) struct Host<N, F> {
    pub(crate) make: F,
    pub(crate) node: Option<N>,
    pub(crate) machine: Machine,
    pub(crate) plan: Arc<FaultPlan>,
    pub(crate) coverage: Arc<Coverage>,
}

impl<N, F> Host<N, F> {
    pub(crate) fn new(
        index: u32,
        count: u32,
        make: F,
        plan: Arc<FaultPlan>,
        coverage: Arc<Coverage>,
    ) -> Host<N, F> {
        let nodes = AddrRange::new(Addr::from_u32(FIRST), count);
        let machine = Machine {
            index,
            nodes,
            disk: Disk::default(),
            life: 0,
        };
        Host {
            make,
            node: None,
            machine,
            plan,
            coverage,
        }
    }

    fn boot<M: Message, C: Context<M>>(&mut self, cx: &mut C)
    where
        N: Node<M>,
        F: Fn(u32) -> N,
    {
        let mut node = (self.make)(self.machine.index);
        node.boot(cx, &mut self.machine);
        self.node = Some(node);
    }
}

impl<M, N, F> Actor<M> for Host<N, F>
where
    M: Message,
    N: Node<M>,
    F: Fn(u32) -> N + Send + 'static,
{
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
                if self.node.take().is_some() {
                    self.machine.life = (self.machine.life + 1) & 0x3fff;
                    let mut random = Random::new(cx.random());
                    self.machine.disk.crash(&mut random);
                }
                return Flow::Continue;
            }
            Event::Timer(token) if token.number() == RESTART => {
                if self.node.is_none() {
                    self.boot(cx);
                }
                return Flow::Continue;
            }
            Event::Timer(token) if token.number() >> 16 == u32::from(self.machine.life) => {
                Input::Timer(token.number() as u16)
            }
            Event::Message { from, body } => Input::Message { from, body },
            _ => return Flow::Continue,
        };
        if let Some(node) = &mut self.node {
            let what = match &input {
                Input::Message { body, .. } => body.kind() as u64 + 1,
                Input::Timer(name) => u64::from(*name) << 32,
            };
            let before = node.state();
            node.on(input, cx, &mut self.machine);
            self.coverage.add((what, before, node.state()));
        }
        Flow::Continue
    }
}
