//! The package of an instance: which instances it calls, and for what.

use super::data_access::DataAccess;
use super::entry_point::EntryPoint;
use super::forward::Forward;
use super::host::Host;
use super::job::{Job, PendingRequest};
use super::pirate::Pirate;
use super::ring::RingNode;
use super::routes::Routes;
use super::storage::Storage;
use crate::message::{Answer, Msg};
use crate::package::Package;
use corsair::Context;

/// The package of an instance, with its state.
#[derive(Debug)]
pub(crate) enum Role {
    Forward(Forward),
    EntryPoint(Box<EntryPoint>),
    DataAccess(DataAccess),
    Storage(Storage),
    Ring(RingNode),
    Pirate(Pirate),
}

impl Role {
    /// The role of the instance at a host.
    pub(super) fn of(host: &Host) -> Role {
        match host.model.package(host.index) {
            Package::Denominator => Role::EntryPoint(Box::new(EntryPoint::new(host))),
            Package::Staash => Role::DataAccess(DataAccess::default()),
            Package::Store | Package::Cache | Package::Volume => Role::Storage(Storage::default()),
            Package::PriamCassandra | Package::Riak => Role::Ring(RingNode::default()),
            Package::Pirate => Role::Pirate(Pirate::default()),
            Package::Elb
            | Package::Zuul
            | Package::Karyon
            | Package::Monolith
            | Package::Eureka => Role::Forward(Forward::default()),
        }
    }

    /// The routes to instances of a package.
    fn routes(&mut self, package: Package) -> &mut Routes {
        match self {
            Role::Forward(forward) => &mut forward.routes,
            Role::EntryPoint(entry) => &mut entry.routes,
            Role::DataAccess(data) => data.routes(package),
            Role::Storage(storage) => &mut storage.peers,
            Role::Ring(ring) => &mut ring.peers,
            Role::Pirate(pirate) => &mut pirate.buddies,
        }
    }

    /// Adds an instance that may be called; false if it was known before.
    pub(super) fn add(&mut self, host: &Host, node: u32) -> bool {
        self.routes(host.model.package(node)).add(node)
    }

    /// Removes an instance; false if it was not known.
    pub(super) fn remove(&mut self, host: &Host, node: u32) -> bool {
        self.routes(host.model.package(node)).remove(node)
    }

    /// Does a job of which the work is done.
    pub(super) fn act<C: Context<Msg>>(&mut self, host: &mut Host, job: Job, cx: &mut C) {
        match self {
            Role::Forward(forward) => forward.act(host, job, cx),
            Role::DataAccess(data) => data.act(host, job, cx),
            Role::Storage(storage) => storage.act(host, job, cx),
            Role::Ring(ring) => ring.act(host, job, cx),
            // Definitions in which a service asks one of these are refused, and graphs too.
            Role::EntryPoint(_) | Role::Pirate(_) => host.finish(job, Answer::Unavailable, cx),
        }
    }

    /// Goes on with a job after the response to a request made on its behalf.
    pub(super) fn resume<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        request: PendingRequest,
        answer: Answer,
        cx: &mut C,
    ) {
        match self {
            Role::EntryPoint(entry) => entry.resume(host, &request, answer, cx),
            Role::DataAccess(data) => data.resume(host, request, answer, cx),
            _ => host.finish(request.job, answer, cx),
        }
    }

    /// Sets how often it makes requests, or gossips, in nanoseconds; 0: never.
    pub(super) fn set_period<C: Context<Msg>>(&mut self, period: u64, cx: &mut C) {
        match self {
            Role::EntryPoint(entry) => entry.set_period(period, cx),
            Role::Pirate(pirate) => pirate.set_period(period, cx),
            _ => {}
        }
    }

    /// It is time to make a request, or to gossip.
    pub(super) fn talk<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        match self {
            Role::EntryPoint(entry) => entry.talk(host, cx),
            Role::Pirate(pirate) => pirate.talk(host, cx),
            _ => {}
        }
    }
}
