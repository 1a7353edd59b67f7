//! The manifest of a checkpoint.

use super::{CheckpointError, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fs;
use std::path::Path;

/// The version of the manifest's format.
pub(super) const FORMAT: u32 = 2;

/// The file name of the manifest.
pub(super) const MANIFEST: &str = "manifest.json";

/// The manifest of a checkpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the format.
    pub format: u32,
    /// The program that wrote the checkpoint.
    pub program: String,
    /// The version of the program.
    pub version: String,
    /// The build of the program that wrote the checkpoint.
    pub build: String,
    /// The run that is saved.
    pub run: RunId,
    /// The virtual time of the checkpoint in nanoseconds.
    pub time: u64,
    /// Further data that the program needs to resume the run.
    pub details: Value,
    /// The files of the saved run.
    pub files: Vec<SavedFile>,
    /// The output files.
    pub outputs: Vec<SavedFile>,
}

/// A file of a checkpoint, with the length and checksum that were written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedFile {
    /// The name in the checkpoint's directory.
    pub name: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The CRC-32 of the file's contents.
    pub crc32: u32,
}

/// The contents of the manifest's file: the manifest with its CRC-32.
#[derive(Serialize, Deserialize)]
struct Sealed<'a> {
    #[serde(borrow)]
    manifest: &'a RawValue,
    crc32: u32,
}

/// The only field that manifests of all formats have.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

pub(super) fn write_manifest(manifest: &Manifest) -> serde_json::Result<Vec<u8>> {
    let raw = serde_json::value::to_raw_value(manifest)?;
    let crc32 = crc32fast::hash(raw.get().as_bytes());
    let manifest = &*raw;
    let mut text = serde_json::to_vec(&Sealed { manifest, crc32 })?;
    text.push(b'\n');
    Ok(text)
}

pub(super) fn read_manifest(path: &Path) -> Result<Manifest, CheckpointError> {
    let unreadable = |error| CheckpointError::Read {
        path: path.to_owned(),
        error,
    };
    let none = |error| CheckpointError::Manifest {
        path: path.to_owned(),
        error,
    };
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let sealed: Sealed<'_> = serde_json::from_str(&text).map_err(none)?;
    let raw = sealed.manifest.get();
    if crc32fast::hash(raw.as_bytes()) != sealed.crc32 {
        return Err(CheckpointError::Changed {
            path: path.to_owned(),
        });
    }
    let Format { format } = serde_json::from_str(raw).map_err(none)?;
    if format != FORMAT {
        return Err(CheckpointError::Format {
            path: path.to_owned(),
            saved: format,
            ours: FORMAT,
        });
    }
    let manifest: Manifest = serde_json::from_str(raw).map_err(none)?;
    let names = manifest.files.iter().chain(&manifest.outputs);
    // A name with a path is refused, because all files of a checkpoint are in its directory.
    for file in names {
        let inside = Path::new(&file.name).components().count() == 1
            && !file.name.contains(['/', '\\'])
            && !file.name.starts_with('.');
        if !inside {
            let error =
                serde::de::Error::custom(format!("'{}' is not a name of a file in it", file.name));
            return Err(none(error));
        }
    }
    Ok(manifest)
}
