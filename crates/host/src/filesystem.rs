//! The file system of one host. Names and contents exist in two versions: the version that programs see, and the
//! version on the disk.
//!
//! The journal and the files' contents are in memory that outlives the host's process, and the journal determines the
//! rest of the state. So the page cache survives when the program is killed. [`FileSystem::lose_power`] decides which
//! data survives a power loss.
//!
//! - **Contents**: a file has a live and a durable version. A sync copies the dirty pages to the durable version. A
//!   power loss chooses one of the two versions at random for each page or each sector.
//! - **Names**: changes of directories are pending, in order, until the directory is synced. A power loss loses a
//!   random part of them, but never keeps a change that depends on a lost one.

mod checkpoint;
mod disks;
mod inode;
mod loss;
mod names;
mod record;

use crate::storage::{MOST_BYTES, Medium, SLOTS, Version};
use inode::{Dirty, Edit, PAGE};
pub(crate) use inode::{Ino, Inode, Node, ROOT};
use record::{Journal, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The time after which changes of names become durable without a sync, as a journal commit of a real kernel does.
const COMMIT_AFTER: u64 = 5_000_000_000;
/// The number of bytes that the journal grows after a checkpoint until another checkpoint is made.
const CHECKPOINT_AFTER: usize = 4 << 20;

/// Changes of names that become durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    edits: Vec<Edit>,
    time: u64,
}

/// A file system.
#[derive(Debug)]
pub(crate) struct FileSystem {
    medium: Medium,
    journal: Journal,
    inodes: BTreeMap<Ino, Inode>,
    /// Changes of names that are not durable.
    pending: Vec<Change>,
    /// For each inode, the number of pending changes that refer to it.
    pins: BTreeMap<Ino, u32>,
    /// Inodes without a name, which exist while descriptors or pending changes refer to them.
    nameless: BTreeSet<Ino>,
    /// The total size of all files in bytes.
    used: u64,
    /// The size of the journal at the last checkpoint, in bytes.
    checkpoint: usize,
}

impl FileSystem {
    /// Opens the file system in a medium, in the state in which the last process left it. A new file system has only a
    /// root directory. The journal is mapped at `address`; if `address` is 0, the system chooses the address.
    pub(crate) fn open(medium: Medium, address: usize) -> io::Result<FileSystem> {
        let journal = Journal::new(medium.map_journal(address)?);
        let records = journal.records();
        let mut system = FileSystem {
            medium,
            journal,
            inodes: BTreeMap::new(),
            pending: vec![],
            pins: BTreeMap::new(),
            nameless: BTreeSet::new(),
            used: 0,
            checkpoint: 0,
        };
        for record in &records {
            system.apply(record);
        }
        if records.is_empty() {
            system.record(Record::Make {
                ino: ROOT,
                kind: libc::DT_DIR,
                mode: 0o755,
                time: 0,
                target: vec![],
            });
        }
        if let Some(root) = system.inodes.get_mut(&ROOT) {
            root.links = 1;
        }
        system.nameless.remove(&ROOT);
        for inode in system.inodes.values_mut() {
            if let Node::File { dirty, .. } = &mut inode.node
                && !records.is_empty()
            {
                *dirty = Dirty::Any;
            }
        }
        system.checkpoint = system.journal.len();
        Ok(system)
    }

    // ---- reading -----------------------------------------------------------------------------------

    /// Returns an inode, which must exist.
    pub(crate) fn inode(&self, ino: Ino) -> Option<&Inode> {
        self.inodes.get(&ino)
    }

    /// Returns the entries of a directory; `None` if it is not a directory.
    pub(crate) fn entries(&self, ino: Ino) -> Option<&BTreeMap<Vec<u8>, Ino>> {
        match &self.inodes.get(&ino)?.node {
            Node::Directory { entries, .. } => Some(entries),
            _ => None,
        }
    }

    /// Returns false if the inode's last name was removed and the inode exists only because it is open.
    pub(crate) fn has_name(&self, ino: Ino) -> bool {
        self.inodes.get(&ino).is_some_and(|inode| inode.links > 0)
    }

    /// Returns the parent of a directory. The parent of the root is the root itself.
    pub(crate) fn parent(&self, ino: Ino) -> Ino {
        match self.inodes.get(&ino).map(|inode| &inode.node) {
            Some(Node::Directory { parent, .. }) => *parent,
            _ => ROOT,
        }
    }

    /// Returns the path of a directory; `None` if it was removed.
    pub(crate) fn path(&self, mut ino: Ino) -> Option<Vec<u8>> {
        let mut path = vec![];
        while ino != ROOT {
            let parent = self.parent(ino);
            let entries = self.entries(parent)?;
            let name = entries.iter().find(|&(_, &child)| child == ino)?.0;
            path.splice(0..0, [b"/", &name[..]].concat());
            ino = parent;
        }
        Some(if path.is_empty() { b"/".to_vec() } else { path })
    }

