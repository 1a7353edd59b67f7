//! A group of consumers whose coordinator accepts an offset from a consumer that has lost the partition.
//!
//! Reports: Apache Kafka, KAFKA-2978 and the generations of groups; Jepsen, "Redpanda 21.10.1", 2022.

use crate::prelude::*;

/// Node 0 coordinates, nodes 1 and 2 consume one partition in turn.
#[derive(Debug)]
pub struct Rebalance {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Notifies the coordinator that the consumer is alive.
    Alive,
    /// Assigns the partition to the receiver, in this generation and from this offset on.
    Assigned(u64, u64),
    /// Reports that everything up to this offset has been consumed, in this generation.
    Commit(u64, u64),
}

/// The coordinator or a consumer.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    generation: u64,
    offset: u64,
    owner: u32,
    /// For the coordinator: the number of steps since the last message of the owner.
    silent: u32,
}

const TICK: u16 = 0;

impl Peer {
    fn save(&self, machine: &mut Machine) {
        machine.disk.write_number("generation", self.generation);
        machine.disk.write_number("offset", self.offset);
        machine.disk.write_number("owner", self.owner.into());
        machine.disk.sync();
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        if machine.index == 0 {
            self.generation = machine.disk.number("generation").unwrap_or(1);
            self.offset = machine.disk.number("offset").unwrap_or(0);
            self.owner = machine.disk.number("owner").unwrap_or(1) as u32;
        }
        machine.timer(cx, 30, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let coordinator = machine.nodes.get(0);
        match input {
            Input::Timer(_) => {
                machine.timer(cx, 30, TICK);
                if machine.index > 0 {
                    cx.send(coordinator, Msg::Alive);
                    if self.generation > 0 {
                        self.offset += 1;
                        if self.offset.is_multiple_of(4) {
                            cx.send(coordinator, Msg::Commit(self.generation, self.offset));
                        }
                    }
                    return;
                }
                self.silent += 1;
                if self.silent > 6 {
                    (self.generation, self.owner) = (self.generation + 1, 3 - self.owner);
                    self.silent = 0;
                    self.save(machine);
                    sometimes!(cx, true, "the partition changes hands");
                }
                let assigned = Msg::Assigned(self.generation, self.offset);
                cx.send(machine.nodes.get(self.owner), assigned);
            }
            Input::Message { from, body } => match body {
                Msg::Alive => {
                    if from == machine.nodes.get(self.owner) {
                        self.silent = 0;
                    }
                }
                Msg::Assigned(generation, offset) => {
                    if generation > self.generation {
                        (self.generation, self.offset) = (generation, offset);
                    }
                }
                Msg::Commit(generation, offset) => {
                    let is_current = generation == self.generation && offset > self.offset;
                    // The bug: only offsets of the current generation are compared, and offsets of another generation
                    // are accepted.
                    let is_other = generation != self.generation && self.bug;
                    if is_current || is_other {
                        always!(cx, offset >= self.offset, "offsets do not go back");
                        self.offset = offset;
                        self.save(machine);
                    }
                }
            },
        }
    }

    fn state(&self) -> u64 {
        self.silent.min(7).into()
    }
}

program!(Rebalance "rebalance": 3 nodes, 4_000 ms, ());
