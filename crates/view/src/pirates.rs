//! Pirates in a session. A session can have millions of pirates, of which at most 2,000 are drawn.

mod look;
mod watch;

use crate::command::{Action, Command};
use crate::layout::sunflower;
use crate::world::{GroupSample, Sample, Scene, SceneNode, World};
use crate::{EdgeState, NodeState};
use corsair::fsm::{Fsm, FsmError, Msg, Pirate, Tally, Watch, pirate_name};
use corsair::{Addr, AddrRange, Config, Report, Snapshot, Time};
use corsair_observe::run::{Finished, PausedRun, Pirates as Scenario, Run};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::num::NonZeroU16;
use std::sync::Arc;
pub use watch::PiratesInView;

/// The largest number of drawn pirates, evenly spaced in the order of their names.
const MOST_SHOWN: u32 = 2_000;

/// The pirates' names from a file, and the index of the pirate with each name.
#[derive(Debug)]
struct Listed {
    names: Arc<[String]>,
    places: HashMap<String, u32>,
}

/// Pirates that a session controls. `W` is an additional watch.
#[derive(Debug)]
pub struct Pirates<W: Watch> {
    held: PausedRun<Scenario<PiratesInView<W>>>,
    view: PiratesInView<W>,
    arch: String,
    listed: Option<Listed>,
    count: u32,
    /// The stride between two drawn pirates.
    every: u32,
    /// Mean latency of messages, in seconds.
    latency: f64,
    /// The number of messages that each displayed pirate had sent at the last sample.
    before: Vec<u32>,
    /// The states of the displayed pirates at the last sample.
    last: Vec<NodeState>,
    last_edges: Vec<EdgeState>,
    /// The pirates that commands have killed; all others end with the run.
    killed: HashSet<u32>,
    rates: Vec<f32>,
    delivered: u64,
    sampled_at: Time,
    /// The number of messages that each counted pirate had sent at the last count, and the time of that count.
    counted: (Vec<u32>, Time),
}

impl<W: Watch> Pirates<W> {
    /// Creates the pirates, before their first message.
    ///
    /// # Errors
    /// Returns an [`FsmError`] if the scenario is invalid.
    pub fn new(base: &Config, scenario: Fsm<W>) -> Result<Pirates<W>, FsmError> {
        let (arch, count) = (scenario.arch.clone(), scenario.count());
        let listed = scenario.network.as_ref().map(|network| {
            let names = Arc::clone(network.names());
            let places = (0..).zip(names.iter());
            let places = places.map(|(i, name)| (name.clone(), i)).collect();
            Listed { names, places }
        });
        let view = PiratesInView::new(scenario.watch.clone());
        // Pirates run as handlers, because the state of async bodies cannot be inspected; the result is the same.
        let scenario = Scenario::new(base, scenario.watched_by(view.clone()))?;
        let mut held = Run::new(scenario).hold()?;
        // Pirates are created at the end of a window.
        while view.pirates().is_empty() && held.simulation.step() {}
        let latency = (base.latency.min() + base.latency.max()) / 2;
        let every = count.div_ceil(MOST_SHOWN).max(1);
        let shown = count.div_ceil(every) as usize;
        Ok(Pirates {
            held,
            view,
            arch,
            listed,
            count,
            every,
            latency: latency.as_secs_f64(),
            before: vec![0; shown],
            last: Vec::new(),
            last_edges: Vec::new(),
            killed: HashSet::new(),
            rates: vec![0.0; shown],
            delivered: 0,
            sampled_at: Time::ZERO,
            counted: (Vec::new(), Time::ZERO),
        })
    }

    /// Runs to the end. Returns the report, and the FSM's tally if the run was not cancelled.
    ///
    /// # Errors
    /// If the run fails.
    pub fn finish(self) -> Result<(Report, Option<Tally>), FsmError> {
        let Finished { report, totals } = self.held.finish()?;
        Ok((report, totals))
    }

    fn addresses(&self) -> AddrRange {
        self.view.pirates()
    }

    fn name(&self, index: u32) -> String {
        match &self.listed {
            Some(listed) => listed.names[index as usize].clone(),
            None => pirate_name(&self.arch, index),
        }
    }

