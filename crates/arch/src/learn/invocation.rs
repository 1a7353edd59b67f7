//! Invocations: a request to an instance, its caller, and the calls made while it was handled.

mod missing;
mod sides;

use super::names::Names;
use super::read::{Side, Span, SpanSet};
use missing::Aliases;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// The maximum length of a chain of parents; a longer one is treated as a cycle.
const MOST_PARENTS: usize = 1_000;

/// No span or invocation.
const NONE: u32 = u32::MAX;

/// A request to an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Invocation {
    pub(super) service: u32,
    pub(super) operation: u32,
    pub(super) instance: u32,
    pub(super) region: u32,
    /// The arrival, in nanoseconds.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The time for which the request waited before the server's span began, in nanoseconds.
    pub(super) waited: u64,
    pub(super) failed: bool,
    /// True if a rate limit refused the request.
    pub(super) refused: bool,
    /// A hash of the key that the request names, or 0.
    pub(super) key: u64,
    /// True if no caller waited for an answer.
    pub(super) one_way: bool,
    /// True if one end of the request or of one of its calls is missing, so that the times are not used.
    pub(super) incomplete: bool,
    /// The times at which the client sent the request and received the answer, if the client's span was recorded.
    pub(super) client: Option<(u64, u64)>,
    /// The service that sent the request, if that service has no recorded invocation.
    pub(super) from: Option<u32>,
    /// The invocation that sent the request; `None` for requests from outside.
    pub(super) caller: Option<u32>,
    /// True if the client stopped waiting before the answer.
    pub(super) given_up: bool,
    /// The number of recorded requests that this invocation stands for.
    pub(super) weight: f32,
    /// True if the parent of the span, or of its client's span, is missing.
    is_orphan: bool,
}

impl Invocation {
    /// Returns the start and the end as the client saw them, or as the server saw them if no client is known.
    pub(super) fn seen(&self) -> (u64, u64) {
        self.client.unwrap_or((self.begin, self.end))
    }

    /// Returns the time for which the client waited, in nanoseconds.
    pub(super) fn lasted(&self) -> u64 {
        let (begin, end) = self.seen();
        end - begin
    }
}

/// All invocations with their calls.
#[derive(Debug, Default)]
pub(super) struct Invocations {
    pub(super) all: Vec<Invocation>,
    /// The calls of all invocations, grouped by invocation and in the order of time.
    calls: Vec<u32>,
    /// The end and the result of each call with several attempts, by the number of its first attempt.
    joined: FxHashMap<u32, (u64, bool)>,
    /// The index of each invocation's first call.
    first_call: Vec<u32>,
    pub(super) traces: u64,
    /// The index of each trace's first invocation.
    first_of_trace: Vec<u32>,
    /// The number of spans without their parent, and of calls to services without a name.
    pub(super) orphans: u64,
    pub(super) nameless: u64,
    /// The number of requests that were in flight when the recording began.
    pub(super) cut_off: u64,
}

impl Invocations {
    /// Joins the spans of each trace.
    pub(super) fn join(recorded: &SpanSet) -> Invocations {
        let mut order: Vec<u32> = (0..recorded.spans.len() as u32).collect();
        let spans = &recorded.spans;
        let mut aliases = Aliases::default();
        // Traces are sorted, so that the result does not depend on the order of files.
        order.sort_by_key(|&place| {
            let span = &spans[place as usize];
            let side = (span.side.is_server(), span.service);
            (span.trace, span.begin, span.id, side, span.end)
        });
        // A trace that was given twice, for example by two queries, counts once.
        order.dedup_by_key(|place| {
            let span = &spans[*place as usize];
            (
                span.trace,
                span.begin,
                span.id,
                span.side as u8,
                span.service,
            )
        });
        let mut joined = Invocations::default();
        let same = |a: &u32, b: &u32| spans[*a as usize].trace == spans[*b as usize].trace;
        for trace in order.chunk_by(same) {
            joined.traces += 1;
            let mut trace: Vec<Span> = trace.iter().map(|&place| spans[place as usize]).collect();
            sides::infer(&mut trace);
            joined.add_trace(&trace, &mut aliases);
        }
        joined.name_peers(&aliases, &recorded.names);
        joined.drop_cut_off();
        joined.index_calls();
        joined.find_refusing();
        joined
    }

