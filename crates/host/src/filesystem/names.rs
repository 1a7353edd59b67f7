//! Changes of names. A change is visible at once, and durable when its directory is synced.

use super::{COMMIT_AFTER, Change, Edit, FileSystem, Ino, Node, Record};
use std::collections::BTreeSet;

impl FileSystem {
    /// Sets one name, and updates the link counts of its old and its new target.
    pub(super) fn set_name(&mut self, edit: &Edit, time: Option<u64>) {
        if let Some(directory) = self.inodes.get_mut(&edit.directory) {
            if let Node::Directory { entries, .. } = &mut directory.node {
                match edit.after {
                    Some(after) => entries.insert(edit.name.clone(), after),
                    None => entries.remove(&edit.name),
                };
            }
            if let Some(time) = time {
                (directory.modified, directory.changed) = (time, time);
            }
        }
        if let Some(before) = edit.before
            && let Some(inode) = self.inodes.get_mut(&before)
        {
            inode.links = inode.links.saturating_sub(1);
            if inode.links == 0 {
                self.nameless.insert(before);
            }
        }
        if let Some(after) = edit.after
            && let Some(inode) = self.inodes.get_mut(&after)
        {
            inode.links += 1;
            inode.changed = time.unwrap_or(inode.changed);
            if let Node::Directory { parent, .. } = &mut inode.node {
                *parent = edit.directory;
            }
            self.nameless.remove(&after);
        }
    }

    pub(super) fn apply_names(&mut self, edits: &[Edit], time: u64) {
        for edit in edits {
            self.set_name(edit, Some(time));
            for ino in [edit.before, edit.after].into_iter().flatten() {
                *self.pins.entry(ino).or_default() += 1;
            }
        }
        self.pending.push(Change {
            edits: edits.to_vec(),
            time,
        });
    }

    fn unpin(&mut self, change: &Change) {
        for edit in &change.edits {
            for ino in [edit.before, edit.after].into_iter().flatten() {
                if let Some(count) = self.pins.get_mut(&ino) {
                    *count -= 1;
                    if *count == 0 {
                        self.pins.remove(&ino);
                    }
                }
            }
        }
    }

    /// Makes the chosen pending changes durable, together with earlier changes on which they depend.
    pub(super) fn commit(&mut self, is_chosen: impl Fn(&Change) -> bool) {
        let mut names = BTreeSet::new();
        let mut left = vec![];
        for change in std::mem::take(&mut self.pending).into_iter().rev() {
            let key = |edit: &Edit| (edit.directory, edit.name.clone());
            let is_needed = change.edits.iter().any(|edit| names.contains(&key(edit)));
            if is_chosen(&change) || is_needed {
                names.extend(change.edits.iter().map(key));
                self.unpin(&change);
            } else {
                left.push(change);
            }
        }
        left.reverse();
        self.pending = left;
    }

    /// Sets several names at once; each edit contains the new target of a name.
    pub(crate) fn set_names(&mut self, edits: Vec<(Ino, &[u8], Option<Ino>)>, time: u64) {
        let edits = edits
            .into_iter()
            .map(|(directory, name, after)| Edit {
                directory,
                name: name.to_vec(),
                before: self
                    .entries(directory)
                    .and_then(|entries| entries.get(name))
                    .copied(),
                after,
            })
            .collect();
        let is_old = |change: &Change| change.time + COMMIT_AFTER <= time;
        if self.pending.first().is_some_and(is_old) {
            let before = time - COMMIT_AFTER;
            self.record(Record::AllNamesSynced { before });
        }
        self.record(Record::Names { edits, time });
        self.free_nameless();
    }
}
