//! A primary that acknowledges writes before its replica has them, and a monitor that promotes the
//! replica.
//!
//! Reports: Jepsen, "Redis", 2013 (Sentinel); GitHub, "October 21 post-incident analysis", 2018.

use crate::prelude::*;

/// Node 0 is the monitor, nodes 1 and 2 are primary and replica, and node 3 is the client.
#[derive(Debug)]
pub struct Failover {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Announces that this node is the primary in this epoch.
    Primary(u64, u32),
    /// Notifies the monitor that the node is alive.
    Alive,
    /// Writes a number from 0 to 63.
    Write(u32),
    /// Confirms that the number is written.
    Written(u32),
    /// The numbers of the primary of an epoch, as a bit set.
    Copy(u64, u64),
    /// Confirms that the replica has these numbers.
    Copied(u64, u64),
    /// Sent to the observer: the acknowledged number, or the numbers of the primary of an epoch.
    Acknowledged(u64),
    Has(u64, u64),
}

/// One of the nodes.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    epoch: u64,
    primary: u32,
    numbers: u64,
    /// For the monitor: the number of steps since the last message of the primary. For the client:
    /// the next number.
    count: u32,
    acknowledged: u64,
}

const TICK: u16 = 0;

impl Peer {
    fn save(&self, machine: &mut Machine) {
        machine.disk.write_number("epoch", self.epoch);
        machine.disk.write_number("primary", self.primary.into());
        machine.disk.write_number("numbers", self.numbers);
        machine.disk.sync();
    }

    fn other(machine: &Machine) -> Addr {
        machine.nodes.get(3 - machine.index)
    }

    fn tick<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        machine.timer(cx, 40, TICK);
        let parent = cx.parent();
        match machine.index {
            0 => {
                self.count += 1;
                if self.count > 6 {
                    (self.epoch, self.primary, self.count) = (self.epoch + 1, 3 - self.primary, 0);
                    self.save(machine);
                    sometimes!(cx, true, "the replica is promoted");
                }
                for index in 1..3 {
                    let message = Msg::Primary(self.epoch, self.primary);
                    cx.send(machine.nodes.get(index), message);
                }
            }
            3 => {
                // The client stops early, so that its last numbers can be reported before the run
                // ends.
                if self.count < 50 && now(cx) < 2_400 {
                    self.count += 1;
                    machine.disk.write_number("count", self.count.into());
                    machine.disk.sync();
                }
                for index in 1..3 {
                    cx.send(machine.nodes.get(index), Msg::Write(self.count));
                }
                cx.send(parent, Msg::Acknowledged(self.acknowledged));
            }
            _ => {
                cx.send(machine.nodes.get(0), Msg::Alive);
                if self.primary == machine.index {
                    cx.send(Peer::other(machine), Msg::Copy(self.epoch, self.numbers));
                    cx.send(parent, Msg::Has(self.epoch, self.numbers));
                }
            }
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.epoch = machine.disk.number("epoch").unwrap_or(1);
        self.primary = machine.disk.number("primary").unwrap_or(1) as u32;
        self.numbers = machine.disk.number("numbers").unwrap_or(0);
        self.count = machine.disk.number("count").unwrap_or(0) as u32;
        machine.timer(cx, 40, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let (from, body) = match input {
            Input::Timer(_) => return self.tick(cx, machine),
            Input::Message { from, body } => (from, body),
        };
        match body {
            Msg::Primary(epoch, primary) => {
                if epoch > self.epoch {
                    (self.epoch, self.primary) = (epoch, primary);
                    self.save(machine);
                }
            }
            Msg::Alive => {
                if from == machine.nodes.get(self.primary) {
                    self.count = 0;
                }
            }
            Msg::Write(number) => {
                if self.primary == machine.index {
                    self.numbers |= 1 << number;
                    self.save(machine);
                    cx.send(Peer::other(machine), Msg::Copy(self.epoch, self.numbers));
                    if self.bug {
                        cx.send(machine.nodes.get(3), Msg::Written(number));
                    }
                }
            }
            Msg::Copy(epoch, numbers) => {
                let is_replica = self.primary != machine.index;
                if epoch > self.epoch || epoch == self.epoch && is_replica {
                    if epoch > self.epoch || machine.disk.number("copied") != Some(epoch) {
                        // The first copy of an epoch replaces numbers that were never acknowledged.
                        (self.epoch, self.primary) = (epoch, 3 - machine.index);
                        self.numbers = 0;
                        machine.disk.write_number("copied", epoch);
                    }
                    self.numbers |= numbers;
                    self.save(machine);
                    cx.send(from, Msg::Copied(epoch, numbers));
                }
            }
            Msg::Copied(epoch, numbers) => {
                if epoch == self.epoch && self.primary == machine.index && !self.bug {
                    for number in (0..64).filter(|number| numbers >> number & 1 == 1) {
                        cx.send(machine.nodes.get(3), Msg::Written(number));
                    }
                }
            }
            Msg::Written(number) => self.acknowledged |= 1 << number,
            Msg::Acknowledged(_) | Msg::Has(..) => {}
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.primary) | u64::from(self.count.min(7)) << 2 | (self.epoch & 3) << 5
    }
}

/// The acknowledged numbers, and the numbers of the last primary.
#[derive(Debug, Default)]
pub struct Numbers {
    acknowledged: u64,
    epoch: u64,
    has: u64,
}

impl Observer<Msg> for Numbers {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, _: &mut C) {
        match body {
            Msg::Acknowledged(numbers) => self.acknowledged |= numbers,
            Msg::Has(epoch, numbers) if epoch > self.epoch => {
                (self.epoch, self.has) = (epoch, numbers);
            }
            Msg::Has(epoch, numbers) if epoch == self.epoch => self.has |= numbers,
            _ => {}
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        always!(
            cx,
            self.acknowledged & !self.has == 0,
            "the primary has what was acknowledged"
        );
    }
}

program!(Failover "failover": 4 nodes, 3_000 ms, Numbers);
