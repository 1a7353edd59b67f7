//! The program, which runs in a separate directory.

pub use corsair_testing::terminal::signal;

/// `corsair-stream`.
pub struct Stream;

impl corsair_testing::terminal::Program for Stream {
    const NAME: &str = "corsair-stream";
    const PATH: &str = env!("CARGO_BIN_EXE_corsair-stream");
}

pub type Terminal = corsair_testing::terminal::Terminal<Stream>;
