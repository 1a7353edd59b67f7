//! What is recorded of actors: what instances are, and a line for each message that is received.

use crate::message::Msg;
use crate::model::Model;
use corsair::{Context, Message};

/// Tells the log, if there is one, of the message that the actor has just received.
#[inline]
pub(crate) fn received<C: Context<Msg>>(model: &Model, message: &Msg, cx: &C) {
    let recorder = &model.recorder;
    if recorder.wants_messages() {
        let (now, from) = (cx.now(), cx.envelope().from);
        let payload = || message.payload(&model.topology);
        recorder.message(now, cx.me(), from, message.kind(), payload);
    }
}

/// What graphs and flows show of an instance.
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
        full_name: topology.full_name(instance),
        service: service.name.clone(),
        package: service.package.name().to_owned(),
        region: at.region_name().to_owned(),
        zone: at.zone_name().to_owned(),
    }
}
