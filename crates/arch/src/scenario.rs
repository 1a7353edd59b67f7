//! The script of a run. All actors are created and introduced, and the load begins. Halfway the chaos monkey kills an
//! instance of the victim. Then the load ends, and all actors are asked to leave.

mod actor;
mod farewell;
mod kind;

pub(crate) use actor::{ActorParameters, AnyActor};
pub(crate) use kind::{SceneParameters, kinds};

use crate::log;
use crate::message::Msg;
use crate::model::Model;
use crate::package::Package;
use crate::topology::{EDDA, SCENARIO};
use corsair::{
    Addr, AddrRange, AsyncContext, Context, Event, Scenario, Script, Spawn, Time, Wait, perform,
};
use farewell::Farewell;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The number of instances after which the root yields to other actors, so that pending events and mailboxes stay
/// small.
const CHUNK: u32 = 1024;

/// The root of a run of an architecture.
#[derive(Debug)]
pub struct Scene {
    pub(crate) model: Arc<Model>,
    parameters: SceneParameters,
    actors: AddrRange,
    stage: Stage,
    farewell: Farewell,
}

/// The next action of the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    Make,
    Made,
    /// Sends the registries to instances, beginning with this one.
    Greet(u32),
    /// Waits until all instances are registered, so that the first look-up finds them all.
    Registered,
    /// Sends dependencies to instances, beginning with this instance, or with this edge if a graph defines the
    /// connections.
    Introduce(u32),
    WaitForLoad,
    Load,
    HalfTime,
    EndOfLoad,
    Goodbye,
}

impl Scene {
    pub(crate) fn new(model: Arc<Model>, parameters: SceneParameters) -> Scene {
        Scene {
            model,
            parameters,
            actors: AddrRange::new(Addr::NONE, 0),
            stage: Stage::Make,
            farewell: Farewell::default(),
        }
    }
}

impl Scenario<Msg> for Scene {
    async fn root<C: AsyncContext<Msg>>(self, cx: C) {
        perform(self, cx).await;
    }
}

impl Script<Msg> for Scene {
    fn resume<C: Context<Msg>>(&mut self, event: Option<Event<Msg>>, cx: &mut C) -> Wait {
        let SceneParameters {
            duration,
            drain,
            chat,
            ..
        } = self.parameters;
        if self.stage == Stage::Goodbye {
            return self.farewell.resume(event, &self.model, self.actors, cx);
        }
        loop {
            let (next, wait) = match self.stage {
                Stage::Make => (Stage::Made, Some(Wait::Spawned(self.make(cx)))),
                Stage::Made => {
                    if let Some(Event::Spawned { first, count, .. }) = event {
                        self.actors = AddrRange::new(first, count);
                    }
                    self.record(cx);
                    (Stage::Greet(0), None)
                }
                Stage::Greet(from) => self.greet(from, cx),
                Stage::Registered => {
                    let wait = Duration::from_nanos(self.model.settled / 4);
                    (Stage::Introduce(0), Some(Wait::Sleep(wait)))
                }
                Stage::Introduce(from) => self.introduce(from, cx),
                Stage::WaitForLoad => {
                    let load_at = Time::from_nanos(self.model.load_at);
                    (Stage::Load, Some(Wait::Sleep(load_at.since(cx.now()))))
                }
                Stage::Load => {
                    self.set_load(chat, cx);
                    (Stage::HalfTime, Some(Wait::Sleep(duration / 2)))
                }
                Stage::HalfTime => {
                    if !duration.is_zero() {
                        self.kill_victim(cx);
                    }
                    let left = duration - duration / 2;
                    (Stage::EndOfLoad, Some(Wait::Sleep(left)))
                }
                Stage::EndOfLoad => {
                    self.set_load(Duration::ZERO, cx);
                    // Registries still answer requests that were sent at the end of the load.
                    let farthest = Duration::from_nanos(self.model.settled / 2);
                    (Stage::Goodbye, Some(Wait::Sleep(drain.max(farthest))))
                }
                Stage::Goodbye => unreachable!("it waits before it says goodbye"),
            };
            self.stage = next;
            if let Some(wait) = wait {
                return wait;
            }
        }
    }
}

impl Scene {
    /// Spawns all actors: instances, registries, the log and controllers.
    fn make<C: Context<Msg>>(&self, cx: &mut C) -> u32 {
        let model = &self.model;
        let instances = model.topology.len();
        let edda = model.edda();
        let services: Vec<u32> = model.topology.looked_after().collect();
        let names: Vec<String> = (0..model.actors())
            .map(|actor| match actor {
                instance if instance < instances => model.topology.full_name(instance),
                registry if registry < edda => model.topology.registry_name(registry - instances),
                log if log == edda => model.topology.only_name(EDDA),
                controller => {
                    (model.topology).controller_name(services[(controller - edda - 1) as usize])
                }
            })
            .collect();
        let collapse = self.parameters.collapse;
        let how = Spawn::named(names.into());
        cx.spawn_kind_request::<AnyActor>(how, ActorParameters { collapse }, Arc::clone(model))
    }

