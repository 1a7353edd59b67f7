//! An instance of a service as an actor: what all packages have in common.
//!
//! An instance learns of others by registries, takes requests one by one or many at once, works on
//! them, asks others, and answers. What a package adds is whom it asks: see [`role`].
//!
//! Work takes time without an event of its own: what follows from it is sent at once, to arrive
//! later. Only where requests queue does a timer mark its end.

mod denominator;
mod health;
mod pending;
mod pirate;
mod ring;
mod role;
mod routes;
mod staash;
mod store;
mod traffic;

pub(crate) use denominator::Load;
use health::{Health, Held};
pub(crate) use pending::{Job, Pending, Waiting, Want};
use role::Role;
pub(crate) use routes::Routes;

use crate::message::{Answer, Msg, kind};
use crate::model::Model;
use crate::totals::Totals;
use corsair::{Actor, Addr, Context, Event, Flow, Token};
use corsair_observe::{Metric, Status};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
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
    fn arrive<C: Context<Msg>>(&mut self, job: Job, travel: u32, cx: &mut C) {
        self.served.nanos += u64::from(travel);
        let limit = self.model.topology.services[self.service as usize]
            .costs
            .concurrency;
        match limit {
            Some(limit) if self.busy >= limit => {
                self.queue.push_back(job);
                let waits = self.queue.len() as u64;
                self.served.longest_queue = self.served.longest_queue.max(waits);
            }
            Some(_) => {
                self.busy += 1;
                self.begin(job, cx);
            }
            None => self.begin(job, cx),
        }
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
        self.release(delay, cx);
    }

    /// The place of a job gets free in `delay` from now.
    fn release<C: Context<Msg>>(&mut self, delay: u64, cx: &mut C) {
        let limited = self.model.topology.services[self.service as usize]
            .costs
            .concurrency
            .is_some();
        if !limited {
            return;
        }
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

    /// Takes what was told of other instances, and what the scenario wants.
    fn control<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) -> Flow {
        match message {
            Msg::Hello => self.greet(cx),
            Msg::Inform { registry } => {
                self.registries.push(registry);
                self.tell(registry, Msg::Register { node: self.index }, cx);
            }
            Msg::Depend { service } => {
                self.dependencies.push(service);
                self.look_up(service, cx);
            }
            Msg::NameDrop { node } => self.meet(node, cx),
            Msg::Forget { node } => self.forget(node, cx),
            Msg::Chat { period } => self.chat_every(period, cx),
            Msg::GoldCoin(gold) => self.take_gold(gold),
            Msg::Kill => self.go_down(true, cx),
            Msg::Goodbye => {
                self.leave(cx);
                return Flow::Stop;
            }
            // The rest is for registries and the log.
            _ => {}
        }
        Flow::Continue
    }

    /// The scenario has spoken: from now on there are timers.
    fn greet<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.root = cx.envelope().from;
        cx.timer(Duration::from_nanos(self.model.poll), TO_POLL);
        let faults = self.model.faults(self.index);
        for (number, fault) in (0..).zip(faults) {
            let due = (self.model.load_at + fault.at).saturating_sub(cx.now().as_nanos());
            cx.timer(Duration::from_nanos(due), Token::new(TO_FAULT + 2 * number));
        }
    }

    /// Asks the registries for a service.
    fn look_up<C: Context<Msg>>(&mut self, service: u32, cx: &mut C) {
        let mut asked = None;
        for place in 0..self.registries.len() {
            let registry = self.registries[place];
            // Those of a region know the same: one of them is enough.
            let region = self.model.place(registry).region;
            if asked != Some(region) {
                asked = Some(region);
                self.tell(registry, Msg::LookUp { service }, cx);
            }
        }
    }

    /// There is somebody to call.
    fn meet<C: Context<Msg>>(&mut self, node: u32, cx: &mut C) {
        // A graph is given by the scenario; what registries say must not add to it.
        let given = cx.envelope().from == self.root;
        if let Some(allowed) = &mut self.allowed {
            if given {
                allowed.push(node);
                let service = self.model.instance(node).service;
                if !self.dependencies.contains(&service) {
                    self.dependencies.push(service);
                }
            } else if !allowed.contains(&node) {
                return;
            }
        }
        if node != self.index && self.role.add(&self.model, node) {
            let (source, target) = (self.index, node);
            self.log(Msg::Edge { source, target }, cx);
        }
    }

    /// Somebody is gone.
    fn forget<C: Context<Msg>>(&mut self, node: u32, cx: &mut C) {
        if self.role.remove(&self.model, node) {
            let (source, target) = (self.index, node);
            self.log(Msg::ForgetEdge { source, target }, cx);
        }
    }

    /// Tells one of the registries something for the log.
    fn log<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) {
        if let Some(&registry) = self.registries.first() {
            self.tell(registry, message, cx);
        }
    }

    /// The run is over.
    fn leave<C: Context<Msg>>(&mut self, cx: &mut C) {
        if !self.health.is_down() {
            self.unregister(false, cx);
        }
        let mut totals = self.totals.lock().unwrap_or_else(|e| e.into_inner());
        totals.add_node(self.service, &self.served, self.waiting.len() as u64);
        if let Role::Denominator(load) = &self.role {
            totals.add_entry(
                &self.model.topology.services[self.service as usize].name,
                load,
            );
        }
        drop(totals);
        cx.send(self.root, Msg::Goodbye);
    }

    fn unregister<C: Context<Msg>>(&mut self, killed: bool, cx: &mut C) {
        for place in 0..self.registries.len() {
            let (registry, node) = (self.registries[place], self.index);
            self.tell(registry, Msg::Delete { node, killed }, cx);
        }
    }

    fn timer<C: Context<Msg>>(&mut self, token: Token, cx: &mut C) {
        match token {
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
        if self.model.recorder.wants_messages() {
            let (now, from) = (cx.now(), cx.envelope().from);
            let kind = corsair::Message::kind(&message);
            let recorder = &self.model.recorder;
            recorder.message(now, cx.me(), from, kind, || message.payload());
        }
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
