//! Errors of checkpoints.

use std::io;
use std::path::PathBuf;

/// Why a checkpoint cannot be written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// It cannot be written.
    #[error("cannot write {}: {error}; choose another place, or change its permissions", .path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A process of a distributed run cannot write its part.
    #[error("{0}")]
    Part(String),
    /// Another process is saving a run there.
    #[error("{} is where another run saves itself; name another directory with --checkpoint-dir", .path.display())]
    Taken {
        /// The directory.
        path: PathBuf,
    },
    /// The checkpoints there belong to another run, or to another branch of the run.
    #[error(
        "{} has checkpoints of another run, which would be replaced; name another directory with --checkpoint-dir, or delete this one",
        .path.display()
    )]
    OtherRun {
        /// The directory.
        path: PathBuf,
    },
    /// It has another format.
    #[error(
        "{} has format {saved}, and this program reads format {ours}; resume it with the program that has written it",
        .path.display()
    )]
    Format {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        saved: u32,
        /// The one that is read.
        ours: u32,
    },
    /// It cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// There is no checkpoint.
    #[error("there is no complete checkpoint in {}; name the directory that --checkpoint-dir has named", .path.display())]
    None {
        /// The directory.
        path: PathBuf,
    },
    /// A file that another process has written.
    #[error(
        "{} is not there: another process has written it elsewhere; --checkpoint-dir must be a directory that all machines of the run share",
        .path.display()
    )]
    Elsewhere {
        /// The file.
        path: PathBuf,
    },
    /// A file is shorter or longer than it was.
    #[error(
        "{} has {bytes} bytes of the {saved} that were written; resume from an older checkpoint, or from a copy",
        .path.display()
    )]
    Length {
        /// The file.
        path: PathBuf,
        /// How many bytes it has.
        bytes: u64,
        /// How many it had.
        saved: u64,
    },
    /// A file has the right length but other contents.
    #[error(
        "{} is not what was written: its checksum differs; resume from an older checkpoint, or from a copy",
        .path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file that is not a manifest.
    #[error("{} is not a manifest of a checkpoint: {error}; resume from an older checkpoint, or from a copy", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The fault.
        error: serde_json::Error,
    },
    /// The state of the output files is invalid.
    #[error("{} does not say what was being written: {error}; resume from an older checkpoint, or from a copy", .path.display())]
    State {
        /// The checkpoint.
        path: PathBuf,
        /// The fault.
        error: serde_json::Error,
    },
    /// Another program or version has written it.
    #[error("{} was written by {saved}, and this is {ours}; resume it with the program that has written it", .path.display())]
    Other {
        /// The checkpoint.
        path: PathBuf,
        /// The program that wrote it.
        saved: String,
        /// This program.
        ours: String,
    },
}
