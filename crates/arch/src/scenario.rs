//! A run of an architecture, as a script: everybody is made and introduced, the load begins, half
//! way the chaos monkey comes, the load ends, and everybody says goodbye.

use crate::edda::Edda;
use crate::log;
use crate::message::Msg;
use crate::model::Model;
use crate::node::{Common, Node};
use crate::package::Package;
use crate::registry::Registry;
use crate::topology::{EDDA, SCENARIO};
use corsair::{Actor, AddrRange, AsyncContext, Context, Event, Flow, Scenario, Spawn, Time, Token};
use std::sync::Arc;
use std::time::Duration;

/// After sending to so many instances the others run, so that neither events on their way nor
/// mailboxes outgrow their room.
const CHUNK: u32 = 1024;

/// After the load has ended, requests under way have at least so long to be answered.
const DRAIN: Duration = Duration::from_millis(500);

/// What the scenario waits for at most between two goodbyes; longer silence means that a full
/// mailbox has dropped one.
const SILENCE: Duration = Duration::from_secs(2);
const TO_SILENCE: Token = Token::new(3);

/// A run of an architecture.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) common: Common,
    /// How long the load lasts.
    pub(crate) duration: Duration,
    /// Every entry point makes a request once in so long.
    pub(crate) chat: Duration,
    /// Show services instead of instances in graphs.
    pub(crate) collapse: bool,
}

impl Scenario<Msg> for Simulation {
    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
        let actors = self.make(&mut cx).await;
        self.introduce(actors, &mut cx).await;
        let load_at = Time::from_nanos(self.common.model.load_at);
        cx.sleep(load_at.since(cx.now())).await;
        self.talk(actors, self.chat, &mut cx);
        cx.sleep(self.duration / 2).await;
        if !self.duration.is_zero() {
            self.unleash_monkey(actors, &mut cx);
        }
        cx.sleep(self.duration - self.duration / 2).await;
        self.talk(actors, Duration::ZERO, &mut cx);
        // What registries were asked last is answered, too: there and back.
        let farthest = Duration::from_nanos(self.common.model.load_at / 2);
        cx.sleep(DRAIN.max(farthest)).await;
        self.say_goodbye(actors, &mut cx).await;
    }
}

impl Simulation {
    fn model(&self) -> &Arc<Model> {
        &self.common.model
    }

    /// Makes all actors: instances, registries, the log.
    async fn make<C: AsyncContext<Msg>>(&self, cx: &mut C) -> AddrRange {
        let model = self.model();
        let instances = model.topology.len();
        let edda = model.edda();
        let names: Vec<String> = (0..=edda)
            .map(|actor| match actor {
                instance if instance < instances => model.topology.full_name(instance),
                registry if registry < edda => model.topology.registry_name(registry - instances),
                _ => model.topology.only_name(EDDA),
            })
            .collect();
        let (common, collapse) = (self.common.clone(), self.collapse);
        let actors = cx
            .spawn_actors(Spawn::named(names.into()), move |index| match index {
                instance if instance < instances => {
                    Anyone::Node(Box::new(Node::new(&common, instance)))
                }
                registry if registry < edda => {
                    Anyone::Registry(Box::new(Registry::new(&common.model, registry - instances)))
                }
                _ => Anyone::Edda(Box::new(Edda::new(&common.model, collapse))),
            })
            .await;
        let recorder = &model.recorder;
        if recorder.wants_graph() || recorder.wants_flows() || recorder.wants_messages() {
            for instance in 0..instances {
                let about = about(model, instance, collapse);
                recorder.node(cx.now(), actors.get(instance), about);
            }
        }
        // The others are in no graph; the log of messages has their names.
        for registry in 0..model.topology.registries() {
            let actor = actors.get(model.registry(registry));
            recorder.name(cx.now(), actor, || {
                model.topology.short_registry_name(registry)
            });
        }
        for (actor, label) in [(actors.get(edda), EDDA), (cx.me(), SCENARIO)] {
            recorder.name(cx.now(), actor, || model.topology.only_name(label));
        }
        actors
    }

    /// Tells everybody of their registries, then of whom they depend on.
    async fn introduce<C: AsyncContext<Msg>>(&self, actors: AddrRange, cx: &mut C) {
        let model = self.model();
        let topology = &model.topology;
        for instance in 0..topology.len() {
            let to = actors.get(instance);
            cx.send(to, Msg::Hello);
            for registry in topology.registries_of(instance) {
                let registry = model.registry(registry);
                cx.send(to, Msg::Inform { registry });
            }
            if instance % CHUNK == CHUNK - 1 {
                cx.yield_now().await;
            }
        }
        cx.settle().await;
        // All have registered when the first of them asks.
        cx.sleep(Duration::from_nanos(model.load_at / 4)).await;
        if let Some(edges) = &topology.edges {
            for (place, &(source, target)) in (1..).zip(edges) {
                cx.send(actors.get(source), Msg::NameDrop { node: target });
                if place % (4 * CHUNK) == 0 {
                    cx.yield_now().await;
                }
            }
            return;
        }
        for instance in 0..topology.len() {
            for &service in &topology.service_of(instance).dependencies {
                cx.send(actors.get(instance), Msg::Depend { service });
            }
            if instance % CHUNK == CHUNK - 1 {
                cx.yield_now().await;
            }
        }
    }

