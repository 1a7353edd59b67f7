//! Tests of the guarantees of edges. The whole suite runs for every flavour.

use super::flavour::{Drops, Flavour, Rx, Tx, many, until};
use corsair::edge::{AbortHandle, Options, Overflow, State, TryRecvError, TrySendError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

on_every_flavour! {
    // Guarantee: core-94.
    messages_arrive_in_order
    // Guarantee: core-95.
    a_full_edge_takes_no_more_until_something_is_received
    // Guarantee: core-95.
    send_waits_while_the_edge_is_full
    // Guarantee: core-96.
    what_is_buffered_at_the_close_is_still_received
    // Guarantee: core-96.
    dropping_the_sender_closes
    // Guarantee: core-96.
    a_closed_edge_gives_messages_back
    // Guarantee: core-98.
    an_abort_by_anyone_stops_both_ends_and_drops_what_is_buffered
    // Guarantee: core-98.
    an_abort_gives_a_waiting_send_its_message_back
    // Guarantee: core-98.
    an_abort_ends_a_waiting_recv
    // Guarantee: core-98.
    dropping_the_receiver_aborts
    // Guarantee: core-98.
    an_edge_that_has_received_everything_stays_closed
    // Guarantee: core-99.
    one_handle_aborts_a_graph
    // Guarantee: core-99.
    an_edge_of_an_aborted_handle_is_aborted_from_the_beginning
    // Guarantee: core-97.
    after_an_abort_nothing_is_sent_or_received_on_any_thread
    // Guarantee: core-101.
    drop_newest_keeps_what_came_first
    // Guarantee: core-101.
    drop_oldest_keeps_what_came_last
    // Guarantee: core-101.
    overflow_abort_aborts
    // Guarantee: core-104.
    statistics_count_every_message
    // Guarantee: core-104.
    the_high_water_mark_is_the_most_that_was_buffered
    // Guarantee: core-104.
    without_statistics_state_and_what_is_buffered_are_reported
    // Guarantee: core-104.
    time_spent_blocked_is_counted_at_either_end
    // Guarantee: core-104.
    a_meter_outlives_both_ends
}

fn messages_arrive_in_order<F: Flavour>() {
    let drops = Drops::default();
    let count = many(20_000);
    let (mut tx, mut rx) = F::edge(Options::new(7));
    let sender = thread::spawn({
        let drops = drops.clone();
        move || {
            for number in 0..count {
                F::send(&mut tx, drops.message(number)).expect("no end aborts");
            }
        }
    });
    for number in 0..count {
        assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(number));
    }
    assert!(F::recv(&mut rx).is_none());
    sender.join().expect("it does not panic");
    assert_eq!(drops.count(), count);
}

fn a_full_edge_takes_no_more_until_something_is_received<F: Flavour>() {
    for capacity in [1, 2, 3, 5] {
        let drops = Drops::default();
        let (mut tx, mut rx) = F::edge(Options::new(capacity));
        for number in 0..capacity {
            tx.try_send(drops.message(number)).expect("there is room");
        }
        let refused = tx.try_send(drops.message(9));
        assert!(matches!(&refused, Err(TrySendError::Full(it)) if it.number == 9));
        assert_eq!(rx.try_recv().map(|it| it.number).ok(), Some(0));
        tx.try_send(drops.message(8)).expect("there is room");
        assert!(tx.try_send(drops.message(9)).is_err());
    }
}

fn send_waits_while_the_edge_is_full<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(2));
    let meter = tx.meter();
    let sender = thread::spawn({
        let drops = drops.clone();
        move || {
            for number in 0..4 {
                F::send(&mut tx, drops.message(number)).expect("no end aborts");
            }
            tx
        }
    });
    until(|| meter.read().sent == 2);
    thread::sleep(Duration::from_millis(5));
    assert_eq!(meter.read().sent, 2);
    assert!(!sender.is_finished());
    assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(0));
    until(|| meter.read().sent == 3);
    assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(1));
    let _tx = sender.join().expect("it does not panic");
}

fn what_is_buffered_at_the_close_is_still_received<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(4));
    for number in 0..3 {
        tx.try_send(drops.message(number)).expect("there is room");
    }
    tx.close();
    assert_eq!(rx.state(), State::Closed);
    for number in 0..3 {
        assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(number));
    }
    assert!(F::recv(&mut rx).is_none());
    assert_eq!(rx.try_recv().err(), Some(TryRecvError::Closed));
    assert_eq!(rx.state(), State::Closed);
}

