//! The critical path of a request: from its answer backwards, always along the work, wait or call that ended last.

use super::record::Record;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The cause of a part of a response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Waiting in the queue for a slot, or for the end of a pause.
    Queue,
    /// Waiting for shared processors.
    Processors,
    /// Working.
    Work,
    /// Working longer because a fault slows the instance.
    Slowdown,
    /// The travel of requests to the service, and of its answers.
    Network,
    /// Before a call: waiting for a connection, between attempts, or for a hedge.
    BeforeCall,
    /// Attempts that timed out.
    TimeOut,
    /// A call that no instance answered.
    NoAnswer,
    /// Time with another cause.
    Other,
}

impl Part {
    /// Returns the words for reports.
    pub const fn words(self) -> &'static str {
        match self {
            Part::Queue => "queue",
            Part::Processors => "shared processors",
            Part::Work => "work",
            Part::Slowdown => "slowdown by a fault",
            Part::Network => "network",
            Part::BeforeCall => "wait before calls of",
            Part::TimeOut => "time-outs of calls of",
            Part::NoAnswer => "calls without an answer",
            Part::Other => "other",
        }
    }
}

/// A service, the service that it calls if the part belongs to calls, and the part.
pub(crate) type Key = (u32, Option<u32>, Part);

/// Sums over requests, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) requests: u64,
    pub(crate) nanos: u64,
    pub(crate) parts: BTreeMap<Key, u64>,
    /// The number of requests that are not explained: with too many records, or too fast for the bounds of the trail.
    pub(crate) left_out: u64,
}

impl Sums {
    /// Adds the sums of other requests.
    pub(crate) fn merge(&mut self, other: &Sums) {
        self.requests += other.requests;
        self.nanos += other.nanos;
        self.left_out += other.left_out;
        for (key, nanos) in &other.parts {
            *self.parts.entry(*key).or_default() += nanos;
        }
    }

    fn add(&mut self, service: u32, called: Option<u32>, part: Part, nanos: u64) {
        if nanos > 0 {
            *self.parts.entry((service, called, part)).or_default() += nanos;
        }
    }
}

/// The events during a visit.
#[derive(Debug, Default)]
struct Visit {
    times: Option<(u64, u64, u64)>,
    /// The records of work and calls, each with its end.
    pieces: Vec<(u64, Record)>,
}

/// Adds the critical path of a request that was sent to a service.
pub(super) fn add(
    records: &[Record],
    (span, service): (u64, u32),
    (sent, received): (u64, u64),
    sums: &mut Sums,
) {
    let mut visits: FxHashMap<u64, Visit> = FxHashMap::default();
    for &record in records {
        match record {
            Record::Visit {
                span,
                arrived,
                began,
                ended,
                ..
            } => visits.entry(span).or_default().times = Some((arrived, began, ended)),
            Record::Work { span, to, .. } => {
                visits.entry(span).or_default().pieces.push((to, record));
            }
            Record::Call {
                parent, received, ..
            } => {
                let visit = visits.entry(parent).or_default();
                visit.pieces.push((received, record));
            }
            Record::GivenUp { parent, until, .. } => {
                visits
                    .entry(parent)
                    .or_default()
                    .pieces
                    .push((until, record));
            }
        }
    }
    for visit in visits.values_mut() {
        visit.pieces.sort_by_key(|(end, _)| *end);
    }
    sums.requests += 1;
    sums.nanos += received - sent;
    // A list instead of recursion, because deeply nested calls would overflow the stack.
    let mut todo = vec![(span, service, sent, received)];
    while let Some((span, service, sent, received)) = todo.pop() {
        let Some((arrived, began, ended)) = visits.get(&span).and_then(|visit| visit.times) else {
            sums.add(service, None, Part::NoAnswer, received - sent);
            continue;
        };
        let ended = ended.min(received);
        let travelled = arrived.saturating_sub(sent) + (received - ended);
        sums.add(service, None, Part::Network, travelled);
        sums.add(service, None, Part::Queue, began.saturating_sub(arrived));
        let pieces = visits.get(&span).map(|visit| visit.pieces.as_slice());
        back(
            service,
            (began, ended),
            pieces.unwrap_or_default(),
            &mut todo,
            sums,
        );
    }
}

