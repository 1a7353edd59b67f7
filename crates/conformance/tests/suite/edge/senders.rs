//! Edges with many senders: clones, the order of messages, and rendezvous.

use super::flavour::{Drops, many, once, until, wait};
use corsair::edge::{
    self, AbortHandle, Aborted, Options, Overflow, Queue, Sender, State, TryRecvError, TrySendError,
};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

// Guarantee: core-94.
#[test]
fn messages_of_every_sender_arrive_in_its_order() {
    for capacity in [0, 1, 7] {
        let count = many(5_000);
        let (tx, mut rx) = edge::queue::<(usize, usize)>(Options::new(capacity));
        let senders = [0, 1, 2, 3].map(|which| {
            let mut tx = tx.clone();
            thread::spawn(move || {
                let mut batch = Vec::new();
                for number in 0..count {
                    match number % 3 {
                        0 => batch.push((which, number)),
                        1 => {
                            batch.push((which, number));
                            tx.send_all_blocking(&mut batch).expect("no end aborts");
                        }
                        _ => tx.send_blocking((which, number)).expect("no end aborts"),
                    }
                }
                tx.send_all_blocking(&mut batch).expect("no end aborts");
            })
        });
        drop(tx);
        let mut next = [0; 4];
        for (which, number) in &mut rx {
            assert_eq!(number, next[which]);
            next[which] += 1;
        }
        assert_eq!((next, rx.state()), ([count; 4], State::Closed));
        for sender in senders {
            sender.join().expect("it does not panic");
        }
    }
}

// Guarantee: core-96.
#[test]
fn the_last_sender_closes() {
    let (mut first, mut rx) = edge::queue::<u32>(Options::new(4));
    let mut second = first.clone();
    first.try_send(1).expect("there is room");
    first.close();
    first.close();
    assert_eq!(rx.state(), State::Open);
    let refused = first.try_send(2);
    assert_eq!(
        refused,
        Err(TrySendError::Aborted(2)),
        "its own end is closed"
    );
    let mut closed = first.clone();
    assert!(
        closed.try_send(3).is_err(),
        "a clone of a closed end is closed"
    );
    drop((first, closed));
    second.try_send(4).expect("it is open");
    drop(second);
    assert_eq!(rx.state(), State::Closed);
    assert!(rx.iter().eq([1, 4]));
}