fn dropping_the_sender_closes<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(4));
    tx.try_send(drops.message(0)).expect("there is room");
    let waiting = thread::spawn(move || {
        assert!(F::recv(&mut rx).is_some());
        assert!(F::recv(&mut rx).is_none());
        rx.state()
    });
    drop(tx);
    assert_eq!(waiting.join().ok(), Some(State::Closed));
}

fn a_closed_edge_gives_messages_back<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, _rx) = F::edge(Options::new(4));
    tx.close();
    tx.close();
    let refused = tx.try_send(drops.message(1)).expect_err("it is closed");
    assert!(matches!(&refused, TrySendError::Aborted(it) if it.number == 1));
    let refused = F::send(&mut tx, drops.message(2)).expect_err("it is closed");
    assert_eq!(refused.into_inner().number, 2);
}

fn an_abort_by_anyone_stops_both_ends_and_drops_what_is_buffered<F: Flavour>() {
    type Abort<F> = fn(&Tx<F>, &Rx<F>, &AbortHandle);
    let anyone: [Abort<F>; 3] = [
        |tx, _, _| tx.abort(),
        |_, rx, _| rx.abort(),
        |_, _, handle| handle.abort(),
    ];
    for policy in Overflow::ALL {
        for abort in anyone {
            let drops = Drops::default();
            let handle = AbortHandle::new();
            let options = Options::new(4).overflow(policy);
            let (mut tx, mut rx) = F::edge(options.abort_handle(handle.clone()));
            for number in 0..3 {
                tx.try_send(drops.message(number)).expect("there is room");
            }
            drop(rx.try_recv());
            abort(&tx, &rx, &handle);
            assert_eq!(drops.count(), 3, "what was buffered is dropped at once");
            assert!(F::recv(&mut rx).is_none());
            assert_eq!(rx.try_recv().err(), Some(TryRecvError::Aborted));
            let refused = F::send(&mut tx, drops.message(7)).expect_err("it is aborted");
            assert_eq!(refused.into_inner().number, 7);
            assert_eq!((tx.state(), rx.state()), (State::Aborted, State::Aborted));
            let read = tx.meter().read();
            assert_eq!((read.sent, read.received, read.dropped_by_abort), (3, 1, 2));
            assert_eq!(read.buffered, 0);
            abort(&tx, &rx, &handle);
            drop((tx, rx));
            assert_eq!(drops.count(), 4);
        }
    }
}

fn an_abort_gives_a_waiting_send_its_message_back<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, rx) = F::edge(Options::new(1));
    tx.try_send(drops.message(0)).expect("there is room");
    let message = drops.message(1);
    let waiting = thread::spawn(move || F::send(&mut tx, message));
    thread::sleep(Duration::from_millis(5));
    assert!(!waiting.is_finished());
    rx.abort();
    let refused = waiting.join().expect("it does not panic");
    assert_eq!(refused.expect_err("it was aborted").into_inner().number, 1);
}

fn an_abort_ends_a_waiting_recv<F: Flavour>() {
    let (tx, mut rx) = F::edge(Options::new(1));
    let waiting = thread::spawn(move || (F::recv(&mut rx).is_none(), rx.state()));
    thread::sleep(Duration::from_millis(5));
    assert!(!waiting.is_finished());
    tx.abort();
    assert_eq!(waiting.join().ok(), Some((true, State::Aborted)));
}

fn dropping_the_receiver_aborts<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, rx) = F::edge(Options::new(2));
    tx.try_send(drops.message(0)).expect("there is room");
    drop(rx);
    assert_eq!(drops.count(), 1);
    assert_eq!(tx.state(), State::Aborted);
    assert!(F::send(&mut tx, drops.message(1)).is_err());
}

fn an_edge_that_has_received_everything_stays_closed<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(2));
    tx.try_send(drops.message(0)).expect("there is room");
    tx.close();
    assert!(F::recv(&mut rx).is_some());
    tx.abort();
    rx.abort();
    assert_eq!(rx.try_recv().err(), Some(TryRecvError::Closed));
    let meter = rx.meter();
    drop(rx);
    assert_eq!(meter.read().state, State::Closed);
    let (mut tx, rx) = F::edge(Options::new(2));
    tx.try_send(drops.message(0)).expect("there is room");
    tx.close();
    drop(rx);
    assert_eq!(tx.state(), State::Aborted, "something was left");
}

