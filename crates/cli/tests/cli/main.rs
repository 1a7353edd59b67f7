//! The command from the point of view of its users: arguments, text, files and exit codes.

mod arch;
mod bad_input;
mod check;
mod checkpoint;
#[path = "../../../observe/tests/observe/collector.rs"]
mod collector;
mod config;
mod diff;
mod experiments;
mod exporters;
mod flags;
mod gate;
mod graph;
mod hunt;
mod import;
mod learn;
mod learn_sources;
mod maelstrom;
mod output;
mod profile;
mod session;
mod shards;
mod terminal;
mod usl;
mod why;
