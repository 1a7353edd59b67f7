//! The package denominator: the name service, through which requests and values enter the architecture.

use super::TO_TALK;
use super::host::Host;
use super::job::{Job, Operation, PendingRequest};
use super::routes::Routes;
use crate::definition::Arrivals;
use crate::load::{Load, RequestKind, Source};
use crate::message::{Answer, Key, Msg};
use crate::model::{LEAST_TRAVEL, Turn};
use crate::saved::RestoreState;
use crate::totals::EntryTotals;
use corsair::{Context, Random};
use corsair_observe::Metric;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The minimum pause before a user retries a request for which there was no instance, in nanoseconds.
const UNROUTED_PAUSE: u64 = 1_000_000;

/// The minimum time between requests of an entry point without its own load, in nanoseconds.
const LEAST_PERIOD: u64 = 1_000;

/// Returns the random stream of arrivals at an entry point.
fn arrivals(host: &Host, seed: u64) -> Random {
    let service = &host.model.topology.services[host.service as usize];
    let number = u64::from(host.index - service.instances.start);
    let name = u64::from(crc32fast::hash(service.name.as_bytes()));
    Random::new(seed ^ 0x10AD ^ name << 24 ^ number)
}

/// An entry point, with the outcomes of its requests.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EntryPoint {
    pub(super) routes: Routes,
    /// The entry point's own load, if it has one.
    #[serde(skip)]
    load: Option<Load>,
    /// The random stream of arrivals; equal for every variant of an architecture.
    random: Random,
    /// Without its own load: the time between requests in nanoseconds; 0 means no requests.
    period: u64,
    /// The percentage of the load that arrives.
    percent: u32,
    /// The number of users of a closed loop.
    users: u32,
    /// The start of the load in nanoseconds; `None` before and after it.
    began: Option<u64>,
    /// The number of instances that share the load, and the index of this instance among them.
    #[serde(skip)]
    share: (u32, u32),
    /// The number of requests due so far at all of these instances; with recorded arrivals, the number of requests
    /// that have arrived.
    due: f64,
    replayed: usize,
    /// The number of values put so far, plus one.
    put: u32,
    /// The totals by kind of request.
    totals: Vec<EntryTotals>,
}

impl RestoreState for EntryPoint {
    fn take_over(&mut self, saved: EntryPoint) {
        let own = std::mem::replace(self, saved);
        (self.load, self.share) = (own.load, own.share);
    }
}

impl EntryPoint {
    /// Creates the entry point of a host.
    pub(super) fn new(host: &Host) -> EntryPoint {
        let service = &host.model.topology.services[host.service as usize];
        let kinds = RequestKind::STORAGE.len();
        let kinds = service.load.as_ref().map_or(kinds, |load| load.kinds.len());
        EntryPoint {
            routes: Routes::default(),
            load: service.load.clone(),
            random: arrivals(host, host.model.seed),
            period: 0,
            percent: 100,
            users: 0,
            began: None,
            share: (
                service.instances.len() as u32,
                host.index - service.instances.start,
            ),
            due: 0.0,
            replayed: 0,
            put: 1,
            totals: vec![EntryTotals::default(); kinds],
        }
    }

    /// Begins a branch of a saved run.
    pub(super) fn turn(&mut self, host: &Host, turn: &Turn) {
        if let Some(seed) = turn.seed {
            self.random = arrivals(host, seed);
        }
        if turn.counts {
            self.totals.fill_with(EntryTotals::default);
        }
        let (Some(began), Some(load)) = (self.began, &self.load) else {
            return;
        };
        if let Source::Open { curve, arrivals } = &load.source
            && turn.loads.contains(&host.service)
        {
            // Requests that the new curve would have made before the branch are not made up for.
            let seconds = turn.at.saturating_sub(began) as f64 / 1e9;
            let (of, number) = (f64::from(self.share.0), f64::from(self.share.1));
            self.due = curve.due(seconds);
            if *arrivals == Arrivals::Constant {
                self.due = libm::floor(self.due / of) * of + number + 1.0;
            }
        }
    }

    /// Returns how many users of a closed loop belong to this instance.
    fn own_users(&self, users: u32) -> u32 {
        let (of, number) = self.share;
        users / of + u32::from(number < users % of)
    }