    /// Returns the total size of all files in bytes.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the location of a file's live content in the medium, for mappings.
    pub(crate) fn offset(&self, ino: Ino) -> (i32, u64) {
        (self.medium.fd(), self.medium.offset(ino, Version::Live))
    }

    /// Reads from a file into memory at an address. Returns the result that the kernel returns.
    pub(crate) fn read(&self, ino: Ino, at: u64, address: usize, length: usize) -> isize {
        let size = self.inodes.get(&ino).map_or(0, Inode::size);
        let count = size.saturating_sub(at).min(length as u64) as usize;
        match count {
            0 => 0,
            count => self.medium.read_to(ino, at, address, count),
        }
    }

    /// Returns the complete contents of a file.
    pub(crate) fn contents(&self, ino: Ino) -> Vec<u8> {
        let size = self.inodes.get(&ino).map_or(0, Inode::size);
        let mut bytes = vec![0; size as usize];
        self.medium.read(ino, Version::Live, 0, &mut bytes);
        bytes
    }

    // ---- changing ----------------------------------------------------------------------------------

    /// Applies a change, and appends it to the journal.
    fn record(&mut self, record: Record) {
        let mut bytes = vec![];
        record.write(&mut bytes);
        let is_large = self.journal.len() > self.checkpoint * 2 + CHECKPOINT_AFTER;
        if is_large || !self.journal.append(&bytes) {
            self.write_checkpoint();
            let fits = self.journal.append(&bytes);
            assert!(fits, "the journal of a simulated disk is full");
        }
        self.apply(&record);
    }

    fn apply(&mut self, record: &Record) {
        match record {
            Record::Make {
                ino,
                kind,
                mode,
                time,
                target,
            } => {
                let inode = Inode {
                    node: Node::new(*kind, target.clone()),
                    mode: *mode,
                    links: 0,
                    opens: 0,
                    is_mapped: false,
                    accessed: *time,
                    modified: *time,
                    changed: *time,
                };
                self.inodes.insert(*ino, inode);
                self.nameless.insert(*ino);
            }
            Record::Names { edits, time } => self.apply_names(edits, *time),
            Record::Size {
                ino,
                size,
                is_set,
                time,
            } => self.set_size(*ino, *size, *is_set, *time),
            Record::Synced { ino, size } => {
                if let Some(Node::File {
                    durable,
                    set,
                    dirty,
                    ..
                }) = self.node_mut(*ino)
                {
                    (*durable, *set) = (*size, 0);
                    *dirty = Dirty::Pages(BTreeSet::new());
                }
            }
            Record::NamesSynced { directory } => {
                self.commit(|change| change.edits.iter().any(|edit| edit.directory == *directory))
            }
            Record::AllNamesSynced { before } => self.commit(|change| change.time <= *before),
            Record::Mode { ino, mode, time } => {
                if let Some(inode) = self.inodes.get_mut(ino) {
                    (inode.mode, inode.changed) = (*mode, *time);
                }
            }
            Record::Times {
                ino,
                accessed,
                modified,
                time,
            } => {
                if let Some(inode) = self.inodes.get_mut(ino) {
                    (inode.accessed, inode.modified) = (*accessed, *modified);
                    inode.changed = *time;
                }
            }
            Record::Accessed { ino, time } => {
                if let Some(inode) = self.inodes.get_mut(ino) {
                    inode.accessed = *time;
                }
            }
            Record::Free { ino } => {
                if let Some(inode) = self.inodes.remove(ino)
                    && let Node::File { size, .. } = inode.node
                {
                    self.used -= size;
                }
                self.nameless.remove(ino);
            }
        }
    }

    fn node_mut(&mut self, ino: Ino) -> Option<&mut Node> {
        self.inodes.get_mut(&ino).map(|inode| &mut inode.node)
    }

    fn set_size(&mut self, ino: Ino, new: u64, is_set: bool, time: u64) {
        let Some(inode) = self.inodes.get_mut(&ino) else {
            return;
        };
        (inode.modified, inode.changed) = (time, time);
        if let Node::File {
            size,
            durable,
            set,
            dirty,
        } = &mut inode.node
        {
            *set = if is_set { new } else { (*set).min(new) };
            self.used = self.used - *size + new;
            if new < *size {
                // If the file grows again, the truncated range must be zero on the disk, so it is dirty.
                dirty.mark(new, (*size).max(*durable));
            }
            *size = new;
        }
    }

