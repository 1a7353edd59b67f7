//! Graphs of edges: fan-out, merge, and the propagation of aborts.

use super::flavour::{many, once, wait};
use corsair::edge::{self, AbortHandle, FanOut, Flavour, Merge, Options, Receiver, Sender};
use corsair::edge::{Overflow, State, TryRecvError};
use std::sync::Arc;
use std::thread;

// Guarantee: core-105.
#[test]
fn a_point_reaches_every_edge_and_is_shared() {
    let mut all = FanOut::new();
    let mut receivers: Vec<_> = (0..10)
        .map(|_| {
            let (tx, rx) = edge::ring::<Arc<u64>>(Options::new(4));
            all.add(tx);
            rx
        })
        .collect();
    let point = Arc::new(7);
    wait(all.send(Arc::clone(&point))).expect("there are edges");
    for rx in &mut receivers {
        let received = rx.try_recv().expect("it was sent");
        assert!(Arc::ptr_eq(&received, &point), "shared, not copied");
    }
}

// Guarantee: core-105.
#[test]
fn a_slow_edge_that_drops_never_stalls_its_siblings() {
    for policy in [Overflow::DropNewest, Overflow::DropOldest] {
        let mut all = FanOut::new();
        let (tx, slow) = edge::ring::<usize>(Options::new(2).overflow(policy));
        all.add(tx);
        let (tx, mut fast) = edge::ring::<usize>(Options::new(2));
        all.add(tx);
        for number in 0..many(1_000) {
            all.send_blocking(number).expect("there are edges");
            assert!(once(all.send(number)).is_ready());
            assert_eq!((fast.try_recv(), fast.try_recv()), (Ok(number), Ok(number)));
        }
        assert_eq!(slow.buffered(), 2);
    }
}

// Guarantee: core-105.
#[test]
fn an_edge_that_is_full_does_not_keep_the_message_from_its_siblings() {
    let mut all = FanOut::new();
    let (tx, _full) = edge::ring::<u32>(Options::new(1));
    let full = all.add(tx);
    let (tx, mut other) = edge::ring::<u32>(Options::new(2));
    all.add(tx);
    assert_eq!(all.try_send(1), Ok(vec![]));
    assert_eq!(all.try_send(2), Ok(vec![full]));
    assert_eq!((other.try_recv(), other.try_recv()), (Ok(1), Ok(2)));
    assert!(once(all.send(3)).is_pending());
    assert_eq!(other.try_recv(), Ok(3));
}

// Guarantee: core-105.
#[test]
fn a_fan_out_waits_for_all_that_block() {
    let mut all = FanOut::new();
    let readers: Vec<_> = (0..3)
        .map(|_| {
            let (tx, mut rx) = edge::queue::<usize>(Options::new(2));
            all.add(tx);
            thread::spawn(move || std::iter::from_fn(|| rx.recv_blocking()).collect::<Vec<_>>())
        })
        .collect();
    for number in 0..many(2_000) {
        all.send_blocking(number).expect("there are edges");
    }
    drop(all);
    for reader in readers {
        let numbers = reader.join().expect("it does not panic");
        assert!(numbers.into_iter().eq(0..many(2_000)));
    }
}

// Guarantee: core-105.
#[test]
fn edges_of_a_fan_out_come_and_go() {
    let mut all = FanOut::new();
    assert!(all.send_blocking(0).is_err(), "there is no receiver");
    let (tx, mut first) = edge::ring::<u32>(Options::new(4));
    let name = all.add(tx);
    all.send_blocking(1).expect("there is one");
    let (tx, mut second) = edge::ring::<u32>(Options::new(4));
    all.add(tx);
    all.send_blocking(2).expect("there are two");
    let mut removed = all.remove(name).expect("it is there");
    assert!(all.remove(name).is_none());
    all.send_blocking(3).expect("there is one");
    removed.send_blocking(4).expect("it is still open");
    drop((removed, all));
    assert!(std::iter::from_fn(|| first.recv_blocking()).eq([1, 2, 4]));
    assert!(std::iter::from_fn(|| second.recv_blocking()).eq([2, 3]));
}

