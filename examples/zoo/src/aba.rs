//! Version numbers that start again when an object is deleted and created again, so that a conditional write for the
//! old object changes the new one.
//!
//! Reports: IBM System/370, "Principles of operation", appendix A (ABA); Sun et al., "Automatic
//! reliability testing for cluster management controllers", OSDI 2022 (objects that are deleted and
//! created again while controllers use them).

use crate::prelude::*;

/// Node 0 stores, node 1 deletes and creates, node 2 updates.
#[derive(Debug)]
pub struct Aba {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Deletes the object and creates it again.
    Recreate,
    Get,
    /// The version and the object.
    Got(u64, u64),
    /// Writes if the object has this version (the first number). The second number is the object
    /// that the sender means.
    Update(u64, u64),
}

/// One of the nodes.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    version: u64,
    object: u64,
    /// For the updater: the version and the object that it has read and will update.
    read: Option<(u64, u64)>,
}

const TICK: u16 = 0;
const UPDATE: u16 = 1;

impl Peer {
    fn save(&self, machine: &mut Machine) {
        machine.disk.write_number("version", self.version);
        machine.disk.write_number("object", self.object);
        machine.disk.sync();
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.version = machine.disk.number("version").unwrap_or(1);
        self.object = machine.disk.number("object").unwrap_or(0);
        if machine.index > 0 {
            let wait = 20 + cx.below(100);
            machine.timer(cx, wait, TICK);
        }
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let store = machine.nodes.get(0);
        match input {
            Input::Timer(UPDATE) => {
                if let Some((version, object)) = self.read.take() {
                    cx.send(store, Msg::Update(version, object));
                }
            }
            Input::Timer(_) if machine.index == 1 => {
                cx.send(store, Msg::Recreate);
                let wait = 600 + cx.below(200);
                machine.timer(cx, wait, TICK);
            }
            Input::Timer(_) => {
                cx.send(store, Msg::Get);
                let wait = 40 + cx.below(60);
                machine.timer(cx, wait, TICK);
            }
            Input::Message { from, body } => match body {
                Msg::Recreate => {
                    self.object += 1;
                    self.version = if self.bug { 1 } else { self.version + 1 };
                    self.save(machine);
                }
                Msg::Get => {
                    cx.send(from, Msg::Got(self.version, self.object));
                }
                Msg::Got(version, object) => {
                    self.read = Some((version, object));
                    machine.timer(cx, 5, UPDATE);
                }
                Msg::Update(version, object) => {
                    if version == self.version {
                        always!(cx, object == self.object, "an update meets its object");
                        sometimes!(cx, object > 1, "a new object is updated");
                        self.version += 1;
                        self.save(machine);
                    }
                }
            },
        }
    }

    fn state(&self) -> u64 {
        self.version.min(7) | u64::from(self.read.is_some()) << 3
    }
}

program!(Aba "aba": 3 nodes, 3_000 ms, ());
