//! A host without a process: an async function (its body) that the engine runs, with sockets to all other hosts.
//!
//! Such a host takes only a few hundred bytes, so a simulation can have ten thousand clients of one real server. The
//! host's connections use the TCP of the simulated kernel ([`crate::tcp`]), so a real program at the other end notices
//! no difference.

mod net;
mod socket;
mod tasks;

pub use net::Net;
pub use socket::{Datagrams, Listener, Stream};

use crate::fault::{Power, SIGCONT, SIGSTOP};
use crate::settings::Settings;
use crate::state::HostState;
use crate::uplink::Uplink;
use crate::wire::Wire;
use corsair::{Actor, Context, Event, Flow, TimerHandle, Token};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tasks::{Progress, Running, Tasks};

/// Creates the future of an actor's body at each start of the host.
pub(crate) type Body = Box<dyn Fn(Net) -> Running + Send + Sync>;

/// The bodies of the hosts that are actors, by the index of the host.
#[derive(Default)]
pub(crate) struct Bodies(pub BTreeMap<usize, Body>);

impl std::fmt::Debug for Bodies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The actor of a host that runs a body.
pub(crate) struct Native {
    uplink: Uplink,
    body: Option<&'static Body>,
    /// The sockets, which outlive the body, as on a real host.
    net: Option<Net>,
    tasks: Tasks,
    timer: Option<TimerHandle>,
    starts: u32,
    settings: Settings,
}

impl Native {
    pub(crate) fn new(uplink: Uplink, bodies: &'static Bodies) -> Native {
        Native {
            settings: uplink.world.settings_of(uplink.host),
            body: bodies.0.get(&uplink.host),
            uplink,
            net: None,
            tasks: Tasks::default(),
            timer: None,
            starts: 0,
        }
    }

    /// Starts the body.
    fn boot<C: Context<Wire>>(&mut self, cx: &mut C) {
        let Some(body) = self.body else { return };
        self.net = None;
        let net = Net::new(self.uplink.clone(), self.starts, cx.now().as_nanos());
        net.set_names(self.settings.has_names);
        self.starts += 1;
        self.uplink.record().boot();
        match catch_unwind(AssertUnwindSafe(|| body(net.clone()))) {
            Ok(future) => self.tasks.begin(future),
            Err(panic) => self.end(HostState::Panicked, Some(&text(&*panic))),
        }
        self.net = Some(net);
        self.run(cx);
    }

    /// Ends the body, and drops the futures that the body has spawned and all sockets.
    fn end(&mut self, state: HostState, why: Option<&str>) {
        if let (Some(net), Some(why)) = (&self.net, why) {
            net.log_error(why);
        }
        // A destructor may panic as well; only the first reason is reported.
        while catch_unwind(AssertUnwindSafe(|| self.tasks.clear())).is_err() {}
        let mut record = self.uplink.record();
        if record.state == HostState::Running {
            record.state = state;
            record.lines.finish_all(self.uplink.host);
        }
    }

    /// Polls woken futures, sends the resulting packets, and sets the timer.
    fn run<C: Context<Wire>>(&mut self, cx: &mut C) {
        let Some(net) = self.net.clone() else { return };
        let can_run = {
            let record = self.uplink.record();
            record.state == HostState::Running && !record.is_paused
        };
        if can_run {
            let progress = catch_unwind(AssertUnwindSafe(|| self.tasks.run(|| net.take_spawned())));
            match progress {
                Ok(Progress::Waits) if !net.is_awaited() => self.end(
                    HostState::Deadlocked,
                    Some("the actor awaits a future from outside of the simulation; await only futures of Net"),
                ),
                Ok(Progress::Waits) => {}
                Ok(Progress::Ended(None)) => self.end(HostState::Exited(0), None),
                Ok(Progress::Ended(Some(failure))) => {
                    self.end(HostState::Exited(1), Some(&format!("Error: {failure}")));
                }
                Ok(Progress::Endless) => self.end(
                    HostState::Stuck,
                    Some("the actor wakes itself again and again at one instant"),
                ),
                Err(panic) => self.end(HostState::Panicked, Some(&text(&*panic))),
            }
        }
        for packet in net.take_packets() {
            self.uplink.send(cx, packet);
        }
        if let Some(timer) = self.timer.take() {
            cx.cancel(timer);
        }
        if let Some(next) = net.next() {
            let after = next.saturating_sub(cx.now().as_nanos());
            self.timer = Some(cx.timer_handle(Duration::from_nanos(after), Token::new(0)));
        }
    }

    fn on_power<C: Context<Wire>>(&mut self, power: Power, cx: &mut C) {
        let is_running = self.uplink.record().state == HostState::Running;
        match power {
            Power::Start if !is_running => self.boot(cx),
            Power::Start => {}
            Power::Kill if is_running => {
                self.end(HostState::Killed, None);
                self.run(cx);
            }
            Power::Kill => {}
            Power::Loss => {
                self.end(HostState::Off, None);
                self.uplink.record().state = HostState::Off;
                self.net = None;
                if let Some(timer) = self.timer.take() {
                    cx.cancel(timer);
                }
            }
        }
    }
}

impl std::fmt::Debug for Native {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Native").finish_non_exhaustive()
    }
}

impl Actor<Wire> for Native {
    fn on<C: Context<Wire>>(&mut self, event: Event<Wire>, cx: &mut C) -> Flow {
        let now = cx.now().as_nanos();
        match event {
            Event::Message {
                body: Wire::Power(power),
                ..
            } => self.on_power(power, cx),
            Event::Message {
                body: Wire::Packet(packet),
                ..
            } => {
                if let Some(net) = &self.net {
                    net.receive(*packet, now);
                    self.run(cx);
                }
            }
            Event::Timer(_) => {
                if let Some(net) = &self.net {
                    net.advance(now);
                    self.run(cx);
                }
            }
            Event::Message {
                body: Wire::Setting(setting),
                ..
            } => {
                self.settings.change(setting, cx.now().as_nanos());
                if let Some(net) = &self.net {
                    net.set_names(self.settings.has_names);
                }
            }
            Event::Message {
                body: Wire::Signal(signal @ (SIGSTOP | SIGCONT)),
                ..
            } => {
                self.uplink.record().is_paused = signal == SIGSTOP;
                if let Some(net) = &self.net {
                    net.advance(now);
                    self.run(cx);
                }
            }
            // An actor has no disk and no signal handlers.
            _ => {}
        }
        Flow::Continue
    }
}

fn text(panic: &(dyn std::any::Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", said.unwrap_or("without a message"))
}
