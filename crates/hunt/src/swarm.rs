//! The faults of a run, drawn from a seed.

use crate::{Fault, Nodes};
use corsair::Random;
use std::ops::Range;

/// Draws the faults of a run with random strengths (swarm testing: Groce et al., ISSTA 2012). In a quarter of
/// the runs the faults happen in turn; in the others they overlap.
pub(crate) fn draw(random: &mut Random, nodes: u32, until: u32, loses: bool) -> Vec<Fault> {
    let mut swarm = Swarm::new(random, nodes, until, loses);
    match swarm.random.below(4) {
        0 => swarm.in_turn(),
        _ => swarm.overlapping(),
    }
    swarm.faults
}

/// Draws faults that happen in turn, the first of them at the start of the interval. `before` is a side of the partition
/// before it.
pub(crate) fn in_turn(
    random: &mut Random,
    nodes: u32,
    during: Range<u32>,
    loses: bool,
    before: Option<Nodes>,
) -> Vec<Fault> {
    let mut swarm = Swarm::new(random, nodes, during.end, loses);
    swarm.side = before;
    swarm.turns(Some(during.start));
    swarm.faults
}

/// The maximum number of intervals in which faults happen in turn.
const MOST_TURNS: u32 = 64;

struct Swarm<'a> {
    random: &'a mut Random,
    nodes: u32,
    /// The time at which faults stop.
    until: u32,
    /// True if nodes may lose their disks.
    loses: bool,
    /// A side of the last partition, when faults happen in turn.
    side: Option<Nodes>,
    faults: Vec<Fault>,
}

