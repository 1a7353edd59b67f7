//! The command as its users meet it: arguments in, text, files and exit codes out.

mod bad_input;
mod config;
mod courier;
mod flags;
mod graph;
mod output;
mod profile;
mod terminal;
