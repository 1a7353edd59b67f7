//! The controller of a service: an autoscaler, which keeps the utilisation near its target, and a health
//! checker, which removes instances that do not answer from the registries.
//!
//! The controller knows only the answers of instances. For example, health checks detect a paused or partitioned
//! instance because it does not answer.

use crate::log;
use crate::message::Msg;
use crate::model::Model;
use crate::ordered::{Ordered, Transit, post};
use crate::saved::state;
use crate::topology::{HealthRules, ScalerRules};
use crate::totals::ServiceTotals;
use corsair::{Actor, Addr, Context, Event, Flow, Token};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The token of the timer after which the controller asks instances for their utilisation. Other timers evaluate the
/// answers and start health checks.
const TO_MEASURE: Token = Token::new(0);
const TO_DECIDE: Token = Token::new(1);
const TO_CHECK: Token = Token::new(2);

/// The relative deviation of the utilisation from its target that is tolerated.
const TOLERANCE: f64 = 0.1;

/// The autoscaler and health checker of a service.
#[derive(Debug)]
pub(crate) struct Controller {
    model: Arc<Model>,
    service: u32,
    /// The index of the controller among all actors, counted like instances.
    pub(crate) index: u32,
    first: u32,
    nodes: Vec<WatchedInstance>,
    /// For each region: the time at which there began to be too many instances, and the highest number of instances
    /// needed since then.
    low: BTreeMap<Option<u8>, (u64, u32)>,
    done: ServiceTotals,
    ordered: Ordered,
}

/// An instance that the controller observes.
#[derive(Debug, Serialize, Deserialize)]
struct WatchedInstance {
    node: u32,
    region: Option<u8>,
    /// True if the instance should serve; `ready_at` is the time from which it does.
    is_wanted: bool,
    ready_at: u64,
    /// The busy time that the instance last reported, and the time of that report.
    last: Option<(u64, u64)>,
    /// The utilisation of the instance between its last two answers.
    utilisation: Option<f64>,
    /// `is_asked` is true if the current health check has asked the instance, and `has_answered` if it has answered.
    is_asked: bool,
    has_answered: bool,
    /// The numbers of consecutive checks without and with an answer.
    missed: u32,
    answered: u32,
    is_ejected: bool,
}

impl WatchedInstance {
    fn serves(&self, now: u64) -> bool {
        self.is_wanted && now >= self.ready_at
    }
}

state!(Controller {
    first,
    nodes,
    low,
    done,
    ordered
});

impl Controller {
    /// Creates the controller with this number.
    pub(crate) fn new(model: &Arc<Model>, number: u32) -> Controller {
        let topology = &model.topology;
        let mut services = topology.looked_after();
        let service = services.nth(number as usize).unwrap_or_default();
        let instances = topology.services[service as usize].defined();
        let nodes = instances.map(|node| WatchedInstance {
            node,
            region: topology.instances[node as usize].at.region,
            is_wanted: !topology.begins_idle(node),
            ready_at: 0,
            last: None,
            utilisation: None,
            is_asked: false,
            has_answered: false,
            missed: 0,
            answered: 0,
            is_ejected: false,
        });
        Controller {
            nodes: nodes.collect(),
            model: Arc::clone(model),
            service,
            index: model.first_controller() + number,
            first: 0,
            low: BTreeMap::new(),
            done: ServiceTotals::default(),
            ordered: Ordered::default(),
        }
    }

    fn scaler(&self) -> Option<ScalerRules> {
        self.model.topology.services[self.service as usize].scaler
    }

    fn health(&self) -> Option<HealthRules> {
        self.model.topology.services[self.service as usize].health_check
    }

    /// Sends a message that arrives `later` nanoseconds later than an ordinary message. If a link loses the message, it
    /// is sent again, except for [`Msg::Probe`], which is repeated periodically anyway.
    fn send_after<C: Context<Msg>>(&mut self, later: u64, to: u32, message: Msg, cx: &mut C) {
        let model = &self.model;
        let transit = Transit {
            sender: self.index,
            receiver: to,
            now: cx.now().as_nanos(),
            travel: model.usual_travel(self.index, to).saturating_add(later),
        };
        let after = match message {
            Msg::Probe => self.ordered.once(model, transit, || cx.random()),
            _ => Some(self.ordered.surely(model, transit, || cx.random())),
        };
        let Some(after) = after else {
            return;
        };
        post(Addr::from_u32(self.first + to), after, message, cx);
    }

