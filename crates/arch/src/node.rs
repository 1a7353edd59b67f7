//! An instance of a service as an actor: what all packages have in common.
//!
//! An instance learns of others by registries, takes requests one by one or many at once, works on
//! them, asks others, and answers. What a package adds is whom it asks: see [`role`].
//!
//! Work takes time without an event of its own: what follows from it is sent at once, to arrive
//! later. Only where requests queue does a timer mark its end.

mod denominator;
mod health;
mod membership;
mod pending;
mod pirate;
mod ring;
mod role;
mod routes;
mod staash;
mod store;
mod traffic;

pub(crate) use denominator::{Load, histogram};
use health::{Health, Held};
pub(crate) use pending::{Job, Pending, Waiting, Want};
use role::Role;
pub(crate) use routes::Routes;

use crate::log;
use crate::message::{Answer, Msg, kind};
use crate::model::Model;
use crate::totals::Totals;
use corsair::{Actor, Addr, Context, Event, Flow, Token};
use corsair_observe::{Metric, Status};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The timer to ask the registry.
const TO_POLL: Token = Token::new(0);
/// The timer to talk.
const TO_CHAT: Token = Token::new(1);
/// The timer at which a place for a request gets free.
const TO_RELEASE: Token = Token::new(2);
/// The timers of faults come from here on: twice the number of the fault, and one more for its end.
const TO_FAULT: u32 = 16;

/// What an instance and the scenario share.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) model: Arc<Model>,
    pub(crate) totals: Arc<Mutex<Totals>>,
}

/// An instance of a service.
#[derive(Debug)]
pub(crate) struct Node {
    model: Arc<Model>,
    totals: Arc<Mutex<Totals>>,
    index: u32,
    /// The address of instance 0.
    first: u32,
    /// Who has made it.
    root: Addr,
    service: u32,
    role: Role,
    registries: Vec<u32>,
    /// The services that it depends on, and asks the registry for.
    dependencies: Vec<u32>,
    /// Whom it may call at most, where a graph says so.
    allowed: Option<Vec<u32>>,
    waiting: Waiting,
    health: Health,
    /// Requests that are being handled, where there is a limit.
    busy: u32,
    /// Requests that wait for a place.
    queue: VecDeque<Job>,
    served: Served,
}

/// What an instance has done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Served {
    /// Requests that were answered, and messages that were taken.
    pub(crate) requests: u64,
    /// Requests answered with an error of its own.
    pub(crate) errors: u64,
    /// Time on the way to it, in its queue and at work, in nanoseconds.
    pub(crate) nanos: u64,
    /// The most that ever waited.
    pub(crate) longest_queue: u64,
}

impl Node {
    pub(crate) fn new(common: &Common, index: u32) -> Node {
        let model = Arc::clone(&common.model);
        let service = model.instance(index).service;
        Node {
            role: Role::of(&model, index),
            allowed: model.topology.edges.as_ref().map(|_| Vec::new()),
            totals: Arc::clone(&common.totals),
            index,
            first: 0,
            root: Addr::NONE,
            service,
            registries: Vec::new(),
            dependencies: Vec::new(),
            waiting: Waiting::default(),
            health: Health::default(),
            busy: 0,
            queue: VecDeque::new(),
            served: Served::default(),
            model,
        }
    }

    /// The address of an actor, by its number.
    #[inline]
    fn address(&self, actor: u32) -> Addr {
        Addr::from_u32(self.first + actor)
    }

    /// The number of the actor at an address.
    #[inline]
    fn number(&self, address: Addr) -> u32 {
        address.as_u32().wrapping_sub(self.first)
    }

    /// Somebody wants something: begin with it, or let it wait.
    fn arrive<C: Context<Msg>>(&mut self, mut job: Job, travel: u32, cx: &mut C) {
        self.served.nanos += u64::from(travel);
        let limit = self.model.topology.services[self.service as usize]
            .costs
            .concurrency;
        let Some(limit) = limit.filter(|_| !self.is_neighbour(job.client)) else {
            return self.begin(job, cx);
        };
        job.placed = true;
        if self.busy < limit {
            self.busy += 1;
            return self.begin(job, cx);
        }
        self.queue.push_back(job);
        let waits = self.queue.len() as u64;
        self.served.longest_queue = self.served.longest_queue.max(waits);
    }

    /// Whether it is of the same ring. What neighbours ask takes no place: they keep one of their
    /// own meanwhile, and would wait for each other forever.
    fn is_neighbour(&self, client: Addr) -> bool {
        let instances = &self.model.topology.instances;
        let client = instances.get(self.number(client) as usize);
        matches!(self.role, Role::Ring(_)) && client.is_some_and(|c| c.service == self.service)
    }

    /// Works on a job: it fails, or its package says what follows.
    fn begin<C: Context<Msg>>(&mut self, job: Job, cx: &mut C) {
        let costs = &self.model.topology.services[self.service as usize].costs;
        let work = match &costs.service_time {
            Some(times) => self.health.slowed(times.sample(|| cx.random())),
            None => 0,
        };
        let fails = costs.error_bits > 0 && cx.random() < costs.error_bits;
        if fails {
            self.served.errors += 1;
            self.model.recorder.error(self.measured());
            self.finish(job, Answer::Failed, work, cx);
        } else {
            self.act(job, work, cx);
        }
    }

    fn measured(&self) -> corsair_observe::ServiceId {
        self.model.measured[self.service as usize]
    }

