//! Replicas that forget deletions after a while, so that a replica that was cut off brings the
//! items back.
//!
//! Reports: DeCandia et al., "Dynamo: Amazon's highly available key-value store", SOSP 2007; Apache
//! Cassandra, "Compaction: tombstones" (`gc_grace_seconds`, zombies).

use crate::prelude::*;

/// Three replicas; the first one stores items and deletes them.
#[derive(Debug)]
pub struct Tombstone {
    pub bug: bool,
}

const ITEMS: usize = 8;
const LIVE: u8 = 1;
const DELETED: u8 = 2;

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// The items of a replica.
    Items([u8; ITEMS]),
    /// To the observer: a replica's items.
    Has([u8; ITEMS]),
}

/// A replica.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    items: [u8; ITEMS],
    /// For each item, the number of steps since it was deleted.
    ages: [u32; ITEMS],
}

const TICK: u16 = 0;

impl Peer {
    fn save(&self, machine: &mut Machine) {
        machine.disk.write("items", &self.items);
        machine.disk.sync();
    }

    fn collect(&mut self) {
        for (item, age) in self.items.iter_mut().zip(&mut self.ages) {
            *age = if *item == DELETED { *age + 1 } else { 0 };
            // The bug: assumes that every replica has received the deletion by now.
            if self.bug && *age > 12 {
                *item = 0;
            }
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        if let Some(items) = machine.disk.records("items").last() {
            self.items = items.try_into().unwrap_or_default();
        }
        machine.timer(cx, 50, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(_) => {
                machine.timer(cx, 50, TICK);
                // An item lives for 150 ms; all are deleted in the first two seconds.
                let step = (now(cx) / 50) as usize;
                if machine.index == 0 {
                    for (index, item) in self.items.iter_mut().enumerate() {
                        match step.checked_sub(5 * index) {
                            Some(1..=3) if *item == 0 => *item = LIVE,
                            Some(4..=10) => *item = DELETED,
                            _ => {}
                        }
                    }
                }
                self.collect();
                self.save(machine);
                machine.send_others(cx, &Msg::Items(self.items));
                let parent = cx.parent();
                cx.send(parent, Msg::Has(self.items));
            }
            Input::Message {
                body: Msg::Items(others),
                ..
            } => {
                for (item, other) in self.items.iter_mut().zip(others) {
                    *item = (*item).max(other);
                }
                self.save(machine);
            }
            Input::Message {
                body: Msg::Has(_), ..
            } => {}
        }
    }

    fn state(&self) -> u64 {
        let count = |what| self.items.iter().filter(|item| **item == what).count() as u64;
        count(LIVE) | count(DELETED) << 4
    }
}

/// The last known items of the replicas.
#[derive(Debug, Default)]
pub struct Items {
    last: [[u8; ITEMS]; 3],
    deleted: [bool; ITEMS],
}

impl Observer<Msg> for Items {
    fn on<C: Context<Msg>>(&mut self, from: Addr, body: Msg, _: &mut C) {
        if let Msg::Has(items) = body {
            self.last[(from.as_u32() - 256) as usize] = items;
            for (deleted, item) in self.deleted.iter_mut().zip(items) {
                *deleted |= item == DELETED;
            }
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        let is_back = |items: &[u8; ITEMS]| {
            let mut pairs = items.iter().zip(self.deleted);
            pairs.any(|(item, deleted)| *item == LIVE && deleted)
        };
        always!(
            cx,
            !self.last.iter().any(is_back),
            "what was deleted stays away"
        );
        sometimes!(cx, self.deleted.contains(&true), "items are deleted");
    }
}

program!(Tombstone "tombstone": 3 nodes, 3_000 ms, Items);