// Guarantee: core-105.
#[test]
fn an_aborted_edge_leaves_the_fan_out_and_the_last_one_ends_it() {
    let (tx, first) = edge::ring::<u32>(Options::new(1));
    let (other, second) = edge::ring::<u32>(Options::new(1));
    let mut all: FanOut<_> = [tx, other].into_iter().collect();
    all.send_blocking(1).expect("there are two");
    drop(first);
    // The second edge is full, so the fan-out waits for it. The edge is aborted during this wait.
    let waiting = thread::spawn(move || {
        let refused = all.send_blocking(2).expect_err("no receiver is left");
        (refused.into_inner(), all.len())
    });
    thread::sleep(std::time::Duration::from_millis(5));
    assert!(!waiting.is_finished());
    drop(second);
    assert_eq!(waiting.join().ok(), Some((2, 0)));
}

// Guarantee: core-106.
#[test]
fn a_merge_reads_its_edges_in_turns() {
    let mut all = Merge::new();
    let mut senders: Vec<Sender<usize>> = (0..3)
        .map(|_| {
            let (tx, rx) = edge::ring(Options::new(8));
            all.add(rx);
            tx
        })
        .collect();
    for number in 0..6 {
        for (which, tx) in senders.iter_mut().enumerate() {
            tx.send_blocking(10 * which + number)
                .expect("there is room");
        }
    }
    for number in 0..6 {
        for which in 0..3 {
            assert_eq!(wait(all.recv()), Some(10 * which + number));
        }
    }
    assert_eq!(all.try_recv(), Err(TryRecvError::Empty));
    assert!(once(all.recv()).is_pending());
    drop(senders);
    assert_eq!(wait(all.recv()), None);
    assert!(!all.is_aborted());
    assert_eq!(all.try_recv(), Err(TryRecvError::Closed));
}

/// Merges the messages of three threads with the given receive function.
fn merge_from_threads<F: Flavour<usize>>(
    edge: impl Fn() -> (Sender<usize, F>, Receiver<usize, F>),
    mut recv: impl FnMut(&mut Merge<usize, F>) -> Option<usize>,
) {
    let count = many(2_000);
    let mut all = Merge::new();
    let senders: Vec<_> = (0..3)
        .map(|which| {
            let (mut tx, rx) = edge();
            all.add(rx);
            thread::spawn(move || {
                for number in 0..count {
                    let message = which * count + number;
                    tx.send_blocking(message).expect("no end aborts");
                }
            })
        })
        .collect();
    let mut next = [0; 3];
    while let Some(message) = recv(&mut all) {
        assert_eq!(message % count, next[message / count], "in order by edge");
        next[message / count] += 1;
    }
    assert_eq!(next, [count; 3]);
    for sender in senders {
        sender.join().expect("it does not panic");
    }
}

// Guarantee: core-106.
#[test]
fn a_merge_waits_for_any_of_its_edges() {
    let ring = || edge::ring(Options::new(2));
    merge_from_threads(ring, |all| all.recv_blocking());
    merge_from_threads(ring, |all| wait(all.recv()));
    let queue = || edge::queue(Options::new(2));
    merge_from_threads(queue, |all| all.recv_blocking());
    merge_from_threads(queue, |all| wait(all.recv()));
}

