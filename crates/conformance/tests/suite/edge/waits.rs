//! Time-outs, iterators, streams and sinks, on every flavour.

use super::flavour::{Drops, Flavour, many, once, wait};
use corsair::edge::{Options, RecvTimeoutError, SendTimeoutError, State};
use futures_util::{SinkExt, StreamExt};
use std::future::{pending, ready};
use std::thread;
use std::time::Duration;

on_every_flavour! {
    // Guarantee: core-110.
    a_send_with_a_timeout_gives_its_message_back
    // Guarantee: core-110.
    a_recv_with_a_timeout_takes_nothing
    waits_with_a_timeout_end_with_what_they_wait_for
    // Guarantee: core-110.
    waits_with_a_timeout_tell_of_the_end
    a_timeout_without_end_waits_without_end
    // Guarantee: core-110.
    time_outs_lose_nothing
    // Guarantee: core-112.
    a_receiver_is_an_iterator
    // Guarantee: core-112.
    a_receiver_is_a_stream
    // Guarantee: core-112.
    a_sender_is_a_sink
    // Guarantee: core-112.
    a_sink_gives_back_what_was_not_sent
}

const SHORT: Duration = Duration::from_millis(2);

fn a_send_with_a_timeout_gives_its_message_back<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(1));
    tx.send_timeout(drops.message(0), SHORT)
        .expect("there is room");
    for wait_for in [SHORT, Duration::ZERO] {
        match tx.send_timeout(drops.message(1), wait_for) {
            Err(SendTimeoutError::TimedOut(message)) => assert_eq!(message.number, 1),
            other => panic!("it is full: {other:?}"),
        }
    }
    match wait(tx.send_until(drops.message(2), ready(()))) {
        Err(SendTimeoutError::TimedOut(message)) => assert_eq!(message.number, 2),
        other => panic!("it is full: {other:?}"),
    }
    assert!(once(tx.send_until(drops.message(3), pending::<()>())).is_pending());
    assert_eq!(tx.meter().read().sent, 1);
    assert_eq!(rx.try_recv().map(|it| it.number).ok(), Some(0));
    assert!(rx.try_recv().is_err());
}

fn a_recv_with_a_timeout_takes_nothing<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(2));
    for wait_for in [SHORT, Duration::ZERO] {
        assert_eq!(
            rx.recv_timeout(wait_for).err(),
            Some(RecvTimeoutError::TimedOut)
        );
    }
    assert_eq!(
        wait(rx.recv_until(ready(()))).err(),
        Some(RecvTimeoutError::TimedOut)
    );
    let blocked = rx.meter().read().blocked_receiving;
    thread::sleep(Duration::from_millis(10));
    assert_eq!(
        rx.meter().read().blocked_receiving,
        blocked,
        "it does not wait any more"
    );
    tx.try_send(drops.message(7)).expect("there is room");
    assert_eq!(
        rx.recv_timeout(Duration::ZERO).map(|it| it.number).ok(),
        Some(7)
    );
}

fn waits_with_a_timeout_end_with_what_they_wait_for<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(1));
    tx.try_send(drops.message(0)).expect("there is room");
    let message = drops.message(1);
    let sender = thread::spawn(move || {
        let result = tx.send_timeout(message, Duration::from_secs(600));
        (tx, result.is_ok())
    });
    thread::sleep(SHORT);
    for number in 0..2 {
        let received = rx.recv_timeout(Duration::from_secs(600));
        assert_eq!(received.map(|it| it.number).ok(), Some(number));
    }
    let (mut tx, sent) = sender.join().expect("it does not panic");
    assert!(sent);
    let sender = thread::spawn(move || {
        thread::sleep(SHORT);
        F::send(&mut tx, drops.message(2)).is_ok()
    });
    let received = wait(rx.recv_until(pending::<()>()));
    assert_eq!(received.map(|it| it.number).ok(), Some(2));
    assert_eq!(sender.join().ok(), Some(true));
}

fn waits_with_a_timeout_tell_of_the_end<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(1));
    tx.close();
    assert_eq!(rx.recv_timeout(SHORT).err(), Some(RecvTimeoutError::Closed));
    assert_eq!(
        wait(rx.recv_until(ready(()))).err(),
        Some(RecvTimeoutError::Closed)
    );
    let (mut tx, mut rx) = F::edge(Options::new(1));
    tx.try_send(drops.message(0)).expect("there is room");
    let message = drops.message(1);
    let waiting = thread::spawn(move || tx.send_timeout(message, Duration::from_secs(600)));
    thread::sleep(SHORT);
    rx.abort();
    match waiting.join().expect("it does not panic") {
        Err(SendTimeoutError::Aborted(message)) => assert_eq!(message.number, 1),
        other => panic!("it was aborted: {other:?}"),
    }
    assert_eq!(
        rx.recv_timeout(SHORT).err(),
        Some(RecvTimeoutError::Aborted)
    );
    assert_eq!(
        wait(rx.recv_until(ready(()))).err(),
        Some(RecvTimeoutError::Aborted)
    );
}

