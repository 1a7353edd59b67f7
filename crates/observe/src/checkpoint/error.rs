//! Errors of checkpoints.

use std::io;
use std::path::PathBuf;

/// The reasons why a checkpoint cannot be written or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// The checkpoint cannot be written.
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
    /// Another process is saving a run in the directory.
    #[error("another run saves its checkpoints in {}; name another directory with --checkpoint-dir", .path.display())]
    Taken {
        /// The directory in use.
        path: PathBuf,
    },
    /// The existing checkpoints belong to another run, or to another branch of the run.
    #[error(
        "{} has checkpoints of another run, which would be replaced; name another directory with --checkpoint-dir, or delete this one",
        .path.display()
    )]
    OtherRun {
        /// The directory with the existing checkpoints.
        path: PathBuf,
    },
    /// The checkpoint has an unknown format.
    #[error(
        "{} has format {saved}, and this program reads format {ours}; resume it with the program that has written it",
        .path.display()
    )]
    Format {
        /// The path of the manifest.
        path: PathBuf,
        /// The format of the checkpoint.
        saved: u32,
        /// The format that this build reads.
        ours: u32,
    },
    /// The checkpoint cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The directory has no checkpoint.
    #[error("there is no complete checkpoint in {}; name the directory that was given as --checkpoint-dir", .path.display())]
    None {
        /// The directory that was searched.
        path: PathBuf,
    },
    /// A file is missing because another process has written it to another directory.
    #[error(
        "{} is missing, because another process wrote it to another directory; --checkpoint-dir must be a directory that all machines of the run share",
        .path.display()
    )]
    Elsewhere {
        /// The file that is missing.
        path: PathBuf,
    },
    /// The length of a file differs from the length in the manifest.
    #[error(
        "{} has {bytes} bytes of the {saved} that were written; resume from an older checkpoint, or from a copy",
        .path.display()
    )]
    Length {
        /// The damaged file.
        path: PathBuf,
        /// The length of the file in bytes.
        bytes: u64,
        /// The length in the manifest.
        saved: u64,
    },
    /// A file has the length in the manifest, but other contents.
    #[error(
        "{} is damaged: its checksum differs; resume from an older checkpoint, or from a copy",
        .path.display()
    )]
    Changed {
        /// The damaged file.
        path: PathBuf,
    },
    /// The file is not a manifest.
    #[error("{} is not a manifest of a checkpoint: {error}; resume from an older checkpoint, or from a copy", .path.display())]
    Manifest {
        /// The damaged file.
        path: PathBuf,
        /// The position and cause of the error.
        error: serde_json::Error,
    },
    /// The state of the output files is invalid.
    #[error("{} does not say what was being written: {error}; resume from an older checkpoint, or from a copy", .path.display())]
    State {
        /// The directory of the checkpoint.
        path: PathBuf,
        /// The position and cause of the error.
        error: serde_json::Error,
    },
    /// Another program or version wrote the checkpoint.
    #[error("{} was written by {saved}, and this is {ours}; resume it with the program that has written it", .path.display())]
    Other {
        /// The directory of the checkpoint.
        path: PathBuf,
        /// The program that wrote the checkpoint.
        saved: String,
        /// The program that reads the checkpoint.
        ours: String,
    },
}
