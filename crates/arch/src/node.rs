//! An instance of a service as an actor.
//!
//! An instance learns of other instances from registries. It accepts requests, one by one or many at once, works on
//! them, calls other instances, and answers. The [`Host`](host::Host) contains the parts that all packages have in
//! common. The [`Role`](role::Role) is the package, which decides which instances are called.
//!
//! Work ends with a timer, so that a pause can stop it and a kill can discard it. Work that takes no time has no timer.

mod alarms;
mod commands;
mod data_access;
mod entry_point;
mod faults;
mod forward;
mod health;
mod host;
pub(crate) mod job;
mod membership;
mod pirate;
pub(crate) mod queue;
mod ring;
mod role;
mod routes;
pub(crate) mod seen;
mod send;
mod service;
mod sharing;
mod state;
mod storage;
mod trace;
mod turns;
mod work;

use health::Deferred;
use host::Host;
use job::{Job, Operation};
use role::Role;
use work::{InProgress, Piece};

use crate::log;
use crate::message::{Answer, Call, Msg, kind};
use crate::model::Model;
use crate::saved::{self, RestoreState, Saving, State};
use corsair::{Actor, Context, Event, Flow, Token};
use corsair_observe::Metric;
use serde::de::SeqAccess;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::sync::Arc;
use std::time::Duration;

/// The timer to ask the registries.
const TO_POLL: Token = Token::new(0);
/// The token of the timer to make a request, or to gossip.
const TO_TALK: Token = Token::new(1);
/// The timer of a service's alarms.
const TO_ALARM: Token = Token::new(2);
/// The timer of work on shared processors.
const TO_SHARE: Token = Token::new(3);
/// The token of the timer for the queued request whose patience ends first.
const TO_EXPIRE: Token = Token::new(4);
/// The first token of the timers of faults: twice the number of the fault, plus one for its end. The tokens of work are
/// defined by [`InProgress`].
const TO_FAULT: u32 = 16;

/// An instance of a service.
#[derive(Debug)]
pub(crate) struct Node {
    host: Host,
    role: Role,
}

impl State for Node {
    const FIELDS: usize = 2;

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() {
            let mut to = to.serialize_map(Some(Self::FIELDS))?;
            to.serialize_entry("host", &Saving(&self.host))?;
            to.serialize_entry("role", &self.role)?;
            return to.end();
        }
        (Saving(&self.host), &self.role).serialize(to)
    }

    fn load<'de, A: SeqAccess<'de>>(&mut self, from: &mut A) -> Result<(), A::Error> {
        saved::load_next(from, &mut self.host)?;
        self.role.take_over(saved::next(from)?);
        if let (Some(turn), Role::EntryPoint(entry)) = (&self.host.model.turn, &mut self.role) {
            entry.turn(&self.host, turn);
        }
        Ok(())
    }
}

impl Node {
    pub(crate) fn new(model: &Arc<Model>, index: u32) -> Node {
        let host = Host::new(model, index);
        let role = Role::of(&host);
        Node { host, role }
    }

    /// Returns the index of the instance in the topology.
    pub(crate) fn index(&self) -> u32 {
        self.host.index
    }

    fn receive<C: Context<Msg>>(&mut self, message: Msg, cx: &mut C) -> Flow {
        log::received(&self.host.model, &message, cx);
        let new = &message;
        match message {
            Msg::GetRequest(call, left) => self.take(new, Operation::Get, call, left, cx),
            Msg::Put(call) => self.take(new, Operation::Put, call, 0, cx),
            Msg::PutOwned(call) => self.take(new, Operation::PutOwned, call, 0, cx),
            Msg::Replicate(call) => self.take(new, Operation::Copy, call, 0, cx),
            Msg::ReplicateRegion(call) => self.take(new, Operation::CopyRegion, call, 0, cx),
            Msg::GetResponse { id, travel, answer } => {
                if self.host.health.is_paused() {
                    let response = Deferred::Response { id, travel, answer };
                    self.host.health.hold(response);
                } else {
                    self.answered(id, travel, answer, cx);
                }
            }
            control => {
                let (now, from) = (cx.now().as_nanos(), cx.envelope().from);
                self.host.see_message(&control, from, now);
                return self.control(control, cx);
            }
        }
        Flow::Continue
    }

