//! A host as an actor of the engine: packets are its messages, and its process runs while it handles one.

use crate::channel::{Command, Ending, Produced, Reply};
use crate::disk::Disk;
use crate::fault::Power;
use crate::log::Lines;
use crate::packet::{Packet, Reader};
use crate::state::HostState;
use crate::world::World;
use crate::zygote::Zygote;
use corsair::{Actor, Addr, Context, Event, Flow, Message, TimerHandle, Token};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Seconds of the wall clock that a host may run without a system call.
const STUCK_AFTER: u32 = 20;

/// The messages of hosts and of the simulation.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Wire {
    /// A packet from host to host.
    Packet(Box<Packet>),
    /// The power or the program of a host changes.
    Power(Power),
    /// The disk of a host has other settings.
    Disk(Disk),
    /// A host's program receives a signal.
    Signal(u32),
}

/// The simulation's record of a host.
#[derive(Debug)]
pub(crate) struct Record {
    pub state: HostState,
    pub lines: Lines,
    /// Simulated calls and thread switches of all its processes.
    pub calls: u64,
    pub switches: u64,
    /// A hash of all calls of all its processes.
    pub trace: u64,
    /// Packets with their times, if they are wanted.
    pub packets: Vec<(u64, Packet)>,
}

impl Record {
    pub(crate) fn new() -> Record {
        Record {
            state: HostState::Off,
            lines: Lines::default(),
            calls: 0,
            switches: 0,
            trace: 0,
            packets: vec![],
        }
    }
}

/// The actors of hosts.
#[derive(Debug)]
pub(crate) struct Directory {
    /// The actors by host.
    pub actors: Vec<Addr>,
    hosts: BTreeMap<Addr, u32>,
}

impl Directory {
    /// Creates a directory of actors in the order of their hosts.
    pub(crate) fn new(actors: Vec<Addr>) -> Directory {
        let hosts = actors.iter().copied().zip(0..).collect();
        Directory { actors, hosts }
    }

    /// The host of an actor.
    pub(crate) fn host(&self, actor: Addr) -> Option<u32> {
        self.hosts.get(&actor).copied()
    }
}

/// A host's actor.
#[derive(Debug)]
pub(crate) struct Machine {
    pub world: &'static World,
    pub host: usize,
    pub zygote: Arc<Zygote>,
    /// Complete before the first host is started.
    pub directory: Arc<OnceLock<Directory>>,
    pub records: Arc<Vec<Mutex<Record>>>,
    pub starts: u32,
    /// A process exists, whose kernel may still serve connections when its program is over.
    pub has_process: bool,
    pub timer: Option<TimerHandle>,
    /// Settings of the disk that are not those of the simulation.
    pub disk: Option<Disk>,
    /// The power was lost since the last start.
    pub lost_power: bool,
}

impl Actor<Wire> for Machine {
    fn on<C: Context<Wire>>(&mut self, event: Event<Wire>, cx: &mut C) -> Flow {
        match event {
            Event::Timer(_) => self.step(cx, Command::Step, &[]),
            Event::Message {
                body: Wire::Packet(packet),
                ..
            } => self.on_packet(cx, &packet),
            Event::Message {
                body: Wire::Power(Power::Kill),
                ..
            } => self.kill(cx),
            Event::Message {
                body: Wire::Power(Power::Loss),
                ..
            } => {
                self.end_process(cx);
                self.lost_power = true;
                self.record().state = HostState::Off;
            }
            Event::Message {
                body: Wire::Signal(signal),
                ..
            } => self.step(cx, Command::Signal, &signal.to_le_bytes()),
            Event::Message {
                body: Wire::Disk(disk),
                ..
            } => {
                self.disk = Some(disk);
                self.step(cx, Command::Disk, &disk.to_bytes());
            }
            Event::Message {
                body: Wire::Power(Power::Start),
                ..
            } if self.record().state != HostState::Running => {
                self.end_process(cx);
                self.boot(cx);
            }
            _ => {}
        }
        Flow::Continue
    }
}

impl Machine {
    fn record(&self) -> MutexGuard<'_, Record> {
        self.records[self.host]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches the host on.
    fn boot<C: Context<Wire>>(&mut self, cx: &mut C) {
        self.world.hosts[self.host].channel.reset();
        let lost_power = std::mem::take(&mut self.lost_power);
        self.zygote
            .start(self.host, self.starts, cx.now().as_nanos(), lost_power);
        self.starts += 1;
        self.has_process = true;
        self.record().state = HostState::Running;
        match self.disk {
            Some(disk) => self.step(cx, Command::Disk, &disk.to_bytes()),
            None => self.step(cx, Command::Step, &[]),
        }
    }

