//! A counter that replicas merge as a whole: of two states the larger one wins, and the increments
//! of the other are lost.
//!
//! Reports: Shapiro et al., "A comprehensive study of convergent and commutative replicated data
//! types", 2011 (the counter); Jepsen, "Cassandra", 2013 (last write wins loses updates).

use crate::prelude::*;

/// Three replicas of the counter.
#[derive(Debug)]
pub struct Merge {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// The state of a replica.
    State([u64; 3]),
    /// Sent to the observer: the increments of this replica, and its view of the total.
    Counted(u64, u64),
}

/// A replica.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    counts: [u64; 3],
    counted: u64,
}

const TICK: u16 = 0;

impl Peer {
    fn merge(&mut self, other: [u64; 3]) {
        if self.bug {
            if other.iter().sum::<u64>() > self.counts.iter().sum() {
                self.counts = other;
            }
            return;
        }
        for (count, other) in self.counts.iter_mut().zip(other) {
            *count = (*count).max(other);
        }
    }

    fn save(&self, machine: &mut Machine) {
        for (name, count) in ["a", "b", "c"].into_iter().zip(self.counts) {
            machine.disk.write_number(name, count);
        }
        machine.disk.write_number("counted", self.counted);
        machine.disk.sync();
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.counts = ["a", "b", "c"].map(|name| machine.disk.number(name).unwrap_or(0));
        self.counted = machine.disk.number("counted").unwrap_or(0);
        let wait = cx.below(40);
        machine.timer(cx, wait, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(_) => {
                // Increments are rare enough that replicas usually exchange their states between
                // two of them.
                let now = cx.now().elapsed().as_millis() as u32;
                if now < 2_000 && (now / 40 + machine.index).is_multiple_of(9) {
                    self.counts[machine.index as usize] += 1;
                    self.counted += 1;
                    self.save(machine);
                }
                machine.send_others(cx, &Msg::State(self.counts));
                let (all, parent) = (self.counts.iter().sum(), cx.parent());
                cx.send(parent, Msg::Counted(self.counted, all));
                machine.timer(cx, 40, TICK);
            }
            Input::Message {
                body: Msg::State(other),
                ..
            } => {
                self.merge(other);
                self.save(machine);
            }
            Input::Message {
                body: Msg::Counted(..),
                ..
            } => {}
        }
    }
}

/// For each replica, its increments and its view of the total.
#[derive(Debug, Default)]
pub struct Counts([(u64, u64); 3]);

impl Observer<Msg> for Counts {
    fn on<C: Context<Msg>>(&mut self, from: Addr, body: Msg, _: &mut C) {
        if let Msg::Counted(own, all) = body {
            let (counted, believed) = &mut self.0[(from.as_u32() - 256) as usize];
            (*counted, *believed) = ((*counted).max(own), all);
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        let counted: u64 = self.0.iter().map(|(counted, _)| counted).sum();
        for (_, believed) in self.0 {
            always!(
                cx,
                believed == counted,
                "replicas agree on all that was counted"
            );
        }
        sometimes!(cx, counted > 5, "there is something to count");
    }
}

program!(Merge "merge": 3 nodes, 3000 ms, Counts);
