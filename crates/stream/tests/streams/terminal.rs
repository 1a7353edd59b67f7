//! The program, run in a directory of its own.

pub use corsair_terminal::signal;

/// `corsair-stream`.
pub struct Stream;

impl corsair_terminal::Program for Stream {
    const NAME: &str = "corsair-stream";
    const PATH: &str = env!("CARGO_BIN_EXE_corsair-stream");
}

pub type Terminal = corsair_terminal::Terminal<Stream>;