    /// Starts the load. An entry point without its own load makes a request every `period` nanoseconds. A period of 0
    /// ends the load.
    pub(super) fn set_period<C: Context<Msg>>(&mut self, period: u64, cx: &mut C) {
        let was_silent = self.began.is_none();
        self.period = period;
        self.began = (period > 0).then(|| self.began.unwrap_or(cx.now().as_nanos()));
        if self.began.is_none() || !was_silent {
            return;
        }
        match self.load.as_ref().map(|load| &load.source) {
            None => cx.timer(Duration::from_nanos(period), TO_TALK),
            Some(Source::Closed { users, think }) => {
                self.users = self.own_users(*users);
                for _ in 0..self.users {
                    let thinks = think.sample(|| self.random.bits());
                    cx.timer(Duration::from_nanos(thinks), TO_TALK);
                }
            }
            Some(Source::Open { arrivals, .. }) => {
                // If arrivals are regular, the instances of an entry point take turns.
                if *arrivals == Arrivals::Constant {
                    let (of, number) = self.share;
                    self.due = f64::from(number + 1) - f64::from(of);
                }
                self.set_timer(cx);
            }
            Some(Source::Replay(_)) => {
                self.replayed = self.share.1 as usize;
                self.set_timer(cx);
            }
        }
    }

    /// Sets the percentage of the load from now on. Of recorded arrivals either all or none are replayed.
    pub(super) fn set_percent(&mut self, percent: u32) {
        self.percent = percent;
    }

    /// Returns the factor on the defined load.
    fn factor(&self) -> f64 {
        f64::from(self.percent.max(1)) / 100.0
    }

