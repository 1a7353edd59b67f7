//! Recording of an instance's calls, spans and messages while it is watched. Actors cannot see the records, so watching
//! does not change the run.

use super::host::Host;
use super::job::PendingRequest;
use crate::live::seen::{InstanceHistory, SpanSeen};
use crate::message::{Answer, Msg};
use corsair::{Context, SpanId};

impl Host {
    /// Returns the number of the interval that is being watched, and the history to record it in.
    fn watched(&mut self) -> Option<(u32, &mut InstanceHistory)> {
        let interval = self.model.interval();
        (interval > 0).then(|| (interval, &mut **self.seen.get_or_insert_default()))
    }

    /// Records a call to another instance. Returns the index of its counters.
    #[inline]
    pub(super) fn see_sent(&mut self, to: u32) -> u32 {
        match self.model.interval() {
            0 => 0,
            _ => self.count_sent(to),
        }
    }

    #[inline(never)]
    fn count_sent(&mut self, to: u32) -> u32 {
        let Some((interval, seen)) = self.watched() else {
            return 0;
        };
        let place = seen.place_of(to);
        let calls = seen.calls_at(place, to);
        calls.enter(interval);
        calls.sent += 1;
        place
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
            self.keep_answered(request, answer, cx);
        }
    }

    #[inline(never)]
    fn keep_answered<C: Context<Msg>>(&mut self, request: &PendingRequest, answer: Answer, cx: &C) {
        let now = cx.now().as_nanos();
        let period = self.model.details();
        let Some((interval, seen)) = self.watched() else {
            return;
        };
        let PendingRequest {
            ref job,
            server,
            sent,
            span,
            seen_at,
            ..
        } = *request;
        let lasted = now.saturating_sub(sent);
        let calls = seen.calls_at(seen_at, server);
        calls.enter(interval);
        calls.answer(answer.is_error(), lasted);
        if period > 0 && span != SpanId::NONE {
            seen.enter(period);
            let begins = job.trace == SpanId::NONE;
            let new = SpanSeen {
                trace: if begins { span } else { job.trace }.as_u64(),
                span: span.as_u64(),
                parent: job.span.as_u64(),
                server,
                sent,
                received: now,
                answer,
            };
            seen.spans.push(new);
        }
    }

    /// Records a message that has arrived.
    #[inline]
    pub(super) fn see_message<C: Context<Msg>>(&mut self, message: &Msg, cx: &C) {
        if self.model.details() > 0 {
            self.keep_message(message, cx);
        }
    }

    #[inline(never)]
    fn keep_message<C: Context<Msg>>(&mut self, message: &Msg, cx: &C) {
        let period = self.model.details();
        if let Some((_, seen)) = self.watched() {
            seen.enter(period);
            let new = (cx.now().as_nanos(), cx.envelope().from, *message);
            seen.messages.push(new);
        }
    }
}
