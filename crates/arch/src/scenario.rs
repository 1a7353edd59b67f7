//! The script of a run: all actors are made and introduced, the load begins, half-way the chaos
//! monkey kills an instance of the victim, the load ends, and all actors are told to leave.

use crate::edda::Edda;
use crate::keeper::Keeper;
use crate::log;
use crate::message::Msg;
use crate::model::Model;
use crate::node::Node;
use crate::package::Package;
use crate::registry::Registry;
use crate::topology::{EDDA, SCENARIO};
use corsair::{Actor, AddrRange, AsyncContext, Context, Event, Flow, Scenario, Spawn, Time, Token};
use std::sync::Arc;
use std::time::Duration;

/// After sending to this many instances the others run, so that neither events on their way nor
/// mailboxes outgrow their room.
const CHUNK: u32 = 1024;

/// What the scenario waits for at most between two goodbyes; longer silence means that a full
/// mailbox has dropped one.
const SILENCE: Duration = Duration::from_secs(2);
const TO_SILENCE: Token = Token::new(3);

/// A run of an architecture.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) model: Arc<Model>,
    /// How long the load lasts.
    pub(crate) duration: Duration,
    /// How long requests under way may still be answered after that.
    pub(crate) drain: Duration,
    /// Every entry point makes a request once in so long.
    pub(crate) chat: Duration,
    /// Show services instead of instances in graphs.
    pub(crate) collapse: bool,
}

impl Scenario<Msg> for Simulation {
    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) {
        let actors = self.make(&mut cx).await;
        self.introduce(actors, &mut cx).await;
        let load_at = Time::from_nanos(self.model.load_at);
        cx.sleep(load_at.since(cx.now())).await;
        self.set_load(actors, self.chat, &mut cx);
        cx.sleep(self.duration / 2).await;
        if !self.duration.is_zero() {
            self.kill_victim(actors, &mut cx);
        }
        cx.sleep(self.duration - self.duration / 2).await;
        self.set_load(actors, Duration::ZERO, &mut cx);
        // What registries were asked last is answered, too: there and back.
        let farthest = Duration::from_nanos(self.model.settled / 2);
        cx.sleep(self.drain.max(farthest)).await;
        self.say_goodbye(actors, &mut cx).await;
    }
}