    /// Handles the timer: a request arrives, or a user's think time is over.
    pub(super) fn talk<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        if self.began.is_none() {
            return;
        }
        if let Some(Source::Closed { users, .. }) = self.load.as_ref().map(|load| &load.source)
            && let users = *users
            && self.leaves(users, cx)
        {
            return;
        }
        let works = !host.health.is_down() && !host.health.is_paused() && self.percent > 0;
        match self.load.as_ref().map(|load| &load.source) {
            None => {
                let period = (self.period as f64 / self.factor()) as u64;
                cx.timer(Duration::from_nanos(period.max(LEAST_PERIOD)), TO_TALK);
                if works {
                    self.demand(host, None, cx);
                }
            }
            Some(Source::Closed { .. }) if works => self.demand(host, None, cx),
            Some(Source::Closed { .. }) => {
                cx.timer(Duration::from_nanos(UNROUTED_PAUSE), TO_TALK);
            }
            Some(Source::Open { .. }) => {
                if works {
                    self.demand(host, None, cx);
                }
                self.set_timer(cx);
            }
            Some(Source::Replay(arrivals)) => {
                let kind = arrivals.get(self.replayed).and_then(|arrival| arrival.kind);
                self.replayed += self.share.0 as usize;
                if works {
                    self.demand(host, kind, cx);
                }
                self.set_timer(cx);
            }
        }
    }

    /// Handles the end of a user's think time. Returns true if the user leaves, because the load now has fewer users.
    /// If the load now has more users, new users begin to think.
    #[inline]
    fn leaves<C: Context<Msg>>(&mut self, users: u32, cx: &mut C) -> bool {
        let wanted = self.own_users(users);
        if self.users > wanted {
            self.users -= 1;
            return true;
        }
        while self.users < wanted {
            self.users += 1;
            self.think(0, cx);
        }
        false
    }

    /// Sets the timer for the next arrival of an open loop, if there is one.
    fn set_timer<C: Context<Msg>>(&mut self, cx: &mut C) {
        let (Some(began), Some(load)) = (self.began, &self.load) else {
            return;
        };
        let at = match &load.source {
            Source::Open { curve, arrivals } => {
                let gaps = arrivals.gaps();
                let gap = (gaps.as_constant()).unwrap_or_else(|| gaps.draw(self.random.bits()));
                self.due += gap * f64::from(self.share.0) / self.factor();
                // Casts of floats saturate: a time above the maximum is never reached.
                curve
                    .time_of(self.due)
                    .map(|seconds| (seconds * 1e9) as u64)
            }
            Source::Replay(arrivals) => arrivals.get(self.replayed).map(|arrival| arrival.at),
            Source::Closed { .. } => None,
        };
        if let Some(at) = at {
            let due = began.saturating_add(at);
            let after = due.saturating_sub(cx.now().as_nanos());
            cx.timer(Duration::from_nanos(after), TO_TALK);
        }
    }

    /// Makes a request of this kind, or of a random kind.
    fn demand<C: Context<Msg>>(&mut self, host: &mut Host, kind: Option<RequestKind>, cx: &mut C) {
        let kind = match (&self.load, kind) {
            (_, Some(kind)) => kind,
            (Some(load), None) => load
                .mix
                .draw(&mut self.random, Random::bits, |random| random.below(3)),
            (None, None) => RequestKind(cx.below(3) as u16),
        };
        let counted = u64::from(cx.now().as_nanos() >= host.model.count_from);
        let number = usize::from(kind.0);
        let asked = self
            .load
            .as_ref()
            .map(|load| (load.kinds[number].endpoint, load.keys));
        let to = match asked {
            Some((Some((service, _)), _)) => {
                let instances = &host.model.topology.services[service as usize].instances;
                let direct = self.routes.pick_within(instances, || cx.random());
                direct.or_else(|| self.routes.pick(cx.random()))
            }
            _ => self.routes.pick(cx.random()),
        };
        let totals = &mut self.totals[number];
        let Some(to) = to.filter(|_| host.pending.has_room()) else {
            totals.requests += counted;
            totals.errors += counted;
            totals.unrouted += counted;
            if let Some(track) = &mut host.track {
                track.request(cx.now().as_nanos(), None, true);
            }
            return self.think(UNROUTED_PAUSE, cx);
        };
        let (operation, key) = match (kind, asked) {
            (_, Some((Some((_, key)), keys))) => {
                let (endpoint, priority, _) = key.as_endpoint().unwrap_or_default();
                let key = Key::endpoint(endpoint, priority, self.random.below(keys));
                (Operation::Get, key)
            }
            (RequestKind::READ, _) => (Operation::Get, Key::numbered(cx.below(self.put))),
            (RequestKind::WRITE, _) => {
                self.put = self.put.wrapping_add(1).max(1);
                (Operation::Put, Key::numbered(self.put - 1))
            }
            _ => (Operation::Get, Key::WHY),
        };
        let job = Job::of_own_accord(operation, key, cx.now().as_nanos());
        if operation.is_answered() {
            totals.requests += counted;
            host.ask(job, to, key, kind.0.into(), cx);
        } else {
            totals.puts += counted;
            host.put(&job, to, Msg::Put, key, cx);
            self.think(LEAST_TRAVEL, cx);
        }
    }

    /// Starts the think time of a user of a closed loop, of at least this number of nanoseconds.
    fn think<C: Context<Msg>>(&mut self, least: u64, cx: &mut C) {
        let source = self.load.as_ref().map(|load| &load.source);
        if let (Some(Source::Closed { think, .. }), Some(_)) = (source, self.began) {
            let thinks = think.sample(|| self.random.bits());
            let thinks = ((thinks as f64 / self.factor()) as u64).max(least);
            cx.timer(Duration::from_nanos(thinks), TO_TALK);
        }
    }

    /// Returns the number of requests that failed at once because there was no instance to send them to.
    pub(super) fn unrouted(&self) -> u64 {
        self.totals.iter().map(|totals| totals.unrouted).sum()
    }

    /// Returns the number of arrived requests, and the percentage of the load.
    pub(super) fn fields(&self) -> Vec<(&'static str, u64)> {
        let sum = |of: fn(&EntryTotals) -> u64| self.totals.iter().map(of).sum();
        vec![
            ("load_percent", self.percent.into()),
            ("requests", sum(|totals| totals.requests)),
            ("puts", sum(|totals| totals.puts)),
            ("errors", sum(|totals| totals.errors)),
            ("missing", sum(|totals| totals.missing)),
            ("unrouted", sum(|totals| totals.unrouted)),
        ]
    }

    /// Handles the answer to a request of the entry point.
    pub(super) fn resume<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        request: &PendingRequest,
        answer: Answer,
        cx: &mut C,
    ) {
        let lasted = cx.now().as_nanos().saturating_sub(request.sent);
        let (recorder, measured) = (&host.model.recorder, host.measured());
        recorder.sample(measured, Metric::Response, lasted);
        if answer.is_error() {
            recorder.error(measured);
        }
        if let Some(track) = &mut host.track {
            track.request(request.sent, Some(lasted), answer.is_error());
        }
        if request.sent >= host.model.count_from {
            self.totals[request.stage as usize].answered(lasted, answer);
        }
        self.think(0, cx);
    }

    /// Returns the totals of arrived requests, including unanswered ones, by kind if the load has kinds.
    pub(super) fn totals(&self, host: &Host) -> EntryTotals {
        let mut totals = self.totals.clone();
        let pending = host.pending.iter();
        for request in pending.filter(|request| request.sent >= host.model.count_from) {
            let age = host.last_seen.saturating_sub(request.sent);
            totals[request.stage as usize].unanswered_at(age);
        }
        let mut all = EntryTotals::default();
        for (number, totals) in totals.into_iter().enumerate() {
            all.add(&totals);
            if let Some(load) = &self.load
                && totals.requests + totals.puts > 0
            {
                all.kinds.insert(load.kinds[number].name.clone(), totals);
            }
        }
        all
    }
}
