//! The common part of all packages: an instance's location, slots, queue, requests and health.

use super::health::{Deferred, Health};
use super::job::{Job, PendingRequest, PendingRequests};
use super::queue::Queue;
use super::work::{InProgress, Piece};
use crate::live::seen::InstanceHistory;
use crate::message::{Answer, Call, Msg};
use crate::model::Model;
use crate::ordered::Ordered;
use crate::policy::Bucket;
use crate::saved::state;
use crate::timeline::Track;
use crate::topology::Costs;
use crate::totals::ServiceTotals;
use corsair::{Addr, Context, Token};
use corsair_observe::{Metric, ServiceId, Status};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The common part of all packages.
#[derive(Debug)]
pub(crate) struct Host {
    pub(super) model: Arc<Model>,
    /// The index of the instance in the topology.
    pub(super) index: u32,
    /// The address of instance 0.
    pub(super) first: u32,
    /// The address of the scenario, which created the instance.
    pub(super) root: Addr,
    pub(super) service: u32,
    pub(super) registries: Vec<u32>,
    /// The services that the instance depends on and looks up in the registries.
    pub(super) dependencies: Vec<u32>,
    /// The instances that this instance may call; `None` unless a graph defines them.
    pub(super) allowed: Option<Vec<u32>>,
    pub(super) pending: PendingRequests,
    pub(super) health: Health,
    pub(super) in_progress: InProgress,
    /// Slots in use, if concurrency is limited.
    pub(super) busy: u32,
    /// The sum of the slots in use over time, in nanoseconds, and the time of its last update.
    pub(super) slot_time: (u64, u64),
    /// True if an autoscaler has not added the instance, or has removed it.
    pub(super) is_idle: bool,
    /// Jobs that wait for a slot.
    pub(super) queue: Queue,
    /// The rate limit of the instance's requests, if there is one.
    bucket: Option<Bucket>,
    pub(super) totals: ServiceTotals,
    /// The timeline of the instance, if one is recorded.
    pub(super) track: Option<Box<Track>>,
    /// Keeps the instance's notifications to each receiver in order.
    pub(super) ordered: Ordered,
    /// The time of the last event, in nanoseconds.
    pub(super) last_seen: u64,
    /// The history of the instance, while it is watched.
    pub(super) seen: Option<Box<InstanceHistory>>,
}

state!(Host {
    first,
    root,
    registries,
    dependencies,
    allowed,
    pending,
    health,
    in_progress,
    busy,
    slot_time,
    is_idle,
    totals,
    ordered,
    last_seen,
} ruled { queue, bucket, track });

impl Host {
    pub(super) fn new(model: &Arc<Model>, index: u32) -> Host {
        let costs = &model.topology.service_of(index).costs;
        Host {
            allowed: model.topology.edges.as_ref().map(|_| Vec::new()),
            index,
            first: 0,
            root: Addr::NONE,
            service: model.instance(index).service,
            registries: Vec::new(),
            dependencies: Vec::new(),
            pending: PendingRequests::default(),
            health: Health::new(model.topology.begins_idle(index)),
            in_progress: InProgress::new(costs),
            busy: 0,
            slot_time: (0, 0),
            is_idle: model.topology.begins_idle(index),
            queue: Queue::new(costs.queue),
            bucket: costs.rate_limit.map(Bucket::new),
            totals: ServiceTotals::default(),
            track: track(model, index),
            ordered: Ordered::default(),
            last_seen: 0,
            seen: None,
            model: Arc::clone(model),
        }
    }

    pub(super) fn is_entry_point(&self) -> bool {
        self.model.is_entry_point(self.index)
    }

    /// Returns the address of an actor, given its number.
    #[inline]
    pub(super) fn address(&self, actor: u32) -> Addr {
        Addr::from_u32(self.first + actor)
    }

    /// Returns the number of the actor at an address.
    #[inline]
    pub(super) fn number(&self, address: Addr) -> u32 {
        address.as_u32().wrapping_sub(self.first)
    }

    pub(super) fn measured(&self) -> ServiceId {
        self.model.measured[self.service as usize]
    }

    pub(super) fn costs(&self) -> &Costs {
        &self.model.topology.services[self.service as usize].costs
    }

    /// Makes a job the cause, in traces, of the messages that are sent from now on.
    #[inline]
    pub(super) fn on_account_of<C: Context<Msg>>(&self, job: &Job, cx: &mut C) {
        if self.model.traces.load(Ordering::Relaxed) {
            cx.continue_trace(job.trace, job.span);
        }
    }

