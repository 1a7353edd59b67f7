//! Checkpoints on disk: a saved run and the output it has written so far, as a set of files that is either complete or
//! absent.
//!
//! A checkpoint is a subdirectory of the directory that the user names, for example `000007`. A checkpoint that the
//! user requested explicitly is named `000007-asked` and is never removed. The checkpoint is first written under a
//! temporary name next to its final place ([`Staging`]). Every file is synced, the manifest is written last, and then
//! the directory is renamed. So every directory with the name of a checkpoint is complete, even if the process was
//! killed at any time. The manifest has the length and the CRC-32 of every file, and a CRC-32 of itself.
//!
//! All checkpoints in one directory belong to one run ([`RunId`]). Another run, or a branch of the same run, cannot
//! save itself there and uses another directory ([`branch_directory`]).

mod error;
mod manifest;
mod run_id;
mod stored;

pub use error::CheckpointError;
pub use manifest::{Manifest, SavedFile};
pub use run_id::{RunId, branch_directory};

use corsair::{Snapshot, SnapshotError, StoredPart};
use manifest::{FORMAT, MANIFEST, read_manifest, write_manifest};
use serde_json::Value;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use stored::StoredFile;

/// The number of automatic checkpoints that are kept: the newest ones.
const KEPT: usize = 2;

/// The program that writes checkpoints. Only the same build reads them, because the layout of the state
/// follows the source code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program's name.
    pub name: &'static str,
    /// The program's version.
    pub version: &'static str,
    /// A hash of the sources from which the program was built.
    pub build: &'static str,
}

/// The contents of a checkpoint before it is written.
#[derive(Debug)]
pub struct Draft {
    /// The program that writes the checkpoint.
    pub program: Program,
    /// The run that is saved.
    pub run: RunId,
    /// The virtual time of the checkpoint in nanoseconds.
    pub time: u64,
    /// True if the checkpoint was requested explicitly.
    pub asked: bool,
    /// Further data that the program needs to resume the run.
    pub details: Value,
    /// The saved run, file by file.
    pub files: Vec<(String, Vec<u8>)>,
    /// The output files so far.
    pub outputs: Vec<Output>,
}

/// A file that a run is still writing. The first bytes of the file are part of a checkpoint; more may be appended at
/// any time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The name in the checkpoint.
    pub name: String,
    /// The path at which the file is being written.
    pub source: PathBuf,
    /// The number of bytes that belong to the checkpoint.
    pub bytes: u64,
    /// The CRC-32 of these bytes.
    pub crc32: u32,
}

/// A complete checkpoint that was read.
pub struct Checkpoint {
    /// The directory of the checkpoint.
    pub directory: PathBuf,
    /// The manifest, which lists the files of the checkpoint.
    pub manifest: Manifest,
    /// The small files of the saved run, in the order in which they were written.
    pub files: Vec<(String, Vec<u8>)>,
    /// The saved state of the workers. It is as large as the run, so it stays on disk. Only the needed bytes are read.
    parts: Vec<Arc<dyn StoredPart>>,
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Checkpoint")
            .field("directory", &self.directory)
            .field("manifest", &self.manifest)
            .finish_non_exhaustive()
    }
}

impl Checkpoint {
    /// Returns the saved run.
    ///
    /// # Errors
    /// If the files are not a saved run.
    pub fn snapshot(&self) -> Result<Snapshot, SnapshotError> {
        let head = self.files.iter().find(|(name, _)| name == HEAD);
        let head = head.map(|(_, head)| head.clone()).unwrap_or_default();
        Snapshot::stored_in(head, self.parts.clone())
    }
}

/// The name of the file with the data that all parts share.
pub const HEAD: &str = "head";

/// The name of the file with the state of the component that writes a run's files.
pub const RECORDER: &str = "recorder.json";

/// The prefix of the names of parts.
const PART: &str = "part-";

/// Returns the file name of the part of this worker, counted from 0.
pub fn part_name(worker: usize) -> String {
    format!("{PART}{:04}", worker + 1)
}

/// Returns the files of a saved run.
///
/// # Errors
/// If a part is stored elsewhere and cannot be read.
pub fn files_of(snapshot: Snapshot) -> Result<Vec<(String, Vec<u8>)>, SnapshotError> {
    let (head, parts) = snapshot.into_parts()?;
    let parts = (0..).zip(parts);
    let parts = parts.map(|(worker, part)| (part_name(worker), part));
    Ok(std::iter::once((HEAD.to_owned(), head))
        .chain(parts)
        .collect())
}

