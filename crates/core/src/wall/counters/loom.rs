//! Loom models of the guarantees of the counters, checked in every order.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p corsair --release --lib counters::loom`

use super::{Counters, Ledger, Mine};
use crate::sync::{AtomicU64, Ordering::Relaxed};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// Counters and one mailbox; each message is only its epoch.
struct Model {
    counters: Counters,
    mailbox: Mutex<Vec<u8>>,
    /// The number of handled messages, written before the messages are counted as done.
    handled: AtomicU64,
}

impl Model {
    fn new() -> Arc<Model> {
        Arc::new(Model {
            counters: Counters::new(0),
            mailbox: Mutex::new(Vec::new()),
            handled: AtomicU64::new(0),
        })
    }

    /// Returns the shard of this thread: its own shard, or the shared one.
    fn shard(&self, index: usize, owned: bool) -> Mine<'_> {
        let shard = &self.counters.shards[index];
        Mine { shard, owned }
    }

    fn send(&self, mine: Mine<'_>) {
        self.send_row(mine, 1);
    }

    fn send_row(&self, mine: Mine<'_>, count: usize) {
        let epoch = self.counters.sent_by(mine, count as u64);
        self.mailbox.lock().unwrap().extend(vec![epoch; count]);
    }

    /// Handles received messages, and sends one message for each if `follow` is true.
    fn receive(&self, mine: Mine<'_>, follow: bool) {
        let arrived = std::mem::take(&mut *self.mailbox.lock().unwrap());
        let mut ledger = Ledger::default();
        for epoch in arrived {
            if follow {
                self.send(mine);
            }
            self.handled.fetch_add(1, Relaxed);
            ledger.done(epoch);
        }
        ledger.flush_to(mine);
    }
}

/// Checks that messages sent before a turn have been handled when the old epoch is settled, whatever is sent at the
/// same time.
fn settles(receiver_owns: bool, count: usize) {
    loom::model(move || {
        let model = Model::new();
        model.send_row(model.shard(0, true), count);
        let receiver = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                let mine = model.shard(if receiver_owns { 1 } else { 2 }, receiver_owns);
                model.receive(mine, true);
            })
        };
        let old = model.counters.turn();
        if model.counters.is_settled(old) {
            assert!(
                model.handled.load(Relaxed) >= count as u64,
                "settled before it was done"
            );
        }
        receiver.join().unwrap();
    });
}

#[test]
fn an_epoch_is_settled_only_when_its_letters_are_done() {
    for count in [1, 2] {
        settles(true, count);
        settles(false, count);
    }
}

#[test]
fn two_equal_scans_that_are_still_leave_nothing_to_happen() {
    loom::model(|| {
        let model = Model::new();
        model.send(model.shard(0, true));
        let receiver = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                let mine = model.shard(1, true);
                model.receive(mine, true);
                model.receive(mine, false);
            })
        };
        // The model has no actors that could wait: only messages count.
        let first = model.counters.scan(0);
        let second = model.counters.scan(0);
        if first == second && second.is_still() {
            assert_eq!(
                model.handled.load(Relaxed),
                2,
                "the answer was still to come"
            );
        }
        receiver.join().unwrap();
        assert!(model.counters.scan(0).is_still());
    });
}
