//! Finds requests that waited at an instance before the server's span began.
//!
//! A framework may begin the span of a request when a worker takes the request from a queue, or when the request first
//! gets a processor. Such a wait looks like latency of the network. But a request waits only if it meets at least as many
//! requests as the instance has workers, and most waits end when another request ends. The usual delay between both spans
//! is that of the calls that meet the fewest requests. It is computed for each caller and each part of the recording, so
//! that neither clock differences nor slow changes of the network matter. A request that waited arrived when it was sent,
//! plus the usual delay. With these arrivals, slots or processors must explain the times, or nothing is changed.

use super::fit::quantile;
use super::invocation::{Invocation, Invocations};
use super::pauses::Pauses;
use super::policies;
use super::processors;
use super::slots::{self, Visit};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The number of calls of a caller in each part of the recording, and the minimum number.
const PART: usize = 400;
const LEAST_IN_PART: usize = 50;

/// The minimum number of calls that determine the usual delay, and their minimum share.
const LEAST_USUAL: usize = 20;
const USUAL: usize = 20;

/// A call is late if its delay exceeds this quantile of the usual delays.
const LATE: f64 = 0.95;

/// The minimum number of calls that waited.
const LEAST_WAITING: usize = 20;

/// The minimum share of late calls among calls that meet too many requests, and the maximum share among other calls.
const WAITING: f64 = 0.5;
const OTHERS: f64 = 0.15;

/// The minimum share of late calls from which their delays seem to depend on the requests that they meet.
const DEPENDING: f64 = 0.1;

/// The number of standard errors by which these shares must differ.
const CLEAR: f64 = 5.0;

/// The longest time in nanoseconds from the end of a request to the span of a request that waited for it.
const AT_ONCE: u64 = 500_000;

/// The maximum relative difference of two estimates of the number of processors.
const NEAR: f64 = 0.1;

/// The services whose requests waited before their spans.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The requests that waited.
    pub(super) waited: FxHashSet<u32>,
    /// The services whose delays depend on the number of requests, although no queue is found.
    unexplained: Vec<Unexplained>,
}

/// A service whose delays depend on the number of its requests for an unknown reason.
#[derive(Debug)]
struct Unexplained {
    service: u32,
    is_sampled: bool,
    /// True if the spans of the service do not name its instances.
    is_one: bool,
}

impl Waits {
    /// Returns a remark for each service whose waits cannot be learned.
    pub(super) fn remarks(&self, name: &dyn Fn(u32) -> String) -> Vec<String> {
        let remark = |about: &Unexplained| {
            let reason = match about {
                Unexplained {
                    is_sampled: true, ..
                } => "too few of them were recorded to find the queue",
                Unexplained { is_one: true, .. } => {
                    "no queue explains it, perhaps because their spans name no instances (service.instance.id)"
                }
                _ => "neither slots nor shared processors explain it",
            };
            format!(
                "requests arrive later at {} when more of them are in flight, and {reason}: the delay is simulated as \
                 latency; if they wait before their spans begin, set concurrency or processors",
                name(about.service)
            )
        };
        self.unexplained.iter().map(remark).collect()
    }
}

/// Longer delays count as this delay, in nanoseconds.
const LONGEST: i64 = 1 << 60;

/// A request at an instance. Times are those of the server's clock, if nothing else is said.
#[derive(Clone, Copy, Debug)]
struct Request {
    made: u32,
    /// The calling instance or service; `None` without a client's span, or if the caller has too few calls.
    caller: Option<u32>,
    /// The begin of the client's span, by the client's clock.
    sent: u64,
    begin: u64,
    end: u64,
    /// The time from the client's span to the server's span, which is negative if the clocks differ.
    delay: i64,
    usual: i64,
    /// The number of requests that it meets at the instance.
    met: usize,
    is_late: bool,
}

impl Request {
    /// Returns the arrival after the usual delay.
    fn arrival(&self) -> u64 {
        let wait = (self.delay - self.usual).max(0);
        match self.caller {
            Some(_) => self.begin.saturating_sub(wait as u64),
            None => self.begin,
        }
    }
}

/// The requests of the instances of a service.
type Instances = BTreeMap<u32, Vec<Request>>;

