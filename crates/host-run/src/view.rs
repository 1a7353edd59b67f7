//! The live view of a simulation of hosts: `corsair-host run FILE --ui`.

use corsair::Time;
use corsair_host::{Fault, HostId, HostState, Sim, SimError};
use corsair_view::{
    Action, Command, EdgeState, GroupSample, Mark, NodeState, Sample, Scene, SceneNode, Server,
    Session, World,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The virtual time of a step.
const STEP: Duration = Duration::from_millis(1);
/// The maximum number of steps that are run until a host sends or receives a packet.
const MOST_STEPS: u32 = 10_000;
/// The lines of a host's log that its panel shows.
const LINES: usize = 20;
/// The shortest interval of a rate: programs that wait for each other's answers send nothing for long parts of a shorter one.
const SHORTEST: Duration = Duration::from_millis(250);
/// The maximum number of characters of a line that the panel shows.
const LETTERS: usize = 500;

/// A function that creates a fault of a host. The second argument has the hosts from which a partition separates this
/// host.
type MakeFault = fn(&HostId, &[HostId]) -> Fault;

/// A simulation of hosts that a session controls.
struct Hosts<'a> {
    sim: &'a mut Sim,
    title: String,
    until: Time,
    hosts: Vec<(HostId, String)>,
    /// The faults of the file, by time.
    faults: Vec<(Duration, String)>,
    /// The failure that has ended the run.
    failure: Option<SimError>,
    /// Two earlier counts of packets. Rates are since the later one if it is at least [`SHORTEST`] old, else since the earlier one.
    counts: [Count; 2],
    /// The number of packets of all hosts at the last sample.
    all: u64,
}

/// The number of packets of each pair of hosts at a time.
#[derive(Clone)]
struct Count {
    at: Time,
    packets: BTreeMap<(HostId, HostId), u64>,
}

impl Count {
    fn now(sim: &Sim) -> Count {
        let traffic = sim.traffic().into_iter();
        Count {
            at: sim.now(),
            packets: traffic
                .map(|one| ((one.from, one.to), one.packets))
                .collect(),
        }
    }
}

/// Serves the page of a simulation until the program is interrupted.
pub fn serve(
    sim: &mut Sim,
    title: String,
    until: Duration,
    mut faults: Vec<(Duration, String)>,
    address: SocketAddr,
) -> Result<(), String> {
    faults.sort_by_key(|(at, _)| *at);
    // The hosts' processes are forked before this process has a second thread.
    let failure = sim.run_until(Duration::from_nanos(1)).err();
    let world = Hosts {
        hosts: sim.all_hosts(),
        title,
        until: Time::ZERO.after(until),
        faults,
        failure,
        counts: [Count::now(sim), Count::now(sim)],
        all: 0,
        sim,
    };
    let (session, handle) = Session::new(world, serde_json::Map::new(), None);
    let server = Server::start(address, handle).map_err(|error| format!("--ui: {error}"))?;
    println!(
        "corsair-host: the simulation is controlled at {} (Ctrl-C ends it)",
        server.url()
    );
    if let Some(warning) = server.warning() {
        eprintln!("corsair-host: {warning}");
    }
    session.run(&corsair::CancelToken::default());
    Ok(())
}

