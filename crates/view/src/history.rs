//! Earlier states of a run, stored in bounded memory for viewers who look back.

use crate::frame::Frame;

/// The maximum number of states, and the maximum number of bytes of all states together.
const MOST: usize = 400;
const MOST_BYTES: usize = 64 << 20;

/// Earlier states of a run, oldest first. If there would be too many, every second state is dropped.
#[derive(Debug, Default)]
pub(crate) struct History {
    past: Vec<Frame>,
    /// The shortest time between two states in seconds.
    least: f64,
}

impl History {
    /// Adds a state, unless it is too close to the last one.
    pub(crate) fn add(&mut self, frame: &Frame) {
        let is_near = |last: &Frame| frame.now - last.now < self.least || frame.now <= last.now;
        if self.past.last().is_some_and(is_near) {
            return;
        }
        self.past.push(frame.clone());
        let most = MOST.min(MOST_BYTES / frame.bytes().max(1)).max(2);
        if self.past.len() > most {
            let mut keep = [true, false].into_iter().cycle();
            self.past.retain(|_| keep.next() == Some(true));
            let span = frame.now - self.past[0].now;
            self.least = self.least.max(span / most as f64 * 2.0);
        }
    }

    /// Returns the last state at or before a time, or the first state if all are later.
    pub(crate) fn at(&self, time: f64) -> Option<&Frame> {
        let after = self.past.partition_point(|frame| frame.now <= time);
        self.past.get(after.saturating_sub(1))
    }

    /// Drops the states after a time.
    pub(crate) fn truncate(&mut self, time: f64) {
        self.past.retain(|frame| frame.now <= time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeState, Sample};

    #[test]
    fn the_past_is_bounded_and_covers_all_of_the_run() {
        let (mut history, mut frame) = (History::default(), Frame::default());
        assert!(history.at(1.0).is_none());
        for n in 0..5_000u16 {
            frame.next(Sample {
                nodes: vec![NodeState {
                    queue: n.into(),
                    ..NodeState::default()
                }],
                ..Sample::default()
            });
            frame.now = f64::from(n);
            history.add(&frame);
        }
        let count = history.past.len();
        assert!((MOST / 2..=MOST).contains(&count), "{count}");
        for time in [0.0, 777.0, 4_000.0] {
            let found = history.at(time).unwrap().now;
            assert!(found <= time && time - found < 40.0, "{found} for {time}");
        }
        history.truncate(100.0);
        assert!(history.at(4_000.0).unwrap().now <= 100.0);
    }
}