/// Writes a checkpoint below this directory, which is created if it is missing. Removes the oldest automatic
/// checkpoints. Returns the directory of the new checkpoint.
///
/// # Errors
/// If the checkpoint cannot be written; then no checkpoint is left behind.
pub fn write(below: &Path, mut draft: Draft) -> Result<PathBuf, CheckpointError> {
    remove_left(below);
    check_run(below, draft.run)?;
    let mut staging = Staging::new(below, &std::process::id().to_string());
    staging.create()?;
    // The lock prevents other processes from removing the unfinished checkpoint.
    staging.hold();
    let files = std::mem::take(&mut draft.files).into_iter();
    let files = files.map(|(name, contents)| staging.write(name, &contents));
    let placed = files
        .collect::<Result<_, _>>()
        .and_then(|files| staging.complete(files, draft));
    placed.inspect_err(|_| staging.remove())
}

/// The pause between two checks whether a directory is free.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest time to wait for a run that has ended to release the directory.
const LEAVING: Duration = Duration::from_secs(2);

/// A lock on the checkpoint directory of a run, so that no other process saves a run there at the same time.
#[derive(Debug)]
pub struct Claim {
    below: PathBuf,
    was_made: bool,
    _held: Option<File>,
}

impl Claim {
    /// Holds this directory for a run until the claim is dropped. Creates the directory if it is missing. A directory that
    /// cannot be created or locked is not held; writing the first checkpoint reports that error.
    ///
    /// # Errors
    /// If another process holds the directory, or if the directory has checkpoints of another run.
    pub fn new(below: &Path, run: RunId) -> Result<Claim, CheckpointError> {
        let was_made = !below.exists() && fs::create_dir_all(below).is_ok();
        let until = Instant::now() + LEAVING;
        let held = loop {
            let Ok(directory) = File::open(below) else {
                break None;
            };
            match directory.try_lock() {
                Ok(()) => break Some(directory),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    return Err(CheckpointError::Taken {
                        path: below.to_owned(),
                    });
                }
                Err(TryLockError::Error(_)) => break None,
            }
        };
        let claim = Claim {
            below: below.to_owned(),
            was_made,
            _held: held,
        };
        check_run(below, run)?;
        Ok(claim)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.was_made {
            // Removes the directory only if it is empty.
            let _ = fs::remove_dir(&self.below);
        }
    }
}

/// Prefix of the directories of checkpoints that are being written.
const STAGING: &str = ".staging-";

/// A checkpoint that one process, or several processes with access to the same directory, are writing. Until it is
/// complete, it does not count as a checkpoint.
#[derive(Debug)]
pub struct Staging {
    below: PathBuf,
    path: PathBuf,
    held: Option<File>,
}

impl Staging {
    /// Creates an unfinished checkpoint below this directory. All processes that write it must use the same name.
    pub fn new(below: &Path, name: &str) -> Staging {
        Staging {
            below: below.to_owned(),
            path: below.join(format!("{STAGING}{name}")),
            held: None,
        }
    }

    /// Creates the directory, unless another process has created it.
    ///
    /// # Errors
    /// If the directory cannot be created.
    pub fn create(&self) -> Result<(), CheckpointError> {
        fs::create_dir_all(&self.path).map_err(|error| cannot(&self.path, error))
    }

    fn hold(&mut self) {
        // On systems that cannot lock directories, no other process removes an unfinished checkpoint.
        let locked = File::open(&self.path).and_then(|held| {
            held.try_lock()?;
            Ok(held)
        });
        self.held = locked.ok();
    }