    /// Creates an inode without a name, which is open once.
    ///
    /// # Errors
    /// `ENOSPC` if there are too many.
    pub(crate) fn make(
        &mut self,
        kind: u8,
        mode: u32,
        target: &[u8],
        time: u64,
    ) -> Result<Ino, i32> {
        let ino = (ROOT + 1..SLOTS).find(|ino| !self.inodes.contains_key(ino));
        let ino = ino.ok_or(libc::ENOSPC)?;
        self.record(Record::Make {
            ino,
            kind,
            mode,
            time,
            target: target.to_vec(),
        });
        self.open_inode(ino);
        Ok(ino)
    }

    /// Writes memory at an address into a file. Returns the result that the kernel returns.
    pub(crate) fn write(
        &mut self,
        ino: Ino,
        at: u64,
        address: usize,
        length: usize,
        time: u64,
    ) -> isize {
        if at >= MOST_BYTES {
            return -(libc::EFBIG as isize);
        }
        let length = length.min((MOST_BYTES - at) as usize);
        let count = self.medium.write_from(ino, at, address, length);
        if count > 0 {
            let end = at + count as u64;
            let size = self.inodes.get(&ino).map_or(0, Inode::size).max(end);
            if let Some(Node::File { dirty, .. }) = self.node_mut(ino) {
                dirty.mark(at, end);
            }
            self.record(Record::Size {
                ino,
                size,
                is_set: false,
                time,
            });
        }
        count
    }

    /// Truncates or extends a file.
    ///
    /// # Errors
    /// `EFBIG` if the size is too large.
    pub(crate) fn resize(&mut self, ino: Ino, size: u64, time: u64) -> Result<(), i32> {
        if size > MOST_BYTES {
            return Err(libc::EFBIG);
        }
        let before = self.inodes.get(&ino).map_or(0, Inode::size);
        self.medium.punch(ino, Version::Live, size, before);
        self.record(Record::Size {
            ino,
            size,
            is_set: true,
            time,
        });
        Ok(())
    }

    /// Zeroes a range of a file.
    pub(crate) fn zero(&mut self, ino: Ino, at: u64, end: u64) {
        self.medium.punch(ino, Version::Live, at, end);
        if let Some(Node::File { dirty, .. }) = self.node_mut(ino) {
            dirty.mark(at, end);
        }
    }

    /// Sets the permissions.
    pub(crate) fn set_mode(&mut self, ino: Ino, mode: u32, time: u64) {
        self.record(Record::Mode { ino, mode, time });
    }

    /// Sets the times of the last access and of the last change of the content.
    pub(crate) fn set_times(&mut self, ino: Ino, accessed: u64, modified: u64, time: u64) {
        self.record(Record::Times {
            ino,
            accessed,
            modified,
            time,
        });
    }

    /// Sets the time of the last access, like Linux only if the old one is not later than the last change, or is more
    /// than a day ago.
    pub(crate) fn note_access(&mut self, ino: Ino, time: u64) {
        const DAY: u64 = 86_400_000_000_000;
        let is_old = self.inodes.get(&ino).is_some_and(|inode| {
            inode.accessed <= inode.modified.max(inode.changed)
                || time.saturating_sub(inode.accessed) >= DAY
        });
        if is_old {
            self.record(Record::Accessed { ino, time });
        }
    }

    /// Marks a file as mapped. Writes through a mapping cannot be observed, so any page may be dirty from then on.
    pub(crate) fn map(&mut self, ino: Ino, is_written: bool) {
        self.open_inode(ino);
        if let Some(inode) = self.inodes.get_mut(&ino)
            && is_written
            && let Node::File { dirty, .. } = &mut inode.node
        {
            *dirty = Dirty::Any;
            inode.is_mapped = true;
        }
    }

    /// Adds the reference of a descriptor.
    pub(crate) fn open_inode(&mut self, ino: Ino) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.opens += 1;
        }
    }

    /// Removes the reference of a descriptor.
    pub(crate) fn close_inode(&mut self, ino: Ino) {
        if let Some(inode) = self.inodes.get_mut(&ino) {
            inode.opens = inode.opens.saturating_sub(1);
        }
        self.free_nameless();
    }

    /// Frees inodes without a name to which nothing refers.
    fn free_nameless(&mut self) {
        let is_free = |ino: &Ino| {
            !self.pins.contains_key(ino)
                && self.inodes.get(ino).is_none_or(|inode| inode.opens == 0)
        };
        let free: Vec<Ino> = self.nameless.iter().copied().filter(is_free).collect();
        for ino in free {
            self.free(ino);
        }
    }

    fn free(&mut self, ino: Ino) {
        if let Some(Node::File { size, durable, .. }) = self.node_mut(ino) {
            let end = (*size).max(*durable);
            for version in [Version::Live, Version::Durable] {
                self.medium
                    .punch(ino, version, 0, end.next_multiple_of(PAGE));
            }
        }
        self.record(Record::Free { ino });
    }
}