fn one_handle_aborts_a_graph<F: Flavour>() {
    let handle = AbortHandle::new();
    let options = Options::new(2).abort_handle(handle.clone());
    let edges: Vec<_> = (0..5).map(|_| F::edge(options.clone())).collect();
    let (other, _rx) = F::edge(Options::new(2));
    handle.abort();
    assert!(handle.is_aborted());
    for (tx, rx) in &edges {
        assert_eq!((tx.state(), rx.state()), (State::Aborted, State::Aborted));
    }
    assert_eq!(other.state(), State::Open);
}

fn an_edge_of_an_aborted_handle_is_aborted_from_the_beginning<F: Flavour>() {
    let drops = Drops::default();
    let handle = AbortHandle::new();
    handle.abort();
    let (mut tx, mut rx) = F::edge(Options::new(2).abort_handle(handle));
    assert!(F::send(&mut tx, drops.message(0)).is_err());
    assert!(F::recv(&mut rx).is_none());
}

fn after_an_abort_nothing_is_sent_or_received_on_any_thread<F: Flavour>() {
    for (round, policy) in (0..many(60)).zip(Overflow::ALL.into_iter().cycle()) {
        let drops = Drops::default();
        let handle = AbortHandle::new();
        let options = Options::new(1 + round % 4).overflow(policy);
        let (mut tx, mut rx) = F::edge(options.abort_handle(handle.clone()));
        let meter = tx.meter();
        let aborted = Arc::new(AtomicBool::new(false));
        let sender = thread::spawn({
            let (drops, aborted) = (drops.clone(), Arc::clone(&aborted));
            move || {
                for number in 0.. {
                    let before = aborted.load(Ordering::SeqCst);
                    let result = F::send(&mut tx, drops.message(number));
                    assert!(!before || result.is_err(), "sent after the abort");
                    if result.is_err() {
                        // When the flag is set, the other end must observe the abort as well.
                        aborted.store(true, Ordering::SeqCst);
                        return number + 1;
                    }
                }
                unreachable!("it is aborted at some time")
            }
        });
        let receiver = thread::spawn({
            let aborted = Arc::clone(&aborted);
            move || {
                let mut count = 0;
                loop {
                    let before = aborted.load(Ordering::SeqCst);
                    match F::recv(&mut rx) {
                        Some(_) => assert!(!before, "received after the abort"),
                        None => break,
                    }
                    count += 1;
                }
                aborted.store(true, Ordering::SeqCst);
                count
            }
        });
        for _ in 0..round * 5 % 97 {
            thread::yield_now();
        }
        handle.abort();
        aborted.store(true, Ordering::SeqCst);
        let made = sender.join().expect("nothing is sent after it");
        let received = receiver.join().expect("nothing is received after it");
        assert_eq!(drops.count(), made, "every message is dropped once");
        let read = meter.read();
        assert_eq!(read.received, received);
        assert_eq!(read.sent as usize, made - 1, "{read:?}");
        assert_eq!(
            read.sent,
            read.received + read.dropped_by_abort + read.dropped_by_overflow,
            "{read:?}"
        );
    }
}

fn drop_newest_keeps_what_came_first<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(3).overflow(Overflow::DropNewest));
    for number in 0..10 {
        F::send(&mut tx, drops.message(number)).expect("it is dropped");
    }
    assert_eq!(drops.count(), 7);
    let read = tx.meter().read();
    assert_eq!((read.sent, read.dropped_by_overflow), (10, 7));
    tx.close();
    for number in 0..3 {
        assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(number));
    }
    assert!(F::recv(&mut rx).is_none());
}

fn drop_oldest_keeps_what_came_last<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(3).overflow(Overflow::DropOldest));
    for number in 0..10 {
        F::send(&mut tx, drops.message(number)).expect("there is room");
    }
    assert_eq!(drops.count(), 7);
    let read = tx.meter().read();
    assert_eq!((read.sent, read.dropped_by_overflow), (10, 7));
    tx.close();
    for number in 7..10 {
        assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(number));
    }
    assert!(F::recv(&mut rx).is_none());
}

fn overflow_abort_aborts<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(2).overflow(Overflow::Abort));
    for number in 0..2 {
        F::send(&mut tx, drops.message(number)).expect("there is room");
    }
    let refused = F::send(&mut tx, drops.message(2)).expect_err("it is full");
    assert_eq!(refused.into_inner().number, 2);
    assert_eq!(rx.state(), State::Aborted);
    assert!(F::recv(&mut rx).is_none());
    assert_eq!(drops.count(), 3);
}

