//! A connection that one side has closed, and that the other side continues to use forever.
//!
//! Reports: RFC 793, section 3.4 (half-open connections); Alquraan et al., "An analysis of
//! network-partitioning failures in cloud systems", OSDI 2018 (one-way partitions).

use crate::prelude::*;

/// Node 0 serves, node 1 connects.
#[derive(Debug)]
pub struct HalfOpen {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Opens this connection.
    Open(u64),
    /// Confirms that the connection is open.
    Opened(u64),
    /// Data of a connection.
    Data(u64),
    /// Shows that the server is alive.
    Ping,
    /// Reports that this connection does not exist.
    Reset(u64),
    /// Sent to the observer: data arrived at this time.
    Arrived(u64),
}

/// The server or the client.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    connection: u64,
    is_open: bool,
    /// The number of steps since the last message of the other side.
    silent: u32,
}

const TICK: u16 = 0;
/// The number of steps of 20 ms after which a side gives up on the other.
const PATIENCE: u32 = 20;

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        if machine.index == 0 {
            // The server remembers its connection after a restart.
            self.connection = machine.disk.number("connection").unwrap_or(0);
            self.is_open = self.connection > 0;
        }
        machine.timer(cx, 20, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let (from, body) = match input {
            Input::Timer(_) => {
                machine.timer(cx, 20, TICK);
                self.silent += 1;
                if self.silent > PATIENCE {
                    self.is_open = false;
                }
                let server = machine.nodes.get(0);
                if machine.index == 0 {
                    cx.send(machine.nodes.get(1), Msg::Ping);
                } else if self.is_open {
                    cx.send(server, Msg::Data(self.connection));
                } else {
                    self.connection = cx.random() >> 1 | 1;
                    cx.send(server, Msg::Open(self.connection));
                }
                return;
            }
            Input::Message { from, body } => (from, body),
        };
        match body {
            Msg::Open(connection) => {
                (self.connection, self.is_open, self.silent) = (connection, true, 0);
                machine.disk.write_number("connection", connection);
                machine.disk.sync();
                cx.send(from, Msg::Opened(connection));
            }
            Msg::Opened(connection) => {
                if connection == self.connection {
                    (self.is_open, self.silent) = (true, 0);
                    sometimes!(cx, true, "a connection is open");
                }
            }
            Msg::Data(connection) => {
                if self.is_open && connection == self.connection {
                    self.silent = 0;
                    let (at, parent) = (now(cx), cx.parent());
                    cx.send(parent, Msg::Arrived(at));
                } else if !self.bug {
                    cx.send(from, Msg::Reset(connection));
                }
            }
            Msg::Ping => self.silent = 0,
            Msg::Reset(connection) => {
                if connection == self.connection {
                    self.is_open = false;
                }
            }
            Msg::Arrived(_) => {}
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.is_open) | u64::from(self.silent / 5).min(4) << 1
    }
}

/// The time at which data last arrived.
#[derive(Debug, Default)]
pub struct Last(u64);

impl Observer<Msg> for Last {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, _: &mut C) {
        if let Msg::Arrived(time) = body {
            self.0 = self.0.max(time);
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        always!(cx, now(cx) - self.0 < 300, "data arrives in the end");
    }
}

program!(HalfOpen "half_open": 2 nodes, 3_000 ms, Last);