    /// Sets the first timers; they expire after the load has begun.
    fn begin<C: Context<Msg>>(&mut self, cx: &mut C) {
        let until = self.model.load_at.saturating_sub(cx.now().as_nanos());
        if self.scaler().is_some() {
            // The first measurement is the baseline of the next.
            cx.timer(Duration::from_nanos(until), TO_MEASURE);
        }
        if let Some(rules) = self.health() {
            let until = until.saturating_add(rules.every);
            cx.timer(Duration::from_nanos(until), TO_CHECK);
        }
    }

    fn timer<C: Context<Msg>>(&mut self, token: Token, cx: &mut C) {
        let now = cx.now().as_nanos();
        if now >= self.model.load_ends {
            return;
        }
        match (token, self.scaler(), self.health()) {
            (TO_MEASURE, Some(rules), _) => {
                for place in 0..self.nodes.len() {
                    if self.nodes[place].serves(now) {
                        self.send_after(0, self.nodes[place].node, Msg::Probe, cx);
                    }
                }
                let answers = self.model.settled.min(rules.every / 2);
                cx.timer(Duration::from_nanos(answers), TO_DECIDE);
                cx.timer(Duration::from_nanos(rules.every), TO_MEASURE);
            }
            (TO_DECIDE, Some(rules), _) => self.decide(rules, cx),
            (TO_CHECK, _, Some(rules)) => {
                self.check(rules, cx);
                cx.timer(Duration::from_nanos(rules.every), TO_CHECK);
            }
            _ => {}
        }
    }

    /// Handles the answer of an instance with its total busy time.
    fn hear<C: Context<Msg>>(&mut self, busy: u64, cx: &C) {
        let (now, from) = (cx.now().as_nanos(), cx.envelope().from);
        let node = from.as_u32().wrapping_sub(self.first);
        let Some(watched) = self.nodes.iter_mut().find(|watched| watched.node == node) else {
            return;
        };
        watched.has_answered = true;
        if let Some((before, at)) = watched.last
            && now > at
        {
            // A decrease of the busy time counts as zero utilisation.
            let busy = busy.saturating_sub(before) as f64;
            watched.utilisation = Some((busy / (now - at) as f64).min(1.0));
        }
        watched.last = Some((busy, now));
    }

    /// Adds and removes instances of each region.
    fn decide<C: Context<Msg>>(&mut self, rules: ScalerRules, cx: &mut C) {
        let mut regions: Vec<Option<u8>> = self.nodes.iter().map(|node| node.region).collect();
        regions.dedup();
        for region in regions {
            let here = || self.nodes.iter().filter(|node| node.region == region);
            let there = here().filter(|node| node.is_wanted).count() as u32;
            let known = here().filter_map(|node| node.utilisation);
            if known.clone().next().is_none() || there == 0 {
                continue;
            }
            // Instances that are still starting have no utilisation yet.
            let busy: f64 = known.sum();
            let part = busy / f64::from(there) / rules.target;
            let wanted = if (part - 1.0).abs() <= TOLERANCE {
                there
            } else {
                libm::ceil(busy / rules.target - 1e-9) as u32
            };
            let wanted = wanted.clamp(rules.least, here().count() as u32);
            let now = cx.now().as_nanos();
            if wanted >= there {
                self.low.remove(&region);
                self.add(region, wanted - there, rules, cx);
                continue;
            }
            let (since, most) = self.low.entry(region).or_insert((now, wanted));
            *most = wanted.max(*most);
            if now - *since >= rules.calm {
                let fewer = there - *most;
                self.low.remove(&region);
                self.remove(region, fewer, cx);
            }
        }
        for watched in &mut self.nodes {
            watched.utilisation = None;
        }
    }

