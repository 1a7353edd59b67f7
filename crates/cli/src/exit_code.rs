//! What the process ends with.

/// Something was refused, or a run failed.
pub const REFUSED: u8 = 2;
