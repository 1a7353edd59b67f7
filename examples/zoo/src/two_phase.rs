//! Two-phase commit whose coordinator forgets its decision in a crash, and then presumes that the
//! transaction was aborted.
//!
//! Reports: Gray, "Notes on data base operating systems", 1978; Mohan, Lindsay and Obermarck,
//! "Transaction management in the R* distributed database management system", TODS 1986.

use crate::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Node 0 is the coordinator; nodes 1 and 2 are the participants.
#[derive(Debug)]
pub struct TwoPhase {
    pub bug: bool,
}

/// The messages of the program, each about a transaction.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks for a vote.
    Prepare(u64),
    /// Votes yes for the transaction.
    Yes(u64),
    /// Commits, or aborts.
    Decide(u64, bool),
    /// Asks for the decision.
    Ask(u64),
    /// Sent to the observer: the participant has committed or aborted the transaction.
    Done(u64, bool),
}

/// The coordinator or a participant.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    /// For the coordinator: its last transaction, and the participants that have voted.
    current: u64,
    votes: u64,
    /// For the coordinator: the transactions that are committed.
    committed: BTreeSet<u64>,
    /// For a participant: the transactions for which it has voted.
    prepared: BTreeSet<u64>,
}

const TICK: u16 = 0;

impl Peer {
    fn vote<C: Context<Msg>>(&mut self, from: Addr, id: u64, cx: &mut C, machine: &mut Machine) {
        if id != self.current || self.committed.contains(&id) {
            return;
        }
        self.votes |= machine.nodes.index_of(from).map_or(0, |voter| 1 << voter);
        if self.votes == 0b110 {
            self.committed.insert(id);
            machine.disk.append("committed", &id.to_le_bytes());
            // The bug: participants hear of the decision before it is durable.
            if !self.bug {
                machine.disk.sync();
            }
            machine.send_others(cx, &Msg::Decide(id, true));
        }
    }

    fn decide<C: Context<Msg>>(
        &mut self,
        id: u64,
        commit: bool,
        cx: &mut C,
        machine: &mut Machine,
    ) {
        if self.prepared.remove(&id) {
            machine.disk.append("done", &id.to_le_bytes());
            machine.disk.sync();
            let parent = cx.parent();
            cx.send(parent, Msg::Done(id, commit));
        }
    }
}

fn numbers(machine: &Machine, file: &str) -> BTreeSet<u64> {
    let records = machine.disk.records(file);
    records
        .filter_map(|record| Some(u64::from_le_bytes(record.try_into().ok()?)))
        .collect()
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.current = machine.disk.number("current").unwrap_or(0);
        self.committed = numbers(machine, "committed");
        let done = numbers(machine, "done");
        self.prepared = numbers(machine, "prepared")
            .difference(&done)
            .copied()
            .collect();
        machine.timer(cx, 50, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(_) if machine.index == 0 => {
                (self.current, self.votes) = (self.current + 1, 0);
                machine.disk.write_number("current", self.current);
                machine.disk.sync();
                machine.send_others(cx, &Msg::Prepare(self.current));
                machine.timer(cx, 50, TICK);
            }
            Input::Timer(_) => {
                for id in &self.prepared {
                    cx.send(machine.nodes.get(0), Msg::Ask(*id));
                }
                machine.timer(cx, 50, TICK);
            }
            Input::Message { from, body } => match body {
                Msg::Prepare(id) => {
                    if !numbers(machine, "prepared").contains(&id) {
                        self.prepared.insert(id);
                        machine.disk.append("prepared", &id.to_le_bytes());
                        machine.disk.sync();
                    }
                    if self.prepared.contains(&id) {
                        cx.send(from, Msg::Yes(id));
                    }
                }
                Msg::Yes(id) => self.vote(from, id, cx, machine),
                Msg::Decide(id, commit) => self.decide(id, commit, cx, machine),
                Msg::Ask(id) => {
                    let committed = self.committed.contains(&id);
                    // A transaction in progress has no decision yet.
                    if committed || id != self.current {
                        cx.send(from, Msg::Decide(id, committed));
                    }
                }
                Msg::Done(..) => {}
            },
        }
    }
}

/// The outcome of each transaction.
#[derive(Debug, Default)]
pub struct Decisions(BTreeMap<u64, bool>);

impl Observer<Msg> for Decisions {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, cx: &mut C) {
        if let Msg::Done(id, commit) = body {
            let first = *self.0.entry(id).or_insert(commit);
            always!(
                cx,
                first == commit,
                "participants agree on each transaction"
            );
            sometimes!(cx, commit, "a transaction commits");
            sometimes!(cx, !commit, "a transaction aborts");
        }
    }
}

program!(TwoPhase "two_phase": 3 nodes, 3000 ms, Decisions);
