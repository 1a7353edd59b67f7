//! A low-priority task that holds a lock while a medium-priority task keeps it from running, so
//! that a high-priority task waits.
//!
//! Reports: Sha, Rajkumar and Lehoczky, "Priority inheritance protocols", IEEE Transactions on
//! Computers, 1990; Jones, "What really happened on Mars?", 1997.

use crate::prelude::*;

/// Node 0 is a computer with one processor; node 1 is a radio that sends the stored records.
#[derive(Debug)]
pub struct Priority {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Records up to the first number, from the second number on.
    Data(u64, u64),
    /// Confirms that the records up to this one have arrived.
    Arrived(u64),
}

/// The computer or the radio.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    step: u64,
    /// For the computer: the remaining steps of each task.
    low: u32,
    middle: u32,
    high: u32,
    /// True if the low-priority task holds the bus.
    holds: bool,
    /// The time for which the high-priority task has been waiting.
    waits: u32,
    records: u64,
}

const TICK: u16 = 0;

impl Peer {
    /// Runs the tasks for two milliseconds of processor time.
    fn run<C: Context<Msg>>(&mut self, cx: &mut C) {
        if self.step.is_multiple_of(25) {
            self.high = 1;
        }
        if self.step % 100 == 40 {
            self.low = 2;
        }
        let is_blocked = self.high > 0 && self.holds;
        self.waits = if self.high > 0 { self.waits + 1 } else { 0 };
        always!(cx, self.waits < 50, "the watchdog is served");
        sometimes!(cx, is_blocked, "the bus is taken when it is needed");
        // With inheritance, the task that holds the bus gets the priority of the task that waits
        // for the bus.
        if self.high > 0 && !is_blocked {
            self.high -= 1;
        } else if is_blocked && !self.bug || self.middle == 0 {
            if self.low > 0 {
                self.low -= 1;
                self.holds = self.low > 0;
            }
        } else {
            self.middle -= 1;
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.records = machine.disk.number("records").unwrap_or(0);
        let wait = 1 + cx.below(40);
        machine.timer(cx, wait, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(_) => {
                self.step += 1;
                if machine.index == 0 {
                    self.run(cx);
                    machine.timer(cx, 2, TICK);
                } else {
                    let last = now(cx) / 4;
                    cx.send(machine.nodes.get(0), Msg::Data(self.records, last));
                    machine.timer(cx, 40, TICK);
                }
            }
            Input::Message {
                from,
                body: Msg::Data(first, last),
            } => {
                let new = last.saturating_sub(first.max(self.records));
                self.middle += new as u32;
                self.records = self.records.max(last);
                machine.disk.write_number("records", self.records);
                machine.disk.sync();
                cx.send(from, Msg::Arrived(self.records));
            }
            Input::Message {
                body: Msg::Arrived(last),
                ..
            } => {
                self.records = self.records.max(last);
                machine.disk.write_number("records", self.records);
                machine.disk.sync();
            }
        }
    }

    fn state(&self) -> u64 {
        let waits = u64::from(self.waits / 8);
        u64::from(self.holds) | u64::from(self.middle / 16).min(7) << 1 | waits << 4
    }
}

program!(Priority "priority": 2 nodes, 3_000 ms, ());
