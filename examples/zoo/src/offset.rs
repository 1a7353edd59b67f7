//! A consumer that commits an offset before it has processed all earlier records.
//!
//! Reports: Kreps, Narkhede and Rao, "Kafka: a distributed messaging system for log processing",
//! NetDB 2011; Apache Kafka, `enable.auto.commit` (at most once).

use crate::prelude::*;
use std::collections::BTreeSet;

/// Node 0 has the log, and node 1 consumes it.
#[derive(Debug)]
pub struct Offset {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks for the record after this offset.
    Fetch(u64),
    /// A record of the log.
    Record(u64),
    /// Reports that everything up to this offset has been processed.
    Commit(u64),
}

/// The log or the consumer.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    offset: u64,
    /// Records that wait to be processed.
    waiting: BTreeSet<u64>,
}

const TICK: u16 = 0;
const PROCESS: u16 = 1;

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.offset = machine.disk.number("offset").unwrap_or(0);
        let processed = machine.disk.number("processed").unwrap_or(0);
        always!(
            cx,
            processed >= self.offset,
            "what is committed is processed"
        );
        sometimes!(cx, processed > 5, "records are processed");
        machine.timer(cx, 50, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let log = machine.nodes.get(0);
        match input {
            Input::Timer(PROCESS) => {
                if let Some(record) = self.waiting.pop_first() {
                    self.offset = self.offset.max(record);
                    machine.disk.write_number("processed", record);
                    machine.disk.sync();
                    machine.disk.write_number("offset", self.offset);
                    machine.disk.sync();
                    cx.send(log, Msg::Commit(self.offset));
                }
            }
            Input::Timer(_) => {
                machine.timer(cx, 50, TICK);
                if machine.index == 1 {
                    cx.send(log, Msg::Fetch(self.offset));
                }
            }
            Input::Message { from, body } => match body {
                Msg::Fetch(offset) => {
                    cx.send(from, Msg::Record(offset + 1));
                }
                Msg::Record(record) => {
                    if record == self.offset + 1 && self.waiting.insert(record) {
                        if self.bug {
                            self.offset = record;
                            machine.disk.write_number("offset", record);
                            machine.disk.sync();
                        }
                        machine.timer(cx, 3, PROCESS);
                    }
                }
                Msg::Commit(_) => {}
            },
        }
    }
}

program!(Offset "offset": 2 nodes, 3_000 ms, ());
