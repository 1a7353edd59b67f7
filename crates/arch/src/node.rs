//! An instance of a service as an actor.
//!
//! An instance learns of others from registries, takes requests one by one or many at once, works
//! on them, asks others, and answers. What all packages have in common is the
//! [`Host`](host::Host)'s; which instances it asks is the [`Role`](role::Role)'s, the package.
//!
//! Work ends with a timer, so that a pause can stop it and a kill can lose it. Work that takes no
//! time has no timer.

mod data_access;
mod entry_point;
mod faults;
mod forward;
mod health;
mod host;
mod job;
mod membership;
mod pirate;
mod ring;
mod role;
mod routes;
mod send;
mod storage;
mod work;

use health::Held;
use host::Host;
use job::{Job, Operation};
use role::Role;
use work::InProgress;

use crate::log;
use crate::message::{Call, Msg, kind};
use crate::model::Model;
use corsair::{Actor, Context, Event, Flow, Token};
use corsair_observe::Metric;
use std::sync::{Arc, PoisonError};

/// The timer to ask the registries.
const TO_POLL: Token = Token::new(0);
/// The timer to make a request, or to gossip.
const TO_TALK: Token = Token::new(1);
/// The timers of faults come from here on: twice the number of the fault, and one more for its end.
/// Those of work are [`InProgress`]'s.
const TO_FAULT: u32 = 16;

/// An instance of a service.
#[derive(Debug)]
pub(crate) struct Node {
    host: Host,
    role: Role,
}

impl Node {
    pub(crate) fn new(model: &Arc<Model>, index: u32) -> Node {
        let host = Host::new(model, index);
        let role = Role::of(&host);
        Node { host, role }
    }

