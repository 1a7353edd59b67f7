//! Exports of a node's data as lines of JSON, and imports into an empty directory.
//!
//! An export contains everything that was acknowledged before it was requested: accounts, sessions, conversations,
//! messages with their numbers, queues with their sequence numbers, and idempotency keys. The last line has the number
//! and the hash of all other lines, so an incomplete or changed export is detected. An import builds the index under
//! another name and renames it when it is complete, so a repeated import neither loses nor doubles anything.

use crate::backup::{BackupError, part, unusable};
use crate::disk::blocking;
use crate::index::{IndexBuilder, Line, OpenedIndex};
use crate::log::embedded;
use crate::offline::{backup, refuse_data};
use corsair_journal::private_directory;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

/// The name of the copy in the data directory from which an export is written.
const COPY: &str = "index.export";
/// The name of the index during an import.
const IMPORTED: &str = "index.import";
/// The maximum length of a line in bytes.
const LONGEST: usize = 64 << 20;

/// The line that ends an export.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Last {
    End {
        /// The number of lines before this one.
        lines: u64,
        /// The BLAKE3 hash of the bytes before this line, in hexadecimal digits.
        hash: String,
    },
}

/// The number and the hash of lines.
#[derive(Default)]
struct Checked {
    lines: u64,
    hasher: blake3::Hasher,
}

impl Checked {
    fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.hasher.update(line);
    }

    fn end(&self) -> Last {
        Last::End {
            lines: self.lines,
            hash: self.hasher.finalize().to_string(),
        }
    }
}

/// Writes the data in this directory as lines of JSON, with or without a running node. A copy of the index is made in
/// the directory for the time of the export. Returns the position of the last entry of the log in the export.
///
/// # Errors
/// There are no data, they are damaged, or `to` cannot be written.
pub async fn export(data: &Path, mut to: impl Write + Send + 'static) -> Result<u64, BackupError> {
    let copy = data.join(COPY);
    // The copy of an interrupted export.
    let _ = std::fs::remove_file(&copy);
    let _ = std::fs::remove_file(part(&copy));
    let position = backup(data, &copy).await?;
    let directory = data.to_owned();
    let written = blocking(move || {
        let index = OpenedIndex::copy_in(&directory, COPY)?;
        Ok(write(&index, &mut to))
    });
    let written = written.await;
    let _ = std::fs::remove_file(&copy);
    written?.map_err(|error| BackupError::Refused(format!("cannot write the export: {error}")))?;
    Ok(position)
}

fn write(index: &OpenedIndex, to: &mut impl Write) -> Result<(), redb::Error> {
    let mut checked = Checked::default();
    let mut bytes = Vec::new();
    index.lines(|line| {
        bytes.clear();
        serde_json::to_writer(&mut bytes, &line).map_err(io::Error::from)?;
        bytes.push(b'\n');
        checked.add(&bytes);
        Ok(to.write_all(&bytes)?)
    })?;
    serde_json::to_writer(&mut *to, &checked.end()).map_err(io::Error::from)?;
    to.write_all(b"\n")?;
    Ok(to.flush()?)
}

/// Builds the data of a node from an [`export`]. Returns the position of the last entry of the log in the export.
///
/// # Errors
/// The directory contains data, or the export is incomplete or not valid. The directory then has no data.
///
/// ```
/// use corsair_courier::{Node, Options, export, import};
///
/// # #[tokio::main(flavor = "multi_thread", worker_threads = 2)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = std::env::temp_dir().join(format!("corsair-export-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// let (data, lines, new) = (dir.join("data"), dir.join("lines"), dir.join("new"));
/// let node = Node::start(Options { data: Some(data.clone()), ..Options::default() }).await?;
/// export(&data, std::fs::File::create(&lines)?).await?; // while the node serves
/// node.close().await;
///
/// import(std::io::BufReader::new(std::fs::File::open(&lines)?), &new).await?;
/// let node = Node::start(Options { data: Some(new), ..Options::default() }).await?;
/// node.close().await;
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
pub async fn import(from: impl BufRead + Send + 'static, data: &Path) -> Result<u64, BackupError> {
    let data = data.to_owned();
    blocking(move || Ok(build(from, &data))).await?
}

fn build(from: impl BufRead, data: &Path) -> Result<u64, BackupError> {
    refuse_data(data)?;
    private_directory(data).map_err(unusable(data))?;
    let imported: PathBuf = data.join(IMPORTED);
    let built = (|| {
        let log = embedded::random_identity()?;
        let refused = |reason| BackupError::Refused(format!("cannot import: {reason}"));
        let builder = IndexBuilder::create(&imported, log);
        let builder = builder.map_err(|error| refused(error.to_string()))?;
        let position = read(from, builder).map_err(refused)?;
        embedded::begin(data, log, position)?;
        let index = data.join(crate::index::FILE);
        std::fs::rename(&imported, &index).map_err(unusable(&index))?;
        Ok(position)
    })();
    if built.is_err() {
        let _ = std::fs::remove_file(&imported);
        embedded::remove(data);
    }
    built
}

/// Reads lines up to the line that ends the export.
fn read(mut from: impl BufRead, mut builder: IndexBuilder) -> Result<u64, String> {
    let mut checked = Checked::default();
    let mut bytes = Vec::new();
    loop {
        let number = checked.lines + 1;
        bytes.clear();
        let length = io::Read::take(&mut from, LONGEST as u64 + 1).read_until(b'\n', &mut bytes);
        let length = length.map_err(|error| error.to_string())?;
        if length > LONGEST {
            return Err(format!("line {number} has more than {LONGEST} bytes"));
        }
        if bytes.pop_if(|last| *last == b'\n').is_none() {
            return Err(format!(
                "the export ends within line {number} or before it, and a complete one ends with a line of the kind 'end'"
            ));
        }
        let unreadable =
            |error: serde_json::Error| format!("line {number} cannot be read: {error}");
        match serde_json::from_slice::<Line>(&bytes) {
            Ok(line) => {
                builder.push(line)?;
                bytes.push(b'\n');
                checked.add(&bytes);
            }
            Err(error) => {
                let Ok(last) = serde_json::from_slice::<Last>(&bytes) else {
                    return Err(unreadable(error));
                };
                if last != checked.end() {
                    return Err(format!(
                        "line {number}, the last one, does not match the lines before it: the export was changed or is incomplete"
                    ));
                }
                let more = from.fill_buf().map_err(|error| error.to_string())?;
                if !more.is_empty() {
                    return Err(format!("lines follow the last line, {number}"));
                }
                return builder.finish();
            }
        }
    }
}
