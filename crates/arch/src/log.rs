//! Records of actors: descriptions of instances, and log lines of received messages.

use crate::message::{Change, Msg};
use crate::model::Model;
use crate::topology::Topology;
use corsair::{Context, Message};
use std::time::Duration;

/// Records the message that the actor has just received, if messages are logged.
#[inline]
pub(crate) fn received<C: Context<Msg>>(model: &Model, message: &Msg, cx: &C) {
    if model.recorder.wants_messages() {
        record(model, message, cx);
    }
}

#[inline(never)]
fn record<C: Context<Msg>>(model: &Model, message: &Msg, cx: &C) {
    let (now, from) = (cx.now(), cx.envelope().from);
    let payload = || message.payload(&model.topology);
    let recorder = &model.recorder;
    recorder.message(now, cx.me(), from, message.kind(), payload);
}

impl Msg {
    /// Formats the contents of the message for a log, with the names of a topology.
    pub fn payload(&self, topology: &Topology) -> String {
        let instance = |node: u32| topology.full_name(node);
        let service = |service: u32| topology.services[service as usize].name.clone();
        match *self {
            Msg::Hello | Msg::Goodbye => String::new(),
            Msg::Kill => "killed".to_owned(),
            Msg::Command(command) => format!("{command:?}").to_lowercase(),
            Msg::Probe => "how busy?".to_owned(),
            Msg::Pulse { busy } => format!("busy for {:?}", Duration::from_nanos(busy)),
            Msg::Serve { there } => if there { "serve" } else { "rest" }.to_owned(),
            Msg::NameDrop { node } | Msg::Forget { node } | Msg::Register { node } => {
                instance(node)
            }
            Msg::Depend { service: it } | Msg::LookUp { service: it } => service(it),
            Msg::Chat { period } => format!("{:?}", Duration::from_nanos(period)),
            Msg::GoldCoin(gold) => gold.to_string(),
            // Registries are numbered after the instances.
            Msg::Inform { registry } => topology.registry_name(registry - topology.len()),
            Msg::Edge { source, target } | Msg::ForgetEdge { source, target } => {
                format!("{} {}", instance(source), instance(target))
            }
            Msg::GetRequest(call, _)
            | Msg::Put(call)
            | Msg::PutOwned(call)
            | Msg::Replicate(call)
            | Msg::ReplicateRegion(call) => match call.key.as_endpoint() {
                Some((endpoint, ..)) => topology.endpoints.name(endpoint).unwrap_or_default(),
                None => call.key.text(),
            },
            Msg::GetResponse { answer, .. } => format!("{answer:?}").to_lowercase(),
            Msg::ReplicateNode(Change { node, .. }) | Msg::Delete { node, .. } => instance(node),
        }
    }
}

/// Describes an instance for graphs and flows.
pub(crate) fn describe(model: &Model, instance: u32, collapse: bool) -> corsair_observe::Node {
    let topology = &model.topology;
    let service = topology.service_of(instance);
    let at = model.instance(instance).at;
    corsair_observe::Node {
        name: if collapse {
            topology.collapsed_name(instance)
        } else {
            topology.short_name(instance)
        },
        container: service.container.clone(),
        full_name: topology.full_name(instance),
        service: service.name.clone(),
        package: service.package.name().to_owned(),
        region: at.region_name(&topology.places).to_owned(),
        zone: at.zone_name(&topology.places).to_owned(),
    }
}
