//! A payment that is repeated until it is acknowledged, and is booked each time.
//!
//! Report: Helland, "Idempotence is not a medical condition", ACM Queue 2012.

use crate::prelude::*;
use std::collections::BTreeSet;

/// Node 0 is the bank, node 1 the payer.
#[derive(Debug)]
pub struct Transfer {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Pays one coin, with a number that identifies the payment.
    Pay(u64),
    /// The payment is booked.
    Booked(u64),
}

/// The bank or the payer.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    booked: BTreeSet<u64>,
    balance: u64,
    next: u64,
}

const RETRY: u16 = 0;

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        for record in machine.disk.records("booked") {
            let number = record.try_into().map_or(0, u64::from_le_bytes);
            self.booked.insert(number);
            self.balance += 1;
        }
        self.next = machine.disk.number("next").unwrap_or(1);
        if machine.index == 1 {
            machine.timer(cx, 100, RETRY);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(_) => {
                cx.send(machine.nodes.get(0), Msg::Pay(self.next));
                machine.timer(cx, 100, RETRY);
            }
            Input::Message {
                from,
                body: Msg::Pay(number),
            } => {
                let new = self.booked.insert(number);
                // The fixed bank remembers the payments that it has booked.
                if new || self.bug {
                    self.balance += 1;
                    machine.disk.append("booked", &number.to_le_bytes());
                    machine.disk.sync();
                }
                always!(
                    cx,
                    self.balance == self.booked.len() as u64,
                    "a payment is booked once"
                );
                sometimes!(cx, number > 10, "ten payments are booked");
                cx.send(from, Msg::Booked(number));
            }
            Input::Message {
                body: Msg::Booked(number),
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

program!(Transfer "transfer": 2 nodes, 3000 ms, ());