    /// Writes a file of the checkpoint.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, name: String, contents: &[u8]) -> Result<SavedFile, CheckpointError> {
        let path = self.path.join(&name);
        // A file that an earlier process of the same name has left.
        let _ = fs::remove_file(&path);
        write_file(&path, contents).map_err(|error| cannot(&path, error))?;
        Ok(SavedFile {
            name,
            bytes: contents.len() as u64,
            crc32: crc32fast::hash(contents),
        })
    }

    /// Completes a checkpoint from the draft and from these files, all of which have been written. Removes the oldest
    /// checkpoints of the run that were not requested explicitly. Returns the directory of the checkpoint.
    ///
    /// # Errors
    /// If a file is missing or has another length, if the directory has checkpoints of another run, or if the
    /// checkpoint cannot be written; then no checkpoint is left behind.
    pub fn complete(
        &self,
        files: Vec<SavedFile>,
        draft: Draft,
    ) -> Result<PathBuf, CheckpointError> {
        check_run(&self.below, draft.run)?;
        for file in &files {
            let path = self.path.join(&file.name);
            let bytes = match fs::metadata(&path) {
                Ok(metadata) => metadata.len(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(CheckpointError::Elsewhere { path });
                }
                Err(error) => return Err(CheckpointError::Read { path, error }),
            };
            if bytes != file.bytes {
                let saved = file.bytes;
                return Err(CheckpointError::Length { path, bytes, saved });
            }
        }
        let number = all(&self.below)?.last().map_or(1, |last| last.number + 1);
        let name = match draft.asked {
            true => format!("{number:06}-asked"),
            false => format!("{number:06}"),
        };
        self.seal(files, draft)?;
        let place = self.below.join(name);
        fs::rename(&self.path, &place).map_err(|error| cannot(&place, error))?;
        sync(&self.below)?;
        prune(&self.below)?;
        Ok(place)
    }

    /// Writes the manifest, and links the output files into the checkpoint.
    fn seal(&self, files: Vec<SavedFile>, draft: Draft) -> Result<(), CheckpointError> {
        let mut manifest = Manifest {
            format: FORMAT,
            program: draft.program.name.to_owned(),
            version: draft.program.version.to_owned(),
            build: draft.program.build.to_owned(),
            run: draft.run,
            time: draft.time,
            details: draft.details,
            files,
            outputs: Vec::new(),
        };
        for output in draft.outputs {
            let path = self.path.join(&output.name);
            let _ = fs::remove_file(&path);
            // Links the file under a second name, which remains valid if the first name is given to another file.
            fs::hard_link(&output.source, &path)
                .or_else(|_| copy_begin(&output.source, &path, output.bytes))
                .map_err(|error| cannot(&path, error))?;
            manifest.outputs.push(SavedFile {
                name: output.name,
                bytes: output.bytes,
                crc32: output.crc32,
            });
        }
        let path = self.path.join(MANIFEST);
        let _ = fs::remove_file(&path);
        let text = write_manifest(&manifest).map_err(|error| cannot(&path, error.into()))?;
        write_file(&path, &text).map_err(|error| cannot(&path, error))?;
        sync(&self.path)
    }

    /// Removes an incomplete checkpoint.
    pub fn remove(&self) {
        // Files that cannot be removed now are removed with the leftovers of killed processes.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the unfinished checkpoints below this directory whose processes were killed while they wrote.
pub fn remove_left(below: &Path) {
    crate::replacement::remove_left(below, |name| name.starts_with(STAGING));
}

fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(contents)?;
    file.sync_all()
}

/// Copies the first bytes of a file.
fn copy_begin(from: &Path, to: &Path, bytes: u64) -> io::Result<()> {
    let mut copy = File::create_new(to)?;
    io::copy(&mut File::open(from)?.take(bytes), &mut copy)?;
    copy.sync_all()
}

/// Syncs the changes of a directory to disk.
fn sync(directory: &Path) -> Result<(), CheckpointError> {
    // On systems that cannot open directories, the rename is not synced.
    match File::open(directory) {
        Ok(opened) => opened.sync_all().map_err(|error| cannot(directory, error)),
        Err(_) => Ok(()),
    }
}

fn cannot(path: &Path, error: io::Error) -> CheckpointError {
    CheckpointError::Write {
        path: path.to_owned(),
        error,
    }
}

/// A checkpoint and the parts of its directory name.
#[derive(Debug)]
struct CheckpointEntry {
    number: u64,
    asked: bool,
    path: PathBuf,
}

/// Returns the checkpoints below a directory, in the order of their numbers.
fn all(below: &Path) -> Result<Vec<CheckpointEntry>, CheckpointError> {
    let entries = fs::read_dir(below).map_err(|error| CheckpointError::Read {
        path: below.to_owned(),
        error,
    })?;
    let found = entries.filter_map(|entry| {
        let path = entry.ok()?.path();
        let name = path.file_name()?.to_str()?;
        let asked = name.strip_suffix("-asked");
        let number = asked.unwrap_or(name);
        let digits = number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| number.parse().ok())??;
        let asked = asked.is_some();
        Some(CheckpointEntry {
            number,
            asked,
            path,
        })
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|found| found.number);
    Ok(found)
}

/// Checks that the newest checkpoint below a directory, if there is one, belongs to this run.
fn check_run(below: &Path, run: RunId) -> Result<(), CheckpointError> {
    let Ok(newest) = find(below) else {
        return Ok(());
    };
    match manifest(&newest) {
        Ok(manifest) if manifest.run != run => Err(CheckpointError::OtherRun {
            path: below.to_owned(),
        }),
        // A checkpoint with an unreadable manifest cannot be resumed.
        _ => Ok(()),
    }
}

