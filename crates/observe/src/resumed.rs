//! The output of a saved run, and how a resumed run continues it.

use crate::checkpoint::{CheckpointError, Output, SavedFile, begin_of};
use crate::counted::CountingWriter;
use crate::{FileError, Population, Replacement};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// The state of the output files of a paused run, which contain all records until the pause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedOutputs {
    /// The state of the outputs: nodes, open spans and measurements.
    pub state: Vec<u8>,
    /// The files that the resumed run continues, as parts of a checkpoint.
    pub files: Vec<Output>,
    /// Copies of the files that may change in other ways than by appending.
    pub copies: Vec<(String, Vec<u8>)>,
    /// The number of spans that [`Settings::spans`](crate::Settings::spans) has received. A run that resumes from this
    /// state passes only the later spans to that function.
    pub spans: u64,
}

/// The position from which the output of a resumed run continues.
#[derive(Clone, Debug)]
pub struct ResumePoint {
    /// The checkpoint's directory, with the files and the copies.
    pub directory: PathBuf,
    /// The bytes of [`SavedOutputs::state`].
    pub state: Vec<u8>,
    /// The populations of the run, which checkpoints do not contain.
    pub population: Option<Arc<dyn Population>>,
}

/// A file that a resumed run continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContinuedFile {
    file: SavedFile,
}

impl ContinuedFile {
    /// Returns the state of a file, under this name in a checkpoint.
    pub(crate) fn of(
        name: &str,
        out: &mut CountingWriter<Replacement>,
    ) -> Result<(ContinuedFile, Output), FileError> {
        let so_far = out.so_far();
        let (bytes, crc32) = so_far.map_err(|error| out.get().failed(error))?;
        let name = name.to_owned();
        let output = Output {
            name: name.clone(),
            source: out.get().beside().to_owned(),
            bytes,
            crc32,
        };
        let file = SavedFile { name, bytes, crc32 };
        Ok((ContinuedFile { file }, output))
    }

    /// Returns the state of a copied file, under this name.
    pub(crate) fn copied(name: &str, contents: &[u8]) -> ContinuedFile {
        let file = SavedFile {
            name: name.to_owned(),
            bytes: contents.len() as u64,
            crc32: crc32fast::hash(contents),
        };
        ContinuedFile { file }
    }

    /// Returns the length of the file in bytes when it was saved.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes
    }

    /// Copies the saved contents of the file after checking them.
    pub(crate) fn write(
        &self,
        resumed: &ResumePoint,
        to: &mut impl Write,
    ) -> Result<(), CheckpointError> {
        begin_of(&resumed.directory.join(&self.file.name), &self.file, to)
    }
}

impl ResumePoint {
    /// Returns the number of lines in the log of messages.
    ///
    /// # Errors
    /// If the state cannot be read.
    pub fn lines(&self) -> Result<u64, CheckpointError> {
        /// The only field of the state that is needed here.
        #[derive(Deserialize)]
        struct Lines {
            lines: u64,
        }
        let Lines { lines } = self.state()?;
        Ok(lines)
    }

    /// Deserializes the state.
    pub(crate) fn state<T: DeserializeOwned>(&self) -> Result<T, CheckpointError> {
        serde_json::from_slice(&self.state).map_err(|error| CheckpointError::State {
            path: self.directory.clone(),
            error,
        })
    }
}