// Guarantee: core-106.
#[test]
fn edges_of_a_merge_come_and_go() {
    let mut all = Merge::new();
    assert_eq!(all.recv_blocking(), None);
    let (mut first, rx) = edge::ring::<u32>(Options::new(4));
    let name = all.add(rx);
    first.send_blocking(1).expect("there is room");
    let mut rx = all.remove(name).expect("it is there");
    assert_eq!(rx.recv_blocking(), Some(1));
    all.add(rx);
    first.send_blocking(2).expect("there is room");
    let (mut second, rx) = edge::ring::<u32>(Options::new(4));
    all.add(rx);
    second.send_blocking(3).expect("there is room");
    assert_eq!(all.len(), 2);
    assert_eq!(
        (all.recv_blocking(), all.recv_blocking()),
        (Some(2), Some(3))
    );
    drop((first, second));
    assert_eq!(all.recv_blocking(), None);
    assert!(all.is_empty());
}

// Guarantee: core-106.
#[test]
fn a_merge_tells_of_an_aborted_edge_and_reads_on() {
    let (tx, rx) = edge::ring::<u32>(Options::new(4));
    let (mut other, second) = edge::ring::<u32>(Options::new(4));
    let mut all: Merge<_> = [rx, second].into_iter().collect();
    tx.abort();
    other.send_blocking(1).expect("there is room");
    assert_eq!(all.recv_blocking(), Some(1));
    drop(other);
    assert_eq!(all.recv_blocking(), None);
    assert!(all.is_aborted());
    assert_eq!(all.try_recv(), Err(TryRecvError::Aborted));
}

// Guarantee: core-107.
#[test]
fn an_abort_goes_through_fan_out_and_merge_in_either_direction() {
    let build = || {
        let (source, input) = edge::ring::<u32>(Options::new(2));
        let (first, one) = edge::ring::<u32>(Options::new(2));
        let (second, two) = edge::ring::<u32>(Options::new(2));
        let spread: FanOut<_> = [first, second].into_iter().collect();
        let gather: Merge<_> = [one, two].into_iter().collect();
        // Passes on all messages; drops its ends when it cannot pass one on.
        let node = thread::spawn(move || {
            let (mut input, mut spread) = (input, spread);
            while let Some(message) = input.recv_blocking() {
                if spread.send_blocking(message).is_err() {
                    return;
                }
            }
            if input.is_aborted() {
                spread.abort();
            }
        });
        (source, gather, node)
    };

    let (mut source, gather, node) = build();
    drop(gather);
    let refused = (0..)
        .map(|number| source.send_blocking(number))
        .find(Result::is_err);
    assert!(refused.is_some(), "up to the source");
    assert!(source.is_aborted());
    node.join().expect("it does not panic");

    let (source, mut gather, node) = build();
    source.abort();
    assert_eq!(gather.recv_blocking(), None, "down to the sink");
    assert!(gather.is_aborted());
    node.join().expect("it does not panic");
}

// Guarantee: core-99.
#[test]
fn one_handle_aborts_a_graph_of_all_flavours_while_it_works() {
    let handle = AbortHandle::new();
    let options = || Options::new(2).abort_handle(handle.clone());
    let (mut ring, mut ring_out) = edge::ring::<u32>(options());
    let (mut queue, mut queue_out) = edge::queue::<u32>(options());
    let (mut meeting, mut meeting_out) =
        edge::queue::<u32>(Options::new(0).abort_handle(handle.clone()));
    let mut other = queue.clone();
    let meters = [ring.meter(), queue.meter(), meeting.meter()];
    let workers = [
        thread::spawn(move || while ring.send_blocking(1).is_ok() {}),
        thread::spawn(move || while queue.send_blocking(1).is_ok() {}),
        thread::spawn(move || while wait(other.send(1)).is_ok() {}),
        thread::spawn(move || while wait(meeting.send(1)).is_ok() {}),
        thread::spawn(move || while ring_out.recv_blocking().is_some() {}),
        thread::spawn(move || while wait(queue_out.recv()).is_some() {}),
        thread::spawn(move || while meeting_out.recv_blocking().is_some() {}),
    ];
    thread::sleep(std::time::Duration::from_millis(5));
    handle.abort();
    for meter in &meters {
        assert_eq!(meter.read().state, State::Aborted);
    }
    for worker in workers {
        worker.join().expect("it does not panic");
    }
}
