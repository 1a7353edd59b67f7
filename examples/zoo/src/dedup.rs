//! A consumer that remembers only the last sequence numbers that it has seen, and accepts a copy of an older message as
//! new.
//!
//! Reports: Apache Kafka, KIP-98, 2017 (sequence numbers of producers, the last five batches);
//! Amazon SQS, "Exactly-once processing" (a window of five minutes).

use crate::prelude::*;
use std::collections::VecDeque;

/// Node 0 consumes, nodes 1 and 2 produce.
#[derive(Debug)]
pub struct Dedup {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// A record with its number for this sender.
    Record(u64),
    /// The record was taken.
    Taken(u64),
}

/// The consumer or a producer.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    window: VecDeque<u64>,
    last: [u64; 3],
    next: u64,
}

const TICK: u16 = 0;
const WINDOW: usize = 12;

impl Peer {
    fn is_new(&self, producer: u32, number: u64) -> bool {
        match self.bug {
            true => !self.window.contains(&(number * 4 + u64::from(producer))),
            false => number > self.last[producer as usize],
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.next = machine.disk.number("next").unwrap_or(1);
        let records = machine.disk.records("taken");
        for record in records.filter_map(|record| record.try_into().ok()) {
            let number = u64::from_le_bytes(record);
            self.last[(number % 4) as usize] = number / 4;
            self.window.push_back(number);
        }
        while self.window.len() > WINDOW {
            self.window.pop_front();
        }
        if machine.index > 0 {
            machine.timer(cx, 40, TICK);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(_) => {
                cx.send(machine.nodes.get(0), Msg::Record(self.next));
                machine.timer(cx, 40, TICK);
            }
            Input::Message {
                from,
                body: Msg::Record(number),
            } => {
                let producer = machine.nodes.index_of(from).unwrap_or(0);
                if self.is_new(producer, number) {
                    let own = &mut self.last[producer as usize];
                    always!(cx, number > *own, "a record is taken once");
                    sometimes!(cx, number > 5, "records are taken");
                    *own = number.max(*own);
                    let both = number * 4 + u64::from(producer);
                    self.window.push_back(both);
                    if self.window.len() > WINDOW {
                        self.window.pop_front();
                    }
                    machine.disk.append("taken", &both.to_le_bytes());
                    machine.disk.sync();
                }
                cx.send(from, Msg::Taken(number));
            }
            Input::Message {
                body: Msg::Taken(number),
                ..
            } => {
                if number == self.next {
                    self.next += 1;
                    machine.disk.write_number("next", self.next);
                    machine.disk.sync();
                }
            }
        }
    }
}

program!(Dedup "dedup": 3 nodes, 3_000 ms, ());
