//! A lock with a lease, and a store that does not check the number of the lease.
//!
//! Reports: Kleppmann, "How to do distributed locking", 2016; Jepsen, "etcd 3.4.3", 2020.

use crate::prelude::*;

/// Node 0 grants leases, node 1 is the store, nodes 2 and 3 are clients.
#[derive(Debug)]
pub struct Lease {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks for the lease.
    Acquire,
    /// Grants the lease with this number, for 100 ms.
    Granted(u64),
    /// Writes under a lease.
    Write(u64),
}

/// The lock service, the store or a client.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    lease: u64,
    /// True if the lease has a holder.
    held: bool,
    /// The highest lease under which a client has written.
    written: u64,
}

const TICK: u16 = 0;
const EXPIRES: u16 = 1;

impl Peer {
    fn write<C: Context<Msg>>(&mut self, lease: u64, cx: &mut C, machine: &mut Machine) {
        // The fixed store refuses a client that has lost the lease.
        if !self.bug && lease < self.written {
            return;
        }
        always!(
            cx,
            lease >= self.written,
            "writes are in the order of the leases"
        );
        sometimes!(
            cx,
            lease > self.written && self.written > 0,
            "the lease changes"
        );
        self.written = lease;
        machine.disk.write_number("written", lease);
        machine.disk.sync();
    }

    fn grant<C: Context<Msg>>(&mut self, to: Addr, cx: &mut C, machine: &mut Machine) {
        if self.held {
            return;
        }
        (self.held, self.lease) = (true, self.lease + 1);
        machine.disk.write_number("lease", self.lease);
        machine.disk.sync();
        cx.send(to, Msg::Granted(self.lease));
        machine.timer(cx, 100, EXPIRES);
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.written = machine.disk.number("written").unwrap_or(0);
        self.lease = machine.disk.number("lease").unwrap_or(0);
        if machine.index == 0 && self.lease > 0 {
            // A lease from before the crash may be in use.
            self.held = true;
            machine.timer(cx, 100, EXPIRES);
        }
        if machine.index >= 2 {
            let wait = cx.below(50);
            machine.timer(cx, wait, TICK);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(EXPIRES) => self.held = false,
            Input::Timer(_) => {
                cx.send(machine.nodes.get(0), Msg::Acquire);
                let wait = 20 + cx.below(30);
                machine.timer(cx, wait, TICK);
            }
            Input::Message { from, body } => match body {
                Msg::Acquire => self.grant(from, cx, machine),
                Msg::Granted(lease) => {
                    cx.send(machine.nodes.get(1), Msg::Write(lease));
                }
                Msg::Write(lease) => self.write(lease, cx, machine),
            },
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.held)
    }
}

program!(Lease "lease": 4 nodes, 4000 ms, ());
