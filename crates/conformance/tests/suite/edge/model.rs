//! Any sequence of operations on an edge has the same results as on a plain queue.

use super::flavour::{Drops, Flavour, Message, QueueBlocking, RingBlocking, Rx, Tx};
use corsair::edge::{self, Options, Overflow, Queue, Receiver, Ring, Sender, State};
use corsair::edge::{TryRecvError, TrySendError, Weigh};
use proptest::prelude::*;
use std::collections::VecDeque;

/// One operation on either end.
#[derive(Clone, Copy, Debug)]
enum Call {
    Send,
    SendAll(usize),
    Recv,
    RecvMany(usize),
    Close,
    AbortBySender,
    AbortByReceiver,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        30 => Just(Call::Send),
        6 => (0..9_usize).prop_map(Call::SendAll),
        24 => Just(Call::Recv),
        6 => (1..9_usize).prop_map(Call::RecvMany),
        1 => Just(Call::Close),
        1 => Just(Call::AbortBySender),
        1 => Just(Call::AbortByReceiver),
    ];
    prop::collection::vec(call, 0..120)
}

/// The simplest correct implementation of an edge.
struct Model {
    queue: VecDeque<usize>,
    capacity: usize,
    limit: u64,
    weigh: fn(usize) -> u64,
    overflow: Overflow,
    state: State,
    dropped: u64,
    dropped_by_abort: u64,
    sent: u64,
    received: u64,
    high_water: usize,
}

impl Model {
    fn fits(&self, number: usize) -> bool {
        let weight: u64 = self.queue.iter().map(|it| (self.weigh)(*it)).sum();
        let light = weight + (self.weigh)(number) <= self.limit;
        self.queue.len() < self.capacity && (light || self.queue.is_empty())
    }

    fn send(&mut self, number: usize) -> Result<(), TrySendError<usize>> {
        if self.state != State::Open {
            return Err(TrySendError::Aborted(number));
        }
        while !self.fits(number) {
            match self.overflow {
                Overflow::Block => return Err(TrySendError::Full(number)),
                Overflow::DropNewest => {
                    self.dropped += (self.weigh)(number);
                    self.sent += (self.weigh)(number);
                    return Ok(());
                }
                Overflow::DropOldest => {
                    let oldest = self.queue.pop_front().expect("an empty edge takes any");
                    self.dropped += (self.weigh)(oldest);
                }
                Overflow::Abort => {
                    self.abort();
                    return Err(TrySendError::Aborted(number));
                }
            }
        }
        self.queue.push_back(number);
        self.sent += (self.weigh)(number);
        self.high_water = self.high_water.max(self.queue.len());
        Ok(())
    }

