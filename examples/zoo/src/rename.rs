//! A program that renames a file to its final name before the new data in the file are durable.
//!
//! Reports: Pillai et al., "All file systems are not created equal", OSDI 2014; Zheng et al.,
//! "Torturing databases for fun and profit", OSDI 2014.

use crate::prelude::*;

/// One node that saves its state five times a second.
#[derive(Debug)]
pub struct Rename {
    pub bug: bool,
}

/// A message that is never sent.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub struct Msg;

/// The only node.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    generation: u64,
}

const SAVE: u16 = 0;
const SYNC: u16 = 1;

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.generation = machine.disk.number("current").unwrap_or(0);
        let data = machine.disk.number("data").unwrap_or(0);
        always!(cx, data >= self.generation, "the current data are there");
        sometimes!(cx, self.generation > 3, "a saved state is loaded");
        machine.timer(cx, 200, SAVE);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        if let Input::Timer(SYNC) = input {
            return machine.disk.sync();
        }
        if let Input::Timer(SAVE) = input {
            self.generation += 1;
            machine.disk.append("data", &self.generation.to_le_bytes());
            if !self.bug {
                machine.disk.sync();
            }
            machine.disk.write_number("current", self.generation);
            machine.timer(cx, 2, SYNC);
            machine.timer(cx, 200, SAVE);
        }
    }
}

program!(Rename "rename": 1 nodes, 4_000 ms, ());