    /// Takes a slot for a job, queues it if every slot is taken, or refuses it. Returns the job if
    /// it can begin.
    pub(super) fn admit<C: Context<Msg>>(
        &mut self,
        mut job: Job,
        travel: u32,
        cx: &mut C,
    ) -> Option<Job> {
        if job.operation.is_answered() {
            self.totals.nanos += u64::from(travel);
            self.totals.travelled += u64::from(travel);
        }
        let now = cx.now().as_nanos();
        let bucket = self.bucket.as_mut();
        if now >= job.deadline || bucket.is_some_and(|bucket| !bucket.take(now)) {
            self.refuse(job, cx);
            return None;
        }
        job.began = now;
        let limit = self.costs().concurrency;
        let Some(limit) = limit.filter(|_| !self.is_ring_peer(job.client)) else {
            return Some(job);
        };
        if self.busy < limit {
            job.holds_slot = true;
            self.set_busy(self.busy + 1, now);
            return Some(job);
        }
        if let Some(refused) = self.queue.push(job) {
            self.refuse(refused, cx);
        }
        let length = self.queue.len() as u64;
        self.totals.longest_queue = self.totals.longest_queue.max(length);
        self.track_queue(now);
        self.time_patience(now, cx);
        None
    }

    /// Sets the timer for the queued job whose patience ends first.
    fn time_patience<C: Context<Msg>>(&mut self, now: u64, cx: &mut C) {
        if let Some(after) = self.queue.next_timer(now) {
            cx.timer(Duration::from_nanos(after), super::TO_EXPIRE);
        }
    }

    /// Refuses queued jobs whose patience has ended, unless the instance is paused.
    pub(super) fn expire<C: Context<Msg>>(&mut self, cx: &mut C) {
        if self.health.is_paused() {
            return;
        }
        let now = cx.now().as_nanos();
        while let Some(job) = self.queue.expire(now) {
            self.has_waited(now.saturating_sub(job.arrived), now);
            self.track_queue(now);
            self.refuse(job, cx);
        }
        self.time_patience(now, cx);
    }

    /// Refuses a job without a slot because of overload.
    fn refuse<C: Context<Msg>>(&mut self, job: Job, cx: &mut C) {
        self.totals.refused += 1;
        self.model.recorder.error(self.measured());
        self.finish(job, Answer::Overloaded, cx);
    }

    /// Counts waiting time for a slot or shared processors, in nanoseconds.
    pub(super) fn has_waited(&mut self, waited: u64, now: u64) {
        if now >= self.model.count_from {
            self.totals.queued += waited;
        }
    }

    /// Takes the next job of the queue, if there is a slot for it.
    pub(super) fn next_in_queue<C: Context<Msg>>(&mut self, cx: &mut C) -> Option<Job> {
        if self.queue.is_empty() || self.health.is_paused() {
            return None;
        }
        let limit = self.costs().concurrency;
        if limit.is_some_and(|limit| self.busy >= limit) {
            return None;
        }
        let now = cx.now().as_nanos();
        while let Some((mut job, is_refused)) = self.queue.pop(now) {
            self.has_waited(now.saturating_sub(job.arrived), now);
            self.track_queue(now);
            if is_refused {
                self.refuse(job, cx);
                continue;
            }
            job.holds_slot = true;
            job.began = now;
            self.set_busy(self.busy + 1, now);
            return Some(job);
        }
        None
    }

    /// True if the client is a peer of this ring. Requests of peers bypass the concurrency limit. Each peer occupies
    /// one of its own slots while it waits, so queueing such requests could cause a deadlock.
    #[inline]
    fn is_ring_peer(&self, client: Addr) -> bool {
        let topology = &self.model.topology;
        if !topology.services[self.service as usize].package.is_ring() {
            return false;
        }
        let client = topology.instances.get(self.number(client) as usize);
        client.is_some_and(|client| client.service == self.service)
    }

    /// Starts to work on a job. Returns the job at once if its work takes no time, with true if it fails.
    pub(super) fn start_work<C: Context<Msg>>(
        &mut self,
        job: Job,
        cx: &mut C,
    ) -> Option<(Job, bool)> {
        let costs = &self.model.topology.services[self.service as usize].costs;
        let work = match &costs.service_time {
            Some(times) => self.health.slowed(times.sample(|| cx.random())),
            None => 0,
        };
        let fails = costs.error_bits > 0 && cx.random() < costs.error_bits;
        // Requests fail if they have passed through a circular service too often, or if all numbers for further
        // requests are in use.
        let fails = fails || job.rounds == Call::MOST_ROUNDS || !self.pending.has_room();
        if work == 0 {
            return Some((job, fails));
        }
        if !self.work(Piece::Job(job, fails), work, cx) {
            return Some((job, true));
        }
        None
    }