/// Finds the requests that waited, and sets their arrivals. `sampled` is the recorded share of all requests.
pub(super) fn find(invocations: &mut Invocations, sampled: f64) -> Waits {
    invocations.all.iter_mut().for_each(forget);
    let is_used = |about: &Invocation| !about.one_way && !about.incomplete && !about.refused;
    let mut order: Vec<(u32, u32)> = (0..)
        .zip(&invocations.all)
        .filter(|(_, about)| is_used(about))
        .map(|(made, about)| (about.service, made))
        .collect();
    order.sort_unstable();
    let mut waits = Waits::default();
    let mut inside: Option<FxHashSet<u32>> = None;
    for of_service in order.chunk_by(|a, b| a.0 == b.0) {
        let service = of_service[0].0;
        let mut instances = Instances::new();
        for &(_, made) in of_service {
            let about = &invocations.all[made as usize];
            let of = instances.entry(about.instance).or_default();
            of.push(request(invocations, made));
        }
        instances.values_mut().for_each(|of| measure(of));
        let by_met = ByMet::of(instances.values().flatten());
        if !by_met.depends() {
            continue;
        }
        let mut all = of_service
            .iter()
            .map(|&(_, made)| &invocations.all[made as usize]);
        let is_sampled = sampled < 1.0 || all.any(|about| about.weight > 1.0);
        let found = by_met.most().filter(|_| !is_sampled).map(|most| {
            let inside = inside.get_or_insert_with(|| policies::waiting_inside(invocations));
            decide(invocations, &mut instances, most, inside)
        });
        match found {
            Some(Cause::Queue(waited)) => waits.waited.extend(waited),
            Some(Cause::Connections) => {}
            None | Some(Cause::Unknown) => waits.unexplained.push(Unexplained {
                service,
                is_sampled,
                is_one: instances.len() == 1 && instances.contains_key(&service),
            }),
        }
    }
    waits
}

/// The reason why requests are late.
enum Cause {
    /// They waited at the instance.
    Queue(Vec<u32>),
    /// They waited for a connection of their callers.
    Connections,
    Unknown,
}

/// Finds the reason why requests are late that meet at least `most` requests, and sets their arrivals if they waited.
fn decide(
    invocations: &mut Invocations,
    instances: &mut Instances,
    most: usize,
    inside: &FxHashSet<u32>,
) -> Cause {
    let is_late = |one: &Request| one.is_late && one.met >= most;
    let requests = || instances.values().flatten();
    let late: Vec<Request> = requests().filter(|one| is_late(one)).copied().collect();
    let gaps = Gaps::of(invocations, instances, &late, most);
    let in_pool = late.iter().filter(|one| inside.contains(&one.made)).count();
    if 2 * in_pool > late.len() && gaps.client <= gaps.server {
        return Cause::Connections;
    }
    // If processors are shared, spans show the sharing after the wait, too. The next request may begin before another ends.
    let mine: Vec<u32> = requests().map(|one| one.made).collect();
    let seem_shared = processors::seem_shared(invocations, &mine);
    let is_queue = gaps.is_queue();
    if !is_queue && !seem_shared {
        return Cause::Unknown;
    }
    let mut waited = Vec::new();
    for requests in instances.values_mut() {
        waited.extend(arrive(invocations, requests, is_late));
    }
    // Requests wait for a processor if they meet as many others as there are processors.
    let none = FxHashSet::default();
    let is_shared = || {
        let sharing = processors::estimate(invocations, &mine, &none, None, &Pauses::default());
        sharing.is_some_and(|found| (found.processors / most as f64 - 1.0).abs() < NEAR)
    };
    let is_explained = is_queue && has_slots(invocations, instances) || seem_shared && is_shared();
    if is_explained {
        return Cause::Queue(waited);
    }
    for made in waited {
        forget(&mut invocations.all[made as usize]);
    }
    Cause::Unknown
}

/// Lets a request arrive when the server's span begins.
fn forget(about: &mut Invocation) {
    about.begin += std::mem::take(&mut about.waited);
}

fn request(invocations: &Invocations, made: u32) -> Request {
    let about = &invocations.all[made as usize];
    let by = about.caller.map(|by| invocations.all[by as usize].instance);
    let sent = about.client.map_or(about.begin, |(sent, _)| sent);
    Request {
        made,
        caller: by.or(about.from).filter(|_| about.client.is_some()),
        sent,
        begin: about.begin,
        end: about.end.max(about.begin),
        delay: (about.begin.wrapping_sub(sent) as i64).clamp(-LONGEST, LONGEST),
        usual: 0,
        met: 0,
        is_late: false,
    }
}

