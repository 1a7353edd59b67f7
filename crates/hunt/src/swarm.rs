//! The faults of a run, drawn from a seed.

use crate::{Fault, Nodes};
use corsair::Random;

/// Draws the faults of a run with random strengths (swarm testing: Groce et al., ISSTA 2012).
pub(crate) fn draw(random: &mut Random, nodes: u32, until: u32, loses: bool) -> Vec<Fault> {
    let times = &Times::draw(random, until);
    let mut all = Vec::new();
    // Few faults are as likely as many, because some bugs need a sequence of faults, and others need calm.
    let many = 1 << random.below(4);
    // Each kind is enabled in half of the runs.
    let mut some = |random: &mut Random, most: u32, draw: &dyn Fn(&mut Random) -> Fault| {
        if random.below(2) == 0 {
            for _ in 0..=random.below(most) {
                all.push(draw(random));
            }
        }
    };
    some(random, 1, &|random| Fault::Loss {
        share: 1 << random.below(9),
    });
    some(random, 1, &|random| Fault::Duplicates {
        share: 1 << random.below(9),
    });
    some(random, 1, &|random| Fault::Late {
        share: 1 << random.below(10),
        by: (1 << random.below(11)).min(until),
    });
    some(random, many, &|random| {
        let (from, until) = times.interval(random, until / 2);
        let period = (until - from).div_ceil(500).max(1 << random.below(9));
        Fault::Partition {
            from,
            until,
            side: group(random, nodes),
            one_way: random.below(3) == 0,
            every: (random.below(4) == 0).then_some(period),
        }
    });
    some(random, many, &|random| {
        let (at, until) = times.interval(random, until / 4);
        Fault::Crash {
            nodes: match random.below(4) {
                0 => group(random, nodes),
                _ => one(random, nodes),
            },
            at,
            down: until - at,
            loses_disk: loses && random.below(4) == 0,
        }
    });
    some(random, 4, &|random| {
        let (from, until) = times.interval(random, 256);
        Fault::Delay {
            nodes: one(random, nodes),
            from,
            until,
            by: (1 << random.below(9)).min(until),
        }
    });
    some(random, 2, &|random| {
        let (from, until) = times.interval(random, 256);
        let nodes = one(random, nodes);
        Fault::Pause { nodes, from, until }
    });
    some(random, 2, &|random| {
        let (from, until) = times.interval(random, 256);
        Fault::Slow {
            nodes: one(random, nodes),
            from,
            until,
            by: (1 << random.below(5)).min(until),
        }
    });
    some(random, 2, &|random| {
        let (from, until) = times.interval(random, 256);
        Fault::Skew {
            nodes: one(random, nodes),
            from,
            until,
            rate: [250, 500, 2_000, 4_000][random.below(4) as usize],
        }
    });
    some(random, 1, &|_| Fault::Buggify);
    all
}

fn group(random: &mut Random, nodes: u32) -> Nodes {
    match random.below(2) {
        0 => one(random, nodes),
        _ => Nodes::from_bits(random.bits() & ((1 << nodes.min(63)) - 1)),
    }
}

fn one(random: &mut Random, nodes: u32) -> Nodes {
    Nodes::from_bits(1 << random.below(nodes.clamp(1, 63)))
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