    /// Accepts an incoming job, which is a message, unless a fault prevents it.
    fn take<C: Context<Msg>>(
        &mut self,
        message: &Msg,
        operation: Operation,
        call: Call,
        left: u32,
        cx: &mut C,
    ) {
        let now = cx.now();
        let mut job = Job::new(operation, call, &cx.envelope(), now.as_nanos());
        self.host.see_message(message, job.client, now.as_nanos());
        if left > 0 {
            let sent = now.as_nanos().saturating_sub(call.travel.into());
            job.deadline = sent.saturating_add(u64::from(left) * 1_000);
        }
        job.key = self
            .host
            .model
            .topology
            .own_priority(self.host.service, job.key);
        if let Some(answer) = self.host.unreachable(job.client) {
            return self.host.reject(&job, answer, cx);
        }
        let recorder = &self.host.model.recorder;
        if recorder.wants_flows()
            && let Some(context) = job.context()
        {
            let kind = match operation {
                Operation::Get => kind::GET_REQUEST,
                Operation::Put | Operation::PutOwned => kind::PUT,
                Operation::Copy | Operation::CopyRegion => kind::REPLICATE,
            };
            recorder.server_receive(now, cx.me(), context, call.key.operation(kind));
        }
        recorder.sample(self.host.measured(), Metric::Network, call.travel.into());
        if self.host.health.is_paused() {
            self.host.health.hold(Deferred::Job(job, call.travel));
        } else {
            self.handle(job, call.travel, cx);
        }
    }

    /// Handles a message that arrived during a pause.
    fn handle_held<C: Context<Msg>>(&mut self, held: Deferred, cx: &mut C) {
        match held {
            Deferred::Job(job, travel) => {
                self.host.on_account_of(&job, cx);
                self.handle(job, travel, cx);
            }
            Deferred::Response { id, travel, answer } => self.answered(id, travel, answer, cx),
        }
    }

    /// Handles a job whose message travelled for `travel` nanoseconds, and is the cause of what is sent now.
    #[inline]
    fn handle<C: Context<Msg>>(&mut self, job: Job, travel: u32, cx: &mut C) {
        if let Some(job) = self.host.admit(job, travel, cx) {
            self.begin(job, cx);
        }
        self.begin_queued(cx);
    }

    /// Handles an answer: resumes the job that made the request.
    #[inline]
    fn answered<C: Context<Msg>>(&mut self, id: u32, travel: u32, answer: Answer, cx: &mut C) {
        if let Some(request) = self.host.take_answered(id, travel, answer, cx) {
            self.role.resume(&mut self.host, &request, answer, cx);
        }
        self.begin_queued(cx);
    }

    /// Starts queued jobs for which slots are free.
    #[inline]
    fn begin_queued<C: Context<Msg>>(&mut self, cx: &mut C) {
        if !self.host.queue.is_empty() {
            self.begin_waiting(cx);
        }
    }

    fn begin_waiting<C: Context<Msg>>(&mut self, cx: &mut C) {
        while let Some(job) = self.host.next_in_queue(cx) {
            self.host.on_account_of(&job, cx);
            self.begin(job, cx);
        }
    }

    /// Starts a job. Work without duration is done at once.
    fn begin<C: Context<Msg>>(&mut self, job: Job, cx: &mut C) {
        if let Some((job, fails)) = self.host.start_work(job, cx) {
            self.end(job, fails, cx);
        }
    }

    /// Completes a job whose work is done.
    fn end<C: Context<Msg>>(&mut self, job: Job, fails: bool, cx: &mut C) {
        if fails {
            self.host.fail(job, cx);
        } else {
            self.role.act(&mut self.host, job, cx);
        }
    }