    /// A job is done in `delay` from now.
    fn finish<C: Context<Msg>>(&mut self, job: Job, answer: Answer, delay: u64, cx: &mut C) {
        let now = cx.now().as_nanos();
        let end = now + delay;
        let lasted = end - job.arrived;
        self.served.requests += 1;
        self.served.nanos += lasted.saturating_sub(job.waited);
        if job.want == Want::Get {
            let status = status(answer);
            if let Some(context) = job.context() {
                let at = corsair::Time::from_nanos(end);
                let recorder = &self.model.recorder;
                recorder.server_send(at, cx.me(), context, status);
            }
            let (recorder, measured) = (&self.model.recorder, self.measured());
            recorder.sample(measured, Metric::Service, lasted);
            self.respond(&job, answer, delay, cx);
        }
        if job.placed {
            self.release(delay, cx);
        }
    }

    /// The place of a job gets free in `delay` from now.
    fn release<C: Context<Msg>>(&mut self, delay: u64, cx: &mut C) {
        if delay > 0 {
            cx.timer(Duration::from_nanos(delay), TO_RELEASE);
            return;
        }
        match self.queue.pop_front() {
            Some(next) => {
                cx.continue_trace(next.trace, next.span);
                self.begin(next, cx);
            }
            None => self.busy -= 1,
        }
    }

    /// An answer has come to a request that this instance has made.
    fn answered<C: Context<Msg>>(&mut self, id: u32, travel: u32, answer: Answer, cx: &mut C) {
        let Some(mut pending) = self.waiting.take(id) else {
            return;
        };
        let now = cx.now();
        let lasted = now.as_nanos().saturating_sub(pending.sent);
        let recorder = &self.model.recorder;
        let context = corsair_observe::TraceContext::new(
            pending.job.trace_of(pending.span),
            pending.span.as_u64(),
            pending.job.span.as_u64(),
        );
        if let Some(context) = context {
            recorder.client_receive(now, cx.me(), context, status(answer));
        }
        let server = self.model.instance(pending.server).service as usize;
        let measured = self.model.measured[server];
        recorder.sample(measured, Metric::Response, lasted);
        if travel > 0 {
            recorder.sample(measured, Metric::Network, travel.into());
        }
        if matches!(answer, Answer::Refused | Answer::Lost) {
            recorder.error(measured);
        }
        pending.job.waited += lasted;
        let is_gone = self.health.is_down() && !matches!(self.role, Role::Denominator(_));
        match is_gone {
            true => self.finish(pending.job, Answer::Refused, 0, cx),
            false => self.resume(pending, answer, cx),
        }
    }

    fn timer<C: Context<Msg>>(&mut self, token: Token, cx: &mut C) {
        match token {
            // After the load nobody asks: the answers would come to those who have left.
            TO_POLL if cx.now().as_nanos() >= self.model.load_ends => {}
            TO_POLL => {
                if !self.health.is_down() {
                    for place in 0..self.dependencies.len() {
                        self.look_up(self.dependencies[place], cx);
                    }
                }
                cx.timer(Duration::from_nanos(self.model.poll), TO_POLL);
            }
            TO_CHAT => self.chat(cx),
            TO_RELEASE => self.release(0, cx),
            fault if fault.number() >= TO_FAULT => self.fault(fault.number() - TO_FAULT, cx),
            _ => {}
        }
    }

    fn hear<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) -> Flow {
        log::received(&self.model, &message, cx);
        let (want, call) = match message {
            Msg::GetRequest(call) => (Want::Get, call),
            Msg::Put(call) => (Want::Put, call),
            Msg::PutOwned(call) => (Want::PutOwned, call),
            Msg::Replicate(call) => (Want::Copy, call),
            Msg::ReplicateRegion(call) => (Want::CopyRegion, call),
            Msg::GetResponse { id, travel, answer } => {
                match self.health.is_paused() {
                    true => self.health.hold(Held::Answer(id, travel, answer)),
                    false => self.answered(id, travel, answer, cx),
                }
                return Flow::Continue;
            }
            control => return self.control(control, cx),
        };
        let now = cx.now();
        let job = Job::new(want, call, &cx.envelope(), now.as_nanos());
        if self.turns_away(&job, cx) {
            return Flow::Continue;
        }
        let recorder = &self.model.recorder;
        if let Some(context) = job.context() {
            let kind = match want {
                Want::Get => kind::GET_REQUEST,
                Want::Put | Want::PutOwned => kind::PUT,
                Want::Copy | Want::CopyRegion => kind::REPLICATE,
            };
            recorder.server_receive(now, cx.me(), context, kind);
        }
        recorder.sample(self.measured(), Metric::Network, call.travel.into());
        match self.health.is_paused() {
            true => self.health.hold(Held::Job(job, call.travel)),
            false => self.arrive(job, call.travel, cx),
        }
        Flow::Continue
    }
}

/// What it has done is handed in when it is gone: after its goodbye, or because the run was cut.
impl Drop for Node {
    fn drop(&mut self) {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.add_node(self.service, &self.served, self.waiting.len() as u64);
        if let Role::Denominator(load) = &self.role {
            let name = &self.model.topology.services[self.service as usize].name;
            totals.add_entry(name, load);
        }
    }
}

/// What flows say of an answer.
fn status(answer: Answer) -> Status {
    match answer.is_error() {
        true => Status::Error,
        false => Status::Ok,
    }
}

impl Actor<Msg> for Node {
    fn start<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.first = cx.me().as_u32() - self.index;
    }

    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match event {
            Event::Message { body, .. } => self.hear(body, cx),
            Event::Timer(token) => {
                self.timer(token, cx);
                Flow::Continue
            }
            _ => Flow::Continue,
        }
    }
}