    /// Adds the first `count` idle instances of a region.
    fn add<C: Context<Msg>>(
        &mut self,
        region: Option<u8>,
        count: u32,
        rules: ScalerRules,
        cx: &mut C,
    ) {
        let ready_at = cx.now().as_nanos().saturating_add(rules.delay);
        let here = self.nodes.iter_mut().filter(|node| node.region == region);
        let idle = here.filter(|node| !node.is_wanted).take(count as usize);
        let chosen = idle.map(|watched| {
            watched.is_wanted = true;
            watched.ready_at = ready_at;
            watched.last = None;
            watched.node
        });
        let chosen: Vec<u32> = chosen.collect();
        self.done.started += chosen.len() as u64;
        self.serve(chosen, true, rules.delay, cx);
    }

    /// Removes the last `count` serving instances of a region.
    fn remove<C: Context<Msg>>(&mut self, region: Option<u8>, count: u32, cx: &mut C) {
        let now = cx.now().as_nanos();
        let here = self
            .nodes
            .iter_mut()
            .rev()
            .filter(|node| node.region == region);
        let serving = here.filter(|node| node.serves(now)).take(count as usize);
        let chosen = serving.map(|watched| {
            watched.is_wanted = false;
            watched.is_asked = false;
            watched.is_ejected = false;
            watched.node
        });
        let chosen: Vec<u32> = chosen.collect();
        self.done.stopped += chosen.len() as u64;
        self.serve(chosen, false, 0, cx);
    }

    /// Makes nodes begin or stop serving.
    fn serve<C: Context<Msg>>(&mut self, nodes: Vec<u32>, there: bool, delay: u64, cx: &mut C) {
        for node in nodes {
            self.send_after(delay, node, Msg::Serve { there }, cx);
        }
    }

    /// Evaluates the last health check: removes instances that did not answer from the registries, and restores those
    /// that answered again. Then starts the next check.
    fn check<C: Context<Msg>>(&mut self, rules: HealthRules, cx: &mut C) {
        let now = cx.now().as_nanos();
        for place in 0..self.nodes.len() {
            let watched = &mut self.nodes[place];
            if !watched.serves(now) {
                continue;
            }
            let node = watched.node;
            if watched.is_asked && watched.has_answered {
                (watched.missed, watched.answered) = (0, watched.answered.saturating_add(1));
                if watched.is_ejected && watched.answered >= rules.successes {
                    watched.is_ejected = false;
                    self.tell_registries(node, Msg::Register { node }, cx);
                }
            } else if watched.is_asked {
                (watched.answered, watched.missed) = (0, watched.missed.saturating_add(1));
                if !watched.is_ejected && watched.missed >= rules.failures {
                    watched.is_ejected = true;
                    self.done.ejected += 1;
                    let killed = false;
                    self.tell_registries(node, Msg::Delete { node, killed }, cx);
                }
            }
            let watched = &mut self.nodes[place];
            (watched.is_asked, watched.has_answered) = (true, false);
            self.send_after(0, node, Msg::Probe, cx);
        }
    }

    fn tell_registries<C: Context<Msg>>(&mut self, node: u32, message: Msg, cx: &mut C) {
        let model = Arc::clone(&self.model);
        for registry in model.topology.registries_of(node) {
            self.send_after(0, model.registry(registry), message, cx);
        }
    }
}

/// Adds the controller's totals to the totals of the run when the run ends or is cancelled.
impl Drop for Controller {
    fn drop(&mut self) {
        let mut totals = self.model.totals.lock();
        totals.add_instance(self.service, &self.done, 0);
    }
}

impl Actor<Msg> for Controller {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.first = cx.me().as_u32() - self.index;
    }

    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match event {
            Event::Timer(token) => self.timer(token, cx),
            Event::Message { from, body } => {
                log::received(&self.model, &body, cx);
                match body {
                    Msg::Hello => self.begin(cx),
                    Msg::Pulse { busy } => self.hear(busy, cx),
                    Msg::Goodbye => {
                        cx.send(from, Msg::Goodbye);
                        return Flow::Stop;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Flow::Continue
    }
}