    /// Returns the index of the pirate with this name or number.
    fn index(&self, name: &str) -> Result<u32, String> {
        let known = match &self.listed {
            Some(listed) => listed.places.get(name).copied(),
            None => {
                let before = pirate_name(&self.arch, 0);
                let (before, after) = before.rsplit_once('0').unwrap_or_default();
                let number = name
                    .strip_prefix(before)
                    .and_then(|n| n.strip_suffix(after));
                number.unwrap_or(name).parse().ok()
            }
        };
        known.filter(|&index| index < self.count).ok_or_else(|| {
            let example = self.name(self.count - 1);
            format!("there is no pirate '{name}'; there is {example}")
        })
    }

    fn address(&self, index: u32) -> Option<Addr> {
        let all = self.addresses();
        (index < all.len()).then(|| all.get(index))
    }

    fn inspect<T>(&mut self, index: u32, look: impl FnOnce(&Pirate<W::Pirate>) -> T) -> Option<T> {
        let who = self.address(index)?;
        self.held.simulation.inspect(who, look).ok()
    }

    /// Returns the number of messages that the pirate has sent, which wraps around.
    fn sent(&mut self, index: u32) -> u32 {
        let who = self.address(index);
        who.and_then(|who| self.held.simulation.sent(who).ok())
            .unwrap_or_default()
    }

    /// Iterates over the numbers of the displayed pirates.
    fn shown(&self) -> impl Iterator<Item = u32> + use<W> {
        (0..self.count).step_by(self.every as usize)
    }

    fn message(&self, text: &str) -> Result<Msg, String> {
        let mut words = text.split_whitespace();
        let (kind, about, rest) = (words.next(), words.next(), words.next());
        match (kind, about, rest) {
            (Some("gold"), Some(pieces), None) => {
                let pieces = pieces
                    .parse()
                    .ok()
                    .filter(|&pieces: &u32| pieces <= 1_000_000);
                let pieces =
                    pieces.ok_or("gold takes a number up to 1000000, for example gold 7")?;
                Ok(Msg::GoldCoin(pieces))
            }
            (Some("chat"), Some(millis), None) => {
                let period_ms: Option<NonZeroU16> = millis.parse().ok();
                let period_ms =
                    period_ms.ok_or("chat takes 1 to 65535 milliseconds, for example chat 100")?;
                Ok(Msg::Chat { period_ms })
            }
            (Some("namedrop"), Some(name), None) => {
                let buddy = self.address(self.index(name)?);
                let buddy = buddy.ok_or("there are no pirates yet")?;
                Ok(Msg::NameDrop { buddy })
            }
            _ => Err(format!(
                "'{text}' is not a message; expected gold N, chat MS or namedrop NAME"
            )),
        }
    }
}

impl<W: Watch> World for Pirates<W> {
    fn scene(&self) -> Scene {
        let points = sunflower(self.before.len() as u32);
        let nodes = self.shown().zip(&points).map(|(index, &(x, y))| SceneNode {
            name: self.name(index),
            x,
            y,
            service: "pirate".to_owned(),
            package: "pirate".to_owned(),
            region: "*".to_owned(),
            zone: "*".to_owned(),
            count: 1,
            size: 1.0,
            slots: 0,
        });
        let size = 2.0 * (points.len() as f32).sqrt() + 2.0;
        Scene {
            kind: "pirates",
            arch: self.arch.clone(),
            groups: vec!["all".to_owned()],
            nodes: nodes.collect(),
            width: size,
            height: size,
            total: self.count.into(),
            actions: vec!["kill", "send"],
            ..Scene::default()
        }
    }

    fn now(&self) -> Time {
        self.held.simulation.now()
    }

    fn is_over(&self) -> bool {
        self.held.simulation.is_over()
    }

    fn run_until(&mut self, time: Time) {
        self.held.simulation.run_until(time);
    }

    fn step(&mut self) -> bool {
        self.held.simulation.step()
    }

