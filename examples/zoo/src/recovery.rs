//! Replicas without disks that recover from a majority of the others, and forget a message that they have acknowledged
//! and that is still on its way to those others.
//!
//! Report: Michael, Ports, Sharma and Szekeres, "Recovering shared objects without stable storage",
//! DISC 2017 (the same flaw in three published protocols).

use crate::prelude::*;

/// Nodes 0 to 2 are replicas; node 3 writes and reads.
#[derive(Debug)]
pub struct Recovery {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Writes a number.
    Write(u64),
    /// Confirms that the number is stored on this replica.
    Wrote(u64),
    /// Reads; the number identifies the request.
    Read(u64),
    /// Returns the largest number that is stored on this replica.
    Is(u64, u64),
    /// Asks for the state; the number identifies the request.
    Recover(u64),
    /// Returns the replica's state.
    State(u64, u64),
}

/// A replica or the client.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    value: u64,
    /// For a recovering replica: its request, and the replicas that have answered it.
    question: u64,
    answers: u64,
    /// For the client: the number in progress, the replicas that have stored it, and the largest number that
    /// a majority has stored.
    number: u64,
    stored: u64,
    acknowledged: u64,
    /// For the client: its read, the number acknowledged before the read, the replicas that have answered, and the
    /// largest number among the answers.
    read: u64,
    floor: u64,
    seen: u64,
    largest: u64,
}

const TICK: u16 = 0;

impl Peer {
    fn send_replicas<C: Context<Msg>>(cx: &mut C, machine: &Machine, message: &Msg) {
        for index in (0..3).filter(|index| *index != machine.index) {
            cx.send(machine.nodes.get(index), message.clone());
        }
    }

    fn tick<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        machine.timer(cx, 30, TICK);
        if machine.index < 3 {
            if self.question > 0 {
                Peer::send_replicas(cx, machine, &Msg::Recover(self.question));
            }
            return;
        }
        if self.stored.count_ones() >= 2 || self.number == 0 {
            (self.number, self.stored) = (self.number + 1, 0);
            machine.disk.write_number("number", self.number);
            machine.disk.sync();
        }
        Peer::send_replicas(cx, machine, &Msg::Write(self.number));
        self.read = cx.random() >> 1;
        (self.floor, self.seen, self.largest) = (self.acknowledged, 0, 0);
        Peer::send_replicas(cx, machine, &Msg::Read(self.read));
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        machine.timer(cx, 30, TICK);
        // The client abandons a number that was in progress before a crash.
        self.number = machine.disk.number("number").map_or(0, |number| number + 1);
        self.value = machine.disk.number("value").unwrap_or(0);
        // The time does not tell, because nodes start some milliseconds after the run.
        let is_restart = machine.disk.number("started").is_some();
        machine.disk.write_number("started", 1);
        machine.disk.sync();
        if self.bug && machine.index < 3 && is_restart {
            self.question = cx.random() >> 1 | 1;
            Peer::send_replicas(cx, machine, &Msg::Recover(self.question));
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let (from, body) = match input {
            Input::Timer(_) => return self.tick(cx, machine),
            Input::Message { from, body } => (from, body),
        };
        let sender = 1 << machine.nodes.index_of(from).unwrap_or(0);
        match body {
            Msg::State(question, value) => {
                if question == self.question && question > 0 {
                    self.answers |= sender;
                    self.value = self.value.max(value);
                    if self.answers.count_ones() == 2 {
                        self.question = 0;
                        sometimes!(cx, true, "a replica has recovered");
                    }
                }
            }
            Msg::Wrote(number) => {
                if number == self.number {
                    self.stored |= sender;
                    if self.stored.count_ones() >= 2 {
                        self.acknowledged = number;
                    }
                }
            }
            Msg::Is(read, value) => {
                if read == self.read && self.seen.count_ones() < 2 {
                    self.seen |= sender;
                    self.largest = self.largest.max(value);
                    if self.seen.count_ones() == 2 {
                        let is_fresh = self.largest >= self.floor;
                        always!(cx, is_fresh, "a majority knows what was acknowledged");
                    }
                }
            }
            // A recovering replica does not answer requests.
            _ if self.question > 0 => {}
            Msg::Write(number) => {
                self.value = self.value.max(number);
                if !self.bug {
                    machine.disk.write_number("value", self.value);
                    machine.disk.sync();
                }
                cx.send(from, Msg::Wrote(number));
            }
            Msg::Read(read) => {
                cx.send(from, Msg::Is(read, self.value));
            }
            Msg::Recover(question) => {
                cx.send(from, Msg::State(question, self.value));
            }
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.question > 0)
            | u64::from(self.answers.count_ones()) << 1
            | u64::from(self.stored.count_ones()) << 3
    }
}

program!(Recovery "recovery": 4 nodes, 3_000 ms, ());
