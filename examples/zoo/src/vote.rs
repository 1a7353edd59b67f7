//! An election whose votes are forgotten in a crash, so that a server votes twice in a term.
//!
//! Reports: Ongaro and Ousterhout, "In search of an understandable consensus algorithm", USENIX ATC
//! 2014, figure 2 (persistent state); Fonseca et al., "An empirical study on the correctness of
//! formally verified distributed systems", EuroSys 2017.

use crate::prelude::*;
use std::collections::BTreeMap;

/// Three servers that elect a leader.
#[derive(Debug)]
pub struct Vote {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks for a vote in a term.
    Ask(u64),
    /// A vote in a term.
    Granted(u64),
    /// The leader of a term is alive.
    Alive(u64),
    /// Sent to the observer: this server leads in a term.
    Leads(u64),
}

/// A server.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    term: u64,
    /// The address of the candidate for which the server has voted in the term; 0 until it votes.
    voted: u64,
    votes: u64,
    leads: bool,
    /// The number of the current time-out; earlier ones are ignored.
    waiting: u16,
}

const BEAT: u16 = u16::MAX;

impl Peer {
    fn save(&self, machine: &mut Machine) {
        machine.disk.write_number("term", self.term);
        machine.disk.write_number("voted", self.voted);
        // The bug: relies on the operating system to write the vote some time later.
        if !self.bug {
            machine.disk.sync();
        }
    }

    fn wait<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        self.waiting = (self.waiting + 1) % BEAT;
        let time = 150 + cx.below(150);
        machine.timer(cx, time, self.waiting);
    }

    fn see(&mut self, term: u64, machine: &mut Machine) {
        if term > self.term {
            (self.term, self.voted, self.leads) = (term, 0, false);
            self.save(machine);
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.term = machine.disk.number("term").unwrap_or(0);
        self.voted = machine.disk.number("voted").unwrap_or(0);
        self.wait(cx, machine);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let me = u64::from(cx.me().as_u32());
        match input {
            Input::Timer(BEAT) if self.leads => {
                machine.send_others(cx, &Msg::Alive(self.term));
                machine.timer(cx, 40, BEAT);
            }
            Input::Timer(name) if name == self.waiting && !self.leads => {
                (self.term, self.voted, self.votes) = (self.term + 1, me, 1 << machine.index);
                self.save(machine);
                machine.send_others(cx, &Msg::Ask(self.term));
                self.wait(cx, machine);
            }
            Input::Timer(_) => {}
            Input::Message { from, body } => match body {
                Msg::Ask(term) => {
                    self.see(term, machine);
                    let candidate = u64::from(from.as_u32());
                    if term == self.term && (self.voted == 0 || self.voted == candidate) {
                        self.voted = candidate;
                        self.save(machine);
                        cx.send(from, Msg::Granted(term));
                        self.wait(cx, machine);
                    }
                }
                Msg::Granted(term) => {
                    // Votes are a set, because a vote may arrive twice.
                    if term == self.term && self.voted == me && !self.leads {
                        self.votes |= machine.nodes.index_of(from).map_or(0, |voter| 1 << voter);
                        if self.votes.count_ones() >= 2 {
                            self.leads = true;
                            let parent = cx.parent();
                            cx.send(parent, Msg::Leads(term));
                            machine.timer(cx, 0, BEAT);
                        }
                    }
                }
                Msg::Alive(term) => {
                    self.see(term, machine);
                    if term == self.term && !self.leads {
                        self.wait(cx, machine);
                    }
                }
                Msg::Leads(_) => {}
            },
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.leads) | u64::from(self.voted != 0) << 1
    }
}

/// The leader of each term.
#[derive(Debug, Default)]
pub struct Leaders(BTreeMap<u64, Addr>);

impl Observer<Msg> for Leaders {
    fn on<C: Context<Msg>>(&mut self, from: Addr, body: Msg, cx: &mut C) {
        if let Msg::Leads(term) = body {
            let leader = *self.0.entry(term).or_insert(from);
            always!(cx, leader == from, "a term has one leader");
            sometimes!(cx, term > 2, "there are several elections");
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        always!(cx, !self.0.is_empty(), "somebody leads in the end");
    }
}

program!(Vote "vote": 3 nodes, 4000 ms, Leaders);