    /// Starts work for a task, which is resumed when the work is done. False if the instance already has the maximum
    /// amount of work.
    pub(super) fn work_on<C: Context<Msg>>(&mut self, task: u32, work: u64, cx: &mut C) -> bool {
        self.work(Piece::Task(task), work, cx)
    }

    fn work<C: Context<Msg>>(&mut self, piece: Piece, work: u64, cx: &mut C) -> bool {
        if !self.in_progress.has_room() {
            return false;
        }
        let now = cx.now().as_nanos();
        if now >= self.model.count_from {
            self.totals.worked += work;
        }
        if let Some((after, token)) = self.in_progress.begin(piece, work, now) {
            cx.timer(Duration::from_nanos(after), token);
        }
        self.track_work(now);
        true
    }

    fn track_queue(&mut self, now: u64) {
        if let Some(track) = &mut self.track {
            track.queue(self.queue.len(), now);
        }
    }

    /// Updates the work of shared processors.
    pub(super) fn track_work(&mut self, now: u64) {
        if let (Some(track), Some(sharing)) = (&mut self.track, &mut self.in_progress.sharing) {
            track.used(sharing.used_by_all(now), now);
        }
    }

    /// Applies rules that have changed to the work in progress and to the queue. Returns the delay of a new timer of
    /// shared processors, if one is needed.
    pub(super) fn revise(&mut self, now: u64) -> Option<u64> {
        self.track_work(now);
        self.queue.revise();
        let costs = &self.model.topology.services[self.service as usize].costs;
        let sharing = self.in_progress.sharing.as_mut()?;
        sharing.revise(costs.processors?, costs.time_slice, now);
        if let Some(track) = &mut self.track {
            track.used_before(sharing.used_by_all(now), now);
        }
        sharing.next_timer(now)
    }

    /// Takes the completed piece of work, if the timer is still valid.
    pub(super) fn work_done(&mut self, token: Token) -> Option<Piece> {
        if self.health.is_paused() {
            return None;
        }
        self.in_progress.finish(token)
    }

    /// Ends a job with an error, because of the service's error rate.
    pub(super) fn fail<C: Context<Msg>>(&mut self, job: Job, cx: &mut C) {
        self.totals.errors += 1;
        self.model.recorder.error(self.measured());
        self.finish(job, Answer::Failed, cx);
    }

    /// Ends a job: answers its client, if there is one, and frees its slot.
    pub(super) fn finish<C: Context<Msg>>(&mut self, job: Job, answer: Answer, cx: &mut C) {
        let now = cx.now();
        let lasted = now.as_nanos() - job.arrived;
        if job.operation.is_answered() {
            self.trace_visit(&job, now.as_nanos());
            self.totals.requests += 1;
            self.totals.nanos += lasted.saturating_sub(job.waited);
            let recorder = &self.model.recorder;
            if recorder.wants_flows()
                && let Some(context) = job.context()
            {
                recorder.server_send(now, cx.me(), context, status(answer));
            }
            recorder.sample(self.measured(), Metric::Service, lasted);
            if let Some(track) = &mut self.track {
                track.request(job.arrived, Some(lasted), answer.is_error());
            }
            self.respond(&job, answer, cx);
        } else {
            self.totals.one_way += 1;
        }
        if job.holds_slot {
            self.set_busy(self.busy - 1, now.as_nanos());
            if now.as_nanos() >= self.model.count_from {
                self.totals.busy += now.as_nanos() - job.began;
            }
        }
    }

    /// Takes the request that a response answers, and records its duration. `None` if the response is
    /// obsolete.
    pub(super) fn take_answered<C: Context<Msg>>(
        &mut self,
        id: u32,
        travel: u32,
        answer: Answer,
        cx: &mut C,
    ) -> Option<PendingRequest> {
        let mut request = self.pending.remove(id)?;
        if request.is_abandoned {
            self.count_dropped();
            return None;
        }
        let now = cx.now();
        let lasted = now.as_nanos().saturating_sub(request.sent);
        let recorder = &self.model.recorder;
        if recorder.wants_flows()
            && let Some(context) = request.job.child_context(request.span)
        {
            recorder.client_receive(now, cx.me(), context, status(answer));
        }
        if recorder.wants_times() {
            self.measure_answer(&request, (lasted, u64::from(travel)), answer);
        }
        self.trace_call(&request, now.as_nanos());
        self.see_answered(&request, answer, cx);
        request.job.waited += lasted;
        Some(request)
    }

