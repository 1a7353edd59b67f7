//! Scheduled wake-ups.
//!
//! The workers that run actors request and cancel nearly all wake-ups. So each thread has its own list of deadlines,
//! whose lock is free unless the clock thread checks the list.

use super::thread_slot::{self, SHARDS};
use crate::contract::Time;
use crate::sync::lock;
use crossbeam_utils::CachePadded;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::task::Waker;

/// All scheduled wake-ups; see the [module](self).
pub(super) struct Wakes {
    /// The deadlines by thread.
    shards: Box<[CachePadded<Mutex<Deadlines>>]>,
}

/// A requested wake-up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wake {
    shard: usize,
    slot: u32,
    /// The number of earlier uses of the slot.
    used: u32,
}

/// The deadlines that one thread has requested.
#[derive(Default)]
struct Deadlines {
    /// Times and slots, the earliest first. Some wake-ups may have been cancelled.
    order: BinaryHeap<Reverse<(Time, u32)>>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    called_off: usize,
}

/// The waker of a requested wake-up. Its entry in `order` stays until it is due, even if the wake-up is cancelled
/// before.
struct Slot {
    used: u32,
    task: Option<Waker>,
}

/// The maximum number of cancelled entries that stay, unless they are fewer than half of all.
const FEW: usize = 64;

/// The maximum number of wake-ups that a worker performs at a time.
const SOME: usize = 32;

impl Wakes {
    pub(super) fn new() -> Wakes {
        let shards = (0..SHARDS).map(|_| CachePadded::default());
        Wakes {
            shards: shards.collect(),
        }
    }

    /// Requests a wake-up. Also performs this thread's wake-ups that are due at `now`, because this is cheaper for a
    /// worker than for the clock thread.
    pub(super) fn add(&self, due: Time, now: Time, task: Waker) -> Wake {
        let shard = thread_slot::mine().index;
        let mut deadlines = lock(&self.shards[shard]);
        let (slot, used) = deadlines.add(due, task);
        if deadlines.is_due(now) {
            let mut tasks = Vec::with_capacity(SOME);
            while tasks.len() < SOME && deadlines.is_due(now) {
                tasks.extend(deadlines.take_first());
            }
            drop(deadlines);
            tasks.into_iter().for_each(Waker::wake);
        }
        Wake { shard, slot, used }
    }

    /// Cancels a wake-up, which may already have happened.
    pub(super) fn cancel(&self, wake: Wake) {
        let task = lock(&self.shards[wake.shard]).cancel(wake);
        // Dropped after the lock is released, because this may drop a task.
        drop(task);
    }

    /// Takes the due wakers, and returns the time of the next one.
    pub(super) fn take_due(&self, now: Time, tasks: &mut Vec<Waker>) -> Option<Time> {
        let next = |shard: &CachePadded<Mutex<Deadlines>>| lock(shard).take_due(now, tasks);
        self.shards.iter().filter_map(next).min()
    }

    /// Removes all wake-ups.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            let left = std::mem::take(&mut *lock(shard));
            drop(left);
        }
    }
}

