//! An architecture of services under the control of a session.

mod definition;
mod look;
mod scene;
mod targets;
mod traffic;

use crate::command::{Action, Command};
use crate::world::{GroupSample, Mark, Sample, Scene, World};
use crate::{Layout, NodeState};
use corsair::{Config, Report, Snapshot, Time};
use corsair_arch::live::{InstanceState, Live};
use corsair_arch::{Package, Plan, SimulateError, Topology, Totals};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Duration;
use traffic::Traffic;

/// An architecture of services that a session controls.
#[derive(Debug)]
pub struct Services {
    live: Live,
    config: Config,
    plan: Plan,
    /// The default interval between requests of entry points that define no load.
    chat: Duration,
    /// The instances by name.
    labels: HashMap<String, u32>,
    layout: Layout,
    scene: Scene,
    /// The groups to whose measurements each instance contributes: its service, and its zone.
    measured: Vec<(usize, usize)>,
    edges: Traffic,
    folded_edges: Traffic,
    /// The numbers of requests and of errors per second that each instance has answered.
    answered: Vec<(f32, f32)>,
    /// The states of instances at the last sample.
    before: Vec<Option<InstanceState>>,
    /// The states of the last sample before the end of the run.
    last: Vec<NodeState>,
    sampled_at: Time,
}

impl Services {
    /// Creates an architecture in its initial state.
    ///
    /// ```
    /// use corsair::{Config, Time};
    /// use corsair_arch::{Plan, Scale, Topology, read};
    /// use corsair_view::{Action, Command, Services, World};
    /// use std::path::Path;
    ///
    /// let topology = Topology::new(&read("lamp", Path::new("json_arch"))?, Scale::default())?;
    /// let mut lamp = Services::new(&Config::default(), topology, &Plan::default())?;
    /// lamp.run_until(Time::from_nanos(1_000_000_000));
    /// let kill = Action::Kill { who: "memcache".to_owned() };
    /// lamp.apply(&Command { at: 2_000_000_000, what: kill })?;
    /// lamp.run_until(Time::from_nanos(3_000_000_000));
    /// assert_eq!(lamp.now(), Time::from_nanos(3_000_000_000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Returns a [`SimulateError`] if the architecture cannot be simulated.
    pub fn new(
        config: &Config,
        topology: Topology,
        plan: &Plan,
    ) -> Result<Services, SimulateError> {
        let live = Live::new(config, topology, plan)?;
        let (scene, layout, measured) = scene::scene(&live);
        let topology = live.topology();
        let instances = topology.len();
        Ok(Services {
            labels: (0..instances).map(|i| (topology.label(i), i)).collect(),
            answered: vec![(0.0, 0.0); instances as usize],
            before: vec![None; instances as usize],
            last: Vec::new(),
            edges: Traffic::default(),
            folded_edges: Traffic::default(),
            sampled_at: Time::ZERO,
            scene,
            layout,
            measured,
            chat: plan.chat,
            config: config.clone(),
            plan: plan.clone(),
            live,
        })
    }

    /// Adds stages of a story to the timeline; their times are in seconds after the start of the load.
    #[must_use]
    pub fn with_stages(mut self, stages: impl IntoIterator<Item = Mark>) -> Services {
        let begins = self.scene.load.map_or(0.0, |(begins, _)| begins);
        let marks = &mut self.scene.marks;
        marks.extend(stages.into_iter().map(|stage| Mark {
            at: begins + stage.at,
            ..stage
        }));
        marks.sort_by(|a, b| a.at.total_cmp(&b.at));
        self
    }

    /// Returns the architecture, including the instances for which there is additional capacity.
    pub fn topology(&self) -> &Topology {
        self.live.topology()
    }

    /// Runs to the end, and returns the report and the totals of the run.
    ///
    /// # Errors
    /// If the run fails.
    pub fn finish(self) -> Result<(Report, Totals), SimulateError> {
        self.live.finish()
    }

