//! What a package adds to an instance: whom it may call, and whom it asks for what.

use super::denominator::Load;
use super::pirate::Purse;
use super::ring::RingNode;
use super::staash::Layers;
use super::store::Shelf;
use super::{Job, Node, Pending, Routes, Want};
use crate::message::{Answer, Msg};
use crate::model::Model;
use crate::package::Package;
use corsair::Context;

/// What a package adds to an instance.
#[derive(Debug)]
pub(crate) enum Role {
    /// elb, zuul, karyon, monolith: pass on to any instance that they may call.
    Forward(Routes),
    Denominator(Load),
    Staash(Layers),
    Store(Shelf),
    Ring(RingNode),
    Pirate(Purse),
}

impl Role {
    pub(super) fn of(model: &Model, index: u32) -> Role {
        match model.package(index) {
            Package::Denominator => Role::Denominator(Load::default()),
            Package::Staash => Role::Staash(Layers::default()),
            Package::Store | Package::Cache | Package::Volume => Role::Store(Shelf::default()),
            Package::PriamCassandra | Package::Riak => Role::Ring(RingNode::default()),
            Package::Pirate => Role::Pirate(Purse::default()),
            Package::Elb
            | Package::Zuul
            | Package::Karyon
            | Package::Monolith
            | Package::Eureka => Role::Forward(Routes::default()),
        }
    }

    /// The routes to instances of this package.
    fn routes(&mut self, package: Package) -> Option<&mut Routes> {
        Some(match self {
            Role::Forward(routes) => routes,
            Role::Denominator(load) => &mut load.routes,
            Role::Staash(layers) => return layers.routes(package),
            Role::Store(shelf) => &mut shelf.peers,
            Role::Ring(ring) => &mut ring.peers,
            Role::Pirate(purse) => &mut purse.buddies,
        })
    }

    /// There is an instance to call; whether it was unknown before.
    pub(super) fn add(&mut self, model: &Model, node: u32) -> bool {
        let routes = self.routes(model.package(node));
        routes.is_some_and(|routes| routes.add(node))
    }

    /// An instance is gone; whether it was known before.
    pub(super) fn remove(&mut self, model: &Model, node: u32) -> bool {
        let routes = self.routes(model.package(node));
        routes.is_some_and(|routes| routes.remove(node))
    }
}

impl Node {
    /// Does a job, of which the work takes `delay`.
    pub(super) fn act<C: Context<Msg>>(&mut self, job: Job, delay: u64, cx: &mut C) {
        match &self.role {
            Role::Forward(_) => self.pass_on(job, delay, cx),
            Role::Staash(_) => self.act_staash(job, delay, cx),
            Role::Store(_) => self.act_store(job, delay, cx),
            Role::Ring(_) => self.act_ring(job, delay, cx),
            // Nobody asks them: definitions that do are refused, and graphs too.
            Role::Denominator(_) | Role::Pirate(_) => {
                self.finish(job, Answer::Nobody, delay, cx);
            }
        }
    }

    /// Goes on with a job after an answer.
    pub(super) fn resume<C: Context<Msg>>(&mut self, pending: Pending, answer: Answer, cx: &mut C) {
        match &self.role {
            Role::Denominator(_) => self.ended(&pending, answer, cx),
            Role::Staash(_) => self.resume_staash(pending, answer, cx),
            _ => self.finish(pending.job, answer, 0, cx),
        }
    }

    /// elb, zuul, karyon, monolith: any instance that may be called does it. A service that depends
    /// on no other does all of it by itself.
    fn pass_on<C: Context<Msg>>(&mut self, job: Job, delay: u64, cx: &mut C) {
        let Role::Forward(routes) = &self.role else {
            return;
        };
        let Some(to) = routes.pick(cx.random()) else {
            let answer = match self.dependencies.is_empty() {
                true => Answer::Found,
                false => Answer::Nobody,
            };
            return self.finish(job, answer, delay, cx);
        };
        if job.want == Want::Get {
            self.ask(job, to, job.key, 0, delay, cx);
        } else {
            self.give(&job, to, Msg::Put, job.key, delay, cx);
            self.finish(job, Answer::Found, delay, cx);
        }
    }
}
