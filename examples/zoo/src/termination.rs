//! Termination detection that does not count messages, and announces the end while a message is still on its way.
//!
//! Reports: Dijkstra, Feijen and van Gasteren, EWD840, 1983 (for synchronous messages); Dijkstra and
//! Safra, EWD998, 1987 (with counters).

use crate::prelude::*;
use std::collections::BTreeSet;

/// A ring of four nodes.
#[derive(Debug)]
pub struct Termination {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// A piece of work: its number, and the number of further pieces that it may cause.
    Work(u64, u32),
    /// The token: its round, the sum of the counters, and whether it is black.
    Token(u64, i64, bool),
    /// Sent to the observer: the end was announced, or a node began to work, at this time in nanoseconds.
    Over(u64),
    Began(u64),
}

/// A node.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    /// The remaining steps of work, and the number of further pieces that it may cause.
    work: u32,
    budget: u32,
    /// Messages sent less messages received.
    counter: i64,
    black: bool,
    known: BTreeSet<u64>,
    round: u64,
    token: Option<(i64, bool)>,
}

const TICK: u16 = 0;

impl Peer {
    fn save(&self, machine: &mut Machine) {
        machine.disk.write_number("work", self.work.into());
        machine.disk.write_number("budget", self.budget.into());
        machine.disk.write_number("counter", self.counter as u64);
        machine.disk.write_number("black", self.black.into());
        machine.disk.write_number("round", self.round);
        machine.disk.sync();
    }

    fn tick<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        machine.timer(cx, 20, TICK);
        if self.work > 0 {
            self.work -= 1;
            if self.budget > 0 && cx.below(4) == 0 {
                let given = self.budget / 2;
                self.budget -= given + 1;
                self.counter += 1;
                let (other, number) = (cx.below(3), cx.random() >> 1);
                let to = (machine.index + 1 + other) % 4;
                self.save(machine);
                cx.send(machine.nodes.get(to), Msg::Work(number, given));
            }
            self.save(machine);
            return;
        }
        let next = machine.nodes.get((machine.index + 3) % 4);
        if machine.index == 0 {
            if let Some((sum, black)) = self.token.take() {
                let is_even = sum + self.counter == 0 || self.bug;
                if !black && !self.black && is_even {
                    let (time, parent) = (cx.now().elapsed().as_nanos() as u64, cx.parent());
                    cx.send(parent, Msg::Over(time));
                }
            }
            // A lost token is replaced in the next round.
            if now(cx) / 200 > self.round {
                self.round = now(cx) / 200;
                self.black = false;
                self.save(machine);
                cx.send(next, Msg::Token(self.round, 0, false));
            }
        } else if let Some((sum, black)) = self.token.take() {
            let message = Msg::Token(self.round, sum + self.counter, black | self.black);
            self.black = false;
            self.save(machine);
            cx.send(next, message);
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        let number = |name| machine.disk.number(name);
        self.work = number("work").unwrap_or(10) as u32;
        self.budget = number("budget").unwrap_or(6) as u32;
        self.counter = number("counter").unwrap_or(0) as i64;
        self.black = number("black").unwrap_or(1) > 0;
        self.round = number("round").unwrap_or(0);
        let records = machine.disk.records("known");
        let known = records.filter_map(|record| record.try_into().ok());
        self.known = known.map(u64::from_le_bytes).collect();
        let wait = 1 + cx.below(20);
        machine.timer(cx, wait, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(_) => self.tick(cx, machine),
            Input::Message {
                body: Msg::Work(number, budget),
                ..
            } => {
                if self.known.insert(number) {
                    machine.disk.append("known", &number.to_le_bytes());
                    (self.work, self.budget) = (self.work + 5, self.budget + budget);
                    self.counter -= 1;
                    self.black = true;
                    self.save(machine);
                    let (time, parent) = (cx.now().elapsed().as_nanos() as u64, cx.parent());
                    cx.send(parent, Msg::Began(time));
                }
            }
            Input::Message {
                body: Msg::Token(round, sum, black),
                ..
            } => {
                let is_mine = machine.index == 0 && round == self.round;
                if is_mine || machine.index > 0 && round > self.round {
                    self.round = round;
                    self.save(machine);
                    self.token = Some((sum, black));
                }
            }
            Input::Message { .. } => {}
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.work > 0)
            | u64::from(self.black) << 1
            | u64::from(self.token.is_some()) << 2
            | ((self.counter.clamp(-2, 2) + 2) as u64) << 3
    }
}

/// The time at which the end was first announced, and the time at which work last began.
#[derive(Debug, Default)]
pub struct End {
    over: Option<u64>,
    began: u64,
}

impl Observer<Msg> for End {
    fn on<C: Context<Msg>>(&mut self, _: Addr, body: Msg, cx: &mut C) {
        match body {
            Msg::Over(time) => self.over = Some(self.over.unwrap_or(time).min(time)),
            Msg::Began(time) => self.began = self.began.max(time),
            _ => return,
        }
        let is_over = self.over.is_none_or(|over| over >= self.began);
        always!(cx, is_over, "nobody works when it is over");
        sometimes!(cx, self.over.is_some(), "the end is detected");
    }
}

program!(Termination "termination": 4 nodes, 3_000 ms, End);