    /// Adds the traffic of the interval to edges and groups.
    fn add_traffic(&mut self, seconds: f64, groups: &mut [GroupSample]) {
        let Services {
            live,
            edges,
            folded_edges,
            layout,
            measured,
            answered,
            ..
        } = self;
        let instances = live.topology().len();
        let mut served = vec![(0u64, 0u64); instances as usize];
        for from in 0..instances {
            live.recent(from, |to, recent| {
                edges.add((from, to), &recent, true);
                let group = |node: u32| layout.groups_of[node as usize];
                folded_edges.add((group(from), group(to)), &recent, false);
                served[to as usize].0 += recent.answered;
                served[to as usize].1 += recent.errors;
            });
        }
        edges.end_interval(seconds, |_| {});
        // A folded node has the instances of one service in one zone.
        folded_edges.end_interval(seconds, |edge| {
            let ends = [edge.state.from, edge.state.to];
            let [from, to] = ends.map(|group| layout.groups[group as usize].0);
            let is_entry = live.topology().service_of(from).package == Package::Denominator;
            let (service, zone) = measured[to as usize];
            for group in [service, zone].into_iter().chain(is_entry.then_some(0)) {
                groups[group].requests += edge.new.1;
                groups[group].errors += edge.new.2;
                groups[group].times.merge(&edge.times);
            }
        });
        let weight = traffic::weight(seconds);
        for (rates, (requests, errors)) in answered.iter_mut().zip(served) {
            rates.0 = traffic::smooth(rates.0, requests as f64 / seconds, weight);
            rates.1 = traffic::smooth(rates.1, errors as f64 / seconds, weight);
        }
    }

    /// Returns the state of each instance, and adds its measurements.
    fn states(&mut self, nanos: u64, groups: &mut [GroupSample]) -> Vec<NodeState> {
        let instances = self.live.topology().len();
        let mut nodes = Vec::with_capacity(instances as usize);
        for instance in 0..instances {
            let place = instance as usize;
            let Some(state) = self.live.state(instance) else {
                nodes.push(self.without_state(place));
                continue;
            };
            let before = self.before[place].replace(state);
            let (rate, errors) = self.answered[place];
            nodes.push(NodeState {
                bits: bits(&state),
                queue: state.queue as f32,
                busy: state.busy.max(state.in_progress) as f32,
                rate,
                errors: if rate > 0.0 { errors / rate } else { 0.0 },
                health: (0, 0),
            });
            let costs = &self.live.topology().service_of(instance).costs;
            let done = |of: fn(&InstanceState) -> u64| {
                before.map_or(0, |before| of(&state).saturating_sub(of(&before)))
            };
            let (used, usable) = match (costs.concurrency, costs.processors) {
                (Some(slots), _) => (
                    done(|state| state.slot_nanos),
                    nanos.saturating_mul(slots.into()),
                ),
                (None, Some(processors)) => (
                    done(|state| state.worked_nanos),
                    (nanos as f64 * processors) as u64,
                ),
                (None, None) => (0, 0),
            };
            let unrouted = done(|state| state.unrouted);
            let (service, zone) = self.measured[place];
            for group in [0, service, zone] {
                let group = &mut groups[group];
                group.queue += u64::from(state.queue);
                group.used = group.used.saturating_add(used);
                group.usable = group.usable.saturating_add(usable);
                group.requests += unrouted;
                group.errors += unrouted;
            }
        }
        nodes
    }

    /// Returns the state of an instance that has not begun, or has ended: its last known state, if there is one.
    fn without_state(&self, place: usize) -> NodeState {
        match self.last.get(place) {
            Some(last) if last.bits & NodeState::GONE == 0 => *last,
            _ if self.live.is_over() => NodeState::default(),
            _ => NodeState::default().with(NodeState::GONE),
        }
    }

