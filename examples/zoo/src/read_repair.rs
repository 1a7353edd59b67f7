//! A register on a majority of replicas whose reads are not written back, so that a later read can
//! return an older value.
//!
//! Reports: Attiya, Bar-Noy and Dolev, "Sharing memory robustly in message-passing systems", JACM
//! 1995 (why reads have to write); Cassandra's read repair, CASSANDRA-10726.

use crate::prelude::*;

/// Nodes 0 to 2 are replicas, node 3 writes, and node 4 reads.
#[derive(Debug)]
pub struct ReadRepair {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Writes a value, for this read or write.
    Write(u64, u64),
    /// Confirms that the value is written.
    Wrote(u64),
    /// Requests the value for this read.
    Read(u64),
    /// Returns the value that was read.
    Is(u64, u64),
}

/// A replica, the writer or the reader.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    value: u64,
    /// For the reader: the current read, the replicas that have answered it, and the replicas that
    /// have stored its value.
    read: u64,
    answers: u64,
    stored: u64,
    age: u32,
    last: u64,
}

const TICK: u16 = 0;

impl Peer {
    fn tick<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        machine.timer(cx, 20, TICK);
        if machine.index == 3 {
            // Values are written rarely, at random times.
            if cx.below(8) > 0 {
                return;
            }
            self.value += 1;
            machine.disk.write_number("value", self.value);
            machine.disk.sync();
            self.send_replicas(cx, machine, &Msg::Write(self.value, 0));
            return;
        }
        self.age += 1;
        if self.read == 0 || self.age > 10 {
            self.read = cx.random() >> 1 | 1;
            (self.answers, self.stored, self.age, self.value) = (0, 0, 0, 0);
            self.send_replicas(cx, machine, &Msg::Read(self.read));
        }
    }

    fn send_replicas<C: Context<Msg>>(&self, cx: &mut C, machine: &Machine, message: &Msg) {
        for index in 0..3 {
            cx.send(machine.nodes.get(index), message.clone());
        }
    }

    fn finish<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        always!(cx, self.value >= self.last, "reads do not go back");
        sometimes!(cx, self.value > self.last, "a new value is read");
        (self.read, self.last) = (0, self.value);
        machine.disk.write_number("last", self.last);
        machine.disk.sync();
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.value = machine.disk.number("value").unwrap_or(0);
        self.last = machine.disk.number("last").unwrap_or(0);
        if machine.index >= 3 {
            machine.timer(cx, 20, TICK);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let (from, body) = match input {
            Input::Timer(_) => return self.tick(cx, machine),
            Input::Message { from, body } => (from, body),
        };
        let sender = 1 << machine.nodes.index_of(from).unwrap_or(0);
        match body {
            Msg::Write(value, read) => {
                if value > self.value {
                    self.value = value;
                    machine.disk.write_number("value", value);
                    machine.disk.sync();
                }
                cx.send(from, Msg::Wrote(read));
            }
            Msg::Read(read) => {
                cx.send(from, Msg::Is(read, self.value));
            }
            Msg::Is(read, value) if read == self.read && self.answers.count_ones() < 2 => {
                self.answers |= sender;
                self.value = self.value.max(value);
                if self.answers.count_ones() == 2 {
                    if self.bug {
                        self.finish(cx, machine);
                    } else {
                        self.send_replicas(cx, machine, &Msg::Write(self.value, read));
                    }
                }
            }
            Msg::Wrote(read) if read == self.read && read > 0 => {
                self.stored |= sender;
                if self.stored.count_ones() == 2 {
                    self.finish(cx, machine);
                }
            }
            Msg::Is(..) | Msg::Wrote(_) => {}
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.answers.count_ones()) | u64::from(self.value > self.last) << 4
    }
}

program!(ReadRepair "read_repair": 5 nodes, 4_000 ms, ());