/// Computes the usual delays of the requests of an instance, the numbers of requests that they meet, and which are late.
fn measure(requests: &mut [Request]) {
    requests.sort_unstable_by_key(|one| (one.caller, one.sent, one.made));
    let is_same = |a: &Request, b: &Request| a.caller == b.caller;
    for of_caller in requests.chunk_by_mut(is_same) {
        if of_caller.len() < LEAST_IN_PART {
            of_caller.iter_mut().for_each(|one| one.caller = None);
        }
        // Most delays of a busy instance may have waits, so the first estimate is a small delay.
        for part in parts(of_caller) {
            let mut delays: Vec<i64> = part.iter().map(|one| one.delay).collect();
            delays.sort_unstable();
            let usual = delays[delays.len() / 50];
            part.iter_mut().for_each(|one| one.usual = usual);
        }
    }
    count(requests);
    requests.sort_unstable_by_key(|one| (one.caller, one.sent, one.made));
    for of_caller in requests.chunk_by_mut(is_same) {
        if of_caller[0].caller.is_none() {
            continue;
        }
        let mut excess: Vec<i64> = Vec::new();
        for part in parts(of_caller) {
            let mut mets: Vec<usize> = part.iter().map(|one| one.met).collect();
            mets.sort_unstable();
            let fewest = mets[LEAST_USUAL.max(mets.len() / USUAL) - 1];
            let few = || part.iter().filter(|one| one.met <= fewest);
            let mut delays: Vec<i64> = few().map(|one| one.delay).collect();
            delays.sort_unstable();
            let usual = delays[delays.len() / 2];
            excess.extend(delays.iter().map(|delay| delay - usual));
            part.iter_mut().for_each(|one| one.usual = usual);
        }
        excess.sort_unstable();
        let late = excess[((excess.len() as f64 * LATE) as usize).min(excess.len() - 1)];
        for one in of_caller {
            one.is_late = one.delay - one.usual > late.max(2_000);
        }
    }
}

/// Divides the calls of a caller into parts of about the same size.
fn parts(mut rest: &mut [Request]) -> impl Iterator<Item = &mut [Request]> {
    let number = (rest.len() / PART).max(1);
    (1..=number).rev().map(move |left| {
        let all = std::mem::take(&mut rest);
        let (part, others) = all.split_at_mut(all.len() / left);
        rest = others;
        part
    })
}

/// Counts the requests at the instance at each arrival.
fn count(requests: &mut [Request]) {
    requests.sort_unstable_by_key(|one| (one.arrival(), one.begin, one.made));
    let mut ends: Vec<u64> = requests.iter().map(|one| one.end).collect();
    ends.sort_unstable();
    let mut ended = 0;
    for (place, one) in requests.iter_mut().enumerate() {
        let arrival = one.arrival();
        while ended < place && ends[ended] <= arrival {
            ended += 1;
        }
        one.met = place - ended;
    }
}

/// The numbers of all calls and of late calls, by the number of requests that they meet.
struct ByMet(Vec<[f64; 2]>);

impl ByMet {
    fn of<'a>(requests: impl Iterator<Item = &'a Request>) -> ByMet {
        let mut counts: Vec<[f64; 2]> = Vec::new();
        for one in requests.filter(|one| one.caller.is_some()) {
            if counts.len() <= one.met {
                counts.resize(one.met + 1, [0.0; 2]);
            }
            counts[one.met][0] += 1.0;
            counts[one.met][1] += f64::from(u8::from(one.is_late));
        }
        ByMet(counts)
    }

    /// Returns for each number of requests the calls that meet fewer, and the calls that meet at least as many.
    fn divisions(&self) -> impl Iterator<Item = (usize, Division)> {
        let mut fewer = [0.0; 2];
        let mut more = self
            .0
            .iter()
            .fold([0.0; 2], |a, b| [a[0] + b[0], a[1] + b[1]]);
        (0..).zip(&self.0).map(move |(met, counts)| {
            let division = Division { fewer, more };
            for place in 0..2 {
                fewer[place] += counts[place];
                more[place] -= counts[place];
            }
            (met, division)
        })
    }

    /// True if calls that meet more requests are clearly more often late.
    fn depends(&self) -> bool {
        self.divisions().any(|(_, one)| one.is_clear(DEPENDING))
    }

    /// Returns the number of requests from which calls wait, if fewer requests do not make them wait.
    fn most(&self) -> Option<usize> {
        let clear = self
            .divisions()
            .filter(|(_, one)| one.is_clear(WAITING) && share(one.fewer) <= OTHERS);
        let best = clear.max_by(|(_, a), (_, b)| a.difference().total_cmp(&b.difference()));
        best.map(|(met, _)| met)
    }
}

/// The numbers of all and of late calls that meet fewer requests than a number, and of the others.
#[derive(Clone, Copy, Debug)]
struct Division {
    fewer: [f64; 2],
    more: [f64; 2],
}

fn share([all, late]: [f64; 2]) -> f64 {
    late / all.max(1.0)
}

impl Division {
    fn difference(&self) -> f64 {
        share(self.more) - share(self.fewer)
    }

