//! Recording of an instance's calls, spans and messages while it is watched. Actors cannot see the records, so watching
//! does not change the run.

use super::host::Host;
use super::job::PendingRequest;
use crate::message::{Answer, Msg};
use corsair::{Addr, Context};
use std::sync::atomic::Ordering;

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
        if self.model.interval() > 0 {
            self.record_answer(request, answer, cx.now().as_nanos());
        }
    }

    #[inline(never)]
    fn record_answer(&mut self, request: &PendingRequest, answer: Answer, now: u64) {
        let seen = self.seen.get_or_insert_default();
        seen.answer(
            self.model.interval(),
            (request.seen_at, request.server),
            answer.is_error(),
            now.saturating_sub(request.sent),
        );
        if self.model.traces.load(Ordering::Relaxed) {
            seen.keep_span(&self.model, request, now, answer);
        }
    }

    /// Records a message that has arrived, and is not a response: a response is recorded with its request.
    #[inline]
    pub(super) fn see_message(&mut self, message: &Msg, from: Addr, now: u64) {
        if self.model.interval() > 0 && self.model.traces.load(Ordering::Relaxed) {
            let seen = self.seen.get_or_insert_default();
            seen.keep_message(&self.model, now, from, message);
        }
    }
}