impl Hosts<'_> {
    /// Returns the hosts that a command affects: one host by its name, or all hosts of a group.
    fn targets(&self, who: &str) -> Result<Vec<HostId>, String> {
        let named = |name: &str| name == who || who == "all" || group(name) == who;
        let found: Vec<HostId> = self
            .hosts
            .iter()
            .filter(|(_, name)| named(name))
            .map(|(id, _)| *id)
            .collect();
        match found.is_empty() {
            true => Err(format!(
                "there is no host '{who}'; expected a host, a group or all"
            )),
            false => Ok(found),
        }
    }

    fn others(&self, host: HostId) -> Vec<HostId> {
        let others = self.hosts.iter().map(|(id, _)| *id);
        others.filter(|other| *other != host).collect()
    }

    /// Advances to a time, unless the run has failed.
    fn advance(&mut self, until: Time) {
        if self.failure.is_none() {
            let until = Duration::from_nanos(until.min(self.until).as_nanos());
            self.failure = self.sim.run_until(until).err();
            if let Some(failure) = &self.failure {
                eprintln!("corsair-host: {failure}");
            }
        }
    }

    fn bits(&self, host: HostId) -> u8 {
        let state = match self.sim.state(&host) {
            HostState::Running => 0,
            HostState::Exited(0) => NodeState::GONE,
            _ => NodeState::DOWN,
        };
        // A partition cuts off the smaller part.
        let is_cut_off = 2 * self.sim.separated_from(&host).len() >= self.hosts.len();
        let flag = |is: bool, bit| if is { bit } else { 0 };
        state
            | flag(self.sim.is_paused(&host), NodeState::PAUSED)
            | flag(is_cut_off, NodeState::CUT_OFF)
    }

    fn host(&self, name: &str) -> Result<&(HostId, String), String> {
        let found = self.hosts.iter().find(|(_, other)| other == name);
        found.ok_or_else(|| format!("there is no host '{name}'"))
    }

    fn details(&self, name: &str) -> Result<Value, String> {
        let (host, name) = self.host(name)?;
        let name_of = |host: HostId| &self.hosts[host.index()].1;
        let lines = self.sim.last_lines(host, LINES).into_iter();
        let lines: Vec<String> = lines
            .map(|line| {
                let text: String = line.text.chars().take(LETTERS).collect();
                format!("{:.6} {text}", line.time.as_nanos() as f64 / 1e9)
            })
            .collect();
        let program = match self.sim.is_paused(host) {
            true => "is paused".to_owned(),
            false => self.sim.state(host).to_string(),
        };
        let separated_from = self.sim.separated_from(host).into_iter();
        let traffic = self.sim.traffic();
        let connections: BTreeMap<&String, Value> = traffic
            .iter()
            .filter(|traffic| traffic.from == *host)
            .map(|traffic| {
                let sent = json!({ "packets": traffic.packets, "bytes": traffic.bytes });
                (name_of(traffic.to), sent)
            })
            .collect();
        let sent: u64 = traffic
            .iter()
            .filter(|traffic| traffic.from == *host)
            .map(|traffic| traffic.packets)
            .sum();
        Ok(json!({
            "name": name, "group": group(name), "program": program, "address": self.sim.address(host).to_string(),
            "sent": sent,
            "knows": connections.keys().collect::<Vec<_>>(),
            "sent to": connections, "separated from": separated_from.map(name_of).collect::<Vec<_>>(), "log": lines,
        }))
    }

    fn edge(&self, from: &str, to: &str) -> Result<Value, String> {
        let (from, to) = (self.host(from)?, self.host(to)?);
        let traffic = self.sim.traffic();
        let found = traffic
            .iter()
            .find(|traffic| traffic.from == from.0 && traffic.to == to.0);
        Ok(json!({
            "from": from.1, "to": to.1, "sent": found.map_or(0, |traffic| traffic.packets),
            "answered": Value::Null, "errors": Value::Null, "p50": Value::Null, "p99": Value::Null, "p999": Value::Null,
            "histogram": [], "bytes": found.map_or(0, |traffic| traffic.bytes),
        }))
    }
}

