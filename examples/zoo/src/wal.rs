//! A server that acknowledges writes before its write-ahead log is durable.
//!
//! Reports: "PostgreSQL's fsync() surprise", LWN, 2018; Rebello et al., "Can applications recover
//! from fsync failures?", USENIX ATC 2020.

use crate::prelude::*;

/// Node 0 is the server, node 1 the client.
#[derive(Debug)]
pub struct Wal {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Writes a number.
    Write(u64),
    /// The number is written.
    Written(u64),
    /// Asks for the stored number. The field is the number that was acknowledged last.
    Read(u64),
    /// Returns the number, and the number that was in the read request.
    Value(u64, u64),
}

/// The server or the client.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    value: u64,
    /// For the client: the number that it has written last.
    next: u64,
    acknowledged: u64,
}

const TICK: u16 = 0;

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.value = machine.disk.number("log").unwrap_or(0);
        if machine.index == 1 {
            // The client's own numbers are durable, whatever the server does.
            self.next = machine.disk.number("sent").unwrap_or(0);
            self.acknowledged = machine.disk.number("acknowledged").unwrap_or(0);
            machine.timer(cx, 20, TICK);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let server = machine.nodes.get(0);
        match input {
            Input::Timer(_) => {
                if cx.below(2) == 0 {
                    self.next += 1;
                    machine.disk.write_number("sent", self.next);
                    machine.disk.sync();
                    cx.send(server, Msg::Write(self.next));
                } else {
                    cx.send(server, Msg::Read(self.acknowledged));
                }
                machine.timer(cx, 20, TICK);
            }
            Input::Message { from, body } => match body {
                Msg::Write(value) => {
                    if value > self.value {
                        self.value = value;
                        machine.disk.append("log", &value.to_le_bytes());
                        // The faulty server syncs the log later, together with the writes that have
                        // arrived until then.
                        if !self.bug || value.is_multiple_of(8) {
                            machine.disk.sync();
                        }
                    }
                    cx.send(from, Msg::Written(value));
                }
                Msg::Written(value) => {
                    self.acknowledged = self.acknowledged.max(value);
                    machine.disk.write_number("acknowledged", self.acknowledged);
                    machine.disk.sync();
                }
                Msg::Read(acknowledged) => {
                    cx.send(from, Msg::Value(self.value, acknowledged));
                }
                Msg::Value(value, acknowledged) => {
                    always!(cx, value >= acknowledged, "acknowledged writes are read");
                    sometimes!(cx, self.acknowledged > 0, "a write is acknowledged");
                }
            },
        }
    }
}

program!(Wal "wal": 2 nodes, 3000 ms, ());
