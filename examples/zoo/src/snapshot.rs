//! A snapshot whose markers are overtaken by messages, so that it contains the effect of a message without its cause.
//!
//! Reports: Chandy and Lamport, "Distributed snapshots", ACM TOCS 1985 (which assumes order); Lai and
//! Yang, "On distributed snapshots", IPL 1987 (which does not).

use crate::prelude::*;
use std::collections::BTreeMap;

/// Three accounts; the first begins snapshots.
#[derive(Debug)]
pub struct Snapshot {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// The total that was ever sent to the receiver, and the sender's last snapshot.
    Sent(u64, u64),
    /// Takes a snapshot.
    Marker(u64),
    /// Sent to the observer: for a snapshot, the totals sent to and received from each account.
    Recorded(u64, [u64; 3], [u64; 3]),
}

/// An account.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    snapshot: u64,
    sent: [u64; 3],
    received: [u64; 3],
}

const SEND: u16 = 0;
const SNAPSHOT: u16 = 1;

impl Peer {
    fn record<C: Context<Msg>>(&mut self, snapshot: u64, cx: &mut C, machine: &mut Machine) {
        if snapshot > self.snapshot {
            self.snapshot = snapshot;
            self.save(machine);
            let parent = cx.parent();
            cx.send(parent, Msg::Recorded(snapshot, self.sent, self.received));
            machine.send_others(cx, &Msg::Marker(snapshot));
        }
    }

    fn save(&self, machine: &mut Machine) {
        let words = [self.snapshot].into_iter();
        let words = words.chain(self.sent).chain(self.received);
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        machine.disk.write("account", &bytes);
        machine.disk.sync();
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        let bytes = machine.disk.records("account").last().unwrap_or_default();
        let words = bytes
            .chunks_exact(8)
            .filter_map(|word| word.try_into().ok());
        let words: Vec<u64> = words.map(u64::from_le_bytes).collect();
        if let [snapshot, a, b, c, d, e, f] = words[..] {
            (self.snapshot, self.sent, self.received) = (snapshot, [a, b, c], [d, e, f]);
        }
        let wait = 1 + cx.below(200);
        machine.timer(cx, wait, SEND);
        if machine.index == 0 {
            machine.timer(cx, 500, SNAPSHOT);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(SEND) => {
                let wait = 100 + cx.below(200);
                machine.timer(cx, wait, SEND);
                let to = (machine.index + 1 + cx.below(2)) % 3;
                self.sent[to as usize] += 1;
                self.save(machine);
                let sent = Msg::Sent(self.sent[to as usize], self.snapshot);
                cx.send(machine.nodes.get(to), sent);
            }
            Input::Timer(_) => {
                machine.timer(cx, 500, SNAPSHOT);
                self.record(self.snapshot + 1, cx, machine);
            }
            Input::Message {
                from,
                body: Msg::Sent(sent, snapshot),
            } => {
                if !self.bug {
                    self.record(snapshot, cx, machine);
                }
                let index = machine.nodes.index_of(from).unwrap_or(0) as usize;
                self.received[index] = self.received[index].max(sent);
                self.save(machine);
            }
            Input::Message {
                body: Msg::Marker(snapshot),
                ..
            } => self.record(snapshot, cx, machine),
            Input::Message { .. } => {}
        }
    }
}

/// The messages that an account has sent to and received from each other account.
type Account = Option<([u64; 3], [u64; 3])>;

/// The records of each account, by snapshot.
#[derive(Debug, Default)]
pub struct Records(BTreeMap<u64, [Account; 3]>);

impl Observer<Msg> for Records {
    fn on<C: Context<Msg>>(&mut self, from: Addr, body: Msg, cx: &mut C) {
        if let Msg::Recorded(snapshot, sent, received) = body {
            let all = self.0.entry(snapshot).or_default();
            all[(from.as_u32() - 256) as usize] = Some((sent, received));
            if let [Some(a), Some(b), Some(c)] = all {
                let all = [&*a, &*b, &*c];
                let has_cause = |i: usize, j: usize| all[j].1[i] <= all[i].0[j];
                let holds = (0..3).all(|i| (0..3).all(|j| has_cause(i, j)));
                always!(cx, holds, "what a snapshot received it also sent");
                sometimes!(cx, all[0].0[1] > 0, "a snapshot is complete");
            }
        }
    }
}

program!(Snapshot "snapshot": 3 nodes, 4_000 ms, Records);