fn a_timeout_without_end_waits_without_end<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(1));
    let sender = thread::spawn(move || {
        for number in 0..3 {
            tx.send_timeout(drops.message(number), Duration::MAX)
                .expect("it is received");
        }
    });
    for number in 0..3 {
        let received = rx.recv_timeout(Duration::MAX).map(|it| it.number);
        assert_eq!(received.ok(), Some(number));
    }
    sender.join().expect("it does not panic");
}

fn time_outs_lose_nothing<F: Flavour>() {
    let drops = Drops::default();
    let count = many(3_000);
    let (mut tx, mut rx) = F::edge(Options::new(1));
    let sender = thread::spawn({
        let drops = drops.clone();
        move || {
            let mut made = 0;
            for number in 0..count {
                let mut message = drops.message(number);
                made += 1;
                let patience = Duration::from_micros(number as u64 % 3);
                while let Err(refused) = tx.send_timeout(message, patience) {
                    message = refused.into_inner();
                }
            }
            made
        }
    });
    let mut expected = 0;
    loop {
        match rx.recv_timeout(Duration::from_micros(expected as u64 % 2)) {
            Ok(message) => {
                assert_eq!(message.number, expected);
                expected += 1;
            }
            Err(RecvTimeoutError::TimedOut) => {}
            Err(ended) => break assert_eq!(ended, RecvTimeoutError::Closed),
        }
    }
    assert_eq!(expected, count);
    assert_eq!(sender.join().ok(), Some(count));
    assert_eq!(drops.count(), count);
}

fn a_receiver_is_an_iterator<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, mut rx) = F::edge(Options::new(4));
    let sender = thread::spawn(move || {
        for number in 0..100 {
            F::send(&mut tx, drops.message(number)).expect("no end aborts");
        }
    });
    assert_eq!(rx.iter().next().map(|it| it.number), Some(0));
    let mut numbers = Vec::new();
    for message in &mut rx {
        numbers.push(message.number);
    }
    assert!(numbers.into_iter().eq(1..100));
    assert_eq!(rx.try_iter().count(), 0);
    assert_eq!(rx.into_iter().count(), 0);
    sender.join().expect("it does not panic");
}

fn a_receiver_is_a_stream<F: Flavour>() {
    let drops = Drops::default();
    let (mut tx, rx) = F::edge(Options::new(4));
    let sender = thread::spawn(move || {
        for number in 0..100 {
            F::send(&mut tx, drops.message(number)).expect("no end aborts");
        }
    });
    let numbers: Vec<_> = wait(rx.map(|it| it.number).collect());
    assert!(numbers.into_iter().eq(0..100));
    sender.join().expect("it does not panic");
}

fn a_sender_is_a_sink<F: Flavour>() {
    let drops = Drops::default();
    let (tx, mut rx) = F::edge(Options::new(2));
    let reader = thread::spawn(move || {
        let mut numbers = Vec::new();
        while let Some(message) = F::recv(&mut rx) {
            numbers.push(message.number);
        }
        (numbers, rx.state())
    });
    let messages = futures_util::stream::iter((0..100).map(|number| Ok(drops.message(number))));
    wait(messages.forward(tx.into_sink())).expect("no end aborts");
    let (numbers, state) = reader.join().expect("it does not panic");
    assert!(numbers.into_iter().eq(0..100));
    assert_eq!(state, State::Closed, "forward closes the sink");
}

fn a_sink_gives_back_what_was_not_sent<F: Flavour>() {
    let drops = Drops::default();
    let (tx, mut rx) = F::edge(Options::new(1));
    let mut sink = tx.into_sink();
    wait(sink.send(drops.message(0))).expect("there is room");
    assert!(once(sink.send(drops.message(1))).is_pending());
    let (tx, message) = sink.into_parts();
    assert_eq!(message.map(|it| it.number), Some(1));
    let mut sink = tx.into_sink();
    assert!(once(sink.send(drops.message(2))).is_pending());
    assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(0));
    wait(sink.flush()).expect("there is room");
    assert_eq!(F::recv(&mut rx).map(|it| it.number), Some(2));
    wait(sink.send(drops.message(3))).expect("there is room");
    assert!(once(sink.send(drops.message(4))).is_pending());
    rx.abort();
    assert!(wait(sink.flush()).is_err());
    let (_tx, message) = sink.into_parts();
    assert_eq!(message.map(|it| it.number), Some(4));
}
