//! The engine as its users meet it: lines in by HTTP, tasks, what they show.

mod access;
mod answers;
mod cancelled;
mod deadman;
mod ends;
mod faults;
mod http;
mod influx;
mod kapacitor;
#[cfg(unix)]
mod kills;
mod limits;
mod memory;
mod nodes;
mod order;
mod page;
mod parsing;
mod post;
mod program;
mod routing;
mod sinks;
mod streamer;
mod suspend;
mod tasks;
mod terminal;
mod write_log;
