//! The actor type of an architecture (all except the root), with its construction and serialization.

use crate::controller::Controller;
use crate::edda::Edda;
use crate::message::Msg;
use crate::model::Model;
use crate::node::Node;
use crate::registry::Registry;
use crate::saved::{self, Saving};
use corsair::{Actor, Context, Event, Flow, Kind};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// Any actor of an architecture except the root.
#[derive(Debug)]
pub(crate) enum AnyActor {
    Node(Box<Node>),
    Registry(Box<Registry>),
    Edda(Box<Edda>),
    Controller(Box<Controller>),
}

/// The parameters of actors, besides the model.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct ActorParameters {
    /// True if graphs show services instead of their instances.
    pub(crate) collapse: bool,
}

impl Kind for AnyActor {
    const NAME: &'static str = "corsair.arch.actor";
    type Parameters = ActorParameters;
    type Local = Arc<Model>;

    fn make(parameters: &ActorParameters, model: &Arc<Model>, index: u32) -> AnyActor {
        let (instances, edda) = (model.topology.len(), model.edda());
        match index {
            instance if instance < instances => {
                AnyActor::Node(Box::new(Node::new(model, instance)))
            }
            registry if registry < edda => {
                AnyActor::Registry(Box::new(Registry::new(model, registry - instances)))
            }
            log if log == edda => AnyActor::Edda(Box::new(Edda::new(model, parameters.collapse))),
            controller => {
                AnyActor::Controller(Box::new(Controller::new(model, controller - edda - 1)))
            }
        }
    }

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            AnyActor::Node(node) => (node.index(), Saving(&**node)).serialize(to),
            AnyActor::Registry(registry) => (registry.index, Saving(&**registry)).serialize(to),
            AnyActor::Edda(edda) => (edda.index(), Saving(&**edda)).serialize(to),
            AnyActor::Controller(controller) => {
                (controller.index, Saving(&**controller)).serialize(to)
            }
        }
    }

    fn restore<'de, D: Deserializer<'de>>(from: D, model: &Arc<Model>) -> Result<Self, D::Error> {
        from.deserialize_tuple(2, ActorVisitor(model))
    }
}

/// Reads the number of an actor's type, and then the state of that actor.
struct ActorVisitor<'a>(&'a Arc<Model>);

impl<'de> Visitor<'de> for ActorVisitor<'_> {
    type Value = AnyActor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an actor of an architecture")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<AnyActor, A::Error> {
        let index: u32 = saved::next(&mut from)?;
        if index >= self.0.actors() {
            let actors = self.0.actors();
            let error = format!("its number is {index}, and there are {actors} actors");
            return Err(A::Error::custom(error));
        }
        let collapse = false;
        let mut actor = AnyActor::make(&ActorParameters { collapse }, self.0, index);
        match &mut actor {
            AnyActor::Node(node) => saved::load_next(&mut from, &mut **node)?,
            AnyActor::Registry(registry) => saved::load_next(&mut from, &mut **registry)?,
            AnyActor::Edda(edda) => saved::load_next(&mut from, &mut **edda)?,
            AnyActor::Controller(controller) => saved::load_next(&mut from, &mut **controller)?,
        }
        Ok(actor)
    }
}

impl Actor<Msg> for AnyActor {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        match self {
            AnyActor::Node(node) => node.start(cx),
            AnyActor::Registry(registry) => registry.start(cx),
            AnyActor::Edda(edda) => edda.start(cx),
            AnyActor::Controller(controller) => controller.start(cx),
        }
    }

    #[inline]
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match self {
            AnyActor::Node(node) => node.on(event, cx),
            AnyActor::Registry(registry) => registry.on(event, cx),
            AnyActor::Edda(edda) => edda.on(event, cx),
            AnyActor::Controller(controller) => controller.on(event, cx),
        }
    }

    /// Returns the saved fields by name.
    fn state(&self) -> Option<Value> {
        let written = match self {
            AnyActor::Node(node) => serde_json::to_value(Saving(&**node)),
            AnyActor::Registry(registry) => serde_json::to_value(Saving(&**registry)),
            AnyActor::Edda(edda) => serde_json::to_value(Saving(&**edda)),
            AnyActor::Controller(controller) => serde_json::to_value(Saving(&**controller)),
        };
        Some(written.unwrap_or_else(|error| json!({ "unwritten": error.to_string() })))
    }
}
