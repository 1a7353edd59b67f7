//! The queue for the slots of an instance: its order, and the jobs that it refuses.

use super::job::Job;
use crate::definition::{Order, QueueDefinition};
use crate::saved::RestoreState;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The number of priorities.
const PRIORITIES: usize = 8;

/// The rules of a service's queue. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueRules {
    pub(crate) order: Order,
    /// The maximum number of waiting jobs.
    pub(crate) size: usize,
    /// The wait in nanoseconds after which a request is refused.
    pub(crate) patience: u64,
    /// The target and the interval of controlled delay.
    pub(crate) codel: Option<(u64, u64)>,
}

impl QueueRules {
    pub(crate) fn new(definition: &QueueDefinition) -> QueueRules {
        QueueRules {
            order: definition.order.unwrap_or_default(),
            size: definition.size.map_or(usize::MAX, |size| size as usize),
            patience: definition.patience.map_or(u64::MAX, |time| time.nanos()),
            codel: definition
                .codel
                .map(|codel| (codel.target.nanos(), codel.interval.nanos().max(1))),
        }
    }
}

impl Default for QueueRules {
    fn default() -> Self {
        QueueRules::new(&QueueDefinition::default())
    }
}

/// Jobs that wait for a slot.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Queue {
    #[serde(skip)]
    rules: QueueRules,
    /// The jobs, by priority if priorities order the queue; otherwise in one level.
    levels: Vec<VecDeque<Job>>,
    length: usize,
    delay: Delay,
    /// The due time of the current timer for the job whose patience ends first.
    timer: Option<u64>,
}

impl RestoreState for Queue {
    fn take_over(&mut self, saved: Queue) {
        let rules = self.rules;
        *self = Queue { rules, ..saved };
    }
}

impl Queue {
    pub(super) fn new(rules: QueueRules) -> Queue {
        Queue {
            rules,
            ..Queue::default()
        }
    }

    /// Applies the rules, which are others than when the jobs were added.
    pub(super) fn revise(&mut self) {
        let mut jobs: Vec<Job> = self.drain().collect();
        jobs.sort_by_key(|job| job.arrived);
        for job in jobs {
            self.add(job);
        }
        self.timer = None;
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    fn level(&self, job: &Job) -> usize {
        let priority = job.key.as_endpoint().map_or(0, |(_, priority, _)| priority);
        match self.rules.order {
            Order::Priority => usize::from(priority).min(PRIORITIES - 1),
            Order::Fifo | Order::Lifo => 0,
        }
    }

    /// Adds a job. If the queue is full, returns the refused job: the new job, or a queued job with a lower priority.
    pub(super) fn push(&mut self, job: Job) -> Option<Job> {
        let level = self.level(&job);
        let mut refused = None;
        if self.length >= self.rules.size {
            let lowest = self.levels.iter().position(|jobs| !jobs.is_empty());
            let Some(lowest) = lowest.filter(|&lowest| lowest < level) else {
                return Some(job);
            };
            refused = self.levels[lowest].pop_back();
            self.length -= 1;
        }
        self.add(job);
        refused
    }

    /// Adds a job at the end of its level.
    fn add(&mut self, job: Job) {
        let level = self.level(&job);
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, VecDeque::new);
        }
        self.levels[level].push_back(job);
        self.length += 1;
    }

    /// Takes the next job at a time in nanoseconds, with true if the job must be refused.
    pub(super) fn pop(&mut self, now: u64) -> Option<(Job, bool)> {
        let highest = self.levels.iter_mut().rev().find(|jobs| !jobs.is_empty())?;
        let job = match self.rules.order {
            Order::Lifo => highest.pop_back(),
            Order::Fifo | Order::Priority => highest.pop_front(),
        }?;
        self.length -= 1;
        let waited = now.saturating_sub(job.arrived);
        let is_last = self.length == 0;
        let drops = (self.rules.codel).is_some_and(|(target, interval)| {
            self.delay.drops(target, interval, waited, is_last, now)
        });
        Some((
            job,
            drops || waited >= self.rules.patience || now >= job.deadline,
        ))
    }

    /// Takes a job whose patience has ended, if there is one.
    pub(super) fn expire(&mut self, now: u64) -> Option<Job> {
        let (level, ends) = self.first_end()?;
        if ends > now {
            return None;
        }
        self.length -= 1;
        self.levels[level].pop_front()
    }

    /// Returns the delay of a new timer for the job whose patience ends first, if one is needed.
    pub(super) fn next_timer(&mut self, now: u64) -> Option<u64> {
        if self.timer.is_some_and(|due| due > now) {
            return None;
        }
        self.timer = self.first_end().map(|(_, ends)| ends.max(now));
        self.timer.map(|due| due - now)
    }

    /// Returns the priority and the time of the job whose patience ends first. Jobs of one priority are in
    /// the order of arrival.
    fn first_end(&self) -> Option<(usize, u64)> {
        if self.rules.patience == u64::MAX {
            return None;
        }
        let fronts = (0..).zip(&self.levels);
        let fronts = fronts.filter_map(|(level, jobs)| Some((level, jobs.front()?.arrived)));
        let (level, arrived) = fronts.min_by_key(|&(_, arrived)| arrived)?;
        Some((level, arrived.saturating_add(self.rules.patience)))
    }

    /// Removes all jobs.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Job> + '_ {
        self.length = 0;
        self.delay = Delay::default();
        self.levels.iter_mut().flat_map(|jobs| jobs.drain(..))
    }
}

