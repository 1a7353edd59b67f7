//! Paxos whose proposers adopt the value that most acceptors report, instead of the value with the
//! highest ballot.
//!
//! Report: Lamport, "Paxos made simple", 2001, section 2.2 (P2c); the mistake is discussed in
//! Chandra, Griesemer and Redstone, "Paxos made live", PODC 2007.

use crate::prelude::*;
use std::collections::BTreeMap;

/// Nodes 0 to 2 are acceptors, nodes 3 and 4 propose; a new instance begins every 300 ms.
#[derive(Debug)]
pub struct Paxos {
    pub bug: bool,
}

/// The messages of the program. The first two fields of each are its instance and its ballot.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    Prepare(u64, u64),
    /// Promises, and reports the highest ballot that was accepted and its value.
    Promise(u64, u64, u64, u64),
    Accept(u64, u64, u64),
    Accepted(u64, u64, u64),
    /// Sent to the observer: an instance has chosen a value.
    Chosen(u64, u64),
}

/// An acceptor or a proposer.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    /// For an acceptor: by instance, the promised ballot, and the accepted ballot and value.
    promised: BTreeMap<u64, [u64; 3]>,
    instance: u64,
    ballot: u64,
    value: u64,
    promises: Vec<(Addr, u64, u64)>,
    accepted: u64,
}

const TICK: u16 = 0;

impl Peer {
    fn save(&self, machine: &mut Machine) {
        let words = self.promised.iter();
        let words = words.flat_map(|(instance, [a, b, c])| [*instance, *a, *b, *c]);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        machine.disk.write("promised", &bytes);
        machine.disk.sync();
    }

    fn send_acceptors<C: Context<Msg>>(cx: &mut C, machine: &Machine, message: &Msg) {
        for index in 0..3 {
            cx.send(machine.nodes.get(index), message.clone());
        }
    }

    /// Returns the value that must be proposed, if there is one.
    fn adopt(&self) -> Option<u64> {
        let accepted = self.promises.iter().filter(|(_, ballot, _)| *ballot > 0);
        let count = |value| accepted.clone().filter(|other| other.2 == value).count();
        let chosen = match self.bug {
            true => accepted.clone().max_by_key(|(_, _, value)| count(*value)),
            false => accepted.clone().max_by_key(|(_, ballot, _)| *ballot),
        };
        chosen.map(|(_, _, value)| *value)
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        let bytes = machine.disk.records("promised").last().unwrap_or_default();
        let words = bytes
            .chunks_exact(8)
            .filter_map(|word| word.try_into().ok());
        let words: Vec<u64> = words.map(u64::from_le_bytes).collect();
        let all = words.chunks_exact(4);
        self.promised = all.map(|all| (all[0], [all[1], all[2], all[3]])).collect();
        self.ballot = machine.disk.number("ballot").unwrap_or(0);
        if machine.index >= 3 {
            let wait = cx.below(60);
            machine.timer(cx, wait, TICK);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let (from, body) = match input {
            Input::Timer(_) => {
                let wait = 40 + cx.below(60);
                machine.timer(cx, wait, TICK);
                self.instance = now(cx) / 300;
                self.ballot = (self.ballot / 8 + 1) * 8 + u64::from(machine.index);
                machine.disk.write_number("ballot", self.ballot);
                machine.disk.sync();
                self.promises.clear();
                self.accepted = 0;
                let prepare = Msg::Prepare(self.instance, self.ballot);
                return Peer::send_acceptors(cx, machine, &prepare);
            }
            Input::Message { from, body } => (from, body),
        };
        match body {
            Msg::Prepare(instance, ballot) => {
                let [promised, accepted, value] = self.promised.entry(instance).or_default();
                if ballot > *promised {
                    *promised = ballot;
                    cx.send(from, Msg::Promise(instance, ballot, *accepted, *value));
                    self.save(machine);
                }
            }
            Msg::Promise(instance, ballot, accepted, value) => {
                let is_new = self.promises.iter().all(|(other, _, _)| *other != from);
                let is_mine = instance == self.instance && ballot == self.ballot;
                if is_mine && is_new && self.promises.len() < 2 {
                    self.promises.push((from, accepted, value));
                    if self.promises.len() == 2 {
                        self.value = self.adopt().unwrap_or(ballot);
                        let accept = Msg::Accept(instance, ballot, self.value);
                        Peer::send_acceptors(cx, machine, &accept);
                    }
                }
            }
            Msg::Accept(instance, ballot, value) => {
                let [promised, accepted, own] = self.promised.entry(instance).or_default();
                if ballot >= *promised {
                    (*promised, *accepted, *own) = (ballot, ballot, value);
                    cx.send(from, Msg::Accepted(instance, ballot, value));
                    self.save(machine);
                }
            }
            Msg::Accepted(instance, ballot, value) => {
                if instance == self.instance && ballot == self.ballot {
                    self.accepted |= 1 << machine.nodes.index_of(from).unwrap_or(0);
                    if self.accepted.count_ones() == 2 {
                        let parent = cx.parent();
                        cx.send(parent, Msg::Chosen(instance, value));
                    }
                }
            }
            Msg::Chosen(..) => {}
        }
    }

    fn state(&self) -> u64 {
        let values = self.promised.values().next_back();
        let accepted = values.is_some_and(|[_, accepted, _]| *accepted > 0);
        let behind = values.is_some_and(|[promised, accepted, _]| promised != accepted);
        let found = self.promises.iter().filter(|(_, ballot, _)| *ballot > 0);
        u64::from(accepted)
            | u64::from(behind) << 1
            | (found.count() as u64) << 2
            | u64::from(self.accepted.count_ones()) << 4
    }
}

/// The value of each instance.
#[derive(Debug, Default)]
pub struct Values(BTreeMap<u64, u64>);

impl Observer<Msg> for Values {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, cx: &mut C) {
        if let Msg::Chosen(instance, value) = body {
            let first = *self.0.entry(instance).or_insert(value);
            always!(cx, first == value, "an instance has one value");
        }
    }
}

program!(Paxos "paxos": 5 nodes, 4_000 ms, Values);
