//! A host as an actor of the engine. Packets are the messages of the actor. The host's process runs while the actor
//! handles a message.

use crate::channel::{Channel, Command, Ending, HostOutput, Reply};
use crate::executable::Boot;
use crate::fault::{Power, SIGCONT, SIGSTOP};
use crate::packet::{Packet, Reader};
use crate::processors;
use crate::settings::Settings;
use crate::state::HostState;
use crate::uplink::Uplink;
use crate::wire::Wire;
use crate::zygote::Zygote;
use corsair::{Actor, Context, Event, Flow, TimerHandle, Token};
use std::sync::Arc;
use std::time::Duration;

/// The actor of a host whose program is a process.
#[derive(Debug)]
pub(crate) struct Machine {
    uplink: Uplink,
    channel: &'static Channel,
    zygote: Arc<Zygote>,
    starts: u32,
    /// True if a process exists. Its kernel may still serve connections after the program has ended.
    has_process: bool,
    timer: Option<TimerHandle>,
    settings: Settings,
    /// True if the power was lost since the last start.
    lost_power: bool,
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
                self.uplink.record().state = HostState::Off;
            }
            Event::Message {
                body: Wire::Signal(signal),
                ..
            } => {
                if let SIGSTOP | SIGCONT = signal {
                    self.uplink.record().is_paused = signal == SIGSTOP;
                }
                self.step(cx, Command::Signal, &signal.to_le_bytes());
            }
            Event::Message {
                body: Wire::Setting(setting),
                ..
            } => {
                self.settings.change(setting, cx.now().as_nanos());
                self.step(cx, Command::Settings, &self.settings.to_bytes());
            }
            Event::Message {
                body: Wire::Power(Power::Start),
                ..
            } if self.uplink.record().state != HostState::Running => {
                self.end_process(cx);
                self.boot(cx);
            }
            _ => {}
        }
        Flow::Continue
    }
}

impl Machine {
    pub(crate) fn new(uplink: Uplink, channel: &'static Channel, zygote: Arc<Zygote>) -> Machine {
        Machine {
            settings: uplink.world.settings_of(uplink.host),
            uplink,
            channel,
            zygote,
            starts: 0,
            has_process: false,
            timer: None,
            lost_power: false,
        }
    }

    /// Switches the host on.
    fn boot<C: Context<Wire>>(&mut self, cx: &mut C) {
        self.channel.reset();
        let lost_power = std::mem::take(&mut self.lost_power);
        let boot = Boot {
            host: self.uplink.host,
            starts: self.starts,
            now: cx.now().as_nanos(),
            lost_power,
        };
        self.zygote.start(boot, processors::of_this_worker());
        self.starts += 1;
        self.has_process = true;
        self.uplink.record().boot();
        self.step(cx, Command::Settings, &self.settings.to_bytes());
    }

    fn on_packet<C: Context<Wire>>(&mut self, cx: &mut C, packet: &Packet) {
        if self.has_process {
            let mut bytes = Vec::with_capacity(packet.size());
            packet.write(&mut bytes);
            self.step(cx, Command::Step, &bytes);
        } else if self.uplink.record().state != HostState::Off
            && let Some(refusal) = packet.refusal()
        {
            self.uplink.send(cx, refusal);
        }
    }

    fn kill<C: Context<Wire>>(&mut self, cx: &mut C) {
        if self.uplink.record().state == HostState::Running {
            self.step(cx, Command::Kill, &[]);
            self.uplink.record().state = HostState::Killed;
        }
    }

    /// Ends the process, if there is one, and with it the host's kernel.
    fn end_process<C: Context<Wire>>(&mut self, cx: &mut C) {
        let channel = self.channel;
        channel.kill();
        if self.has_process {
            self.close_record();
        }
        self.has_process = false;
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
    }

    /// Adds the counters of the host's process, which has ended, to the host's record.
    fn close_record(&self) {
        let (calls, switches, trace) = self.channel.totals();
        let mut record = self.uplink.record();
        record.lines.finish_all(self.uplink.host);
        record.calls += calls;
        record.switches += switches;
        record.trace = record.trace.rotate_left(7) ^ trace;
    }

    /// Sends the process a command, and handles its reply.
    fn step<C: Context<Wire>>(&mut self, cx: &mut C, command: Command, input: &[u8]) {
        if !self.has_process {
            return;
        }
        let channel = self.channel;
        channel.send(command, cx.now().as_nanos(), input);
        loop {
            let mut output = HostOutput::default();
            let limit = match self.uplink.world.debug.stop {
                None => self.uplink.world.processor_limit,
                Some(_) => Duration::MAX,
            };
            let reply = channel.receive(limit, &mut output);
            self.uplink
                .record()
                .lines
                .take(self.uplink.host, &output.log);
            let mut packets = Reader(&output.packets);
            while let Some(packet) = packets.packet() {
                self.uplink.send(cx, packet);
            }
            match reply {
                Reply::More => channel.resume(),
                Reply::Done => break,
                Reply::Gone(status) => {
                    self.end_process(cx);
                    self.uplink.record().state = crash(status);
                    return;
                }
                Reply::Stuck => {
                    channel.kill();
                    channel.take(&mut output);
                    let mut record = self.uplink.record();
                    record.lines.take(self.uplink.host, &output.log);
                    drop(record);
                    self.end_process(cx);
                    self.uplink.record().state = HostState::Stuck;
                    return;
                }
            }
        }
        if let Some(state) = ended(channel.ending()) {
            let mut record = self.uplink.record();
            if record.state == HostState::Running {
                record.state = state;
                record.lines.finish_all(self.uplink.host);
            }
        }
        self.set_timer(cx);
    }

    /// Sets the timer to the time at which the process must run next.
    fn set_timer<C: Context<Wire>>(&mut self, cx: &mut C) {
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
        if let Some(next) = self.channel.next() {
            let after = next.saturating_sub(cx.now().as_nanos());
            self.timer = Some(cx.timer_handle(Duration::from_nanos(after), Token::new(0)));
        }
    }
}

/// Returns the state of a host whose process has died with this wait status.
fn crash(status: i32) -> HostState {
    match libc::WIFSIGNALED(status) {
        true => HostState::Crashed(libc::WTERMSIG(status)),
        false => HostState::Exited(libc::WEXITSTATUS(status)),
    }
}

/// Returns the state of a host whose program has ended in this way.
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