    /// Records the names and descriptions of all actors.
    fn record<C: Context<Msg>>(&self, cx: &C) {
        let (model, actors) = (&self.model, self.actors);
        let _ = model.first.set(actors.get(0).as_u32());
        let recorder = &model.recorder;
        if recorder.wants_graph() || recorder.wants_flows() || recorder.wants_messages() {
            for instance in 0..model.topology.len() {
                let about = log::describe(model, instance, self.parameters.collapse);
                recorder.node(cx.now(), actors.get(instance), about);
            }
        }
        // The other actors are not in graphs, but the log of messages needs their names.
        for registry in 0..model.topology.registries() {
            let actor = actors.get(model.registry(registry));
            recorder.name(cx.now(), actor, || {
                model.topology.short_registry_name(registry)
            });
        }
        for (number, service) in (1..).zip(model.topology.looked_after()) {
            let controller = actors.get(model.edda() + number);
            recorder.name(cx.now(), controller, || {
                model.topology.controller_name(service)
            });
        }
        for (actor, label) in [(actors.get(model.edda()), EDDA), (cx.me(), SCENARIO)] {
            recorder.name(cx.now(), actor, || model.topology.only_name(label));
        }
    }

    /// Informs the next group of instances of their registries.
    fn greet<C: Context<Msg>>(&self, from: u32, cx: &mut C) -> (Stage, Option<Wait>) {
        let (model, topology) = (&self.model, &self.model.topology);
        let end = topology.len().min(from + CHUNK);
        for instance in from..end {
            let to = self.actors.get(instance);
            cx.send(to, Msg::Hello);
            for registry in topology.registries_of(instance) {
                let registry = model.registry(registry);
                cx.send(to, Msg::Inform { registry });
            }
        }
        if end == from + CHUNK {
            return (Stage::Greet(end), Some(Wait::Yield));
        }
        for controller in model.first_controller()..model.actors() {
            cx.send(self.actors.get(controller), Msg::Hello);
        }
        (Stage::Registered, Some(Wait::Settle))
    }

    /// Informs the next group of instances of the services that they depend on.
    fn introduce<C: Context<Msg>>(&self, from: u32, cx: &mut C) -> (Stage, Option<Wait>) {
        let topology = &self.model.topology;
        let (at_once, pause) = self.model.introduced;
        let pause = (pause > 0).then(|| Wait::Sleep(Duration::from_nanos(pause)));
        if let Some(edges) = &topology.edges {
            // The number of edges in a group corresponds to the number of instances in a group.
            let share = (edges.len() as u64 * u64::from(at_once)).div_ceil(topology.len().into());
            let left = edges.iter().skip(from as usize);
            for (place, &(source, target)) in (from + 1..).zip(left) {
                cx.send(self.actors.get(source), Msg::NameDrop { node: target });
                let next = Stage::Introduce(place);
                if u64::from(place) % share.max(1) == 0 && pause.is_some() {
                    return (next, pause);
                } else if place % (4 * CHUNK) == 0 {
                    return (next, Some(Wait::Yield));
                }
            }
            return (Stage::WaitForLoad, None);
        }
        for instance in from..topology.len() {
            for &service in &topology.service_of(instance).dependencies {
                cx.send(self.actors.get(instance), Msg::Depend { service });
            }
            let next = Stage::Introduce(instance + 1);
            if instance % at_once == at_once - 1 && pause.is_some() {
                return (next, pause);
            } else if instance % CHUNK == CHUNK - 1 {
                return (next, Some(Wait::Yield));
            }
        }
        (Stage::WaitForLoad, None)
    }

    /// Sets the request period of entry points and the gossip period of pirates; zero means never.
    fn set_load<C: Context<Msg>>(&self, every: Duration, cx: &mut C) {
        let topology = &self.model.topology;
        let period = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        for service in &topology.services {
            let pirates = service.package == Package::Pirate;
            if !pirates && service.package != Package::Denominator {
                continue;
            }
            for instance in service.instances.clone() {
                let to = self.actors.get(instance);
                if pirates && period > 0 {
                    let gold = cx.below(100);
                    cx.send(to, Msg::GoldCoin(gold));
                }
                cx.send(to, Msg::Chat { period });
            }
        }
    }

    /// Kills a random instance of the victim.
    fn kill_victim<C: Context<Msg>>(&self, cx: &mut C) {
        let topology = &self.model.topology;
        if let Some(victim) = topology.victim {
            let instances = topology.services[victim as usize].defined();
            let unlucky = instances.start + cx.below(instances.end - instances.start);
            cx.send(self.actors.get(unlucky), Msg::Kill);
        }
    }
}