    /// Handles messages of registries and of the scenario.
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
            Msg::Kill => self.kill(cx),
            Msg::Command(command) => self.obey(command, cx),
            Msg::Probe => host.tell_how_busy(cx),
            Msg::Serve { there } => {
                host.serve(there, cx);
                if !there {
                    self.role.leave(host, cx);
                }
            }
            Msg::Goodbye => {
                host.leave(cx);
                return Flow::Stop;
            }
            // Other messages are for registries and the log.
            _ => {}
        }
        Flow::Continue
    }

    /// Adds an instance that this instance may call.
    fn meet<C: Context<Msg>>(&mut self, node: u32, cx: &mut C) {
        let host = &mut self.host;
        if host.allows(node, cx) && self.role.add(host, node) {
            let (source, target) = (host.index, node);
            host.log(Msg::Edge { source, target }, cx);
            let service = &host.model.topology.services[host.service as usize];
            let is_peer = service.instances.contains(&node) && service.may_change();
            if is_peer && cx.now().as_nanos() >= host.model.load_at {
                self.role.peer_has_come(host, node, cx);
            }
        }
    }

    /// Removes `node` from the instances that this instance may call.
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
            TO_ALARM => self.wake(cx),
            TO_SHARE => self.shared_work(cx),
            TO_EXPIRE => self.host.expire(cx),
            work if InProgress::owns(work) => {
                if let Some(piece) = self.host.work_done(work) {
                    self.piece_done(piece, 0, cx);
                    self.begin_queued(cx);
                }
            }
            fault if fault.number() >= TO_FAULT => self.fault(fault.number() - TO_FAULT, cx),
            _ => {}
        }
    }
}

impl Node {
    /// Completes a piece of work, which has lost `waited` nanoseconds by waiting for shared processors.
    fn piece_done<C: Context<Msg>>(&mut self, piece: Piece, waited: u64, cx: &mut C) {
        match piece {
            Piece::Job(job, fails) => {
                self.host.trace_work(&job, job.began, waited, cx);
                self.host.on_account_of(&job, cx);
                self.end(job, fails, cx);
            }
            Piece::Task(task) => self.role.work_done(&mut self.host, task, waited, cx),
        }
    }

    /// Handles the timer of work on shared processors.
    fn shared_work<C: Context<Msg>>(&mut self, cx: &mut C) {
        let now = cx.now().as_nanos();
        let sharing = self.host.in_progress.sharing.as_mut();
        if !sharing.is_some_and(|sharing| sharing.is_due(now)) {
            return;
        }
        self.host.track_work(now);
        while let Some((piece, waited)) = self.host.in_progress.finish_shared(now) {
            self.host.has_waited(waited, now);
            self.piece_done(piece, waited, cx);
            self.begin_queued(cx);
        }
        let sharing = self.host.in_progress.sharing.as_mut();
        if let Some(after) = sharing.and_then(|sharing| sharing.next_timer(now)) {
            cx.timer(Duration::from_nanos(after), TO_SHARE);
        }
    }

    /// Handles due alarms, unless the instance is paused.
    fn wake<C: Context<Msg>>(&mut self, cx: &mut C) {
        if !self.host.health.is_paused() {
            self.host.expire(cx);
            self.role.wake(&mut self.host, cx);
            self.begin_queued(cx);
        }
    }
}

/// Adds the instance's totals to the run's when it ends: after its goodbye, or because the run was cancelled.
impl Drop for Node {
    fn drop(&mut self) {
        let track = self.host.track.take();
        let host = &self.host;
        let mut totals = host.model.totals.lock();
        let mut done = host.totals;
        if let Role::Service(service) = &self.role {
            done.opened = service.opened();
        }
        totals.add_instance(host.service, &done, host.pending.iter().count() as u64);
        if let Role::EntryPoint(entry) = &self.role {
            let name = &host.model.topology.services[host.service as usize].name;
            totals.add_entry_point(name, &entry.totals(host));
        }
        if let Some(mut track) = track {
            track.end(host.last_seen);
            if host.is_entry_point() {
                for request in host.pending.iter() {
                    let age = host.last_seen.saturating_sub(request.sent);
                    track.request(request.sent, Some(age), true);
                }
            }
            let timeline = totals.timeline.get_or_insert_default();
            timeline.add(host.service, host.model.place(host.index), *track);
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