/// The state of controlled delay (RFC 8289, section 5).
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Delay {
    /// The time from which jobs are dropped, if all jobs until then wait longer than the target; `None` while waits are
    /// short.
    above_until: Option<u64>,
    dropping: bool,
    drop_next: u64,
    count: u32,
    last_count: u32,
}

impl Delay {
    /// Returns true if the job that leaves the queue now must be dropped.
    fn drops(&mut self, target: u64, interval: u64, waited: u64, is_last: bool, now: u64) -> bool {
        let is_ready = if waited < target || is_last {
            self.above_until = None;
            false
        } else {
            match self.above_until {
                None => {
                    self.above_until = Some(now.saturating_add(interval));
                    false
                }
                Some(until) => now >= until,
            }
        };
        if !is_ready {
            self.dropping = false;
            return false;
        }
        let law = |from: u64, count: u32| {
            from.saturating_add((interval as f64 / libm::sqrt(f64::from(count))) as u64)
        };
        if self.dropping {
            if now < self.drop_next {
                return false;
            }
            self.count += 1;
            self.drop_next = law(self.drop_next, self.count);
            return true;
        }
        self.dropping = true;
        let delta = self.count - self.last_count;
        let was_dropping = now.saturating_sub(self.drop_next) < interval.saturating_mul(16);
        self.count = if delta > 1 && was_dropping { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = law(now, self.count);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Key;
    use crate::node::job::Operation;

    fn job(number: u32, priority: u8, arrived: u64) -> Job {
        let key = Key::endpoint(0, priority, number);
        Job::of_own_accord(Operation::Get, key, arrived)
    }

    fn number(job: &Job) -> u32 {
        job.key.as_endpoint().unwrap().2
    }

    fn order(order: Order) -> Vec<u32> {
        let mut queue = Queue::new(QueueRules {
            order,
            ..QueueRules::default()
        });
        for (number, priority) in [(1, 0), (2, 3), (3, 0), (4, 3)] {
            assert!(queue.push(job(number, priority, 0)).is_none());
        }
        std::iter::from_fn(|| queue.pop(0).map(|(job, _)| number(&job))).collect()
    }

    #[test]
    fn the_order_is_that_of_coming_of_going_or_of_priority() {
        assert_eq!(order(Order::Fifo), [1, 2, 3, 4]);
        assert_eq!(order(Order::Lifo), [4, 3, 2, 1]);
        assert_eq!(order(Order::Priority), [2, 4, 1, 3]);
    }

    #[test]
    fn a_full_queue_refuses_the_newest_of_the_lowest_priority() {
        let mut queue = Queue::new(QueueRules {
            order: Order::Priority,
            size: 2,
            ..QueueRules::default()
        });
        assert!(queue.push(job(1, 1, 0)).is_none() && queue.push(job(2, 1, 0)).is_none());
        assert_eq!(queue.push(job(3, 1, 0)).map(|job| number(&job)), Some(3));
        assert_eq!(queue.push(job(4, 2, 0)).map(|job| number(&job)), Some(2));
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn who_has_waited_too_long_or_beyond_the_deadline_is_refused() {
        let mut queue = Queue::new(QueueRules {
            patience: 10,
            ..QueueRules::default()
        });
        let late = Job {
            deadline: 15,
            ..job(3, 0, 10)
        };
        for job in [job(1, 0, 0), job(2, 0, 6), late] {
            assert!(queue.push(job).is_none());
        }
        let refused: Vec<bool> = std::iter::from_fn(|| queue.pop(15).map(|(_, no)| no)).collect();
        assert_eq!(refused, [true, false, true]);
    }

    #[test]
    fn a_patience_ends_at_its_time_whatever_the_order() {
        let mut queue = Queue::new(QueueRules {
            order: Order::Priority,
            patience: 10,
            ..QueueRules::default()
        });
        assert_eq!(queue.next_timer(0), None);
        assert!(queue.push(job(1, 3, 2)).is_none());
        assert_eq!(queue.next_timer(2), Some(10));
        assert!(queue.push(job(2, 0, 4)).is_none() && queue.push(job(3, 3, 5)).is_none());
        assert_eq!(queue.next_timer(5), None, "there is a timer");
        assert!(queue.expire(11).is_none());
        let mut ended = |now| queue.expire(now).map(|job| number(&job));
        assert_eq!(
            [ended(12), ended(12), ended(14), ended(14)],
            [Some(1), None, Some(2), None]
        );
        assert_eq!((queue.next_timer(14), queue.len()), (Some(1), 1));
    }

    #[test]
    fn jobs_wait_by_the_rules_that_hold_now() {
        let mut queue = Queue::new(QueueRules {
            patience: 100,
            ..QueueRules::default()
        });
        for job in [job(1, 1, 0), job(2, 3, 6), job(3, 1, 8)] {
            assert!(queue.push(job).is_none());
        }
        assert_eq!(queue.next_timer(8), Some(92));
        (queue.rules.order, queue.rules.patience) = (Order::Priority, 10);
        queue.revise();
        assert_eq!((queue.next_timer(8), queue.len()), (Some(2), 3));
        assert_eq!(queue.pop(9).map(|(job, _)| number(&job)), Some(2));
        (queue.rules.order, queue.rules.size) = (Order::Fifo, 1);
        queue.revise();
        assert_eq!(queue.expire(10).map(|job| number(&job)), Some(1));
        assert_eq!(queue.pop(11).map(|(job, _)| number(&job)), Some(3));
    }

    #[test]
    fn controlled_delay_drops_ever_more_often_while_all_wait_too_long() {
        let mut delay = Delay::default();
        // Jobs leave every millisecond and have all waited 50 ms, with a target of 5 ms.
        let mut drops =
            |waited: u64, ms: u64| delay.drops(5_000, 100_000, waited * 1_000, false, ms * 1_000);
        let dropped: Vec<u64> = (0..400u64).filter(|&ms| drops(50, ms)).collect();
        assert_eq!(dropped, [100, 200, 271, 329, 379]);
        assert!(!drops(4, 401), "the wait is short again");
        assert!(!drops(50, 402));
    }
}
