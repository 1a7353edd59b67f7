//! The log of messages: a line for each that an actor receives.

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
