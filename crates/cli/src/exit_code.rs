//! Exit codes of the process.

/// The exit code if a request was rejected, or a run failed.
pub const REFUSED: u8 = 2;
