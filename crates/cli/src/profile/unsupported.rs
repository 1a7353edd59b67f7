//! CPU profiles where the system has no signals to take samples by.

use anyhow::{Result, bail};
use std::path::Path;

/// A CPU profile; cannot be made on this system.
pub enum Profile {}

impl Profile {
    /// Fails: samples are taken by signals of Unix.
    ///
    /// # Errors
    /// Always.
    pub fn begin(_: &Path) -> Result<Profile> {
        bail!("-cpuprofile needs Linux or macOS; use a profiler of this system")
    }

    /// Never called, because no profile exists.
    ///
    /// # Errors
    /// Never.
    pub fn end(self) -> Result<()> {
        match self {}
    }
}