    fn receive<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) -> Flow {
        log::received(&self.host.model, &message, cx);
        match message {
            Msg::GetRequest(call) => self.take(Operation::Get, call, cx),
            Msg::Put(call) => self.take(Operation::Put, call, cx),
            Msg::PutOwned(call) => self.take(Operation::PutOwned, call, cx),
            Msg::Replicate(call) => self.take(Operation::Copy, call, cx),
            Msg::ReplicateRegion(call) => self.take(Operation::CopyRegion, call, cx),
            Msg::GetResponse { id, travel, answer } => {
                let response = Held::Response { id, travel, answer };
                if self.host.health.is_paused() {
                    self.host.health.hold(response);
                } else {
                    self.handle_held(response, cx);
                }
            }
            control => return self.control(control, cx),
        }
        Flow::Continue
    }

    /// Takes a job that has arrived, unless a fault keeps it away.
    fn take<C: Context<Msg>>(&mut self, operation: Operation, call: Call, cx: &mut C) {
        let now = cx.now();
        let job = Job::new(operation, call, &cx.envelope(), now.as_nanos());
        if let Some(answer) = self.host.unreachable(job.client) {
            return self.host.reject(&job, answer, cx);
        }
        let recorder = &self.host.model.recorder;
        if let Some(context) = job.context() {
            let kind = match operation {
                Operation::Get => kind::GET_REQUEST,
                Operation::Put | Operation::PutOwned => kind::PUT,
                Operation::Copy | Operation::CopyRegion => kind::REPLICATE,
            };
            recorder.server_receive(now, cx.me(), context, kind);
        }
        recorder.sample(self.host.measured(), Metric::Network, call.travel.into());
        let held = Held::Job(job, call.travel);
        if self.host.health.is_paused() {
            self.host.health.hold(held);
        } else {
            self.handle_held(held, cx);
        }
    }

    /// Handles what has arrived, now or during a pause.
    fn handle_held<C: Context<Msg>>(&mut self, held: Held, cx: &mut C) {
        match held {
            Held::Job(job, travel) => {
                if let Some(job) = self.host.admit(job, travel) {
                    cx.continue_trace(job.trace, job.span);
                    self.begin(job, cx);
                }
            }
            Held::Response { id, travel, answer } => {
                if let Some(request) = self.host.take_answered(id, travel, answer, cx) {
                    self.role.resume(&mut self.host, request, answer, cx);
                }
            }
        }
        self.begin_queued(cx);
    }

    /// Begins the jobs of the queue for which there are slots.
    fn begin_queued<C: Context<Msg>>(&mut self, cx: &mut C) {
        while let Some(job) = self.host.next_in_queue() {
            cx.continue_trace(job.trace, job.span);
            self.begin(job, cx);
        }
    }

    /// Begins a job. What takes no time is done at once.
    fn begin<C: Context<Msg>>(&mut self, job: Job, cx: &mut C) {
        if let Some((job, fails)) = self.host.start_work(job, cx) {
            self.end(job, fails, cx);
        }
    }

    /// The work on a job is done.
    fn end<C: Context<Msg>>(&mut self, job: Job, fails: bool, cx: &mut C) {
        if fails {
            self.host.fail(job, cx);
        } else {
            self.role.act(&mut self.host, job, cx);
        }
    }

    /// Takes what registries and the scenario say.
    fn control<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) -> Flow {
        let host = &mut self.host;
        match message {
            Msg::Hello => host.greet(cx),
            Msg::Inform { registry } => host.join(registry, cx),
            Msg::Depend { service } => host.depend_on(service, cx),
            Msg::NameDrop { node } => self.meet(node, cx),
            Msg::Forget { node } => self.forget(node, cx),
            Msg::Chat { period } => self.role.set_period(period, cx),
            Msg::GoldCoin(gold) => {
                if let Role::Pirate(pirate) = &mut self.role {
                    pirate.take_gold(gold);
                }
            }
            Msg::Kill => host.kill(true, cx),
            Msg::Goodbye => {
                host.leave(cx);
                return Flow::Stop;
            }
            // The rest is for registries and the log.
            _ => {}
        }
        Flow::Continue
    }

    /// Adds an instance to those that it may call.
    fn meet<C: Context<Msg>>(&mut self, node: u32, cx: &mut C) {
        let host = &mut self.host;
        if host.allows(node, cx) && self.role.add(host, node) {
            let (source, target) = (host.index, node);
            host.log(Msg::Edge { source, target }, cx);
        }
    }

    /// Removes an instance from those that it may call.
    fn forget<C: Context<Msg>>(&mut self, node: u32, cx: &mut C) {
        let host = &mut self.host;
        if self.role.remove(host, node) {
            let (source, target) = (host.index, node);
            host.log(Msg::ForgetEdge { source, target }, cx);
        }
    }

    fn timer<C: Context<Msg>>(&mut self, token: Token, cx: &mut C) {
        match token {
            TO_POLL => self.host.poll(cx),
            TO_TALK => self.role.talk(&mut self.host, cx),
            work if InProgress::owns(work) => {
                if let Some((job, fails)) = self.host.work_done(work, cx) {
                    self.end(job, fails, cx);
                    self.begin_queued(cx);
                }
            }
            fault if fault.number() >= TO_FAULT => self.fault(fault.number() - TO_FAULT, cx),
            _ => {}
        }
    }
}

/// Hands in what the instance has done when it is gone: after its goodbye, or because the run was
/// cut.
impl Drop for Node {
    fn drop(&mut self) {
        let host = &self.host;
        let mut totals = host
            .model
            .totals
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        totals.add_instance(
            host.service,
            &host.totals,
            host.pending.iter().count() as u64,
        );
        if let Role::EntryPoint(entry) = &self.role {
            let name = &host.model.topology.services[host.service as usize].name;
            totals.add_entry_point(name, &entry.totals(host));
        }
    }
}

impl Actor<Msg> for Node {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.host.first = cx.me().as_u32() - self.host.index;
    }

    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        self.host.last_seen = cx.now().as_nanos();
        match event {
            Event::Message { body, .. } => self.receive(body, cx),
            Event::Timer(token) => {
                self.timer(token, cx);
                Flow::Continue
            }
            _ => Flow::Continue,
        }
    }
}