    /// Records the duration of a request, and the travel time of its answer.
    fn measure_answer(&self, request: &PendingRequest, took: (u64, u64), answer: Answer) {
        let recorder = &self.model.recorder;
        let server = self.model.instance(request.server).service as usize;
        let measured = self.model.measured[server];
        let (lasted, travel) = took;
        recorder.sample(measured, Metric::Response, lasted);
        if travel > 0 {
            recorder.sample(measured, Metric::Network, travel);
            if request.travelled > 0 {
                let round_trip = request.travelled + travel;
                recorder.sample(measured, Metric::RoundTrip, round_trip);
                if self.is_entry_point() {
                    let own = self.measured();
                    recorder.sample(own, Metric::Network, travel);
                    recorder.sample(own, Metric::RoundTrip, round_trip);
                    recorder.sample(own, Metric::Service, lasted.saturating_sub(round_trip));
                }
            }
        }
        if matches!(answer, Answer::Refused | Answer::Lost) {
            recorder.error(measured);
        }
    }

    /// Drops all work of the instance, because it is killed; its clients are refused. If tasks make its requests,
    /// `of_tasks` are their jobs.
    pub(super) fn drop_everything<C: Context<Msg>>(
        &mut self,
        of_tasks: Option<Vec<Job>>,
        cx: &mut C,
    ) {
        let has_tasks = of_tasks.is_some();
        let mut jobs: Vec<Job> = self.queue.drain().collect();
        jobs.extend(self.in_progress.drain());
        jobs.extend(of_tasks.into_iter().flatten());
        for held in self.health.take_held() {
            match held {
                Deferred::Job(job, _) => jobs.push(job),
                Deferred::Response { id, .. } => {
                    let request = self.pending.remove(id);
                    let request = request.filter(|r| !r.is_abandoned && !has_tasks);
                    jobs.extend(request.map(|r| r.job));
                }
            }
        }
        self.pending.abandon(|job| {
            if !has_tasks {
                jobs.push(job);
            }
        });
        for job in jobs {
            let answer = self.unreachable(job.client).unwrap_or(Answer::Refused);
            self.reject(&job, answer, cx);
        }
        self.set_busy(0, cx.now().as_nanos());
        self.track_queue(cx.now().as_nanos());
    }

    fn set_busy(&mut self, busy: u32, now: u64) {
        let (sum, at) = self.slot_time;
        self.slot_time = (sum + u64::from(self.busy) * now.saturating_sub(at), now);
        self.busy = busy;
        if let Some(track) = &mut self.track {
            track.busy(busy, now);
        }
    }

    /// Reports the busy time to the controller of the service, unless the instance is paused or down.
    pub(super) fn tell_how_busy<C: Context<Msg>>(&mut self, cx: &mut C) {
        if self.health.is_paused() || self.health.is_down() {
            return;
        }
        let now = cx.now().as_nanos();
        self.set_busy(self.busy, now);
        let busy = match self.costs().concurrency {
            Some(limit) => self.slot_time.0 / u64::from(limit),
            None => self.in_progress.used(now),
        };
        let controller = self.number(cx.envelope().from);
        self.notify(controller, Msg::Pulse { busy }, cx);
    }

    /// Adds or removes the instance on behalf of an autoscaler.
    pub(super) fn serve<C: Context<Msg>>(&mut self, there: bool, cx: &mut C) {
        if there == self.is_idle {
            self.is_idle = !there;
            let available = self.costs().at_once().filter(|_| there);
            if let Some(track) = &mut self.track {
                track.available(available.unwrap_or(0.0), cx.now().as_nanos());
            }
            if there {
                self.come_back(cx);
            } else {
                self.stay_away(cx);
            }
        }
    }
}

/// Creates an instance's timeline, if one is recorded.
fn track(model: &Model, index: u32) -> Option<Box<Track>> {
    let mut track = Track::new(model.interval?, model.load_at, model.load_ends);
    if !model.topology.begins_idle(index) {
        let costs = &model.topology.service_of(index).costs;
        track.available(costs.at_once().unwrap_or(0.0), 0);
    }
    Some(Box::new(track))
}

/// Returns the status of an answer in flows.
fn status(answer: Answer) -> Status {
    if answer.is_error() {
        Status::Error
    } else {
        Status::Ok
    }
}