/// Follows the critical path backwards through a visit, from its end. Calls on the path are appended to `todo`.
fn back(
    service: u32,
    (began, ended): (u64, u64),
    pieces: &[(u64, Record)],
    todo: &mut Vec<(u64, u32, u64, u64)>,
    sums: &mut Sums,
) {
    let mut at = ended;
    let mut next: Option<u32> = None;
    let gap = |from: u64, to: u64, next: Option<u32>, sums: &mut Sums| {
        let part = match next {
            Some(_) => Part::BeforeCall,
            None => Part::Other,
        };
        sums.add(service, next, part, to.saturating_sub(from));
    };
    for &(end, record) in pieces.iter().rev() {
        if end > at || end < began {
            continue;
        }
        gap(end, at, next, sums);
        at = match record {
            Record::Work {
                from,
                to,
                waited,
                slowed,
                ..
            } => {
                let worked = (to - from).saturating_sub(waited + slowed);
                sums.add(service, None, Part::Work, worked);
                sums.add(service, None, Part::Processors, waited.min(to - from));
                sums.add(service, None, Part::Slowdown, slowed);
                next = None;
                from
            }
            Record::Call {
                span,
                service: called,
                sent,
                received,
                ..
            } => {
                todo.push((span, called, sent, received));
                next = Some(called);
                sent
            }
            Record::GivenUp {
                service: called,
                sent,
                until,
                ..
            } => {
                sums.add(service, Some(called), Part::TimeOut, until - sent);
                next = Some(called);
                sent
            }
            Record::Visit { .. } => at,
        }
        .max(began);
    }
    gap(began, at, next, sums);
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: arch-22.
    #[test]
    fn the_path_leads_through_what_ended_last_and_adds_up() {
        let visit = |span, service, arrived, began, ended| Record::Visit {
            span,
            service,
            arrived,
            began,
            ended,
        };
        let call = |parent, span, service, sent, received| Record::Call {
            parent,
            span,
            service,
            sent,
            received,
        };
        let work = |span, from, to, waited, slowed| Record::Work {
            span,
            from,
            to,
            waited,
            slowed,
        };
        let records = [
            visit(1, 10, 5, 7, 190),
            work(1, 7, 20, 3, 0),
            // Two calls at once: the second ends last.
            visit(2, 11, 22, 22, 60),
            call(1, 2, 11, 20, 65),
            visit(3, 12, 25, 40, 90),
            work(3, 40, 90, 0, 25),
            call(1, 3, 12, 20, 100),
            // The first attempt is given up after 50, and the call is retried 10 later.
            Record::GivenUp {
                parent: 1,
                service: 13,
                sent: 100,
                until: 150,
            },
            visit(5, 13, 161, 161, 180),
            call(1, 5, 13, 160, 190),
        ];
        let mut sums = Sums::default();
        add(&records, (1, 10), (0, 200), &mut sums);
        let expected = [
            ((10, None, Part::Queue), 2),
            ((10, None, Part::Processors), 3),
            ((10, None, Part::Work), 10),
            ((10, None, Part::Network), 15),
            ((10, Some(13), Part::BeforeCall), 10),
            ((10, Some(13), Part::TimeOut), 50),
            ((12, None, Part::Queue), 15),
            ((12, None, Part::Work), 25),
            ((12, None, Part::Slowdown), 25),
            ((12, None, Part::Network), 15),
            ((13, None, Part::Network), 11),
            ((13, None, Part::Other), 19),
        ];
        assert_eq!(sums.parts, BTreeMap::from(expected));
        assert_eq!(sums.parts.values().sum::<u64>(), sums.nanos);
    }
}