fn statistics_count_every_message<F: Flavour>() {
    let drops = Drops::default();
    for policy in Overflow::ALL {
        let (mut tx, mut rx) = F::edge(Options::new(4).overflow(policy));
        let meter = tx.meter();
        for number in 0..3 {
            tx.try_send(drops.message(number)).expect("there is room");
        }
        drop(rx.try_recv());
        let read = rx.meter().read();
        assert_eq!(read, meter.read());
        assert_eq!((read.sent, read.received, read.buffered), (3, 1, 2));
        assert_eq!((read.dropped_by_abort, read.dropped_by_overflow), (0, 0));
        assert_eq!((read.capacity, read.state), (4, State::Open));
        assert_eq!(
            read.blocked_sending + read.blocked_receiving,
            Duration::ZERO
        );
    }
}

fn the_high_water_mark_is_the_most_that_was_buffered<F: Flavour>() {
    let drops = Drops::default();
    for policy in Overflow::ALL {
        let (mut tx, mut rx) = F::edge(Options::new(8).overflow(policy));
        let meter = tx.meter();
        // The number of sends, the number of receives, and the expected high-water mark after them.
        for (send, recv, mark) in [
            (2, 1, 2),
            (1, 2, 2),
            (1, 1, 2),
            (5, 1, 5),
            (2, 6, 6),
            (3, 3, 6),
        ] {
            for number in 0..send {
                tx.try_send(drops.message(number)).expect("there is room");
            }
            (0..recv).for_each(|_| drop(rx.try_recv().expect("there are as many")));
            assert_eq!(meter.read().high_water, mark, "{policy}");
        }
    }
}

fn without_statistics_state_and_what_is_buffered_are_reported<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, rx) = F::edge(Options::new(1).statistics(false));
    tx.try_send(drops.message(0)).expect("there is room");
    let read = tx.meter().read();
    assert_eq!(
        (read.state, read.capacity, read.buffered),
        (State::Open, 1, 1)
    );
    assert_eq!((read.sent, read.high_water), (0, 0));
    rx.abort();
    let read = rx.meter().read();
    assert_eq!((read.state, read.buffered), (State::Aborted, 0));
    assert_eq!(read.dropped_by_abort, 0);
}

fn time_spent_blocked_is_counted_at_either_end<F: Flavour>() {
    // Blocked time is measured with a clock that has a resolution of some milliseconds.
    let (long, least) = (Duration::from_millis(60), Duration::from_millis(40));
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(1));
    let meter = tx.meter();
    tx.try_send(drops.message(0)).expect("there is room");
    let message = drops.message(1);
    let begin = Instant::now();
    let waiting = thread::spawn(move || {
        F::send(&mut tx, message).expect("no end aborts");
        tx
    });
    until(|| meter.read().blocked_sending >= long);
    assert!(!waiting.is_finished(), "it counts while it waits");
    assert!(F::recv(&mut rx).is_some());
    let mut tx = waiting.join().expect("it does not panic");
    assert!(F::recv(&mut rx).is_some());
    let read = meter.read();
    assert!(read.blocked_sending >= long);
    assert!(read.blocked_sending <= begin.elapsed() + long - least);
    assert_eq!(read.blocked_receiving, Duration::ZERO);

    let waiting = thread::spawn(move || drop(F::recv(&mut rx)));
    until(|| meter.read().blocked_receiving >= long);
    F::send(&mut tx, drops.message(2)).expect("it waits");
    waiting.join().expect("it does not panic");
    let after = meter.read();
    assert!(after.blocked_receiving >= long);
    thread::sleep(Duration::from_millis(10));
    assert_eq!(meter.read(), after, "neither end waits any more");
    assert_eq!(after.blocked_sending, read.blocked_sending);
}

fn a_meter_outlives_both_ends<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, rx) = F::edge(Options::new(2));
    let meter = tx.meter();
    tx.try_send(drops.message(0)).expect("there is room");
    drop((tx, rx));
    assert_eq!(drops.count(), 1, "it keeps no message");
    let read = meter.clone().read();
    assert_eq!((read.sent, read.dropped_by_abort), (1, 1));
    assert_eq!(read.state, State::Aborted);
}
