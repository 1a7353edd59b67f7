//! A cache that is filled with a value that has been invalidated in the meantime.
//!
//! Report: Nishtala et al., "Scaling Memcache at Facebook", NSDI 2013, section 3.2.1 (stale sets).

use crate::prelude::*;

/// Node 0 is the database, node 1 the cache, nodes 2 and 3 read and write.
#[derive(Debug)]
pub struct Cache {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks the cache for the value.
    Get,
    /// The cache has this value; if there is none, the second number is a lease to fill the cache.
    Got(Option<u64>, u64),
    /// Asks the database, with the lease.
    Load(u64),
    /// The database has this value.
    Loaded(u64, u64),
    /// Fills the cache with a value, under a lease.
    Fill(u64, u64),
    /// Adds one to the value in the database.
    Increment,
    /// Empties the cache; the database repeats the message until the cache confirms it.
    Invalidate(u64),
    /// Confirms that the cache has been empty since this value.
    Invalidated(u64),
    /// Sent to the observer: the value of the database, or of the cache.
    Value(Option<u64>),
}

/// One of the nodes.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    value: u64,
    cached: Option<u64>,
    lease: u64,
    /// For the database: the value since which the cache is known to be empty.
    invalidated: u64,
}

const TICK: u16 = 0;
const STEP: u32 = 10;

impl Peer {
    fn tick<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        let ended = cx.now().elapsed().as_millis() > 2_400;
        match machine.index {
            0 if self.invalidated < self.value => {
                cx.send(machine.nodes.get(1), Msg::Invalidate(self.value));
            }
            0 | 1 => {}
            // Writes end before the run, so that the cache can catch up.
            _ if !ended && cx.below(4) == 0 => {
                cx.send(machine.nodes.get(0), Msg::Increment);
            }
            _ => {
                cx.send(machine.nodes.get(1), Msg::Get);
            }
        }
        if machine.index < 2 && cx.now().elapsed().as_millis() > 2_900 {
            let value = if machine.index == 0 {
                Some(self.value)
            } else {
                self.cached
            };
            let parent = cx.parent();
            cx.send(parent, Msg::Value(value));
        }
        machine.timer(cx, STEP, TICK);
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.value = machine.disk.number("value").unwrap_or(0);
        // The number of a lease is not used again after a crash.
        self.lease = machine.disk.number("lease").unwrap_or(0) + 1_000;
        machine.disk.write_number("lease", self.lease);
        machine.disk.sync();
        machine.timer(cx, STEP, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let (from, body) = match input {
            Input::Timer(_) => return self.tick(cx, machine),
            Input::Message { from, body } => (from, body),
        };
        match body {
            Msg::Get => {
                cx.send(from, Msg::Got(self.cached, self.lease));
            }
            Msg::Got(Some(_), _) => {}
            Msg::Got(None, lease) => {
                cx.send(machine.nodes.get(0), Msg::Load(lease));
            }
            Msg::Load(lease) => {
                cx.send(from, Msg::Loaded(self.value, lease));
            }
            Msg::Loaded(value, lease) => {
                cx.send(machine.nodes.get(1), Msg::Fill(value, lease));
            }
            Msg::Fill(value, lease) => {
                // The fixed cache refuses a value that was loaded before the cache was emptied.
                if self.bug || lease == self.lease {
                    self.cached = Some(value);
                }
            }
            // Late increments are refused, so that nothing changes near the end.
            Msg::Increment if cx.now().elapsed().as_millis() > 2_600 => {}
            Msg::Increment => {
                self.value += 1;
                machine.disk.write_number("value", self.value);
                machine.disk.sync();
                cx.send(machine.nodes.get(1), Msg::Invalidate(self.value));
            }
            Msg::Invalidate(value) => {
                (self.cached, self.lease) = (None, self.lease + 1);
                cx.send(from, Msg::Invalidated(value));
            }
            Msg::Invalidated(value) => self.invalidated = self.invalidated.max(value),
            Msg::Value(_) => {}
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.cached.is_some())
    }
}

/// The last values of the database and of the cache.
#[derive(Debug, Default)]
pub struct Values([Option<u64>; 2]);

impl Observer<Msg> for Values {
    fn on<C: Context<Msg>>(&mut self, from: Addr, body: Msg, _: &mut C) {
        if let Msg::Value(value) = body {
            // The database and the cache have consecutive addresses, the database first.
            self.0[(from.as_u32() % 2) as usize] = value;
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        let [value, cached] = self.0;
        always!(
            cx,
            cached.is_none() || cached == value,
            "in the end the cache has the value"
        );
        sometimes!(
            cx,
            cached.is_some() && value > Some(1),
            "a value is cached after writes"
        );
    }
}

program!(Cache "cache": 4 nodes, 3000 ms, Values);