    /// Lets all that talk by themselves do it so often; zero: no more.
    fn talk<C: Context<Msg>>(&self, actors: AddrRange, every: Duration, cx: &mut C) {
        let topology = &self.model().topology;
        let period = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        for service in &topology.services {
            let pirates = service.package == Package::Pirate;
            if !pirates && service.package != Package::Denominator {
                continue;
            }
            for instance in service.instances.clone() {
                let to = actors.get(instance);
                if pirates && period > 0 {
                    let gold = cx.below(100);
                    cx.send(to, Msg::GoldCoin(gold));
                }
                cx.send(to, Msg::Chat { period });
            }
        }
    }

    /// Kills a random instance of the victim.
    fn unleash_monkey<C: Context<Msg>>(&self, actors: AddrRange, cx: &mut C) {
        let topology = &self.model().topology;
        if let Some(victim) = topology.victim {
            let instances = topology.services[victim as usize].instances.clone();
            let unlucky = instances.start + cx.below(instances.end - instances.start);
            cx.send(actors.get(unlucky), Msg::Kill);
        }
    }

    /// Ends everybody: instances, then registries, then the log, so that what the ones say at last
    /// reaches the others.
    async fn say_goodbye<C: AsyncContext<Msg>>(&self, actors: AddrRange, cx: &mut C) {
        let model = self.model();
        let (instances, edda) = (model.topology.len(), model.edda());
        for range in [0..instances, instances..edda, edda..edda + 1] {
            let mut asked = 0;
            let mut answered = 0;
            let last = range.end;
            for actor in range {
                cx.send(actors.get(actor), Msg::Goodbye);
                asked += 1;
                let room = if actor + 1 == last { 0 } else { CHUNK };
                if !self.goodbyes(cx, &mut answered, asked, room).await {
                    break;
                }
            }
            let settled = Duration::from_nanos(model.load_at / 4);
            cx.sleep(settled).await;
        }
    }

    /// Waits until at most `room` of those asked have not said goodbye. Whether they do: not where
    /// full mailboxes drop messages.
    async fn goodbyes<C: AsyncContext<Msg>>(
        &self,
        cx: &mut C,
        answered: &mut u32,
        asked: u32,
        room: u32,
    ) -> bool {
        if asked - *answered <= room {
            return true;
        }
        let mut last = *answered;
        cx.timer(SILENCE, TO_SILENCE);
        while asked - *answered > room {
            let event = cx.recv().await;
            if let Event::Message { body, .. } = &event {
                log::received(self.model(), body, cx);
            }
            match event {
                Event::Message {
                    body: Msg::Goodbye, ..
                } => *answered += 1,
                // Timers that were set for earlier goodbyes come too; they find that some have come.
                Event::Timer(TO_SILENCE) if last == *answered => return false,
                Event::Timer(TO_SILENCE) => {
                    last = *answered;
                    cx.timer(SILENCE, TO_SILENCE);
                }
                _ => {}
            }
        }
        true
    }
}

/// What graphs and flows show of an instance.
pub(crate) fn about(model: &Model, instance: u32, collapse: bool) -> corsair_observe::Node {
    let topology = &model.topology;
    let service = topology.service_of(instance);
    let at = model.instance(instance).at;
    corsair_observe::Node {
        name: match collapse {
            true => topology.collapsed_name(instance),
            false => topology.short_name(instance),
        },
        full_name: topology.full_name(instance),
        service: service.name.clone(),
        package: service.package.name().to_owned(),
        region: at.region_name().to_owned(),
        zone: at.zone_name().to_owned(),
    }
}

/// Any actor of an architecture.
#[derive(Debug)]
enum Anyone {
    Node(Box<Node>),
    Registry(Box<Registry>),
    Edda(Box<Edda>),
}

impl Actor<Msg> for Anyone {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        match self {
            Anyone::Node(node) => node.start(cx),
            Anyone::Registry(registry) => registry.start(cx),
            Anyone::Edda(edda) => edda.start(cx),
        }
    }

    #[inline]
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match self {
            Anyone::Node(node) => node.on(event, cx),
            Anyone::Registry(registry) => registry.on(event, cx),
            Anyone::Edda(edda) => edda.on(event, cx),
        }
    }
}
