//! The number of an actor's messages above the capacity of mailboxes.
//!
//! The sender counts a message after it has put the message into the mailbox. The receiver may have taken the message
//! out before, so the number may be negative for a moment. A sender that waits stores its waker first, then reads the
//! number; a receiver that takes out the last message decrements first, then wakes.

use crate::sync::{AtomicI32, Ordering};
use Ordering::{AcqRel, Acquire};

/// The number of messages above the capacity; see the [module](self).
#[derive(Debug, Default)]
pub(super) struct OverflowCount(AtomicI32);

impl OverflowCount {
    /// Adds `count` messages.
    pub(super) fn add(&self, count: usize) {
        // The cast is exact, because an actor has fewer than 2^31 messages in mailboxes.
        self.0.fetch_add(count as i32, AcqRel);
    }

    /// Removes one message. Returns true if it was the last one, so that its sender must be woken.
    pub(super) fn release(&self) -> bool {
        self.0.fetch_sub(1, AcqRel) == 1
    }

    /// True if the sender has to wait.
    pub(super) fn any(&self) -> bool {
        self.0.load(Acquire) > 0
    }
}

/// Loom models: `RUSTFLAGS="--cfg loom" cargo test -p corsair --release --lib overflow_count::loom`.
#[cfg(all(test, loom))]
mod loom {
    use super::OverflowCount;
    use loom::sync::{Arc, Mutex, Notify};
    use loom::thread;

    /// A sender puts rows of messages above the capacity, and then waits. A receiver takes out each message as it
    /// arrives. If a wake-up is lost, loom reports that the sender waits forever.
    fn sender_goes_on(rows: &'static [u32]) {
        loom::model(move || {
            let count = rows.iter().sum();
            let owed = Arc::new(OverflowCount::default());
            let over = Arc::new(Mutex::new(0_u32));
            let waker = Arc::new(Mutex::new(None::<Arc<Notify>>));
            let receiver = {
                let (owed, over, waker) =
                    (Arc::clone(&owed), Arc::clone(&over), Arc::clone(&waker));
                thread::spawn(move || {
                    let mut taken = 0;
                    while taken < count {
                        let some = std::mem::take(&mut *over.lock().unwrap());
                        for _ in 0..some {
                            if owed.release()
                                && let Some(waker) = waker.lock().unwrap().clone()
                            {
                                waker.notify();
                            }
                        }
                        taken += some;
                        if some == 0 {
                            thread::yield_now();
                        }
                    }
                })
            };
            for &row in rows {
                *over.lock().unwrap() += row;
                owed.add(row as usize);
            }
            let task = Arc::new(Notify::new());
            loop {
                *waker.lock().unwrap() = Some(Arc::clone(&task));
                if !owed.any() {
                    break;
                }
                task.wait();
            }
            receiver.join().unwrap();
            assert!(!owed.any());
        });
    }

    #[test]
    fn a_sender_is_woken_when_its_last_message_was_taken_out() {
        sender_goes_on(&[1]);
        sender_goes_on(&[1, 1]);
        sender_goes_on(&[2]);
        sender_goes_on(&[2, 1]);
    }
}