impl Simulation {
    /// Makes all actors: instances, registries, the log.
    async fn make<C: AsyncContext<Msg>>(&self, cx: &mut C) -> AddrRange {
        let model = &self.model;
        let instances = model.topology.len();
        let edda = model.edda();
        let services: Vec<u32> = model.topology.looked_after().collect();
        let keepers = services.len() as u32;
        let names: Vec<String> = (0..=edda + keepers)
            .map(|actor| match actor {
                instance if instance < instances => model.topology.full_name(instance),
                registry if registry < edda => model.topology.registry_name(registry - instances),
                log if log == edda => model.topology.only_name(EDDA),
                keeper => (model.topology).keeper_name(services[(keeper - edda - 1) as usize]),
            })
            .collect();
        let (model_of_actors, collapse) = (Arc::clone(model), self.collapse);
        let actors = cx
            .spawn_actors(Spawn::named(names.into()), move |index| match index {
                instance if instance < instances => {
                    AnyActor::Node(Box::new(Node::new(&model_of_actors, instance)))
                }
                registry if registry < edda => AnyActor::Registry(Box::new(Registry::new(
                    &model_of_actors,
                    registry - instances,
                ))),
                log if log == edda => {
                    AnyActor::Edda(Box::new(Edda::new(&model_of_actors, collapse)))
                }
                keeper => {
                    let number = keeper - edda - 1;
                    AnyActor::Keeper(Box::new(Keeper::new(&model_of_actors, number)))
                }
            })
            .await;
        let _ = model.first.set(actors.get(0).as_u32());
        let recorder = &model.recorder;
        if recorder.wants_graph() || recorder.wants_flows() || recorder.wants_messages() {
            for instance in 0..instances {
                let about = log::describe(model, instance, collapse);
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
        for (number, &service) in (1..).zip(&services) {
            let keeper = actors.get(edda + number);
            recorder.name(cx.now(), keeper, || model.topology.keeper_name(service));
        }
        for (actor, label) in [(actors.get(edda), EDDA), (cx.me(), SCENARIO)] {
            recorder.name(cx.now(), actor, || model.topology.only_name(label));
        }
        actors
    }

    /// Tells all instances of their registries, then of the services they depend on.
    async fn introduce<C: AsyncContext<Msg>>(&self, actors: AddrRange, cx: &mut C) {
        let model = &self.model;
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
        for number in 0..topology.looked_after().count() as u32 {
            cx.send(actors.get(model.first_keeper() + number), Msg::Hello);
        }
        cx.settle().await;
        // All have registered when the first of them asks.
        cx.sleep(Duration::from_nanos(model.settled / 4)).await;
        let (at_once, pause) = model.introduced;
        let pause = Duration::from_nanos(pause);
        if let Some(edges) = &topology.edges {
            // As many at a time as the instances would have.
            let share = (edges.len() as u64 * u64::from(at_once)).div_ceil(topology.len().into());
            for (place, &(source, target)) in (1..).zip(edges) {
                cx.send(actors.get(source), Msg::NameDrop { node: target });
                if place % share.max(1) == 0 && !pause.is_zero() {
                    cx.sleep(pause).await;
                } else if place % u64::from(4 * CHUNK) == 0 {
                    cx.yield_now().await;
                }
            }
            return;
        }
        for instance in 0..topology.len() {
            for &service in &topology.service_of(instance).dependencies {
                cx.send(actors.get(instance), Msg::Depend { service });
            }
            if instance % at_once == at_once - 1 && !pause.is_zero() {
                cx.sleep(pause).await;
            } else if instance % CHUNK == CHUNK - 1 {
                cx.yield_now().await;
            }
        }
    }

    /// Sets how often entry points make requests and pirates gossip; zero: never.
    fn set_load<C: Context<Msg>>(&self, actors: AddrRange, every: Duration, cx: &mut C) {
        let topology = &self.model.topology;
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
    fn kill_victim<C: Context<Msg>>(&self, actors: AddrRange, cx: &mut C) {
        let topology = &self.model.topology;
        if let Some(victim) = topology.victim {
            let instances = topology.services[victim as usize].instances.clone();
            let unlucky = instances.start + cx.below(instances.end - instances.start);
            cx.send(actors.get(unlucky), Msg::Kill);
        }
    }

    /// Tells all actors to leave: those who look after services, instances, then registries, then the log, so that the last
    /// messages of the ones reach the others.
    async fn say_goodbye<C: AsyncContext<Msg>>(&self, actors: AddrRange, cx: &mut C) {
        let model = &self.model;
        let (instances, edda) = (model.topology.len(), model.edda());
        let keepers = edda + 1..edda + 1 + model.topology.looked_after().count() as u32;
        let all = [keepers, 0..instances, instances..edda, edda..edda + 1];
        for range in all.into_iter().filter(|range| !range.is_empty()) {
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
            cx.sleep(Duration::from_nanos(model.settled / 4)).await;
        }
    }

    /// Waits until at most `room` of the actors that were told have not left yet. False if they
    /// never do, because a full mailbox has dropped a goodbye.
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
                log::received(&self.model, body, cx);
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

/// Any actor of an architecture.
#[derive(Debug)]
pub(crate) enum AnyActor {
    Node(Box<Node>),
    Registry(Box<Registry>),
    Edda(Box<Edda>),
    Keeper(Box<Keeper>),
}

impl Actor<Msg> for AnyActor {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        match self {
            AnyActor::Node(node) => node.start(cx),
            AnyActor::Registry(registry) => registry.start(cx),
            AnyActor::Edda(edda) => edda.start(cx),
            AnyActor::Keeper(keeper) => keeper.start(cx),
        }
    }

    #[inline]
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match self {
            AnyActor::Node(node) => node.on(event, cx),
            AnyActor::Registry(registry) => registry.on(event, cx),
            AnyActor::Edda(edda) => edda.on(event, cx),
            AnyActor::Keeper(keeper) => keeper.on(event, cx),
        }
    }
}