/// Returns the group of a host: its name without a number at its end.
fn group(name: &str) -> &str {
    match name.rsplit_once('-') {
        Some((group, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => group,
        _ => name,
    }
}

impl World for Hosts<'_> {
    fn scene(&self) -> Scene {
        let count = self.hosts.len().max(1) as f32;
        let radius = if self.hosts.len() > 1 {
            count.max(3.0) * 0.8
        } else {
            0.0
        };
        let size = 2.0 * radius + 4.0;
        let node = |(index, (_, name)): (usize, &(HostId, String))| {
            let angle = std::f32::consts::TAU * (index as f32 / count - 0.25);
            SceneNode {
                name: name.clone(),
                x: size / 2.0 + radius * angle.cos(),
                y: size / 2.0 + radius * angle.sin(),
                service: group(name).to_owned(),
                package: "host".to_owned(),
                region: "*".to_owned(),
                zone: "*".to_owned(),
                count: 1,
                size: 1.0,
                slots: 0,
            }
        };
        let mark = |(at, name): &(Duration, String)| Mark {
            at: at.as_secs_f64(),
            name: name.clone(),
            text: String::new(),
        };
        Scene {
            kind: "hosts",
            arch: self.title.clone(),
            groups: vec!["all".to_owned()],
            nodes: self.hosts.iter().enumerate().map(node).collect(),
            width: size,
            height: size,
            total: self.hosts.len() as u64,
            actions: vec!["kill", "revive", "pause", "resume", "partition", "rejoin"],
            marks: self.faults.iter().map(mark).collect(),
            load: Some((0.0, self.until.as_nanos() as f64 / 1e9)),
            ..Scene::default()
        }
    }

    fn now(&self) -> Time {
        self.sim.now()
    }

    fn is_over(&self) -> bool {
        self.failure.is_some() || self.sim.is_over() || self.sim.now() >= self.until
    }

    fn failure(&self) -> Option<String> {
        let text = self.failure.as_ref()?.to_string();
        text.lines().next().map(str::to_owned)
    }

    fn run_until(&mut self, time: Time) {
        self.advance(time);
    }

    fn step(&mut self) -> bool {
        let next = self.sim.now().after(STEP);
        self.advance(next);
        !self.is_over()
    }

    fn step_actor(&mut self, who: &str) -> Result<bool, String> {
        let targets = self.targets(who)?;
        let packets = |sim: &Sim| -> u64 {
            let all = sim.traffic();
            let own = all
                .iter()
                .filter(|traffic| targets.contains(&traffic.from) || targets.contains(&traffic.to));
            own.map(|traffic| traffic.packets).sum()
        };
        let before = packets(self.sim);
        for _ in 0..MOST_STEPS {
            if !self.step() || packets(self.sim) != before {
                break;
            }
        }
        Ok(packets(self.sim) != before)
    }

    fn apply(&mut self, command: &Command) -> Result<(), String> {
        let (who, fault): (&String, MakeFault) = match &command.what {
            Action::Kill { who } => (who, |host, _| Fault::kill(host)),
            Action::Revive { who } => (who, |host, _| Fault::start(host)),
            Action::Pause { who } => (who, |host, _| Fault::pause(host)),
            Action::Resume { who } => (who, |host, _| Fault::resume(host)),
            Action::Partition { who } => (who, |host, others| Fault::partition(&[*host], others)),
            Action::Rejoin { who } => (who, |host, others| Fault::heal(&[*host], others)),
            other => {
                return Err(format!(
                    "'{other}' is for architectures of services; hosts can be killed, revived, paused, resumed, partitioned and rejoined"
                ));
            }
        };
        let at = Duration::from_nanos(command.at);
        for host in self.targets(who)? {
            self.sim.at(at, fault(&host, &self.others(host)));
        }
        Ok(())
    }

    fn watch(&mut self, _: bool) {
        let now = Count::now(self.sim);
        self.all = now.packets.values().sum();
        self.counts = [now.clone(), now];
    }

    fn sample(&mut self) -> Sample {
        let now = Count::now(self.sim);
        let [earlier, later] = &self.counts;
        let is_old = now.at.since(later.at) >= SHORTEST;
        let since = if is_old { later } else { earlier };
        let seconds = now.at.since(since.at).as_secs_f64();
        let mut rates = vec![0.0; self.hosts.len()];
        let mut edges = vec![];
        for (pair, packets) in &now.packets {
            let (from, to) = (pair.0.index(), pair.1.index());
            let new = packets - since.packets.get(pair).unwrap_or(&0);
            let rate = if seconds > 0.0 {
                (new as f64 / seconds) as f32
            } else {
                0.0
            };
            rates[from] += rate;
            edges.push(EdgeState {
                from: from as u32,
                to: to as u32,
                rate,
                ..EdgeState::default()
            });
        }
        let nodes = self.hosts.iter().zip(rates);
        let nodes = nodes.map(|((host, _), rate)| NodeState {
            bits: self.bits(*host),
            rate,
            ..NodeState::default()
        });
        let nodes = nodes.collect();
        let all = now.packets.values().sum();
        let requests = all - self.all;
        self.all = all;
        if is_old {
            self.counts.swap(0, 1);
            self.counts[1] = now;
        }
        Sample {
            nodes,
            edges,
            groups: vec![GroupSample {
                requests,
                ..GroupSample::default()
            }],
            ..Sample::default()
        }
    }

    fn look(&mut self, query: &Value) -> Result<Value, String> {
        let text = |key: &str| query.get(key).and_then(Value::as_str);
        if let Some(name) = text("actor") {
            return self.details(name);
        }
        if let (Some(from), Some(to)) = (text("from"), text("to")) {
            return self.edge(from, to);
        }
        if let Some(part) = text("find") {
            let found = self
                .hosts
                .iter()
                .map(|(_, name)| name)
                .filter(|name| name.contains(part));
            return Ok(json!(found.take(50).collect::<Vec<_>>()));
        }
        if let Some(who) = query.pointer("/preview/who").and_then(Value::as_str) {
            let targets = self.targets(who)?;
            let names = self
                .hosts
                .iter()
                .filter(|(id, _)| targets.contains(id))
                .map(|(_, name)| name);
            let names: Vec<_> = names.collect();
            return Ok(json!({ "count": names.len(), "names": names }));
        }
        Err("unknown query; expected actor, from and to, find or preview".to_owned())
    }

    fn dead_letters(&mut self) -> u64 {
        0
    }

    fn digest(&mut self) -> Option<u64> {
        Some(self.sim.digest())
    }
}
