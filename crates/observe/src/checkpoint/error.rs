//! Why a checkpoint cannot be written or used.

use std::io;
use std::path::PathBuf;

/// Why a checkpoint cannot be written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// It cannot be written.
    #[error("cannot write {}: {error}; choose another place, or change its permissions", .path.display())]
    Write {
        /// Which file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A process of a distributed run cannot write its part.
    #[error("{0}")]
    Part(String),
    /// Another process saves a run there at this moment.
    #[error("{} is where another run saves itself; name another directory with --checkpoint-dir", .path.display())]
    Taken {
        /// Which directory.
        path: PathBuf,
    },
    /// The checkpoints there belong to another run, or to another branch of the run.
    #[error(
        "{} has checkpoints of another run, which would be replaced; name another directory with --checkpoint-dir, or delete this one",
        .path.display()
    )]
    OtherRun {
        /// Which directory.
        path: PathBuf,
    },
    /// The layout is that of another version.
    #[error(
        "{} has format {saved}, and this program reads format {ours}; resume it with the program that has written it",
        .path.display()
    )]
    Format {
        /// Which manifest.
        path: PathBuf,
        /// Its format.
        saved: u32,
        /// The one that is read.
        ours: u32,
    },
    /// It cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// Which file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// There is none.
    #[error("there is no complete checkpoint in {}; name the directory that --checkpoint-dir has named", .path.display())]
    None {
        /// Where.
        path: PathBuf,
    },
    /// A file that another process has written.
    #[error(
        "{} is not there: another process has written it elsewhere; --checkpoint-dir must be a directory that all machines of the run share",
        .path.display()
    )]
    Elsewhere {
        /// Which file.
        path: PathBuf,
    },
    /// A file is shorter or longer than it was.
    #[error(
        "{} has {bytes} bytes of the {saved} that were written; resume from an older checkpoint, or from a copy",
        .path.display()
    )]
    Length {
        /// Which file.
        path: PathBuf,
        /// How many bytes it has.
        bytes: u64,
        /// How many it had.
        saved: u64,
    },
    /// A file has the same length and other contents.
    #[error(
        "{} is not what was written: its checksum differs; resume from an older checkpoint, or from a copy",
        .path.display()
    )]
    Changed {
        /// Which file.
        path: PathBuf,
    },
    /// A manifest that is none.
    #[error("{} is not a manifest of a checkpoint: {error}; resume from an older checkpoint, or from a copy", .path.display())]
    Manifest {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// What was being written when the run was saved.
    #[error("{} does not say what was being written: {error}; resume from an older checkpoint, or from a copy", .path.display())]
    State {
        /// Which checkpoint.
        path: PathBuf,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// Another program or version has written it.
    #[error("{} was written by {saved}, and this is {ours}; resume it with the program that has written it", .path.display())]
    Other {
        /// Which checkpoint.
        path: PathBuf,
        /// What has written it.
        saved: String,
        /// What was to read it.
        ours: String,
    },
}
