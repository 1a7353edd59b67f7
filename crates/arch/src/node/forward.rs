//! The packages elb, zuul, karyon and monolith, which forward a request to any instance that they may call.

use super::host::Host;
use super::job::Job;
use super::routes::Routes;
use crate::message::{Answer, Msg};
use corsair::Context;
use serde::{Deserialize, Serialize};

/// A service that passes requests on.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Forward {
    pub(super) routes: Routes,
}

impl Forward {
    /// Forwards a job. A service without dependencies answers it.
    pub(super) fn act<C: Context<Msg>>(&mut self, host: &mut Host, job: Job, cx: &mut C) {
        // A request for an endpoint goes directly to the service of the endpoint, if this service depends on it.
        let served = job.key.as_endpoint().and_then(|(endpoint, ..)| {
            let service = host.model.topology.endpoints.service(endpoint)?;
            let instances = &host.model.topology.services[service as usize].instances;
            self.routes.pick_within(instances, || cx.random())
        });
        let to = served.or_else(|| self.routes.pick(cx.random()));
        let Some(to) = to else {
            let answer = if host.dependencies.is_empty() {
                Answer::Found
            } else {
                Answer::Unavailable
            };
            return host.finish(job, answer, cx);
        };
        if job.operation.is_answered() {
            host.ask(job, to, job.key, 0, cx);
        } else {
            host.put(&job, to, Msg::Put, job.key, cx);
            host.finish(job, Answer::Found, cx);
        }
    }
}
