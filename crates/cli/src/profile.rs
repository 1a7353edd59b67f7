//! CPU profiles for `go tool pprof`.

use anyhow::{Context, Result, anyhow};
use corsair_observe::Replacement;
use pprof::protos::Message;
use pprof::{ProfilerGuard, ProfilerGuardBuilder};
use std::io::Write;
use std::path::Path;

/// Samples a second of CPU time: a period of 8 ms, which kernels with ticks of 4 ms or 1 ms keep.
const SAMPLES_PER_SECOND: i32 = 125;

/// A profile being taken.
pub struct Profile {
    file: Replacement,
    guard: ProfilerGuard<'static>,
}

impl Profile {
    /// Begins to take samples, to be written to `path`.
    ///
    /// # Errors
    /// If the file cannot be written, or the system gives no timer.
    pub fn begin(path: &Path) -> Result<Profile> {
        let file = Replacement::begin(path).context("-cpuprofile")?;
        let guard = ProfilerGuardBuilder::default()
            .frequency(SAMPLES_PER_SECOND)
            // Unwinding from inside the unwinder, or the allocator's locks, is not safe.
            .blocklist(&["libc", "libgcc", "pthread", "vdso"])
            .build()
            .map_err(|error| anyhow!("-cpuprofile: cannot take samples: {error}"))?;
        Ok(Profile { file, guard })
    }

    /// Ends it and writes the file, a protocol buffer as pprof defines it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end(mut self) -> Result<()> {
        let report = self.guard.report().build();
        let profile = report.and_then(|report| report.pprof());
        let profile =
            profile.map_err(|error| anyhow!("-cpuprofile: cannot read the samples: {error}"))?;
        let bytes = profile
            .write_to_bytes()
            .context("-cpuprofile: cannot encode the samples")?;
        self.file
            .writer()
            .write_all(&bytes)
            .map_err(|error| self.file.failed(error))?;
        Ok(self.file.finish()?)
    }
}