    fn on_packet<C: Context<Wire>>(&mut self, cx: &mut C, packet: &Packet) {
        if self.has_process {
            let mut bytes = Vec::with_capacity(packet.size());
            packet.write(&mut bytes);
            self.step(cx, Command::Step, &bytes);
        } else if self.record().state != HostState::Off
            && let Some(refusal) = packet.refusal()
        {
            self.send(cx, refusal);
        }
    }

    fn kill<C: Context<Wire>>(&mut self, cx: &mut C) {
        if self.record().state == HostState::Running {
            self.step(cx, Command::Kill, &[]);
            self.record().state = HostState::Killed;
        }
    }

    /// Ends the process, if there is one, and its kernel.
    fn end_process<C: Context<Wire>>(&mut self, cx: &mut C) {
        let channel = &self.world.hosts[self.host].channel;
        channel.kill();
        if self.has_process {
            self.close_record();
        }
        self.has_process = false;
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
    }

    /// Adds what the process has counted, which is over.
    fn close_record(&self) {
        let (calls, switches, trace) = self.world.hosts[self.host].channel.totals();
        let mut record = self.record();
        record.lines.finish_all(self.host);
        record.calls += calls;
        record.switches += switches;
        record.trace = record.trace.rotate_left(7) ^ trace;
    }

    /// Gives the process a command, and does what it answers.
    fn step<C: Context<Wire>>(&mut self, cx: &mut C, command: Command, input: &[u8]) {
        if !self.has_process {
            return;
        }
        let channel = &self.world.hosts[self.host].channel;
        channel.send(command, cx.now().as_nanos(), input);
        loop {
            let mut produced = Produced::default();
            let limit = match self.world.debug.stop {
                None => STUCK_AFTER,
                Some(_) => u32::MAX,
            };
            let reply = channel.receive(limit, &mut produced);
            self.record().lines.take(self.host, &produced.log);
            let mut packets = Reader(&produced.packets);
            while let Some(packet) = packets.packet() {
                self.send(cx, packet);
            }
            match reply {
                Reply::More => channel.resume(),
                Reply::Done => break,
                Reply::Gone(status) => {
                    self.end_process(cx);
                    self.record().state = crash(status);
                    return;
                }
                Reply::Stuck => {
                    self.end_process(cx);
                    self.record().state = HostState::Stuck;
                    return;
                }
            }
        }
        if let Some(state) = ended(channel.ending()) {
            let mut record = self.record();
            if record.state == HostState::Running {
                record.state = state;
                record.lines.finish_all(self.host);
            }
        }
        self.set_timer(cx);
    }

    /// Sets the timer to when the process next has something to do.
    fn set_timer<C: Context<Wire>>(&mut self, cx: &mut C) {
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
        if let Some(next) = self.world.hosts[self.host].channel.next() {
            let after = next.saturating_sub(cx.now().as_nanos());
            self.timer = Some(cx.timer_handle(Duration::from_nanos(after), Token::new(0)));
        }
    }

    fn send<C: Context<Wire>>(&self, cx: &mut C, packet: Packet) {
        let Some(to) = self.world.host_of(packet.destination.ip()) else {
            return;
        };
        if self.world.debug.packets.is_some() {
            let packet = (cx.now().as_nanos(), packet.clone());
            self.record().packets.push(packet);
        }
        if let Some(directory) = self.directory.get() {
            cx.send(directory.actors[to], Wire::Packet(Box::new(packet)));
        }
    }
}

/// The state of a host whose process is gone.
fn crash(status: i32) -> HostState {
    match libc::WIFSIGNALED(status) {
        true => HostState::Crashed(libc::WTERMSIG(status)),
        false => HostState::Exited(libc::WEXITSTATUS(status)),
    }
}

/// The state of a host whose program is over.
fn ended(ending: Ending) -> Option<HostState> {
    match ending {
        Ending::Running => None,
        Ending::Exited(status) => Some(HostState::Exited(status)),
        Ending::Panicked => Some(HostState::Panicked),
        Ending::Unsupported => Some(HostState::Unsupported),
        Ending::Deadlocked => Some(HostState::Deadlocked),
        Ending::Killed => Some(HostState::Killed),
    }
}