    fn is_clear(&self, least: f64) -> bool {
        let variance = |of: [f64; 2]| share(of) * (1.0 - share(of)) / of[0].max(1.0);
        let error = (variance(self.fewer) + variance(self.more)).sqrt();
        self.fewer[0] >= LEAST_USUAL as f64
            && self.more[1] >= LEAST_WAITING as f64
            && share(self.more) >= least
            && self.difference() > CLEAR * error
    }
}

/// The times from an end of another request to the span of a late one.
#[derive(Debug, Default)]
struct Gaps {
    /// The share of spans that begin as soon as another request at the instance ends, and the share by chance.
    at_once: f64,
    chance: f64,
    /// The medians of the times since the last end at the instance, and of the times between the sending of the request
    /// and the nearest end of a call of the same caller.
    server: u64,
    client: u64,
}

impl Gaps {
    fn of(invocations: &Invocations, instances: &Instances, late: &[Request], most: usize) -> Gaps {
        let requests = || instances.values().flatten();
        let mut ends: FxHashMap<(bool, u32), Vec<u64>> = FxHashMap::default();
        let (mut total, mut count) = (0.0, 0.0);
        for one in requests() {
            let about = &invocations.all[one.made as usize];
            ends.entry((true, about.instance))
                .or_default()
                .push(one.end);
            if let (Some(caller), Some((_, received))) = (one.caller, about.client) {
                ends.entry((false, caller)).or_default().push(received);
            }
            (total, count) = (total + (one.end - one.begin) as f64, count + 1.0);
        }
        ends.values_mut().for_each(|ends| ends.sort_unstable());
        let mean = (total / f64::max(count, 1.0)) as u64;
        let at_once = AT_ONCE.min(mean / (8 * most as u64)).max(2_000);
        let (mut server, mut client) = (Vec::new(), Vec::new());
        for one in late {
            let about = &invocations.all[one.made as usize];
            let of = &ends[&(true, about.instance)];
            let before = of.partition_point(|&end| end <= one.begin + 2_000);
            let last = before.checked_sub(1).map(|last| of[last]);
            server.push(last.map_or(u64::MAX, |end| one.begin.saturating_sub(end)));
            let sent = one.begin.saturating_add_signed(-one.usual);
            let of = one.caller.map_or(&[][..], |caller| &ends[&(false, caller)]);
            let after = of.partition_point(|&end| end < sent);
            let near = &of[after.saturating_sub(1)..of.len().min(after + 1)];
            let nearest = near.iter().map(|end| end.abs_diff(sent)).min();
            client.push(nearest.unwrap_or(u64::MAX));
        }
        if late.is_empty() {
            return Gaps::default();
        }
        let soon = server.iter().filter(|&&gap| gap <= at_once).count();
        server.sort_unstable();
        client.sort_unstable();
        Gaps {
            at_once: soon as f64 / late.len() as f64,
            // Requests that work at the same time end so soon after each other by chance.
            chance: (most as u64 * at_once) as f64 / mean.max(1) as f64,
            server: quantile(&server, 0.5),
            client: quantile(&client, 0.5),
        }
    }

    /// True if clearly more of the late spans than by chance begin when another request ends.
    fn is_queue(&self) -> bool {
        self.at_once > (3.0 * self.chance).max(0.25)
    }
}

/// Sets the arrivals of the late requests of an instance, and returns the requests that waited. Requests begin in the
/// order of their arrivals, which variations of the delay would change.
fn arrive(
    invocations: &mut Invocations,
    requests: &mut [Request],
    is_late: impl Fn(&Request) -> bool,
) -> Vec<u32> {
    requests.sort_unstable_by_key(|one| (one.begin, one.made));
    let known = || requests.iter().filter(|one| one.caller.is_some());
    let arrival = |one: &Request| {
        if is_late(one) {
            one.arrival()
        } else {
            one.begin
        }
    };
    let mut arrivals: Vec<u64> = known().map(arrival).collect();
    arrivals.sort_unstable();
    let mut waited = Vec::new();
    for (one, arrival) in known().zip(arrivals) {
        let about = &mut invocations.all[one.made as usize];
        about.waited = about.begin.saturating_sub(arrival);
        about.begin -= about.waited;
        if about.waited > 0 {
            waited.push(one.made);
        }
    }
    waited
}

/// True if slots explain the times of requests with the arrivals that were set.
fn has_slots(invocations: &Invocations, instances: &Instances) -> bool {
    let visit = |one: &Request| {
        let begin = invocations.all[one.made as usize].begin;
        Visit {
            begin,
            end: one.end,
            first: one.end - begin,
        }
    };
    let visits = instances.values().map(|requests| {
        let mut visits: Vec<Visit> = requests.iter().map(visit).collect();
        visits.sort_by_key(|visit| (visit.begin, visit.end));
        visits
    });
    slots::estimate(&visits.collect::<Vec<_>>()).is_some()
}