    /// Finds the services that refused requests themselves: their callers may pass the status on.
    fn find_refusing(&mut self) {
        let passes_on = |made: u32| {
            self.all[made as usize].refused && self.calls(made).any(|call| call.refused)
        };
        let others: Vec<u32> = (0..self.all.len() as u32)
            .filter(|&made| passes_on(made))
            .collect();
        for made in others {
            self.all[made as usize].refused = false;
        }
    }

    /// Separates a service's requests to itself from requests of other services, as different endpoints. Otherwise, in
    /// the learned definition, ring nodes that forward a request to its owner would forward it forever.
    pub(super) fn part_inner(&mut self, names: &mut Names) {
        let asked: Vec<(u32, u32)> = (self.all.iter())
            .map(|made| (made.service, made.operation))
            .collect();
        for (made, &(service, operation)) in self.all.iter_mut().zip(&asked) {
            let caller = made.caller.map(|caller| asked[caller as usize]);
            if caller == Some((service, operation)) {
                let inner = format!("{}-inner", names.name(operation));
                made.operation = names.number(&inner);
            }
        }
    }

    /// Returns the numbers of the calls of an invocation, in the order of time.
    pub(super) fn call_numbers(&self, made: u32) -> impl Iterator<Item = u32> + '_ {
        let range = self.first_call[made as usize]..self.first_call[made as usize + 1];
        let calls = &self.calls[range.start as usize..range.end as usize];
        calls.iter().copied()
    }

    /// Returns the calls of an invocation, in the order of time. The attempts of a call are one call.
    pub(super) fn calls(&self, made: u32) -> impl Iterator<Item = Invocation> + '_ {
        self.call_numbers(made).map(|call| self.call(call))
    }

    /// Returns a call, which ends with its last attempt.
    pub(super) fn call(&self, number: u32) -> Invocation {
        let mut call = self.all[number as usize];
        if !self.joined.is_empty()
            && let Some(&(end, failed)) = self.joined.get(&number)
        {
            call.client = Some((call.seen().0, end));
            call.failed = failed;
        }
        call
    }

    /// Joins attempts to calls. Each call is given as its first attempt, its other attempts, and its end and result.
    pub(super) fn join_attempts(
        &mut self,
        calls: impl Iterator<Item = (u32, Vec<u32>, (u64, bool))>,
    ) {
        let mut others: FxHashSet<u32> = FxHashSet::default();
        for (first, further, result) in calls {
            others.extend(further);
            self.joined.insert(first, result);
        }
        if !others.is_empty() {
            self.first_call.clear();
            self.index_calls_without(&others);
        }
    }

    /// Returns the traces as ranges of invocations, each with its start time; traces without an invocation are left
    /// out.
    pub(super) fn by_trace(&self) -> impl Iterator<Item = (u64, Range<u32>)> + '_ {
        let ends = self.first_of_trace.iter().skip(1).copied();
        let ends = ends.chain([self.all.len() as u32]);
        let ranges = self
            .first_of_trace
            .iter()
            .zip(ends)
            .map(|(&first, end)| first..end);
        ranges.filter(|range| !range.is_empty()).map(|range| {
            let of = &self.all[range.start as usize..range.end as usize];
            let begins = of.iter().map(|made| made.seen().0.min(made.begin)).min();
            (begins.unwrap_or(0), range)
        })
    }

    /// Returns the invocations of the given traces. A trace is given as a range of invocations and a number of
    /// nanoseconds by which its times are shifted; it may be given several times.
    pub(super) fn chosen(&self, traces: impl Iterator<Item = (Range<u32>, i64)>) -> Invocations {
        let mut chosen = Invocations {
            orphans: self.orphans,
            nameless: self.nameless,
            cut_off: self.cut_off,
            ..Invocations::default()
        };
        for (range, shift) in traces {
            let (from, to) = (range.start, chosen.all.len() as u32);
            chosen.first_of_trace.push(to);
            chosen.traces += 1;
            let moved = |time: u64| time.saturating_add_signed(shift);
            for made in &self.all[range.start as usize..range.end as usize] {
                chosen.all.push(Invocation {
                    begin: moved(made.begin),
                    end: moved(made.end),
                    client: made.client.map(|(from, to)| (moved(from), moved(to))),
                    caller: made.caller.map(|caller| caller - from + to),
                    ..*made
                });
            }
        }
        chosen.index_calls();
        chosen
    }

    fn add_trace(&mut self, trace: &[Span], aliases: &mut Aliases) {
        self.first_of_trace.push(self.all.len() as u32);
        let joining = Joining::new(trace);
        // For each span, the index of its invocation, or `NONE`.
        let mut made = vec![NONE; trace.len()];
        let first = self.all.len();
        for (place, span) in trace.iter().enumerate() {
            if let Some(invocation) = joining.invocation(place, span) {
                made[place] = self.all.len() as u32;
                match joining.client_of(place).map(|client| trace[client].peer) {
                    Some(Some(peer)) => aliases.seen(peer, span.service),
                    None if span.side.is_client() => aliases.by_name.push(made[place]),
                    _ => {}
                }
                self.all.push(invocation);
            }
        }
        for (place, span) in trace.iter().enumerate() {
            // A span within a service, for example of a look-up, may name the key of the request.
            if span.key != 0
                && span.side == Side::Internal
                && let Some(within) = joining.caller(place, &made).0
            {
                let within = &mut self.all[within as usize];
                if within.key == 0 {
                    within.key = span.key;
                }
            }
        }
        let mut incomplete = Vec::new();
        for (place, span) in trace.iter().enumerate() {
            let mine = made[place];
            if mine == NONE {
                continue;
            }
            // The caller of a request with a client's span is the invocation to which that span belongs.
            let from = joining.client_of(place).unwrap_or(place);
            let (caller, is_orphan) = joining.caller(from, &made);
            let is_client = from != place || span.side.is_client();
            let invocation = &mut self.all[mine as usize];
            invocation.caller = caller.filter(|&caller| caller != mine);
            invocation.from = (caller.is_none() && is_client).then(|| trace[from].service);
            invocation.is_orphan = is_orphan;
            self.orphans += u64::from(is_orphan);
            if is_orphan || invocation.incomplete {
                incomplete.extend(invocation.caller);
            }
        }
        for (place, span) in trace.iter().enumerate() {
            if span.side == Side::Client && joining.is_lost(place, span) {
                self.nameless += u64::from(!span.failed);
                incomplete.extend(joining.caller(place, &made).0);
            }
        }
        for caller in incomplete {
            self.all[caller as usize].incomplete = true;
        }
        assert!(first <= self.all.len());
    }

    fn index_calls(&mut self) {
        self.index_calls_without(&FxHashSet::default());
    }

    fn index_calls_without(&mut self, others: &FxHashSet<u32>) {
        let mut calls: Vec<(u32, u32)> = (0..)
            .zip(&self.all)
            .filter(|(number, _)| !others.contains(number))
            .filter_map(|(number, made)| Some((made.caller?, number)))
            .collect();
        calls.sort_by_key(|&(caller, call)| {
            let made = &self.all[call as usize];
            let (begin, end) = made.seen();
            (caller, begin, made.service, made.operation, end)
        });
        let mut place = 0;
        for caller in 0..=self.all.len() as u32 {
            while calls.get(place).is_some_and(|call| call.0 < caller) {
                place += 1;
            }
            self.first_call.push(place as u32);
        }
        self.calls = calls.into_iter().map(|(_, call)| call).collect();
    }
}

