//! The faults of a plan, on real programs.

use corsair::Random;
use corsair_host::{Disk, Fault, HostId, Sim};
use corsair_hunt::{Fault as Planned, FaultPlan, Nodes};
use std::time::Duration;

/// The milliseconds in which the cluster is formed. The times of a plan count from then on.
pub const SETUP: u32 = 3_000;
/// The least number of faults of a run.
pub const LEAST: usize = 5;
/// The interval in which the supervisor starts programs that have ended.
const SUPERVISOR: u32 = 500;

pub const fn ms(count: u32) -> Duration {
    Duration::from_millis(count as u64)
}

/// Returns a disk without faults.
pub fn healthy() -> Disk {
    Disk::new().capacity(1 << 30)
}

/// The maximum number of faults that happen one after the other.
const MOST_IN_TURN: usize = 8;

/// Draws a plan. TCP hides lost, repeated and late packets from programs, so a plan has no such faults.
///
/// In half of the plans the faults happen one after the other, so that a majority is always there and does what it must
/// not do; in the others they overlap. The time limits of programs are seconds, while those of actors are milliseconds,
/// so all lengths are drawn again.
pub fn draw(random: &mut Random, nodes: u32, time: u32) -> FaultPlan {
    loop {
        let mut plan = FaultPlan::draw(random, nodes, time, false);
        let more = FaultPlan::draw(random, nodes, time, false).faults;
        plan.faults.extend(more);
        plan.faults.retain(|fault| {
            !matches!(
                fault,
                Planned::Loss { .. }
                    | Planned::Duplicates { .. }
                    | Planned::Late { .. }
                    | Planned::Delay { .. }
            )
        });
        let most = plan.faults_until();
        match random.below(2) {
            0 => {
                plan.faults.truncate(MOST_IN_TURN);
                let turn = most / plan.faults.len().max(1) as u32;
                for (fault, from) in plan.faults.iter_mut().zip((0..).step_by(turn as usize)) {
                    place(fault, from, turn - turn / 4);
                }
            }
            _ => {
                for fault in &mut plan.faults {
                    let length = 1 + random.below(most / 4);
                    place(fault, random.below(most - length), length);
                }
            }
        }
        if plan.faults.len() >= LEAST {
            return plan;
        }
    }
}

/// Sets the interval of a fault.
fn place(fault: &mut Planned, start: u32, length: u32) {
    match fault {
        Planned::Partition {
            from, until, every, ..
        } => {
            (*from, *until) = (start, start + length);
            *every = every.map(|_| 1 + length / 4);
        }
        Planned::Pause { from, until, .. }
        | Planned::Slow { from, until, .. }
        | Planned::Skew { from, until, .. } => (*from, *until) = (start, start + length),
        Planned::Crash { at, down, .. } => (*at, *down) = (start, length),
        _ => {}
    }
}

/// Schedules the faults of a plan, and a supervisor that starts ended programs again.
pub fn schedule(sim: &mut Sim, nodes: &[HostId], plan: &FaultPlan) {
    let mut scheduler = Scheduler {
        random: Random::new(sim.seed() ^ 0x5eed),
        sim,
        nodes,
        down: Vec::new(),
    };
    for fault in &plan.faults {
        scheduler.add(fault, plan);
    }
    for absence in &plan.absent {
        if let Some(node) = nodes.get(absence.node as usize) {
            scheduler.at(absence.from, Fault::power_loss(node));
            scheduler.down.push((*node, absence.from, absence.until));
        }
    }
    scheduler.supervise(plan.time);
}

struct Scheduler<'a> {
    sim: &'a mut Sim,
    nodes: &'a [HostId],
    random: Random,
    /// The intervals in which nodes are off.
    down: Vec<(HostId, u32, u32)>,
}

