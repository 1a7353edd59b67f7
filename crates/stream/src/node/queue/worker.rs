//! The thread of a queue, which delivers bodies in order.

use super::Inner;
use super::body::{Body, Deliver, Delivery, Together, Undelivered};
use super::state::{Mode, State};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::time::{Duration, Instant};

/// The time without bodies after which the thread ends.
const IDLE: Duration = Duration::from_secs(5);
/// The longest pause before an unavailable receiver is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The shortest pause before an unavailable receiver is tried again.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);

impl Inner {
    /// Delivers bodies, until there has been nothing to deliver for some time.
    pub(super) fn run(&self) {
        let mut deliver = self.deliver.lock();
        let mut state = self.state.lock();
        while state.mode == Mode::Deliver {
            if state.bodies.is_empty() {
                state.load(self.limit, &self.name);
                self.drained.notify_waiters();
            }
            let bodies = self.next(&mut state);
            if bodies.is_empty() {
                let waited = self.filled.wait_for(&mut state, IDLE);
                if waited.timed_out() && state.is_empty() {
                    break;
                }
                continue;
            }
            let current = state.current.clone();
            drop(state);
            let delivered = self.deliver(&mut deliver, &current);
            state = self.state.lock();
            // In this mode, all that was not delivered is saved.
            let keep = state.mode == Mode::Keep;
            let kept = |delivery: Delivery| keep && delivery != Delivery::Delivered;
            let results = current.iter().zip(&delivered);
            let rest = results.filter(|(_, delivery)| kept(**delivery));
            state.current = rest.map(|(body, _)| body.clone()).collect();
            for ((body, sent), delivery) in bodies.into_iter().zip(current.iter()).zip(delivered) {
                if kept(delivery) {
                    continue;
                }
                state.bytes = state.bytes.saturating_sub(sent.text.len());
                match delivery {
                    Delivery::Delivered => body.counts.delivered.add(body.count),
                    _ => body.counts.failed.add(body.count),
                }
                drop(body.pending);
            }
            self.drained.notify_waiters();
        }
        state.running = false;
        drop(state);
        self.drained.notify_waiters();
    }

    /// Takes the next body, and the following bodies that the same delivery may contain. Their texts are in `current`.
    fn next(&self, state: &mut State) -> Vec<Body> {
        let mut bodies: Vec<Body> = Vec::new();
        let mut bytes = 0;
        while let Some(next) = state.bodies.front() {
            if let (Some(first), Some(last)) = (bodies.first(), bodies.last()) {
                let fits = |together: &Together| {
                    next.number == last.number + 1
                        && bytes + next.text.len() <= together.bytes
                        && (together.fit)(&first.text, &next.text)
                };
                if !self.together.as_ref().is_some_and(fits) {
                    break;
                }
            }
            bytes += next.text.len();
            bodies.extend(state.bodies.pop_front());
        }
        let texts = bodies.iter_mut().map(|body| Undelivered {
            number: body.number,
            text: std::mem::take(&mut body.text),
        });
        state.current = texts.collect();
        bodies
    }

    /// Delivers bodies together. If the receiver refuses them together, delivers each alone, because only one of them
    /// may be the reason.
    fn deliver(&self, deliver: &mut Deliver, bodies: &[Undelivered]) -> Vec<Delivery> {
        match self.attempt(deliver, bodies) {
            Delivery::Refused if bodies.len() > 1 => {
                let each = bodies.iter();
                each.map(|body| self.attempt(deliver, slice::from_ref(body)))
                    .collect()
            }
            delivered => vec![delivered; bodies.len()],
        }
    }

    /// Delivers bodies. With a disk buffer it waits until the receiver is available.
    fn attempt(&self, deliver: &mut Deliver, bodies: &[Undelivered]) -> Delivery {
        let over = || self.state.lock().mode != Mode::Deliver;
        let mut pause = SHORTEST_PAUSE;
        loop {
            let delivered = catch_unwind(AssertUnwindSafe(|| deliver(bodies, &over)));
            let delivered = delivered.unwrap_or(Delivery::Refused);
            if delivered != Delivery::Unavailable || !self.spills {
                return delivered;
            }
            let mut state = self.state.lock();
            let until = Instant::now() + pause;
            while state.mode == Mode::Deliver && Instant::now() < until {
                // Bodies that arrive wake it, too.
                self.filled.wait_until(&mut state, until);
            }
            if state.mode != Mode::Deliver {
                return delivered;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
