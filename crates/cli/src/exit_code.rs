//! Exit codes of the process.

/// A request was refused, or a run failed.
pub const REFUSED: u8 = 2;
