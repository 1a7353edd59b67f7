//! The command as its users meet it: arguments in, text, files and exit codes out.

mod arch;
mod bad_input;
mod config;
mod courier;
mod diff;
mod flags;
mod graph;
mod output;
mod profile;
mod stream;
mod terminal;
mod usl;
