//! Creates and syncs disks.

use super::{Dirty, FileSystem, Ino, Node, PAGE, ROOT, Record, Version};
use std::collections::BTreeSet;

impl FileSystem {
    /// Creates the usual directories and these files with their contents. All of them are durable.
    pub(crate) fn format<'a>(
        &mut self,
        files: impl Iterator<Item = (&'a str, &'a [u8])>,
        time: u64,
    ) {
        for path in ["/etc", "/home", "/tmp", "/var"] {
            self.directory_at(path, time);
        }
        for (path, contents) in files {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let directory = self.directory_at(parent, time);
            let Ok(ino) = self.make(libc::DT_REG, 0o644, b"", time) else {
                return;
            };
            self.set_names(vec![(directory, name.as_bytes(), Some(ino))], time);
            self.write(ino, 0, contents.as_ptr() as usize, contents.len(), time);
            self.close_inode(ino);
        }
        self.sync_all();
    }

    /// Returns the directory with this path, and creates it if it does not exist.
    fn directory_at(&mut self, path: &str, time: u64) -> Ino {
        let mut directory = ROOT;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let entries = self.entries(directory);
            let existing = entries.and_then(|entries| entries.get(name.as_bytes()));
            directory = match existing.copied() {
                Some(ino) => ino,
                None => {
                    let Ok(ino) = self.make(libc::DT_DIR, 0o755, b"", time) else {
                        return directory;
                    };
                    self.set_names(vec![(directory, name.as_bytes(), Some(ino))], time);
                    self.close_inode(ino);
                    ino
                }
            };
        }
        directory
    }

    /// Returns the inode with this absolute path. Symbolic links are not followed.
    pub(crate) fn find(&self, path: &str) -> Option<Ino> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        names.try_fold(ROOT, |directory, name| {
            self.entries(directory)?.get(name.as_bytes()).copied()
        })
    }

    /// Makes the content of a file, or the names of a directory, durable.
    pub(crate) fn sync(&mut self, ino: Ino) {
        let Some(inode) = self.inodes.get(&ino) else {
            return;
        };
        match &inode.node {
            Node::File { size, durable, .. } => {
                let (size, durable) = (*size, *durable);
                for (at, end) in self.dirty_ranges(ino) {
                    let end = end.min(size);
                    self.medium
                        .copy(ino, Version::Live, Version::Durable, at, end);
                }
                self.medium.punch(ino, Version::Durable, size, durable);
                self.record(Record::Synced { ino, size });
                self.expect_mapped_writes(ino);
            }
            Node::Directory { .. } => {
                if !self.pending.is_empty() {
                    self.record(Record::NamesSynced { directory: ino });
                    self.free_nameless();
                }
            }
            Node::Link(_) | Node::Socket | Node::Pipe => {}
        }
    }

    /// Marks all pages of a file as dirty again, if a mapping may write to them.
    fn expect_mapped_writes(&mut self, ino: Ino) {
        if let Some(inode) = self.inodes.get_mut(&ino)
            && inode.is_mapped
            && let Node::File { dirty, .. } = &mut inode.node
        {
            *dirty = Dirty::Any;
        }
    }

    /// Makes all names durable.
    pub(crate) fn sync_names(&mut self) {
        if !self.pending.is_empty() {
            self.record(Record::AllNamesSynced { before: u64::MAX });
            self.free_nameless();
        }
    }

    /// Makes everything durable.
    pub(crate) fn sync_all(&mut self) {
        let all: Vec<Ino> = self.inodes.keys().copied().collect();
        for ino in all {
            self.sync(ino);
        }
        self.sync_names();
    }

    /// Marks a file as clean although its content was not written to the disk, as Linux does after a failed write.
    pub(crate) fn forget_dirty(&mut self, ino: Ino) {
        if let Some(Node::File { dirty, .. }) = self.node_mut(ino) {
            *dirty = Dirty::Pages(BTreeSet::new());
        }
    }

    /// Writes one dirty page of a file to the disk, as a kernel does occasionally.
    pub(crate) fn write_back(&mut self, ino: Ino, choose: impl FnOnce(usize) -> usize) {
        let Some(Node::File { size, dirty, .. }) = self.node_mut(ino) else {
            return;
        };
        let size = *size;
        if let Dirty::Pages(pages) = dirty
            && !pages.is_empty()
            && let Some(page) = pages.iter().copied().nth(choose(pages.len()))
        {
            pages.remove(&page);
            let (at, end) = (page * PAGE, ((page + 1) * PAGE).min(size));
            self.medium
                .copy(ino, Version::Live, Version::Durable, at, end);
        }
    }

    /// Returns the ranges of a file whose versions may differ, in whole pages.
    pub(super) fn dirty_ranges(&self, ino: Ino) -> Vec<(u64, u64)> {
        let Some(Node::File {
            size,
            durable,
            dirty,
            ..
        }) = self.inodes.get(&ino).map(|inode| &inode.node)
        else {
            return vec![];
        };
        let mut ranges: Vec<(u64, u64)> = vec![];
        let mut add = |at: u64, end: u64| match ranges.last_mut() {
            Some(last) if last.1 == at => last.1 = end,
            _ => ranges.push((at, end)),
        };
        match dirty {
            Dirty::Pages(pages) => pages
                .iter()
                .for_each(|page| add(page * PAGE, (page + 1) * PAGE)),
            Dirty::Any => {
                let end = (*size).max(*durable);
                let mut pages = BTreeSet::new();
                for version in [Version::Live, Version::Durable] {
                    for (at, end) in self.medium.data(ino, version, 0, end) {
                        pages.extend(at / PAGE..end.div_ceil(PAGE));
                    }
                }
                let (mut live, mut durable) = ([0; PAGE as usize], [0; PAGE as usize]);
                for page in pages {
                    self.medium.read(ino, Version::Live, page * PAGE, &mut live);
                    self.medium
                        .read(ino, Version::Durable, page * PAGE, &mut durable);
                    if live != durable {
                        add(page * PAGE, (page + 1) * PAGE);
                    }
                }
            }
        }
        ranges
    }
}
