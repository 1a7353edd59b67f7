//! Mutual exclusion that accepts any later message as a reply, as if the network kept the order of
//! messages.
//!
//! Reports: Lamport, "Time, clocks, and the ordering of events in a distributed system", CACM 1978
//! (which assumes order); Ricart and Agrawala, CACM 1981 (which replies to each request).

use crate::prelude::*;
use std::time::Duration;

/// Three nodes that share a lock.
#[derive(Debug)]
pub struct Mutex {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks for the lock, with a time.
    Request(u64),
    /// Agrees to the request of this time; the second number is the sender's own time.
    Reply(u64, u64),
    /// Sent to the observer: the lock was held in this interval, in nanoseconds.
    Held(u64, u64),
}

/// A node.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    clock: u64,
    /// The time of the node's own request; 0 if there is none.
    request: u64,
    agreed: u64,
    deferred: Vec<(Addr, u64)>,
    since: Option<Duration>,
}

const TICK: u16 = 0;
const LEAVE: u16 = 1;

impl Peer {
    fn tick(&mut self, time: u64, machine: &mut Machine) {
        self.clock = self.clock.max(time) + 1;
        machine.disk.write_number("clock", self.clock);
        machine.disk.sync();
    }

    fn agree<C: Context<Msg>>(&mut self, from: Addr, cx: &mut C, machine: &Machine) {
        self.agreed |= 1 << machine.nodes.index_of(from).unwrap_or(0);
        if self.agreed.count_ones() == 2 && self.since.is_none() {
            self.since = Some(cx.now().elapsed());
            machine.timer(cx, 10, LEAVE);
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.clock = machine.disk.number("clock").unwrap_or(0);
        let wait = 1 + cx.below(100);
        machine.timer(cx, wait, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(LEAVE) => {
                let since = self.since.take().unwrap_or_default().as_nanos() as u64;
                let (until, parent) = (cx.now().elapsed().as_nanos() as u64, cx.parent());
                cx.send(parent, Msg::Held(since, until));
                (self.request, self.agreed) = (0, 0);
                for (to, time) in std::mem::take(&mut self.deferred) {
                    cx.send(to, Msg::Reply(time, self.clock));
                }
            }
            Input::Timer(_) => {
                let wait = 40 + cx.below(100);
                machine.timer(cx, wait, TICK);
                if self.request == 0 {
                    self.tick(0, machine);
                    self.request = self.clock * 4 + u64::from(machine.index);
                }
                machine.send_others(cx, &Msg::Request(self.request));
            }
            Input::Message {
                from,
                body: Msg::Request(time),
            } => {
                self.tick(time / 4, machine);
                if self.request > 0 && self.request < time || self.since.is_some() {
                    self.deferred.push((from, time));
                } else {
                    cx.send(from, Msg::Reply(time, self.clock));
                }
                sometimes!(cx, !self.deferred.is_empty(), "two want the lock");
            }
            Input::Message {
                from,
                body: Msg::Reply(request, time),
            } => {
                self.tick(time, machine);
                // The bug: a late reply to an earlier request counts, if its time is later than the request.
                let agrees = request == self.request || self.bug && time > self.request / 4;
                if self.request > 0 && agrees {
                    self.agree(from, cx, machine);
                }
            }
            Input::Message { .. } => {}
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.request > 0)
            | u64::from(self.since.is_some()) << 1
            | u64::from(self.agreed.count_ones()) << 2
            | (self.deferred.len() as u64).min(2) << 4
    }
}

/// The intervals in which the lock was held.
#[derive(Debug, Default)]
pub struct Intervals(Vec<(u64, u64)>);

impl Observer<Msg> for Intervals {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, cx: &mut C) {
        if let Msg::Held(since, until) = body {
            let overlaps = |(a, b): &(u64, u64)| *a < until && since < *b;
            always!(cx, !self.0.iter().any(overlaps), "one node has the lock");
            self.0.push((since, until));
        }
    }
}

program!(Mutex "mutex": 3 nodes, 3_000 ms, Intervals);