    fn fold(&self, nodes: &[NodeState]) -> Vec<NodeState> {
        let mut folded = vec![NodeState::default(); self.layout.groups.len()];
        let mut gone = vec![0u32; folded.len()];
        for (node, &group) in nodes.iter().zip(&self.layout.groups_of) {
            let group = group as usize;
            let sum = &mut folded[group];
            gone[group] += u32::from(node.bits & NodeState::GONE != 0);
            sum.bits |= node.bits & !NodeState::GONE;
            let is = |bits| node.bits & bits != 0;
            let (up, all) = sum.health;
            if !is(NodeState::AWAY) {
                let serves = !is(NodeState::GONE | NodeState::DOWN);
                sum.health = (up.saturating_add(serves.into()), all.saturating_add(1));
            }
            sum.queue += node.queue;
            sum.busy += node.busy;
            sum.errors += node.errors * node.rate;
            sum.rate += node.rate;
        }
        for ((sum, gone), about) in folded.iter_mut().zip(gone).zip(&self.scene.folded) {
            if sum.rate > 0.0 {
                sum.errors /= sum.rate;
            }
            if gone == about.count {
                sum.bits = NodeState::GONE;
            }
        }
        folded
    }
}

fn bits(state: &InstanceState) -> u8 {
    let all = [
        (state.is_down, NodeState::DOWN),
        (state.is_paused, NodeState::PAUSED),
        (state.is_cut_off, NodeState::CUT_OFF),
        (state.slow_percent != 100, NodeState::SLOW),
        (state.is_away, NodeState::AWAY),
    ];
    let set = all.into_iter().filter(|(is, _)| *is);
    set.fold(0, |bits, (_, bit)| bits | bit)
}

impl World for Services {
    fn scene(&self) -> Scene {
        self.scene.clone()
    }

    fn now(&self) -> Time {
        self.live.now()
    }

    fn is_over(&self) -> bool {
        self.live.is_over()
    }

    fn run_until(&mut self, time: Time) {
        self.live.simulation().run_until(time);
    }

    fn step(&mut self) -> bool {
        self.live.simulation().step()
    }

    fn step_actor(&mut self, who: &str) -> Result<bool, String> {
        let instance = self.instance(who)?;
        let Some(address) = self.live.address(instance) else {
            return Ok(false);
        };
        Ok(self.live.simulation().step_actor(address))
    }

    fn apply(&mut self, command: &Command) -> Result<(), String> {
        self.tell(command)
    }

    fn lacks_room(&self, what: &Action) -> Option<(String, u32)> {
        let Action::Scale { service, count } = what else {
            return None;
        };
        let services = &self.live.topology().services;
        let found = services.iter().find(|found| found.name == *service)?;
        (*count > found.instances.len() as u32).then(|| (service.clone(), *count))
    }

    fn checkpoint(&mut self) -> Result<Option<Snapshot>, String> {
        let saved = self.live.simulation().snapshot();
        saved.map(Some).map_err(|error| error.to_string())
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let topology = self.live.topology().clone();
        let resumed = Live::resume(&self.config, topology, &self.plan, snapshot);
        self.live = resumed.map_err(|error| error.to_string())?;
        self.edges = Traffic::default();
        self.folded_edges = Traffic::default();
        self.answered.fill((0.0, 0.0));
        self.last.clear();
        Ok(())
    }

    fn watch(&mut self, watch: bool) {
        self.live.watch(watch);
        self.live.next_interval();
        self.sampled_at = self.live.now();
        self.before.fill(None);
    }

    fn record(&mut self, record: bool) {
        self.live.record(record);
    }

    fn sample(&mut self) -> Sample {
        let now = self.live.now();
        let passed = now.since(self.sampled_at);
        self.sampled_at = now;
        let mut groups = vec![GroupSample::default(); self.scene.groups.len()];
        // Actors that have ended do not report their last interval.
        if !passed.is_zero() && !self.live.is_over() {
            self.add_traffic(passed.as_secs_f64(), &mut groups);
            self.live.next_interval();
        }
        let nodes = self.states(passed.as_nanos() as u64, &mut groups);
        self.last.clone_from(&nodes);
        Sample {
            folded: self.fold(&nodes),
            edges: self.edges.states(),
            folded_edges: self.folded_edges.states(),
            nodes,
            groups,
        }
    }

    fn look(&mut self, query: &Value) -> Result<Value, String> {
        self.answer(query)
    }

    fn as_definition(&self, commands: &[Command]) -> Result<Value, String> {
        self.definition(commands)
    }

    fn dead_letters(&mut self) -> u64 {
        self.live.simulation().report().dead()
    }

    fn digest(&mut self) -> Option<u64> {
        Some(self.live.simulation().digest())
    }
}