    fn step_actor(&mut self, who: &str) -> Result<bool, String> {
        let index = self.index(who)?;
        let Some(address) = self.address(index) else {
            return Ok(false);
        };
        Ok(self.held.simulation.step_actor(address))
    }

    fn apply(&mut self, command: &Command) -> Result<(), String> {
        let (who, message) = match &command.what {
            Action::Kill { who } => (who, Msg::Goodbye { gold: 0 }),
            Action::Send { who, message } => (who, self.message(message)?),
            other => {
                return Err(format!(
                    "'{other}' is for architectures of services; pirates can be killed, and be sent messages"
                ));
            }
        };
        let index = self.index(who)?;
        let address = self.address(index);
        let address = address.ok_or("there are no pirates yet")?;
        let done = self
            .held
            .simulation
            .inject(command.time(), address, message);
        done.map_err(|error| error.to_string())?;
        if matches!(command.what, Action::Kill { .. }) {
            self.killed.insert(index);
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<Option<Snapshot>, String> {
        let saved = self.held.simulation.snapshot();
        saved.map(Some).map_err(|error| error.to_string())
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), String> {
        let scenario = self.held.workload().again();
        let restored = Run::new(scenario).resume(snapshot.clone()).hold();
        self.held = restored.map_err(|error| error.to_string())?;
        self.counted = (Vec::new(), self.now());
        self.rates.fill(0.0);
        self.killed.clear();
        self.last.clear();
        Ok(())
    }

    fn watch(&mut self, _: bool) {
        self.sampled_at = self.now();
        self.delivered = self.held.simulation.report().delivered();
        let shown: Vec<u32> = self.shown().collect();
        for (place, index) in shown.into_iter().enumerate() {
            self.before[place] = self.sent(index);
        }
    }

    fn sample(&mut self) -> Sample {
        let now = self.now();
        let seconds = now.since(self.sampled_at).as_secs_f64();
        self.sampled_at = now;
        let delivered = self.held.simulation.report().delivered();
        let requests = delivered.saturating_sub(self.delivered);
        self.delivered = delivered;
        let mut nodes = Vec::with_capacity(self.before.len());
        let mut edges = Vec::new();
        let (first, every) = (self.addresses(), self.every);
        let latency = self.latency as f32;
        let shown: Vec<u32> = self.shown().collect();
        for (place, index) in shown.into_iter().enumerate() {
            let seen = self.inspect(index, |pirate| {
                let rate = pirate
                    .period()
                    .map_or(0.0, |period| 0.5 / period.as_secs_f32());
                for &buddy in pirate.buddies() {
                    let to = first.index_of(buddy).filter(|to| to % every == 0);
                    edges.extend(to.map(|to| EdgeState {
                        from: place as u32,
                        to: to / every,
                        rate,
                        errors: 0.0,
                        p50: latency,
                        p99: latency,
                    }));
                }
                (pirate.gold(), pirate.buddies().len())
            });
            let Some((gold, buddies)) = seen else {
                let last = self.last.get(place).copied();
                let last = last.filter(|_| !self.killed.contains(&index));
                nodes.push(last.unwrap_or_else(|| NodeState::default().with(NodeState::GONE)));
                continue;
            };
            let sent = self.sent(index);
            let new = sent.wrapping_sub(std::mem::replace(&mut self.before[place], sent));
            if seconds > 0.0 {
                let part = 1.0 - (-seconds / 2.0).exp();
                let rate = &mut self.rates[place];
                *rate += ((f64::from(new) / seconds - f64::from(*rate)) * part) as f32;
            }
            nodes.push(NodeState {
                bits: 0,
                queue: gold as f32,
                busy: buddies as f32,
                rate: self.rates[place],
                errors: 0.0,
                health: (0, 0),
            });
        }
        if edges.is_empty() {
            edges.clone_from(&self.last_edges);
        } else {
            self.last_edges.clone_from(&edges);
        }
        self.last.clone_from(&nodes);
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
        self.answer(query)
    }

    fn dead_letters(&mut self) -> u64 {
        self.held.simulation.report().dead()
    }

    fn digest(&mut self) -> Option<u64> {
        Some(self.held.simulation.digest())
    }
}