// Guarantee: core-108.
#[test]
fn senders_that_wait_are_served_in_their_order() {
    let (mut tx, mut rx) = edge::queue::<u32>(Options::new(1));
    tx.try_send(0).expect("there is room");
    let mut ends = [1, 2, 3].map(|number| (number, tx.clone()));
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting: Vec<_> = ends
        .iter_mut()
        .map(|(number, tx)| Box::pin(tx.send(*number)))
        .collect();
    for future in &mut waiting {
        assert!(future.as_mut().poll(&mut context).is_pending());
    }
    for number in 0..=3 {
        assert_eq!(rx.try_recv(), Ok(number));
        let refused = tx.try_send(9);
        match number < 3 {
            true => assert_eq!(refused, Err(TrySendError::Full(9)), "it is not overtaken"),
            false => assert!(refused.is_ok()),
        }
    }
    for future in &mut waiting {
        assert_eq!(future.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    }
}

// Guarantee: core-108.
#[test]
fn a_sender_that_gives_up_leaves_its_place_to_the_next() {
    let options = Options::new(10).weight_limit(4);
    let (mut tx, mut rx) = edge::queue_weighed::<&[u8], edge::Bytes>(options);
    tx.try_send(b"abc").expect("it is empty");
    let (mut heavy, mut light) = (tx.clone(), tx.clone());
    let mut context = Context::from_waker(Waker::noop());
    let mut first = Box::pin(heavy.send(b"xx"));
    assert!(first.as_mut().poll(&mut context).is_pending());
    let mut second = Box::pin(light.send(b"y"));
    assert!(
        second.as_mut().poll(&mut context).is_pending(),
        "it does not overtake"
    );
    drop(first);
    assert_eq!(second.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    assert_eq!(
        (rx.try_recv(), rx.try_recv()),
        (Ok(&b"abc"[..]), Ok(&b"y"[..]))
    );
}

// Guarantee: core-98.
#[test]
fn an_abort_gives_every_waiting_sender_its_own_message_back() {
    for capacity in [0, 1] {
        let drops = Drops::default();
        let (mut tx, rx) = edge::queue(Options::new(capacity));
        if capacity > 0 {
            tx.try_send(drops.message(9)).expect("there is room");
        }
        let waiting = [0, 1, 2, 3].map(|number| {
            let (mut tx, message) = (tx.clone(), drops.message(number));
            thread::spawn(move || match number % 2 {
                0 => tx.send_blocking(message),
                _ => wait(tx.send(message)),
            })
        });
        thread::sleep(Duration::from_millis(5));
        rx.abort();
        assert_eq!(
            drops.count(),
            capacity,
            "what was buffered is dropped at once"
        );
        for (number, sender) in waiting.into_iter().enumerate() {
            let refused = sender.join().expect("it does not panic");
            assert_eq!(
                refused.expect_err("it was aborted").into_inner().number,
                number
            );
        }
        assert_eq!(drops.count(), capacity + 4);
    }
}

// Guarantee: core-100.
#[test]
fn threads_that_send_to_one_lose_nothing_when_an_abort_comes() {
    for (round, policy) in (0..many(60)).zip(Overflow::ALL.into_iter().cycle()) {
        let drops = Drops::default();
        let handle = AbortHandle::new();
        let options = Options::new(round % 4).overflow(policy);
        let (tx, mut rx) = edge::queue(options.abort_handle(handle.clone()));
        let meter = tx.meter();
        let senders = [0; 3].map(|_| {
            let (mut tx, drops) = (tx.clone(), drops.clone());
            thread::spawn(move || {
                let mut accepted = 0;
                loop {
                    match tx.send_timeout(drops.message(accepted), Duration::from_millis(1)) {
                        Ok(()) => accepted += 1,
                        Err(edge::SendTimeoutError::TimedOut(message)) => drop(message),
                        Err(edge::SendTimeoutError::Aborted(_)) => return accepted,
                    }
                }
            })
        });
        let receiver = thread::spawn(move || rx.iter().count());
        for _ in 0..round * 7 % 97 {
            thread::yield_now();
        }
        handle.abort();
        assert_eq!(meter.read().buffered, 0);
        let accepted: usize = senders.map(|it| it.join().expect("no panic")).iter().sum();
        let received = receiver.join().expect("it does not panic");
        drop(tx);
        let read = meter.read();
        assert_eq!(read.sent as usize, accepted, "{read:?}");
        assert_eq!(read.received as usize, received, "{read:?}");
        let gone = read.received + read.dropped_by_abort + read.dropped_by_overflow;
        assert_eq!(read.sent, gone, "{read:?}");
    }
}

// Guarantee: core-109.
#[test]
fn a_rendezvous_holds_nothing() {
    let (mut tx, mut rx) = edge::queue::<u32>(Options::new(0));
    assert_eq!((tx.capacity(), tx.buffered()), (0, 0));
    assert_eq!(
        tx.try_send(1),
        Err(TrySendError::Full(1)),
        "the receiver is not there"
    );
    assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    let mut context = Context::from_waker(Waker::noop());
    let mut send = Box::pin(tx.send(2));
    assert!(send.as_mut().poll(&mut context).is_pending());
    assert_eq!(rx.buffered(), 0, "it waits with its sender");
    assert_eq!(rx.meter().read().sent, 0);
    assert_eq!(rx.try_recv(), Ok(2));
    assert_eq!(send.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    assert_eq!(rx.meter().read().sent, 1);
}

// Guarantee: core-109.
#[test]
fn a_send_at_a_rendezvous_ends_when_the_message_has_been_received() {
    for round in 0..many(300) {
        let (mut tx, mut rx) = edge::queue::<usize>(Options::new(0));
        let meter = tx.meter();
        let sender = thread::spawn(move || {
            for number in 1..=3 {
                match round % 2 {
                    0 => tx.send_blocking(number).expect("no end aborts"),
                    _ => wait(tx.send(number)).expect("no end aborts"),
                }
                assert_eq!(meter.read().received as usize, number);
            }
            let mut batch = vec![4, 5];
            tx.send_all_blocking(&mut batch).expect("no end aborts");
            assert_eq!(meter.read().received, 5);
        });
        assert!(rx.iter().eq(1..=5));
        sender.join().expect("it does not panic");
    }
}

// Guarantee: core-109.
#[test]
fn at_a_rendezvous_a_waiting_receiver_is_given_the_message() {
    let (mut tx, mut rx) = edge::queue::<u32>(Options::new(0));
    let mut context = Context::from_waker(Waker::noop());
    assert!(rx.poll_recv(&mut context).is_pending());
    tx.try_send(1).expect("the receiver waits");
    assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)), "it has one");
    assert_eq!(rx.poll_recv(&mut context), Poll::Ready(Some(1)));

    // A cancelled receive takes no message.
    assert!(once(rx.recv()).is_pending());
    assert_eq!(tx.try_send(3), Err(TrySendError::Full(3)));

    let mut other = tx.clone();
    let mut ready = Box::pin(tx.ready());
    assert!(ready.as_mut().poll(&mut context).is_pending());
    assert!(rx.poll_recv(&mut context).is_pending());
    assert_eq!(ready.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    other.try_send(4).expect("the receiver waits");
    assert_eq!(rx.try_recv(), Ok(4));
}

// Guarantee: core-109.
#[test]
fn policies_hold_at_a_rendezvous() {
    for policy in Overflow::ALL {
        let (mut tx, mut rx) = edge::queue::<u32>(Options::new(0).overflow(policy));
        let first = tx.try_send(1);
        match policy {
            Overflow::Block => assert_eq!(first, Err(TrySendError::Full(1))),
            Overflow::DropNewest | Overflow::DropOldest => {
                assert!(first.is_ok());
                assert_eq!(rx.meter().read().dropped_by_overflow, 1);
                assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
                let mut context = Context::from_waker(Waker::noop());
                assert!(rx.poll_recv(&mut context).is_pending());
                assert!(tx.try_send(2).is_ok());
                assert!(tx.try_send(3).is_ok(), "dropped: it was given one");
                assert_eq!(rx.try_recv(), Ok(2));
                assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            }
            Overflow::Abort => {
                assert_eq!(first, Err(TrySendError::Aborted(1)));
                assert!(rx.is_aborted());
            }
        }
    }
}

// Guarantee: core-103.
#[test]
fn a_batch_that_waits_comes_back_whole_when_it_is_dropped() {
    for capacity in [0, 2] {
        let (mut tx, mut rx) = edge::queue::<Box<usize>>(Options::new(capacity));
        let mut batch: Vec<_> = (0..6).map(Box::new).collect();
        assert!(once(tx.send_all(&mut batch)).is_pending());
        assert!(batch.iter().map(|it| **it).eq(capacity..6));
        let mut out = Vec::new();
        {
            let mut send = pin!(tx.send_all(&mut batch));
            let mut context = Context::from_waker(Waker::noop());
            assert!(send.as_mut().poll(&mut context).is_pending());
            // The receive frees a slot, which the waiting send fills with its next message.
            rx.try_recv_many(&mut out, 1).expect("there is one");
        }
        let taken = out.len() + rx.buffered();
        assert!(
            batch.iter().map(|it| **it).eq(taken..6),
            "nothing is lost and nothing is in two places"
        );
        assert_eq!(taken, capacity + 1);
    }
}

#[test]
fn a_send_that_is_leaked_keeps_its_message_in_the_line() {
    let (mut tx, mut rx) = edge::queue::<u32>(Options::new(1));
    tx.try_send(0).expect("there is room");
    let mut send = Box::pin(tx.send(1));
    let mut context = Context::from_waker(Waker::noop());
    assert!(send.as_mut().poll(&mut context).is_pending());
    std::mem::forget(send);
    assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(0), Ok(1)));
}

#[test]
fn a_sender_can_be_anywhere_and_is_notified_of_the_end() {
    fn is_send_and_sync<T: Send + Sync + Clone>(_: &T) {}
    let (tx, rx) = edge::queue::<u32>(Options::new(1));
    is_send_and_sync(&tx);
    let mut ends: Vec<Sender<u32, Queue>> = (0..5).map(|_| tx.clone()).collect();
    drop(rx);
    for tx in &mut ends {
        assert_eq!(tx.send_blocking(1), Err(Aborted(1)));
    }
    until(|| tx.is_aborted());
}
