//! The command as its users meet it: arguments in, text, files and exit codes out.

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
mod output;
mod profile;
mod session;
mod shards;
mod terminal;
mod usl;
mod why;