impl<'a> Swarm<'a> {
    fn new(random: &'a mut Random, nodes: u32, until: u32, loses: bool) -> Swarm<'a> {
        Swarm {
            random,
            nodes,
            until,
            loses,
            side: None,
            faults: Vec::new(),
        }
    }

    /// Draws faults at random times.
    fn overlapping(&mut self) {
        let until = self.until;
        let times = Times::draw(self.random, until);
        // Few faults are as likely as many, because some bugs need a sequence of faults, and others need calm.
        let many = 1 << self.random.below(4);
        self.some(1, Swarm::loss);
        self.some(1, |swarm| {
            let share = 1 << swarm.random.below(9);
            Fault::Duplicates { share }
        });
        self.some(1, Swarm::late);
        self.some(many, |swarm| {
            let (from, until) = times.interval(swarm.random, until / 2);
            let period = (until - from).div_ceil(500).max(1 << swarm.random.below(9));
            let mut fault = swarm.partition(from, until, 3);
            if let Fault::Partition { every, .. } = &mut fault {
                *every = (swarm.random.below(4) == 0).then_some(period);
            }
            fault
        });
        self.some(many, |swarm| {
            let (at, until) = times.interval(swarm.random, until / 4);
            let nodes = match swarm.random.below(4) {
                0 => swarm.group(),
                _ => swarm.one(),
            };
            swarm.crash(nodes, at, until - at)
        });
        self.some(4, |swarm| {
            let (from, until) = times.interval(swarm.random, 256);
            swarm.delay(from, until)
        });
        self.some(2, |swarm| {
            let (from, until) = times.interval(swarm.random, 256);
            let nodes = swarm.one();
            Fault::Pause { nodes, from, until }
        });
        self.some(2, |swarm| {
            let (from, until) = times.interval(swarm.random, 256);
            Fault::Slow {
                nodes: swarm.one(),
                from,
                until,
                by: (1 << swarm.random.below(5)).min(until),
            }
        });
        self.some(2, |swarm| {
            let (from, until) = times.interval(swarm.random, 256);
            Fault::Skew {
                nodes: swarm.one(),
                from,
                until,
                rate: [250, 500, 2_000, 4_000][swarm.random.below(4) as usize],
            }
        });
        self.some(1, |_| Fault::Buggify);
    }

    /// Draws faults that happen one after the other, so that most nodes reach each other at any time: a new majority does
    /// what contradicts an earlier one.
    fn in_turn(&mut self) {
        for draw in [Swarm::loss, Swarm::late] {
            if self.random.below(4) == 0 {
                let fault = draw(self);
                self.faults.push(fault);
            }
        }
        self.turns(None);
    }

    /// Draws faults one after the other, from a time on.
    fn turns(&mut self, from: Option<u32>) {
        let until = self.until;
        let [crashes, delays, pauses, gaps] = [2, 4, 4, 2].map(|rare| self.random.below(rare) == 0);
        // Short intervals are as likely as long ones.
        let length = (until >> (1 + self.random.below(7))).max(2);
        let mut from = from.unwrap_or_else(|| self.random.below(length));
        for _ in 0..MOST_TURNS {
            let next = (from + length / 2 + self.random.below(length)).min(until);
            if from >= next {
                break;
            }
            if crashes && self.random.below(3) == 0 {
                let down = (next - from) >> self.random.below((next - from).ilog2() + 1);
                let nodes = self.one();
                let fault = self.crash(nodes, from, down.max(1));
                self.faults.push(fault);
            }
            let fault = match self.random.below(4) {
                0 if delays => self.delay(from, next),
                1 if pauses => Fault::Pause {
                    nodes: self.one(),
                    from,
                    until: next,
                },
                _ => self.next_partition(from, next),
            };
            self.faults.push(fault);
            from = next;
            if gaps {
                from += self.random.below(length);
            }
        }
    }

    /// Adds up to `most` faults of one kind. Each kind is enabled in half of the runs.
    fn some(&mut self, most: u32, draw: impl Fn(&mut Self) -> Fault) {
        if self.random.below(2) == 0 {
            for _ in 0..=self.random.below(most) {
                let fault = draw(self);
                self.faults.push(fault);
            }
        }
    }

    fn loss(&mut self) -> Fault {
        let share = 1 << self.random.below(9);
        Fault::Loss { share }
    }

    fn late(&mut self) -> Fault {
        Fault::Late {
            share: 1 << self.random.below(10),
            by: (1 << self.random.below(11)).min(self.until),
        }
    }

    /// Draws a partition. One of `ways` loses messages in one direction only, and one of four is partial: some nodes reach
    /// both sides (Alquraan et al., OSDI 2018).
    fn partition(&mut self, from: u32, until: u32, ways: u32) -> Fault {
        Fault::Partition {
            from,
            until,
            side: self.group(),
            others: (self.random.below(4) == 0).then(|| self.group()),
            one_way: self.random.below(ways) == 0,
            every: None,
        }
    }

    /// Draws a partition after another one. In half of the cases one node changes its side: then the old majority and the
    /// new one have nodes in common.
    fn next_partition(&mut self, from: u32, until: u32) -> Fault {
        let mut fault = self.partition(from, until, 8);
        if let Fault::Partition { side, others, .. } = &mut fault {
            if let Some(last) = self.side
                && self.random.below(2) == 0
            {
                (*side, *others) = (last.differing_in(self.one()), None);
            }
            self.side = Some(*side);
        }
        fault
    }

    fn crash(&mut self, nodes: Nodes, at: u32, down: u32) -> Fault {
        Fault::Crash {
            nodes,
            at,
            down,
            loses_disk: self.loses && self.random.below(4) == 0,
        }
    }

    fn delay(&mut self, from: u32, until: u32) -> Fault {
        Fault::Delay {
            nodes: self.one(),
            from,
            until,
            by: (1 << self.random.below(9)).min(self.until),
        }
    }

    fn group(&mut self) -> Nodes {
        match self.random.below(2) {
            0 => self.one(),
            _ => Nodes::from_bits(self.random.bits() & ((1 << self.nodes.min(63)) - 1)),
        }
    }

    fn one(&mut self) -> Nodes {
        Nodes::from_bits(1 << self.random.below(self.nodes.clamp(1, 63)))
    }
}

/// The times at which the faults of a run begin: anywhere in the run, or close together, because some bugs need faults
/// that meet.
struct Times {
    from: u32,
    length: u32,
    until: u32,
}

impl Times {
    fn draw(random: &mut Random, until: u32) -> Times {
        let length = match random.below(2) {
            0 => (until >> (1 + random.below(4))).max(1),
            _ => until,
        };
        let from = random.below(until - length + 1);
        Times {
            from,
            length,
            until,
        }
    }

    /// Draws an interval of at most this length. Short intervals are as likely as long ones.
    fn interval(&self, random: &mut Random, most: u32) -> (u32, u32) {
        let from = self.from + random.below(self.length);
        let most = most >> random.below(most.max(1).ilog2() + 1);
        let length = 1 + random.below(most.max(1));
        (from, (from + length).min(self.until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_half_of_the_partitions_in_turn_one_node_changes_its_side() {
        let (mut near, mut all) = (0, 0);
        for seed in 0..500 {
            let before = Nodes::from_bits(0b101);
            let faults = in_turn(&mut Random::new(seed), 8, 100..1_000, false, Some(before));
            let sides = faults.iter().filter_map(|fault| match fault {
                Fault::Partition { side, .. } => Some(*side),
                _ => None,
            });
            let mut last = before;
            for side in sides {
                near += u32::from(side.differing_in(last).iter().count() == 1);
                all += 1;
                last = side;
            }
        }
        // By chance, some of the others differ in one node, too.
        assert!(
            all > 1_000 && near > all / 2 && near < all * 2 / 3,
            "{near} of {all}"
        );
    }
}
