//! Nodes that are processes: lines of JSON through standard input and output, at the speed of the wall clock.

mod child;

use crate::body::Line;
use crate::client::lock;
use crate::test::Prepared;
use crate::{Body, Cluster, Packet, Report, Test, TestError};
use child::{Child, FromChild, Writer};
use corsair::{Actor, Addr, Context, Event, Flow, Simulation, Time};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The program of the nodes.
#[derive(Clone, Debug)]
pub struct Program {
    /// The path of the program. Each node is a process of this program.
    pub bin: PathBuf,
    /// The arguments of the program.
    pub args: Vec<String>,
    /// True to show the standard error of the nodes.
    pub log_stderr: bool,
}

/// The time within which a node must send its `init_ok`.
const INIT: Duration = Duration::from_secs(10);
/// The largest number of lines that wait to be read by the simulation.
const MOST_LINES: usize = 1_024;
/// The largest number of messages that a node may send in a second.
const MOST_RATE: u64 = 100_000;
/// The longest time between two checks of the clock.
const NAP: Duration = Duration::from_millis(5);

impl Test {
    /// Runs the test with a process for each node. All times are times of the wall clock, because processes have their
    /// own timers. So the result differs between runs.
    ///
    /// # Errors
    /// Returns a [`TestError`]; a process that ends, hangs, floods the network or writes invalid messages is an error,
    /// too.
    pub fn run_processes(&self, program: &Program) -> Result<Report, TestError> {
        let prepared = self.prepare()?;
        let (sender, lines) = sync_channel(MOST_LINES);
        let mut children = Vec::new();
        for node in 0..self.node_count {
            let name = prepared.cluster.name(prepared.cluster.node(node));
            children.push(Child::start(node, name, program, sender.clone())?);
        }
        drop(sender);
        let writers: Arc<[Writer]> = children.iter().map(Child::writer).collect();
        let failure = Arc::new(Mutex::new(None));
        let (actors, problem) = (Arc::clone(&writers), Arc::clone(&failure));
        let simulation = prepared.simulation(self, move |node, cluster| Proxy {
            cluster,
            node,
            writers: Arc::clone(&actors),
            failure: Arc::clone(&problem),
        })?;
        let mut driver = Driver {
            prepared: &prepared,
            simulation,
            children,
            lines,
            early: VecDeque::new(),
            injected: 0,
            sent: vec![0; self.node_count as usize],
            failure,
        };
        driver.init()?;
        driver.drive()?;
        let Driver {
            simulation,
            children,
            injected,
            ..
        } = driver;
        let report = simulation.finish()?;
        drop(children);
        prepared.conclude(self, &report, injected)
    }
}

/// The actor that represents a process in the simulation.
struct Proxy {
    cluster: Cluster,
    node: u32,
    writers: Arc<[Writer]>,
    failure: Arc<Mutex<Option<TestError>>>,
}

impl Proxy {
    /// Gives a message to the process.
    fn write<C: Context<Packet>>(&self, from: Addr, body: &Body, cx: &C) {
        let (src, dest) = (self.cluster.name(from), self.cluster.name(cx.me()));
        let line = Line::write(&src, &dest, body);
        if let Err(error) = self.writers[self.node as usize].write(line) {
            lock(&self.failure).get_or_insert(error);
        }
    }
}

impl Actor<Packet> for Proxy {
    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        let Event::Message { from, body } = event else {
            return Flow::Continue;
        };
        match body {
            Packet::Body(body) => self.write(from, &body, cx),
            Packet::Forwarded(from, body) => self.write(from, &body, cx),
            Packet::Send(to, from, body) if from == cx.me() => {
                cx.send(to, Packet::Body(body));
            }
            Packet::Send(to, from, body) => {
                cx.send(to, Packet::Forwarded(from, body));
            }
            Packet::Finished => {}
        }
        Flow::Continue
    }
}

/// Runs the simulation next to the processes.
struct Driver<'a> {
    prepared: &'a Prepared,
    simulation: Simulation<Packet>,
    children: Vec<Child>,
    lines: Receiver<FromChild>,
    /// Messages that nodes sent before all nodes were ready.
    early: VecDeque<(u32, Packet)>,
    /// The number of messages that were given to the actors of processes.
    injected: u64,
    /// The number of messages that each node has sent.
    sent: Vec<u64>,
    failure: Arc<Mutex<Option<TestError>>>,
}

