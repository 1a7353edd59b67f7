//! The package of an instance, which decides which instances it calls, and for what purpose.

use super::data_access::DataAccess;
use super::entry_point::EntryPoint;
use super::forward::Forward;
use super::host::Host;
use super::job::{Job, PendingRequest};
use super::pirate::Pirate;
use super::ring::RingNode;
use super::routes::Routes;
use super::service::Service;
use super::storage::Storage;
use crate::message::{Answer, Msg};
use crate::package::Package;
use crate::saved::RestoreState;
use corsair::Context;
use serde::{Deserialize, Serialize};

/// The package of an instance, with its state.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    Forward(Forward),
    EntryPoint(Box<EntryPoint>),
    DataAccess(DataAccess),
    Storage(Storage),
    Ring(RingNode),
    Pirate(Pirate),
    Service(Box<Service>),
}

impl RestoreState for Role {
    fn take_over(&mut self, saved: Role) {
        match (self, saved) {
            (Role::EntryPoint(own), Role::EntryPoint(saved)) => own.take_over(saved),
            (Role::Service(own), Role::Service(saved)) => own.take_over(saved),
            // The other packages have no rules to preserve.
            (own, saved) => *own = saved,
        }
    }
}

impl Role {
    /// Returns the role of the instance that runs on a host.
    pub(super) fn of(host: &Host) -> Role {
        match host.model.package(host.index) {
            Package::Denominator => Role::EntryPoint(Box::new(EntryPoint::new(host))),
            Package::Staash => Role::DataAccess(DataAccess::default()),
            Package::Store | Package::Cache | Package::Volume => Role::Storage(Storage::default()),
            Package::PriamCassandra | Package::Riak => Role::Ring(RingNode::default()),
            Package::Pirate => Role::Pirate(Pirate::default()),
            Package::Service => Role::Service(Box::new(Service::new(host))),
            Package::Elb
            | Package::Zuul
            | Package::Karyon
            | Package::Monolith
            | Package::Eureka => Role::Forward(Forward::default()),
        }
    }

    /// Returns the routes to the instances of a package.
    fn routes(&mut self, package: Package) -> Option<&mut Routes> {
        Some(match self {
            Role::Forward(forward) => &mut forward.routes,
            Role::EntryPoint(entry) => &mut entry.routes,
            Role::DataAccess(data) => data.routes(package),
            Role::Storage(storage) => &mut storage.peers,
            Role::Ring(ring) => &mut ring.peers,
            Role::Pirate(pirate) => &mut pirate.buddies,
            Role::Service(_) => return None,
        })
    }

    /// Returns the instances that may be called, in ascending order.
    pub(super) fn known(&self) -> Vec<u32> {
        let mut known: Vec<u32> = match self {
            Role::Forward(forward) => forward.routes.iter().collect(),
            Role::EntryPoint(entry) => entry.routes.iter().collect(),
            Role::DataAccess(data) => data.known().collect(),
            Role::Storage(storage) => storage.peers.iter().collect(),
            Role::Ring(ring) => ring.peers.iter().collect(),
            Role::Pirate(pirate) => pirate.buddies.iter().collect(),
            Role::Service(service) => service.known().collect(),
        };
        known.sort_unstable();
        known
    }

    /// Returns the package's own fields by name.
    pub(super) fn fields(&self) -> Vec<(&'static str, u64)> {
        match self {
            Role::Forward(_) | Role::DataAccess(_) => Vec::new(),
            Role::EntryPoint(entry) => entry.fields(),
            Role::Storage(storage) => vec![("values", storage.values())],
            Role::Ring(ring) => vec![("values", ring.values())],
            Role::Pirate(pirate) => vec![("gold", pirate.gold().into())],
            Role::Service(service) => vec![
                ("tasks", service.tasks_under_way()),
                ("breakers_opened", service.opened()),
            ],
        }
    }

    /// Adds an instance that may be called; false if it was known before.
    pub(super) fn add(&mut self, host: &Host, node: u32) -> bool {
        match self {
            Role::Service(service) => service.add(host, node),
            _ => (self.routes(host.model.package(node))).is_some_and(|routes| routes.add(node)),
        }
    }

    /// Handles a new instance of the same service under an autoscaler.
    pub(super) fn peer_has_come<C: Context<Msg>>(&self, host: &mut Host, peer: u32, cx: &mut C) {
        match self {
            Role::Storage(storage) => storage.peer_has_come(host, peer, cx),
            Role::Ring(ring) => ring.peer_has_come(host, peer, cx),
            _ => {}
        }
    }

    /// Transfers stored values before an autoscaler removes the instance.
    pub(super) fn leave<C: Context<Msg>>(&self, host: &mut Host, cx: &mut C) {
        if let Role::Ring(ring) = self {
            ring.leave(host, cx);
        }
    }

    /// Removes an instance; false if it was not known.
    pub(super) fn remove(&mut self, host: &Host, node: u32) -> bool {
        match self {
            Role::Service(service) => service.remove(host, node),
            _ => (self.routes(host.model.package(node))).is_some_and(|routes| routes.remove(node)),
        }
    }

    /// Completes a job whose work is done.
    pub(super) fn act<C: Context<Msg>>(&mut self, host: &mut Host, job: Job, cx: &mut C) {
        match self {
            Role::Forward(forward) => forward.act(host, job, cx),
            Role::DataAccess(data) => data.act(host, job, cx),
            Role::Storage(storage) => storage.act(host, job, cx),
            Role::Ring(ring) => ring.act(host, job, cx),
            Role::Service(service) => service.act(host, job, cx),
            // Definitions and graphs in which a service calls an entry point or a pirate are refused.
            Role::EntryPoint(_) | Role::Pirate(_) => host.finish(job, Answer::Unavailable, cx),
        }
    }

    /// Resumes a job after the response to a request made on its behalf.
    pub(super) fn resume<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        request: &PendingRequest,
        answer: Answer,
        cx: &mut C,
    ) {
        match self {
            Role::EntryPoint(entry) => entry.resume(host, request, answer, cx),
            Role::DataAccess(data) => data.resume(host, request, answer, cx),
            Role::Service(service) => service.resume(host, request, answer, cx),
            _ => host.finish(request.job, answer, cx),
        }
    }

    /// Resumes a task whose work is done.
    pub(super) fn work_done<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        task: u32,
        waited: u64,
        cx: &mut C,
    ) {
        if let Role::Service(service) = self {
            service.work_done(host, task, waited, cx);
        }
    }

    /// Handles due alarms, such as time-outs.
    pub(super) fn wake<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        if let Role::Service(service) = self {
            service.wake(host, cx);
        }
    }

    /// Drops all tasks and returns their jobs; `None` for packages without tasks.
    pub(super) fn drop_tasks(&mut self) -> Option<Vec<Job>> {
        match self {
            Role::Service(service) => Some(service.drop_tasks()),
            _ => None,
        }
    }

    /// Sets the period of requests or gossip in nanoseconds; 0 means never.
    pub(super) fn set_period<C: Context<Msg>>(&mut self, period: u64, cx: &mut C) {
        match self {
            Role::EntryPoint(entry) => entry.set_period(period, cx),
            Role::Pirate(pirate) => pirate.set_period(period, cx),
            _ => {}
        }
    }

    /// Makes the next request or gossips.
    pub(super) fn talk<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        match self {
            Role::EntryPoint(entry) => entry.talk(host, cx),
            Role::Pirate(pirate) => pirate.talk(host, cx),
            _ => {}
        }
    }
}
