//! Distributed programs with one seeded bug each, and their fixed twins.
//!
//! Each program is a separate file that cites the report of the bug. A program states only the properties that the
//! search checks. The search was tuned on the programs of [`all`], and never on those of [`further`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]

/// Implements `Program` for a type with the field `bug` whose nodes are `Peer`s.
macro_rules! program {
    ($program:ident $name:literal: $nodes:literal nodes, $time:literal ms, $observer:ty) => {
        impl Program for $program {
            type Message = Msg;
            type Node = Peer;
            type Observer = $observer;

            fn name(&self) -> &'static str {
                $name
            }

            fn nodes(&self) -> u32 {
                $nodes
            }

            fn time(&self) -> u32 {
                $time
            }

            fn node(&self, _: u32) -> Peer {
                Peer {
                    bug: self.bug,
                    ..Peer::default()
                }
            }

            fn observer(&self) -> $observer {
                <$observer>::default()
            }
        }
    };
}

mod cache;
mod failover;
mod half_open;
mod lease;
mod merge;
mod metastable;
mod priority;
mod raft;
mod read_repair;
mod recovery;
mod ring;
mod tombstone;
mod transfer;
mod two_phase;
mod vote;
mod wal;

mod aba;
mod dedup;
mod mutex;
mod offset;
mod paxos;
mod rebalance;
mod rename;
mod snapshot;
mod termination;
mod visibility;

mod prelude {
    pub use corsair::{Addr, Context, Message};
    pub use corsair_hunt::{Input, Machine, Node, Observer, Program, always, sometimes};

    /// Returns the virtual time of the run in milliseconds.
    pub fn now<M: Message, C: Context<M>>(cx: &C) -> u64 {
        cx.now().elapsed().as_millis() as u64
    }
}

use corsair_hunt::Subject;
use raft::{Flaw, Raft};
use std::sync::Arc;

macro_rules! subjects {
    ($($program:expr),* $(,)?) => {
        vec![$(Box::new(Arc::new($program)) as Box<dyn Subject>),*]
    };
}

/// Returns the programs on which the search was tuned, with their bugs or without.
pub fn all(bug: bool) -> Vec<Box<dyn Subject>> {
    subjects![
        cache::Cache { bug },
        failover::Failover { bug },
        half_open::HalfOpen { bug },
        lease::Lease { bug },
        merge::Merge { bug },
        metastable::Metastable { bug },
        priority::Priority { bug },
        Raft::new(Flaw::Commit, bug),
        Raft::new(Flaw::Log, bug),
        Raft::new(Flaw::Membership, bug),
        Raft::new(Flaw::Read, bug),
        Raft::new(Flaw::Truncate, bug),
        read_repair::ReadRepair { bug },
        recovery::Recovery { bug },
        ring::Ring { bug },
        tombstone::Tombstone { bug },
        transfer::Transfer { bug },
        two_phase::TwoPhase { bug },
        vote::Vote { bug },
        wal::Wal { bug },
    ]
}

/// Returns the programs that only score the search, with their bugs or without.
pub fn further(bug: bool) -> Vec<Box<dyn Subject>> {
    subjects![
        aba::Aba { bug },
        dedup::Dedup { bug },
        mutex::Mutex { bug },
        offset::Offset { bug },
        paxos::Paxos { bug },
        rebalance::Rebalance { bug },
        rename::Rename { bug },
        snapshot::Snapshot { bug },
        termination::Termination { bug },
        visibility::Visibility { bug },
    ]
}

/// Returns the programs of [`all`] and of [`further`], with their bugs or without.
pub fn all_and_further(bug: bool) -> Vec<Box<dyn Subject>> {
    let mut programs = all(bug);
    programs.extend(further(bug));
    programs
}

/// Returns the names of all programs, as the values of an argument.
pub fn names() -> Vec<&'static str> {
    let programs = all_and_further(true);
    programs.iter().map(|subject| subject.name()).collect()
}