    fn recv(&mut self) -> Result<usize, TryRecvError> {
        match (self.state, self.queue.pop_front()) {
            (State::Aborted, _) => Err(TryRecvError::Aborted),
            (_, Some(number)) => {
                self.received += (self.weigh)(number);
                Ok(number)
            }
            (State::Open, None) => Err(TryRecvError::Empty),
            (State::Closed, None) => Err(TryRecvError::Closed),
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
        let left: u64 = self.queue.iter().map(|it| (self.weigh)(*it)).sum();
        self.dropped_by_abort += left;
        self.queue.clear();
    }
}

/// Applies the calls to an edge and to the model, and compares all observable results.
fn compare<F: Flavour>(
    calls: &[Call],
    capacity: usize,
    limit: u64,
    overflow: Overflow,
    weigh: fn(usize) -> u64,
) {
    let drops = Drops::default();
    let options = Options::new(capacity).weight_limit(limit);
    let (mut tx, mut rx) = F::edge(options.overflow(overflow));
    let meter = tx.meter();
    let mut model = Model {
        queue: VecDeque::new(),
        capacity,
        limit,
        weigh,
        overflow,
        state: State::Open,
        dropped: 0,
        dropped_by_abort: 0,
        sent: 0,
        received: 0,
        high_water: 0,
    };
    let mut made = 0;
    for call in calls {
        match *call {
            Call::Send => {
                let result = tx.try_send(drops.message(made));
                let result = result.map_err(|error| match error {
                    TrySendError::Full(it) => TrySendError::Full(it.number),
                    TrySendError::Aborted(it) => TrySendError::Aborted(it.number),
                });
                assert_eq!(result, model.send(made));
                made += 1;
            }
            Call::SendAll(count) => {
                let batch = (made..made + count).map(|number| drops.message(number));
                let mut batch: Vec<_> = batch.collect();
                let _ = tx.try_send_all(&mut batch);
                let mut numbers = made..made + count;
                let taken = numbers.by_ref().take_while(|it| model.send(*it).is_ok());
                let left = count - taken.count();
                assert!(
                    batch
                        .iter()
                        .map(|it| it.number)
                        .eq(made + count - left..made + count)
                );
                made += count;
            }
            Call::Recv => {
                let result = rx.try_recv().map(|it| it.number);
                assert_eq!(result, model.recv());
            }
            Call::RecvMany(max) => {
                let mut messages = Vec::new();
                let result = rx.try_recv_many(&mut messages, max);
                let mut expected = vec![model.recv()];
                while expected.len() < max && expected.last().is_some_and(Result::is_ok) {
                    expected.push(model.recv());
                }
                match result {
                    Err(error) => assert_eq!(expected, [Err(error)]),
                    Ok(count) => {
                        assert_eq!(count, messages.len());
                        let numbers = messages.iter().map(|it| it.number);
                        assert!(numbers.eq(expected.into_iter().flatten()));
                    }
                }
            }
            Call::Close => {
                tx.close();
                model.close();
            }
            Call::AbortBySender => {
                tx.abort();
                model.abort();
            }
            Call::AbortByReceiver => {
                rx.abort();
                model.abort();
            }
        }
        let read = meter.read();
        assert_eq!(read.state, model.state);
        assert_eq!(read.buffered, model.queue.len());
        assert_eq!(read.sent, model.sent);
        assert_eq!(read.received, model.received);
        assert_eq!(read.dropped_by_overflow, model.dropped);
        assert_eq!(read.dropped_by_abort, model.dropped_by_abort);
        assert_eq!(read.high_water, model.high_water);
        assert_eq!(drops.count(), made - model.queue.len());
    }
    drop((tx, rx));
    assert_eq!(drops.count(), made);
}

/// Weighs messages by their number: some weigh nothing, and some more than most limits.
struct ByNumber;

fn weight(number: usize) -> u64 {
    [1, 3, 0, 2, 7][number % 5]
}

impl Weigh<Message> for ByNumber {
    fn weight(message: &Message) -> u64 {
        weight(message.number)
    }
}

/// A ring whose messages are weighed.
struct RingWeighed;
/// A queue whose messages are weighed.
struct QueueWeighed;

flavour!(RingWeighed: Ring<ByNumber> = edge::ring_weighed,
    Sender::send_blocking, Receiver::recv_blocking);
flavour!(QueueWeighed: Queue<ByNumber> = edge::queue_weighed,
    Sender::send_blocking, Receiver::recv_blocking);

fn policies() -> impl Strategy<Value = Overflow> {
    prop::sample::select(Overflow::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 1_000 })
    })]

    // Guarantee: core-94.
    #[test]
    fn a_ring_does_what_a_queue_does(calls in calls(), capacity in 1..6_usize, overflow in policies()) {
        compare::<RingBlocking>(&calls, capacity, u64::MAX, overflow, |_| 1);
    }

    // Guarantee: core-94.
    #[test]
    fn an_edge_of_many_senders_does_what_a_queue_does(calls in calls(), capacity in 1..6_usize, overflow in policies()) {
        compare::<QueueBlocking>(&calls, capacity, u64::MAX, overflow, |_| 1);
    }

    // Guarantee: core-111.
    #[test]
    fn an_edge_with_a_limit_by_weight_holds_no_more(
        calls in calls(), capacity in 1..8_usize, limit in 0..12_u64, overflow in policies(),
    ) {
        compare::<RingWeighed>(&calls, capacity, limit, overflow, weight);
        compare::<QueueWeighed>(&calls, capacity, limit, overflow, weight);
    }
}
