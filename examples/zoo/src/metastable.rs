//! A server that is kept busy with requests that their clients have long since repeated.
//!
//! Report: Bronson et al., "Metastable failures in distributed systems", HotOS 2021.

use crate::prelude::*;
use std::collections::VecDeque;

/// Node 0 is the server, nodes 1 to 4 are clients.
#[derive(Debug)]
pub struct Metastable {
    pub bug: bool,
}

/// The messages of the program.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// A request with its number.
    Ask(u64),
    /// Answers the request with this number.
    Answer(u64),
    /// Sent to the observer: an answer arrived in time, at this time.
    InTime(u64),
}

/// The server or a client.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    queue: VecDeque<(Addr, u64)>,
    busy: bool,
    /// For a client: the request that waits for an answer, its age in steps, and the number of
    /// attempts.
    open: u64,
    age: u32,
    attempts: u32,
}

const STEP: u16 = 0;
const SERVED: u16 = 1;
/// Length of a request, in milliseconds.
const SERVICE: u32 = 4;
/// The number of steps of 10 ms after which a client repeats a request.
const PATIENCE: u32 = 4;

impl Peer {
    fn serve<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        if !self.busy && !self.queue.is_empty() {
            self.busy = true;
            machine.timer(cx, SERVICE, SERVED);
        }
    }

    fn step<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        self.age += 1;
        // The fixed client doubles its wait with each attempt; the faulty client sends four
        // requests instead of one.
        let patience = if self.bug {
            PATIENCE
        } else {
            PATIENCE << self.attempts.min(5)
        };
        if self.age >= patience {
            (self.age, self.attempts) = (0, self.attempts + 1);
            let repeats = if self.bug && self.attempts > 1 { 4 } else { 1 };
            for _ in 0..repeats {
                cx.send(machine.nodes.get(0), Msg::Ask(self.open));
            }
        }
        machine.timer(cx, 10, STEP);
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        if machine.index > 0 {
            self.open = cx.random() >> 1;
            let wait = cx.below(40);
            machine.timer(cx, wait, STEP);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(SERVED) => {
                self.busy = false;
                if let Some((client, number)) = self.queue.pop_front() {
                    cx.send(client, Msg::Answer(number));
                }
                self.serve(cx, machine);
            }
            Input::Timer(_) => self.step(cx, machine),
            Input::Message {
                from,
                body: Msg::Ask(number),
            } => {
                if self.queue.len() < 1_000 {
                    self.queue.push_back((from, number));
                }
                sometimes!(cx, self.queue.len() > 2, "requests wait");
                self.serve(cx, machine);
            }
            Input::Message {
                body: Msg::Answer(number),
                ..
            } => {
                // An answer to an abandoned request is ignored.
                if number == self.open {
                    if self.attempts <= 1 {
                        let (now, parent) = (cx.now().elapsed().as_millis() as u64, cx.parent());
                        cx.send(parent, Msg::InTime(now));
                    }
                    (self.open, self.age, self.attempts) = (self.open + 1, 0, 0);
                }
            }
            Input::Message {
                body: Msg::InTime(_),
                ..
            } => {}
        }
    }

    fn state(&self) -> u64 {
        (self.queue.len() as u64)
            .checked_ilog2()
            .map_or(0, |log| u64::from(log) + 1)
    }
}

/// The number of answers in the last half second that arrived in time.
#[derive(Debug, Default)]
pub struct Answers(u32);

impl Observer<Msg> for Answers {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, _: &mut C) {
        if let Msg::InTime(time) = body {
            self.0 += u32::from(time >= 5_500);
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        always!(cx, self.0 > 10, "answers are in time in the end");
    }
}

program!(Metastable "metastable": 5 nodes, 6000 ms, Answers);