/// The spans of a trace, by their ids.
struct Joining<'a> {
    trace: &'a [Span],
    /// For each id, the index of the client's span (or another one) and of the server's span.
    sides: FxHashMap<u64, [u32; 2]>,
    /// The clients that a server has answered.
    is_answered: Vec<bool>,
}

impl<'a> Joining<'a> {
    fn new(trace: &'a [Span]) -> Joining<'a> {
        let mut sides: FxHashMap<u64, [u32; 2]> = FxHashMap::default();
        for (place, span) in (0..).zip(trace) {
            let entry = sides.entry(span.id).or_insert([NONE; 2]);
            let side = &mut entry[usize::from(span.side.is_server())];
            if *side == NONE {
                *side = place;
            }
        }
        let mut joining = Joining {
            trace,
            sides,
            is_answered: Vec::new(),
        };
        let mut is_answered = vec![false; trace.len()];
        for place in 0..trace.len() {
            if let Some(client) = joining.client_of(place) {
                is_answered[client] = true;
            }
        }
        joining.is_answered = is_answered;
        joining
    }

    fn side(&self, id: u64, is_server: bool) -> Option<usize> {
        let place = self.sides.get(&id)?[usize::from(is_server)];
        (place != NONE).then_some(place as usize)
    }

    /// Returns the client's side of a server's span: a span with the same id, or its parent.
    fn client_of(&self, place: usize) -> Option<usize> {
        let span = &self.trace[place];
        if !span.side.is_server() {
            return None;
        }
        let is_client = |&place: &usize| self.trace[place].side.is_client();
        let shared = self.side(span.id, false).filter(is_client);
        shared.or_else(|| {
            let parent = (span.parent != 0).then(|| self.side(span.parent, false))?;
            parent.filter(is_client)
        })
    }

    /// True if a client's span has no known server, not even by name.
    fn is_lost(&self, place: usize, span: &Span) -> bool {
        !self.is_answered[place] && span.peer.is_none()
    }

    /// Returns the invocation of a span, if it is one: a server span; the first span of a trace, unless it is
    /// a client; or a client span that names a server without spans.
    fn invocation(&self, place: usize, span: &Span) -> Option<Invocation> {
        let mut made = Invocation {
            service: span.service,
            operation: span.operation,
            instance: span.instance,
            region: span.region,
            begin: span.begin,
            end: span.end,
            waited: 0,
            failed: span.failed || span.refused,
            refused: span.refused,
            key: span.key,
            one_way: span.side == Side::Consumer,
            incomplete: false,
            client: None,
            from: None,
            caller: None,
            given_up: false,
            weight: span.weight,
            is_orphan: false,
        };
        match span.side {
            Side::Server | Side::Consumer => {
                if let Some(client) = self.client_of(place) {
                    let client = &self.trace[client];
                    made.client = Some((client.begin, client.end));
                    made.refused |= client.refused;
                    if made.key == 0 {
                        made.key = client.key;
                    }
                    made.failed |= client.failed || made.refused;
                    made.given_up = client.failed && !span.failed && !made.refused;
                    let both_ways = [client.side, span.side];
                    // A client's span without a duration has no answer: the client gave up, or the recording ended.
                    let is_cut = client.end == client.begin && span.end > span.begin;
                    made.incomplete = match both_ways {
                        [Side::Client, Side::Server] => is_cut,
                        [Side::Producer, Side::Consumer] => false,
                        _ => true,
                    };
                }
                Some(made)
            }
            Side::Internal | Side::Unknown => {
                let is_top = span.parent == 0
                    || self.side(span.parent, true).is_none()
                        && self.side(span.parent, false).is_none();
                is_top.then_some(made)
            }
            Side::Client | Side::Producer => {
                let peer = span.peer.filter(|_| !self.is_answered[place])?;
                made.service = peer;
                made.instance = peer;
                made.one_way = span.side == Side::Producer;
                made.client = Some((span.begin, span.end));
                Some(made)
            }
        }
    }

    /// Returns the invocation that a span belongs to, found through its parents, and true if a parent is missing.
    fn caller(&self, place: usize, made: &[u32]) -> (Option<u32>, bool) {
        let mut span = &self.trace[place];
        for _ in 0..MOST_PARENTS {
            if span.parent == 0 {
                return (None, false);
            }
            let parent = self.side(span.parent, true);
            let Some(parent) = parent.or_else(|| self.side(span.parent, false)) else {
                return (None, true);
            };
            // A client's span that became the invocation of a server without spans makes no calls.
            let is_server = !self.trace[parent].side.is_client();
            if made[parent] != NONE && is_server {
                return (Some(made[parent]), false);
            }
            span = &self.trace[parent];
        }
        (None, true)
    }
}
