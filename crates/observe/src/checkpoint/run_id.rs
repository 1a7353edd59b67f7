//! The identity of a run.

use super::Checkpoint;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// The identity of a run: a hash of everything that determines its result. A run that is repeated or resumed has the
/// same identity; a branch has another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct RunId(u64);

impl RunId {
    /// Returns the identity of a run whose result is determined by these bytes.
    ///
    /// ```
    /// use corsair_observe::checkpoint::RunId;
    ///
    /// let run = RunId::of(b"seed 5");
    /// assert_eq!(run, RunId::of(b"seed 5"));
    /// assert_ne!(run, RunId::of(b"seed 6"));
    /// assert_ne!(run, run.branch(1_000_000_000, b"seed 7"));
    /// ```
    pub fn of(bytes: &[u8]) -> RunId {
        RunId(fnv(0xcbf2_9ce4_8422_2325, bytes))
    }

    /// Returns the identity of the branch that separates from this run at `time` (in nanoseconds) with these `changes`.
    pub fn branch(self, time: u64, changes: &[u8]) -> RunId {
        let hash = fnv(self.0, b"branch");
        RunId(fnv(fnv(hash, &time.to_le_bytes()), changes))
    }
}

/// Continues an FNV-1a hash with some bytes.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<RunId> for String {
    fn from(run: RunId) -> String {
        run.to_string()
    }
}

impl TryFrom<String> for RunId {
    type Error = String;

    fn try_from(text: String) -> Result<RunId, String> {
        let hash = u64::from_str_radix(&text, 16);
        hash.map(RunId)
            .map_err(|_| format!("'{text}' is not the id of a run; expected 16 hexadecimal digits"))
    }
}

/// Returns the default directory for checkpoints and files of a branch: next to the checkpoint, for example
/// `branch-000002-asked-9f86d081`.
pub fn branch_directory(from: &Checkpoint, branch: RunId) -> PathBuf {
    let checkpoint = from.directory.file_name().unwrap_or_default();
    let branch = branch.to_string();
    let name = format!("branch-{}-{}", checkpoint.to_string_lossy(), &branch[..8]);
    let parent = from.directory.parent();
    parent.unwrap_or(Path::new("")).join(name)
}