impl Scheduler<'_> {
    fn at(&mut self, time: u32, fault: Fault) {
        self.sim.at(ms(SETUP + time), fault);
    }

    fn during(&mut self, from: u32, until: u32, [begin, end]: [Fault; 2]) {
        self.at(from, begin);
        self.at(until, end);
    }

    fn chosen(&self, set: Nodes) -> Vec<HostId> {
        let indices = set.iter();
        indices
            .filter_map(|index| self.nodes.get(index as usize).copied())
            .collect()
    }

    /// Schedules a fault of some nodes in an interval.
    fn each(&mut self, set: Nodes, from: u32, until: u32, faults: impl Fn(&HostId) -> [Fault; 2]) {
        for node in self.chosen(set) {
            self.during(from, until, faults(&node));
        }
    }

    fn add(&mut self, fault: &Planned, plan: &FaultPlan) {
        match *fault {
            Planned::Partition {
                side,
                others,
                one_way,
                ..
            } => {
                let inside = self.chosen(side);
                let mut outside = match others {
                    Some(others) => self.chosen(others),
                    None => self.nodes.to_vec(),
                };
                outside.retain(|node| !inside.contains(node));
                let cut = match one_way {
                    true => Fault::partition_one_way,
                    false => Fault::partition,
                };
                for span in fault.intervals() {
                    let faults = [cut(&inside, &outside), Fault::heal(&inside, &outside)];
                    self.during(span.start, span.end, faults);
                }
            }
            Planned::Crash {
                nodes, at, down, ..
            } => {
                for node in self.chosen(nodes) {
                    // In half of the crashes only the program ends.
                    let crash = match self.random.below(2) {
                        0 => Fault::kill(&node),
                        _ => Fault::power_loss(&node),
                    };
                    self.at(at, crash);
                    self.down.push((node, at, at + down));
                }
            }
            Planned::Pause { nodes, from, until } => {
                let faults = |node: &HostId| [Fault::pause(node), Fault::resume(node)];
                self.each(nodes, from, until, faults);
            }
            Planned::Slow {
                nodes,
                from,
                until,
                by,
            } => {
                let slow = healthy().sync_time(ms(1 + by));
                let faults =
                    |node: &HostId| [Fault::disk(node, slow), Fault::disk(node, healthy())];
                self.each(nodes, from, until, faults);
            }
            Planned::Skew {
                nodes,
                from,
                until,
                rate,
            } => {
                let step = Duration::from_secs(self.random.below(7_200).into());
                for node in self.chosen(nodes) {
                    let jump = match self.random.below(2) {
                        0 => Fault::clock_forward(&node, step),
                        _ => Fault::clock_back(&node, step),
                    };
                    self.at(from, jump);
                }
                let rate = (rate as i32 - 1_000) * 1_000;
                let faults =
                    |node: &HostId| [Fault::clock_rate(node, rate), Fault::clock_rate(node, 0)];
                self.each(nodes, from, until, faults);
            }
            Planned::Buggify => self.spoil_disks(plan.faults_until()),
            _ => {}
        }
    }

    /// Lets each disk be full or fail for a while.
    fn spoil_disks(&mut self, until: u32) {
        for node in self.nodes {
            let from = self.random.below(until);
            let bad = match self.random.below(3) {
                0 => healthy().capacity(0),
                1 => healthy().sync_errors(200),
                _ => healthy().write_errors(200),
            };
            let end = (from + 1 + self.random.below(2_000)).min(until);
            self.during(
                from,
                end,
                [Fault::disk(node, bad), Fault::disk(node, healthy())],
            );
        }
    }

    /// Starts nodes that are not off, again and again.
    fn supervise(&mut self, time: u32) {
        for node in self.nodes {
            for at in (0..=time).step_by(SUPERVISOR as usize) {
                let is_down = |(other, from, until): &(HostId, u32, u32)| {
                    other == node && (*from..*until).contains(&at)
                };
                if !self.down.iter().any(is_down) {
                    self.at(at, Fault::start(node));
                }
            }
        }
    }
}