impl Driver<'_> {
    /// Sends each node its name, and waits for all replies.
    fn init(&mut self) -> Result<(), TestError> {
        let cluster = self.prepared.cluster;
        let names: Vec<String> = cluster
            .nodes()
            .iter()
            .map(|node| cluster.name(node))
            .collect();
        for (child, name) in self.children.iter().zip(&names) {
            let body = Body::new("init").with_id(1);
            let body = body
                .with("node_id", name.as_str())
                .with("node_ids", names.clone());
            child.writer().write(Line::write("c0", name, &body))?;
        }
        let deadline = Instant::now() + INIT;
        let mut waiting: Vec<bool> = names.iter().map(|_| true).collect();
        while let Some(silent) = waiting.iter().position(|is_waiting| *is_waiting) {
            let left = deadline.saturating_duration_since(Instant::now());
            let received = match self.lines.recv_timeout(left) {
                Ok(received) => received,
                Err(_) => {
                    let name = &names[silent];
                    return Err(TestError::Node(format!(
                        "node {name} does not answer the init message within {INIT:?}; it has to write a line \
                         like {{\"src\":\"{name}\",\"dest\":\"c0\",\"body\":{{\"type\":\"init_ok\",\"in_reply_to\":1}}}}"
                    )));
                }
            };
            let (node, packet) = self.read(received)?;
            let is_waiting = &mut waiting[node as usize];
            let Packet::Send(_, _, body) = &packet else {
                continue;
            };
            match &*body.kind {
                "init_ok" if *is_waiting => *is_waiting = false,
                "error" if *is_waiting => {
                    let name = &names[node as usize];
                    let text = body.get("text").map_or(String::new(), ToString::to_string);
                    return Err(TestError::Node(format!(
                        "node {name} answers the init message with an error: {text}"
                    )));
                }
                _ => self.early.push_back((node, packet)),
            }
            if self.early.len() > MOST_LINES * 64 {
                return Err(TestError::Node(format!(
                    "node {} floods the network before all nodes have answered the init message",
                    names[node as usize]
                )));
            }
        }
        Ok(())
    }

    /// Parses a line. Returns its node, receiver and body.
    fn read(&mut self, received: FromChild) -> Result<(u32, Packet), TestError> {
        let cluster = self.prepared.cluster;
        let (node, bytes) = match received {
            FromChild::Line(node, bytes) => (node, bytes),
            FromChild::Ended(node) => return Err(self.children[node as usize].ended()),
        };
        let name = &self.children[node as usize].name;
        let Line { src, dest, body } = Line::parse(&bytes).map_err(|problem| TestError::Line {
            node: name.clone(),
            problem,
        })?;
        // A node may pass on a request under the name of its client.
        let Some(from) = cluster.find(&src) else {
            let text = format!("node {name} sends a message from '{src}', which does not exist");
            return Err(TestError::Node(text));
        };
        let Some(to) = cluster.find(&dest) else {
            let text = format!("node {name} sends a message to '{dest}', which does not exist");
            return Err(TestError::Node(text));
        };
        Ok((node, Packet::Send(to, from, body)))
    }

    fn drive(&mut self) -> Result<(), TestError> {
        let clock = Instant::now();
        let cancel = self.prepared.config.cancel.clone();
        while let Some((node, packet)) = self.early.pop_front() {
            self.inject(node, packet)?;
        }
        while !self.simulation.is_over() && !cancel.is_cancelled() {
            let now = Time::ZERO.after(clock.elapsed());
            self.simulation.run_until(now);
            if let Some(error) = lock(&self.failure).take() {
                return Err(error);
            }
            if let Some(fault) = self.prepared.faults() {
                return Err(TestError::Node(fault));
            }
            let next = self.simulation.next().map_or(NAP, |next| next.since(now));
            let mut received = match self.lines.recv_timeout(next.min(NAP)) {
                Ok(received) => Some(received),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            };
            let mut left = MOST_LINES;
            while let Some(line) = received {
                let (node, packet) = self.read(line)?;
                self.count(node, clock.elapsed())?;
                self.inject(node, packet)?;
                left -= 1;
                received = if left > 0 {
                    self.lines.try_recv().ok()
                } else {
                    None
                };
            }
        }
        Ok(())
    }

    fn count(&mut self, node: u32, elapsed: Duration) -> Result<(), TestError> {
        let sent = &mut self.sent[node as usize];
        *sent += 1;
        if *sent <= MOST_RATE * (1 + elapsed.as_secs()) {
            return Ok(());
        }
        let name = &self.children[node as usize].name;
        Err(TestError::Node(format!(
            "node {name} floods the network: it has sent {sent} messages in {elapsed:.1?}; at most {MOST_RATE} a \
             second are allowed"
        )))
    }

    /// Passes a message of a process to the actor that represents the process.
    fn inject(&mut self, node: u32, packet: Packet) -> Result<(), TestError> {
        let soon = self.simulation.now().after(Duration::from_nanos(1));
        let actor = self.prepared.cluster.node(node);
        if self.simulation.is_over() {
            return Ok(());
        }
        match self.simulation.inject(soon, actor, packet) {
            Ok(_) => {
                self.injected += 1;
                Ok(())
            }
            Err(error) => Err(TestError::Node(error.to_string())),
        }
    }
}
