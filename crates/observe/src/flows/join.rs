//! Combines the ends of exchanges into spans.
//!
//! A span is emitted when it is over. A span whose server was killed never ends. Such spans are kept until the run
//! ends, or until [`OPEN`] spans are open; then the oldest one is emitted without its missing times. The result depends
//! only on the order of records.

use super::End;
use super::span::Span;
use crate::Status;
use crate::recorder::record::Annotation;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// The maximum number of open spans, which take about 60 MB.
const OPEN: usize = 1 << 19;

/// Spans with a missing end.
#[derive(Debug)]
pub(crate) struct Join {
    open: FxHashMap<NonZeroU64, Span>,
    /// The spans in the order in which they were opened. Some of them are already over.
    order: VecDeque<NonZeroU64>,
    limit: usize,
}

impl Default for Join {
    fn default() -> Join {
        Join::with_limit(OPEN)
    }
}

impl Join {
    fn with_limit(limit: usize) -> Join {
        Join {
            open: FxHashMap::default(),
            order: VecDeque::new(),
            limit,
        }
    }

    /// Adds a record of one end. Spans that this record completes are appended to `done`.
    pub(crate) fn annotate(&mut self, end: &End, done: &mut Vec<Span>) {
        let id = end.context.span();
        let mut opened = false;
        let span = self.open.entry(id).or_insert_with(|| {
            opened = true;
            Span::new(end.context)
        });
        if span.context.parent().is_none() && end.context.parent().is_some() {
            span.context = end.context;
        }
        span.kind = span.kind.min(end.kind);
        span.failed |= end.status == Status::Error;
        match end.annotation {
            Annotation::Tell | Annotation::ClientSend => {
                span.client = end.actor;
                span.client_send = end.at;
                span.one_way = end.annotation == Annotation::Tell;
            }
            Annotation::ServerReceive => {
                span.server = end.actor;
                span.server_receive = end.at;
            }
            Annotation::ServerSend => {
                span.server = end.actor;
                span.server_send = end.at;
            }
            Annotation::ClientReceive => {
                span.client = end.actor;
                span.client_receive = end.at;
            }
        }
        if span.is_over() {
            done.extend(self.open.remove(&id));
        } else if opened {
            self.order.push_back(id);
            self.make_room(done);
        }
    }

    /// Returns the open spans, and the order in which they were opened, for saving.
    pub(crate) fn save(&self) -> (Vec<Span>, Vec<u64>) {
        let mut open: Vec<Span> = self.open.values().copied().collect();
        open.sort_unstable_by_key(|span| span.context.span());
        (open, self.order.iter().map(|id| id.get()).collect())
    }

    /// Continues the spans of a saved run.
    pub(crate) fn resume(&mut self, (open, order): (Vec<Span>, Vec<u64>)) {
        let open = open.into_iter();
        self.open = open.map(|span| (span.context.span(), span)).collect();
        self.order = order.into_iter().filter_map(NonZeroU64::new).collect();
    }

    fn make_room(&mut self, done: &mut Vec<Span>) {
        while self.open.len() > self.limit {
            let oldest = self.order.pop_front().expect("what is open was opened");
            done.extend(self.open.remove(&oldest));
        }
        // Most spans end soon. Their entries in the order are removed from time to time, so that the cost per span is
        // constant.
        if self.order.len() > 2 * self.open.len() + 1024 {
            self.order.retain(|id| self.open.contains_key(id));
        }
    }

    /// Emits the remaining spans, in the order in which they were opened.
    pub(crate) fn end(&mut self, done: &mut Vec<Span>) {
        for id in std::mem::take(&mut self.order) {
            done.extend(self.open.remove(&id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TraceContext;

    fn end(at: u64, actor: u32, span: u64, annotation: Annotation) -> End {
        End {
            at,
            actor,
            context: TraceContext::new(1, span, span - 1).unwrap(),
            kind: 0,
            annotation,
            status: Status::Ok,
        }
    }

    // Guarantee: observe-5.
    #[test]
    fn a_request_is_over_with_its_fourth_end_and_a_message_with_its_second() {
        let mut join = Join::default();
        let mut done = Vec::new();
        let ends = [
            (10, 1, Annotation::ClientSend),
            (20, 2, Annotation::ServerReceive),
            (30, 2, Annotation::ServerSend),
        ];
        for (at, actor, annotation) in ends {
            join.annotate(&end(at, actor, 7, annotation), &mut done);
        }
        join.annotate(&end(15, 1, 8, Annotation::Tell), &mut done);
        assert!(done.is_empty());
        join.annotate(&end(40, 1, 7, Annotation::ClientReceive), &mut done);
        join.annotate(&end(45, 3, 8, Annotation::ServerReceive), &mut done);
        let [request, message] = done[..] else {
            panic!("{done:?}");
        };
        assert_eq!((request.client, request.server), (1, 2));
        let times = [
            request.client_send,
            request.server_receive,
            request.server_send,
            request.client_receive,
        ];
        assert_eq!(times, [10, 20, 30, 40]);
        assert!(request.is_complete() && message.is_complete());
        assert!(message.one_way && message.server == 3);
        assert!(join.open.is_empty());
    }

    #[test]
    fn a_client_that_gives_up_ends_the_span() {
        let mut join = Join::default();
        let mut done = Vec::new();
        join.annotate(&end(10, 1, 7, Annotation::ClientSend), &mut done);
        let gives_up = End {
            status: Status::Error,
            ..end(99, 1, 7, Annotation::ClientReceive)
        };
        join.annotate(&gives_up, &mut done);
        assert_eq!(
            (done.len(), done[0].failed, done[0].is_complete()),
            (1, true, false)
        );
    }

    #[test]
    fn an_answer_knows_no_parent_and_the_span_keeps_that_of_the_request() {
        let mut join = Join::default();
        let mut done = Vec::new();
        let mut answer = end(40, 1, 7, Annotation::ClientReceive);
        answer.context = TraceContext::new(1, 7, 0).unwrap();
        for end in [
            answer,
            end(10, 1, 7, Annotation::ClientSend),
            end(20, 2, 7, Annotation::ServerReceive),
            end(30, 2, 7, Annotation::ServerSend),
        ] {
            join.annotate(&end, &mut done);
        }
        assert_eq!(done[0].context.parent().unwrap().get(), 6);
    }

    // Guarantee: observe-5.
    #[test]
    fn open_spans_are_bounded_and_the_oldest_goes_first() {
        let mut join = Join::with_limit(100);
        let mut done = Vec::new();
        for span in 1..=1_000 {
            join.annotate(&end(span, 1, span, Annotation::Tell), &mut done);
        }
        let ids = |spans: &[Span]| -> Vec<u64> {
            spans.iter().map(|span| span.context.span().get()).collect()
        };
        assert_eq!(ids(&done), (1..=900).collect::<Vec<_>>());
        assert_eq!(join.open.len(), 100);
        done.clear();
        join.end(&mut done);
        assert_eq!(ids(&done), (901..=1_000).collect::<Vec<_>>());
    }

    #[test]
    fn places_of_spans_that_are_over_do_not_pile_up() {
        let mut join = Join::default();
        let mut done = Vec::new();
        // One span stays open at the front of the order.
        join.annotate(&end(1, 1, 1, Annotation::Tell), &mut done);
        for span in 2..100_000 {
            join.annotate(&end(span, 1, span, Annotation::Tell), &mut done);
            join.annotate(&end(span, 2, span, Annotation::ServerReceive), &mut done);
        }
        assert!(join.order.len() < 2_000, "{}", join.order.len());
    }
}
