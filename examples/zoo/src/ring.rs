//! A token ring that stops forever once its token is lost.
//!
//! Reports: Le Lann, "Distributed systems: towards a formal approach", IFIP 1977; Misra, "Detecting
//! termination of distributed computations using markers", PODC 1983.

use crate::prelude::*;

/// Four nodes that form a ring.
#[derive(Debug)]
pub struct Ring {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// The token, with its generation and the number of times that it was passed on.
    Token(u64, u64),
    /// Sent to the observer: the token was at this node at this time.
    Seen(u64),
}

/// A node.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    generation: u64,
    passed: u64,
    waiting: u16,
}

impl Peer {
    /// Waits for the token. The time-outs of the nodes differ, so that one node misses the token
    /// first.
    fn wait<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        self.waiting = self.waiting.wrapping_add(1);
        machine.timer(cx, 200 + 50 * machine.index, self.waiting);
    }

    fn pass<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        self.passed += 1;
        let next = machine.nodes.get((machine.index + 1) % machine.nodes.len());
        let (now, parent) = (cx.now().elapsed().as_millis() as u64, cx.parent());
        cx.send(parent, Msg::Seen(now));
        cx.send(next, Msg::Token(self.generation, self.passed));
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        let born = cx.now().elapsed().is_zero();
        self.generation = machine.disk.number("generation").unwrap_or(0);
        if machine.index == 0 && born {
            self.generation = 4;
            self.pass(cx, machine);
        }
        self.wait(cx, machine);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(name) => {
                // The fixed ring makes a new token, whose generation no other node can make.
                if name == self.waiting && !self.bug {
                    self.generation = (self.generation / 4 + 1) * 4 + u64::from(machine.index);
                    machine.disk.write_number("generation", self.generation);
                    machine.disk.sync();
                    sometimes!(cx, true, "a lost token is replaced");
                    self.pass(cx, machine);
                    self.wait(cx, machine);
                }
            }
            Input::Message {
                body: Msg::Token(generation, passed),
                ..
            } => {
                // Older tokens and copies are removed from the ring.
                if (generation, passed) > (self.generation, self.passed) {
                    (self.generation, self.passed) = (generation, passed);
                    self.pass(cx, machine);
                    self.wait(cx, machine);
                }
            }
            Input::Message {
                body: Msg::Seen(_), ..
            } => {}
        }
    }
}

/// The time when the token was last seen.
#[derive(Debug, Default)]
pub struct Last(u64);

impl Observer<Msg> for Last {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, _: &mut C) {
        if let Msg::Seen(time) = body {
            self.0 = self.0.max(time);
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        let now = cx.now().elapsed().as_millis() as u64;
        always!(cx, now - self.0 < 500, "the token moves in the end");
    }
}

program!(Ring "ring": 4 nodes, 3000 ms, Last);
