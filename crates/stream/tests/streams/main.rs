//! Tests of the engine from its users' view: lines over HTTP, tasks, and their output.

mod access;
mod answers;
mod barrier;
mod body_memory;
mod buffers;
mod cancelled;
mod deadman;
mod ends;
mod faults;
mod http;
mod influx;
mod influxdb_out;
#[cfg(feature = "kafka")]
mod kafka;
mod kapacitor;
mod kapacitor_api;
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
mod services;
mod sinks;
mod streamer;
mod suspend;
mod tasks;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
mod together;
mod write_log;