impl Deadlines {
    fn add(&mut self, due: Time, task: Waker) -> (u32, u32) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                used: 0,
                task: None,
            });
            self.slots.len() as u32 - 1
        });
        self.order.push(Reverse((due, slot)));
        let place = &mut self.slots[slot as usize];
        place.task = Some(task);
        (slot, place.used)
    }

    fn cancel(&mut self, wake: Wake) -> Option<Waker> {
        let slot = self.slots.get_mut(wake.slot as usize)?;
        let task = slot.task.take_if(|_| slot.used == wake.used)?;
        self.called_off += 1;
        if self.called_off > FEW && self.called_off > self.order.len() / 2 {
            self.sweep();
        }
        Some(task)
    }

    /// Removes cancelled entries.
    fn sweep(&mut self) {
        let (slots, free) = (&mut self.slots, &mut self.free);
        self.order.retain(|&Reverse((_, slot))| {
            let is_wanted = slots[slot as usize].task.is_some();
            if !is_wanted {
                let place = &mut slots[slot as usize];
                place.used = place.used.wrapping_add(1);
                free.push(slot);
            }
            is_wanted
        });
        self.called_off = 0;
        if self.order.is_empty() {
            // Frees the memory of a burst. The slots' counts of uses continue, so that an old wake-up cannot cancel a
            // new one.
            self.order.shrink_to(FEW);
        }
    }

    fn take_due(&mut self, now: Time, tasks: &mut Vec<Waker>) -> Option<Time> {
        while self.is_due(now) {
            tasks.extend(self.take_first());
        }
        self.order.peek().map(|&Reverse((due, _))| due)
    }

    fn is_due(&self, now: Time) -> bool {
        self.order
            .peek()
            .is_some_and(|&Reverse((due, _))| due <= now)
    }

    /// Takes the first entry; `None` if it was cancelled.
    fn take_first(&mut self) -> Option<Waker> {
        let Reverse((_, slot)) = self.order.pop()?;
        let place = &mut self.slots[slot as usize];
        place.used = place.used.wrapping_add(1);
        let task = place.task.take();
        if task.is_none() {
            self.called_off -= 1;
        }
        self.free.push(slot);
        task
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake as _;

    /// A waker that counts its calls.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn due(wakes: &Wakes, now: u64) -> (usize, Option<Time>) {
        let mut tasks = Vec::new();
        let next = wakes.take_due(Time(now), &mut tasks);
        (tasks.len(), next)
    }

    #[test]
    fn what_is_due_comes_once_and_what_was_called_off_does_not() {
        let wakes = Wakes::new();
        let count = Arc::new(Count::default());
        let add = |due| wakes.add(Time(due), Time::ZERO, Waker::from(count.clone()));
        let (_early, off, _late) = (add(5), add(6), add(9));
        wakes.cancel(off);
        wakes.cancel(off);
        assert_eq!(due(&wakes, 4), (0, Some(Time(5))));
        assert_eq!(due(&wakes, 8), (1, Some(Time(9))));
        // The slot of the cancelled wake-up now belongs to another wake-up.
        let again = add(8);
        wakes.cancel(off);
        assert_eq!(due(&wakes, 8), (1, Some(Time(9))));
        wakes.cancel(again);
        assert_eq!(due(&wakes, 9), (1, None));
        count.wake_by_ref();
        assert_eq!(count.0.load(Relaxed), 1);
    }

    #[test]
    fn who_asks_for_a_wake_up_wakes_some_that_are_due() {
        let wakes = Wakes::new();
        let count = Arc::new(Count::default());
        let add = |due, now| wakes.add(Time(due), Time(now), Waker::from(count.clone()));
        for due in 0..2 * SOME as u64 {
            add(100 + due, 0);
        }
        let woken = || count.0.load(Relaxed);
        let off = add(1000, 99);
        assert_eq!(woken(), 0, "nothing was due");
        let wake = add(1000, 102);
        assert_eq!(woken(), 3);
        wakes.cancel(off);
        add(2000, 1000);
        assert_eq!(woken(), 3 + SOME, "not all at once");
        assert_eq!(due(&wakes, 1000), (SOME - 3 + 1, Some(Time(2000))));
        wakes.cancel(wake);
        assert_eq!(due(&wakes, 2000), (1, None));
    }

    #[test]
    fn what_was_called_off_keeps_no_task_and_little_memory() {
        let wakes = Wakes::new();
        let count = Arc::new(Count::default());
        let entry = wakes.add(Time(1), Time::ZERO, Waker::from(count.clone()));
        for _ in 0..10_000 {
            let wake = wakes.add(Time::MAX, Time::ZERO, Waker::from(count.clone()));
            wakes.cancel(wake);
        }
        assert_eq!(Arc::strong_count(&count), 2);
        let shard = lock(&wakes.shards[entry.shard]);
        assert!(shard.slots.len() <= 2 * FEW + 2, "{}", shard.slots.len());
    }
}
