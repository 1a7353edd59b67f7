//! Recording of an instance's calls, spans and messages while it is watched. Actors cannot see the records, so watching
//! does not change the run.

use super::host::Host;
use super::job::PendingRequest;
use crate::message::{Answer, Msg};
use corsair::Context;

impl Host {
    /// Records a call to another instance. Returns the index of its counters.
    #[inline]
    pub(super) fn see_sent(&mut self, to: u32) -> u32 {
        match self.model.interval() {
            0 => 0,
            interval => (self.seen.get_or_insert_default()).count_sent(interval, to),
        }
    }

    /// Records an answer and its duration.
    #[inline]
    pub(super) fn see_answered<C: Context<Msg>>(
        &mut self,
        request: &PendingRequest,
        answer: Answer,
        cx: &C,
    ) {
        let interval = self.model.interval();
        if interval > 0 {
            let seen = self.seen.get_or_insert_default();
            let now = cx.now().as_nanos();
            let (server, lasted) = (request.server, now.saturating_sub(request.sent));
            seen.answer(
                interval,
                (request.seen_at, server),
                answer.is_error(),
                lasted,
            );
            seen.keep_span(&self.model, request, now, answer);
        }
    }

    /// Records a message that has arrived. A response is recorded with its request.
    #[inline]
    pub(super) fn see_message<C: Context<Msg>>(&mut self, message: &Msg, cx: &C) {
        if self.model.interval() > 0 && !matches!(message, Msg::GetResponse { .. }) {
            let seen = self.seen.get_or_insert_default();
            let (now, from) = (cx.now().as_nanos(), cx.envelope().from);
            seen.keep_message(&self.model, now, from, message);
        }
    }
}