/// Removes the automatic checkpoints except the newest.
fn prune(below: &Path) -> Result<(), CheckpointError> {
    let own: Vec<_> = all(below)?.into_iter().filter(|one| !one.asked).collect();
    for old in &own[..own.len().saturating_sub(KEPT)] {
        // The manifest is removed first, so that an interrupted removal leaves no valid checkpoint.
        let _ = fs::remove_file(old.path.join(MANIFEST));
        fs::remove_dir_all(&old.path).map_err(|error| cannot(&old.path, error))?;
    }
    Ok(())
}

/// Reads the manifest of the checkpoint in this directory.
///
/// # Errors
/// If the manifest cannot be read, or is damaged.
pub fn manifest(directory: &Path) -> Result<Manifest, CheckpointError> {
    read_manifest(&directory.join(MANIFEST))
}

/// Returns the newest checkpoint below this directory, or the directory itself if it is a checkpoint.
///
/// # Errors
/// If there is no checkpoint.
pub fn find(directory: &Path) -> Result<PathBuf, CheckpointError> {
    if directory.join(MANIFEST).exists() {
        return Ok(directory.to_owned());
    }
    let mut found = all(directory)?;
    found.retain(|one| one.path.join(MANIFEST).exists());
    found
        .pop()
        .map(|one| one.path)
        .ok_or_else(|| CheckpointError::None {
            path: directory.to_owned(),
        })
}

/// Reads and checks a checkpoint of the same build of this program. For the parts of the run and its output
/// files, only the lengths are checked here; their contents are checked when they are read.
///
/// # Errors
/// Returns the name of the first file that differs, or both builds if another build wrote the checkpoint.
pub fn read(directory: &Path, program: Program) -> Result<Checkpoint, CheckpointError> {
    let manifest = read_manifest(&directory.join(MANIFEST))?;
    let Program {
        name,
        version,
        build,
    } = program;
    let saved = (&*manifest.program, &*manifest.version, &*manifest.build);
    if saved != (name, version, build) {
        return Err(CheckpointError::Other {
            path: directory.to_owned(),
            saved: format!("{} {}, build {}", saved.0, saved.1, saved.2),
            ours: format!("{name} {version}, build {build}"),
        });
    }
    let (mut files, mut parts) = (Vec::new(), Vec::new());
    for file in &manifest.files {
        let path = directory.join(&file.name);
        if file.name.starts_with(PART) {
            parts.push((file.name.clone(), StoredFile::open(path, file)?));
        } else {
            files.push((file.name.clone(), whole(&path, file)?));
        }
    }
    for output in &manifest.outputs {
        stored::check_length(&directory.join(&output.name), output.bytes, u64::ge)?;
    }
    // Processes write their parts in any order.
    parts.sort_by(|(one, _), (other, _)| one.len().cmp(&other.len()).then(one.cmp(other)));
    let parts = parts.into_iter();
    Ok(Checkpoint {
        directory: directory.to_owned(),
        manifest,
        files,
        parts: parts
            .map(|(_, part)| Arc::new(part) as Arc<dyn StoredPart>)
            .collect(),
    })
}

/// Returns the complete contents of a file, which must match the manifest.
fn whole(path: &Path, file: &SavedFile) -> Result<Vec<u8>, CheckpointError> {
    let contents = fs::read(path).map_err(|error| CheckpointError::Read {
        path: path.to_owned(),
        error,
    })?;
    let length = contents.len() as u64;
    if length != file.bytes {
        return Err(CheckpointError::Length {
            path: path.to_owned(),
            bytes: length,
            saved: file.bytes,
        });
    }
    if crc32fast::hash(&contents) != file.crc32 {
        return Err(CheckpointError::Changed {
            path: path.to_owned(),
        });
    }
    Ok(contents)
}

/// Copies the part of an output that belongs to a checkpoint, after checking it.
///
/// # Errors
/// If the file cannot be read or is damaged, or if `to` cannot be written.
pub fn begin_of(path: &Path, file: &SavedFile, to: &mut impl Write) -> Result<(), CheckpointError> {
    let unreadable = |error| CheckpointError::Read {
        path: path.to_owned(),
        error,
    };
    let mut from = File::open(path).map_err(unreadable)?.take(file.bytes);
    let mut buffer = vec![0; 1 << 16];
    let mut sum = crc32fast::Hasher::new();
    let mut bytes = 0;
    loop {
        let read = from.read(&mut buffer).map_err(unreadable)?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        sum.update(&buffer[..read]);
        to.write_all(&buffer[..read]).map_err(unreadable)?;
    }
    if bytes != file.bytes {
        return Err(CheckpointError::Length {
            path: path.to_owned(),
            bytes,
            saved: file.bytes,
        });
    }
    match sum.finalize() == file.crc32 {
        true => Ok(()),
        false => Err(CheckpointError::Changed {
            path: path.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests;
