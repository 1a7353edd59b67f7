//! CPU profiles on systems without the needed signals.

use anyhow::{Result, bail};
use std::path::Path;

/// A CPU profile. No value exists, because profiles are not supported on this system.
pub enum Profile {}

impl Profile {
    /// Fails, because sampling needs Unix signals.
    ///
    /// # Errors
    /// Always.
    pub fn begin(_: &Path) -> Result<Profile> {
        bail!("-cpuprofile needs Linux or macOS; use a profiler of this system")
    }

    /// Never called, because no profile exists.
    ///
    /// # Errors
    /// Never called.
    pub fn end(self) -> Result<()> {
        match self {}
    }
}
