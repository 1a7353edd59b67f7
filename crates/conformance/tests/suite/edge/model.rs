//! Any sequence of operations on an edge does what a plain queue does.

use super::flavour::{Crossbeam, Drops, Flavour, Message, RingBlocking, Tokio, once};
use corsair::edge::{Options, Overflow, State, TryCollect, TryCollectError, TryEmit, TryEmitError};
use proptest::prelude::*;
use std::collections::VecDeque;

/// One call of either end.
#[derive(Clone, Copy, Debug)]
enum Call {
    Collect,
    CollectAll(usize),
    Emit,
    EmitMany(usize),
    Close,
    AbortByCollector,
    AbortByEmitter,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        30 => Just(Call::Collect),
        6 => (0..9_usize).prop_map(Call::CollectAll),
        24 => Just(Call::Emit),
        6 => (1..9_usize).prop_map(Call::EmitMany),
        1 => Just(Call::Close),
        1 => Just(Call::AbortByCollector),
        1 => Just(Call::AbortByEmitter),
    ];
    prop::collection::vec(call, 0..120)
}

/// What an edge does, in the simplest way.
struct Model {
    queue: VecDeque<usize>,
    capacity: usize,
    overflow: Overflow,
    state: State,
    dropped: u64,
    dropped_by_abort: u64,
    collected: u64,
    emitted: u64,
    high_water: usize,
}

impl Model {
    fn collect(&mut self, number: usize) -> Result<(), TryCollectError<usize>> {
        if self.state != State::Open {
            return Err(TryCollectError::Aborted(number));
        }
        if self.queue.len() == self.capacity {
            match self.overflow {
                Overflow::Block => return Err(TryCollectError::Full(number)),
                Overflow::DropNewest => {
                    self.dropped += 1;
                    self.collected += 1;
                    return Ok(());
                }
                Overflow::DropOldest => {
                    self.queue.pop_front();
                    self.dropped += 1;
                }
                Overflow::Abort => {
                    self.abort();
                    return Err(TryCollectError::Aborted(number));
                }
            }
        }
        self.queue.push_back(number);
        self.collected += 1;
        self.high_water = self.high_water.max(self.queue.len());
        Ok(())
    }

    fn emit(&mut self) -> Result<usize, TryEmitError> {
        match (self.state, self.queue.pop_front()) {
            (State::Aborted, _) => Err(TryEmitError::Aborted),
            (_, Some(number)) => {
                self.emitted += 1;
                Ok(number)
            }
            (State::Open, None) => Err(TryEmitError::Empty),
            (State::Closed, None) => Err(TryEmitError::Closed),
        }
    }

    fn close(&mut self) {
        if self.state == State::Open {
            self.state = State::Closed;
        }
    }

    fn abort(&mut self) {
        if self.state != State::Closed || !self.queue.is_empty() {
            self.state = State::Aborted;
        }
        self.dropped_by_abort += self.queue.len() as u64;
        self.queue.clear();
    }
}

/// Makes the calls to an edge and to the model, and compares everything that can be seen.
fn compare<F: Flavour>(
    calls: &[Call],
    capacity: usize,
    overflow: Overflow,
    mut collect_all: impl FnMut(&mut F::Tx, Vec<Message>) -> usize,
    mut emit_many: impl FnMut(&mut F::Rx, usize) -> Result<Vec<Message>, TryEmitError>,
) {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(capacity).overflow(overflow));
    let meter = tx.meter();
    let mut model = Model {
        queue: VecDeque::new(),
        capacity,
        overflow,
        state: State::Open,
        dropped: 0,
        dropped_by_abort: 0,
        collected: 0,
        emitted: 0,
        high_water: 0,
    };
    let mut made = 0;
    for call in calls {
        match *call {
            Call::Collect => {
                let result = tx.try_collect(drops.message(made));
                let result = result.map_err(|error| match error {
                    TryCollectError::Full(it) => TryCollectError::Full(it.number),
                    TryCollectError::Aborted(it) => TryCollectError::Aborted(it.number),
                });
                assert_eq!(result, model.collect(made));
                made += 1;
            }
            Call::CollectAll(count) => {
                let batch = (made..made + count).map(|number| drops.message(number));
                let left = collect_all(&mut tx, batch.collect());
                let mut numbers = made..made + count;
                let taken = numbers.by_ref().take_while(|it| model.collect(*it).is_ok());
                assert_eq!(left, count - taken.count());
                made += count;
            }
            Call::Emit => {
                let result = rx.try_emit().map(|it| it.number);
                assert_eq!(result, model.emit());
            }
            Call::EmitMany(max) => {
                let result = emit_many(&mut rx, max);
                let mut expected = vec![model.emit()];
                while expected.len() < max && expected.last().is_some_and(Result::is_ok) {
                    expected.push(model.emit());
                }
                match result {
                    Err(error) => assert_eq!(expected, [Err(error)]),
                    Ok(messages) => assert!(
                        messages
                            .iter()
                            .map(|it| it.number)
                            .eq(expected.into_iter().flatten())
                    ),
                }
            }
            Call::Close => {
                tx.close();
                model.close();
            }
            Call::AbortByCollector => {
                tx.abort();
                model.abort();
            }
            Call::AbortByEmitter => {
                rx.abort();
                model.abort();
            }
        }
        let read = meter.read();
        assert_eq!(read.state, model.state);
        assert_eq!(read.buffered, model.queue.len());
        assert_eq!(read.collected, model.collected);
        assert_eq!(read.emitted, model.emitted);
        assert_eq!(read.dropped_by_overflow, model.dropped);
        assert_eq!(read.dropped_by_abort, model.dropped_by_abort);
        assert_eq!(read.high_water, model.high_water);
        assert_eq!(drops.count(), made - model.queue.len());
    }
    drop((tx, rx));
    assert_eq!(drops.count(), made);
}

/// For flavours without batches: one by one, as far as it goes.
fn one_by_one<F: Flavour>(calls: &[Call], capacity: usize, overflow: Overflow) {
    compare::<F>(
        calls,
        capacity,
        overflow,
        |tx, batch| {
            let mut left = batch.len();
            for message in batch {
                if tx.try_collect(message).is_err() {
                    break;
                }
                left -= 1;
            }
            left
        },
        |rx, max| {
            let mut out = vec![rx.try_emit()?];
            while out.len() < max {
                match rx.try_emit() {
                    Ok(message) => out.push(message),
                    Err(_) => break,
                }
            }
            Ok(out)
        },
    );
}

fn policies() -> impl Strategy<Value = Overflow> {
    prop::sample::select(Overflow::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 1_000 })
    })]

    #[test]
    fn a_ring_does_what_a_queue_does(calls in calls(), capacity in 1..6_usize, overflow in policies()) {
        compare::<RingBlocking>(
            &calls,
            capacity,
            overflow,
            |tx, mut batch| {
                // Not waited for: what does not fit is left.
                let _ = once(tx.collect_all(&mut batch));
                batch.len()
            },
            |rx, max| {
                let mut out = Vec::new();
                rx.try_emit_many(&mut out, max).map(|_| out)
            },
        );
    }

    #[test]
    fn a_crossbeam_edge_does_what_a_queue_does(calls in calls(), capacity in 1..6_usize, overflow in policies()) {
        one_by_one::<Crossbeam>(&calls, capacity, overflow);
    }

    #[test]
    fn a_tokio_edge_does_what_a_queue_does(calls in calls(), capacity in 1..6_usize, overflow in policies()) {
        one_by_one::<Tokio>(&calls, capacity, overflow);
    }
}
