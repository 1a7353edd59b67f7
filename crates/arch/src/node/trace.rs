//! The trail of requests, for runs that are explained.

use super::host::Host;
use super::job::{Job, PendingRequest};
use crate::message::Msg;
use crate::why::record::Record;
use crate::why::trail::Trail;
use corsair::{Context, SpanId};

impl Host {
    /// Returns the trail, and the number of the request from outside to which a job belongs; `None` if the run is not
    /// explained.
    #[inline]
    fn trail(&self, job: &Job) -> Option<(&Trail, u64)> {
        let trail = self.model.trail.as_deref()?;
        (job.trace != SpanId::NONE).then_some((trail, job.trace.as_u64()))
    }

    /// Opens the trail of a request that has been sent from outside.
    #[inline]
    pub(super) fn trace_sent(&self, job: &Job, span: SpanId, stage: u64, now: u64) {
        if let Some(trail) = self.model.trail.as_deref()
            && job.trace == SpanId::NONE
            && self.is_entry_point()
            && now >= self.model.count_from
        {
            trail.open(span.as_u64(), self.service, stage);
        }
    }

    /// Records a request that has been answered.
    #[inline]
    pub(super) fn trace_call(&self, request: &PendingRequest, now: u64) {
        let Some(trail) = self.model.trail.as_deref() else {
            return;
        };
        let (job, span) = (&request.job, request.span.as_u64());
        let service = self.model.instance(request.server).service;
        if job.trace == SpanId::NONE {
            return trail.close(span, service, request.sent, now);
        }
        let record = Record::Call {
            parent: job.span.as_u64(),
            span,
            service,
            sent: request.sent,
            received: now,
        };
        trail.add(job.trace.as_u64(), record);
    }

    /// Records an attempt that was abandoned after its time-out.
    #[inline]
    pub(super) fn trace_given_up(&self, job: &Job, service: u32, lasted: u64, now: u64) {
        if let Some((trail, trace)) = self.trail(job) {
            let record = Record::GivenUp {
                parent: job.span.as_u64(),
                service,
                sent: now.saturating_sub(lasted).max(job.began),
                until: now,
            };
            trail.add(trace, record);
        }
    }

    /// Records a job that has ended.
    #[inline]
    pub(super) fn trace_visit(&self, job: &Job, now: u64) {
        if let Some((trail, trace)) = self.trail(job) {
            let record = Record::Visit {
                span: job.span.as_u64(),
                service: self.service,
                arrived: job.arrived,
                began: job.began,
                ended: now,
            };
            trail.add(trace, record);
        }
    }

    /// Records work that is done and has waited for shared processors for `waited` nanoseconds.
    #[inline]
    pub(super) fn trace_work<C: Context<Msg>>(&self, job: &Job, from: u64, waited: u64, cx: &C) {
        if let Some((trail, trace)) = self.trail(job) {
            let to = cx.now().as_nanos();
            let worked = (to - from).saturating_sub(waited);
            let slowed = worked as f64 * (1.0 - 1.0 / self.health.factor().max(1.0));
            let record = Record::Work {
                span: job.span.as_u64(),
                from,
                to,
                waited,
                slowed: slowed as u64,
            };
            trail.add(trace, record);
        }
    }
}
