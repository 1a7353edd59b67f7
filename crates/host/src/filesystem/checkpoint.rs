//! Replaces a long journal with a short one.

use super::{Edit, FileSystem, Ino, Node, Record};
use std::collections::BTreeMap;

impl FileSystem {
    /// Replaces the journal with records that give the same state.
    pub(super) fn write_checkpoint(&mut self) {
        let mut bytes = vec![];
        for record in self.checkpoint_records() {
            record.write(&mut bytes);
        }
        self.journal.clear();
        let fits = self.journal.append(&bytes);
        assert!(fits, "the journal of a simulated disk is full");
        self.checkpoint = bytes.len();
    }

    fn checkpoint_records(&self) -> Vec<Record> {
        let mut records = vec![];
        let mut names: BTreeMap<(Ino, &[u8]), Ino> = BTreeMap::new();
        for (&ino, inode) in &self.inodes {
            let target = match &inode.node {
                Node::Link(target) => target.clone(),
                _ => vec![],
            };
            records.push(Record::Make {
                ino,
                kind: inode.node.code(),
                mode: inode.mode,
                time: inode.changed,
                target,
            });
            if let Node::File {
                size, durable, set, ..
            } = &inode.node
            {
                // The order matters: a size that is smaller than the durable one marks pages as dirty.
                records.push(Record::Synced {
                    ino,
                    size: *durable,
                });
                let sized = |size, is_set| Record::Size {
                    ino,
                    size,
                    is_set,
                    time: inode.modified,
                };
                records.extend((*set > 0).then(|| sized(*set, true)));
                records.push(sized(*size, false));
            }
            if let Node::Directory { entries, .. } = &inode.node {
                names.extend(
                    entries
                        .iter()
                        .map(|(name, &child)| ((ino, &name[..]), child)),
                );
            }
        }
        for change in self.pending.iter().rev() {
            for edit in change.edits.iter().rev() {
                let key = (edit.directory, &edit.name[..]);
                match edit.before {
                    Some(before) => names.insert(key, before),
                    None => names.remove(&key),
                };
            }
        }
        let edits = names.into_iter().map(|((directory, name), ino)| Edit {
            directory,
            name: name.to_vec(),
            before: None,
            after: Some(ino),
        });
        records.push(Record::Names {
            edits: edits.collect(),
            time: 0,
        });
        records.push(Record::AllNamesSynced { before: u64::MAX });
        records.extend(self.pending.iter().map(|change| Record::Names {
            edits: change.edits.clone(),
            time: change.time,
        }));
        // Restores the times of directories, which the records of names have changed.
        records.extend(self.inodes.iter().map(|(&ino, inode)| Record::Times {
            ino,
            accessed: inode.accessed,
            modified: inode.modified,
            time: inode.changed,
        }));
        records
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dirty, ROOT};
    use super::*;
    use crate::storage::Medium;

    /// Formats the state that a process reads from the journal, without descriptors and dirty pages.
    fn state(system: &FileSystem) -> String {
        let inodes = system.inodes.iter().map(|(ino, inode)| {
            let mut inode = inode.clone();
            inode.opens = 0;
            if let Node::File { dirty, .. } = &mut inode.node {
                *dirty = Dirty::Any;
            }
            (*ino, inode)
        });
        let inodes: BTreeMap<_, _> = inodes.collect();
        format!(
            "{inodes:?} {:?} {:?} {:?} {}",
            system.pending, system.pins, system.nameless, system.used
        )
    }

    /// Changes names and contents at random.
    fn change(system: &mut FileSystem, random: &mut corsair::Random, time: u64) {
        let name = [b'a' + random.below(6) as u8];
        let entries = |ino| system.has_name(ino) && system.entries(ino).is_some();
        let directories: Vec<Ino> = system
            .inodes
            .keys()
            .copied()
            .filter(|&ino| entries(ino))
            .collect();
        let directory = directories[random.below(directories.len() as u32) as usize];
        let existing = system
            .entries(directory)
            .and_then(|entries| entries.get(&name[..]).copied());
        match (random.below(6), existing) {
            (0 | 1, None) => {
                let kind = [libc::DT_REG, libc::DT_DIR, libc::DT_LNK][random.below(3) as usize];
                let ino = system.make(kind, 0o644, b"target", time).unwrap();
                system.set_names(vec![(directory, &name, Some(ino))], time);
                system.close_inode(ino);
            }
            (2, Some(ino)) if system.entries(ino).is_none_or(BTreeMap::is_empty) => {
                system.set_names(vec![(directory, &name, None)], time);
            }
            (3, Some(ino)) if system.entries(ino).is_none() => {
                let edits = vec![(directory, &name[..], None), (ROOT, b"moved", Some(ino))];
                if directory != ROOT {
                    system.set_names(edits, time);
                }
            }
            (4, Some(ino)) if system.entries(ino).is_none() => {
                let bytes = [7; 6000];
                system.write(
                    ino,
                    u64::from(random.below(9000)),
                    bytes.as_ptr() as usize,
                    6000,
                    time,
                );
                if random.below(3) == 0 {
                    system
                        .resize(ino, u64::from(random.below(9000)), time)
                        .unwrap();
                }
            }
            (5, Some(ino)) => system.sync(ino),
            _ => system.sync(directory),
        }
    }

    #[test]
    fn a_journal_and_its_checkpoint_yield_the_state() {
        let medium = Medium::new().unwrap();
        let mut pending = 0;
        for seed in 0..20 {
            let medium = medium.of_host(seed).unwrap();
            let mut system = FileSystem::open(medium, 0).unwrap();
            let mut random = corsair::Random::new(seed as u64);
            for time in 0..200 {
                change(&mut system, &mut random, time * 50_000_000);
            }
            pending += system.pending.len();
            let reopened = FileSystem::open(medium, 0).unwrap();
            assert_eq!(state(&reopened), state(&system), "{seed}");
            system.write_checkpoint();
            let reopened = FileSystem::open(medium, 0).unwrap();
            assert_eq!(state(&reopened), state(&system), "{seed}, checkpoint");
        }
        assert!(pending > 20, "{pending} changes were pending");
    }

    #[test]
    fn after_a_power_loss_all_names_lead_to_inodes_and_all_inodes_have_names() {
        let medium = Medium::new().unwrap();
        for seed in 0..200 {
            let medium = medium.of_host(seed).unwrap();
            let mut system = FileSystem::open(medium, 0).unwrap();
            let mut random = corsair::Random::new(seed as u64);
            for time in 0..60 {
                change(&mut system, &mut random, time * 50_000_000);
            }
            let mut system = FileSystem::open(medium, 0).unwrap();
            system.lose_power(|bound| random.below(bound as u32) as usize);
            let mut links: BTreeMap<Ino, u32> = BTreeMap::from([(ROOT, 1)]);
            for &ino in system.inodes.keys() {
                for &child in system
                    .entries(ino)
                    .into_iter()
                    .flatten()
                    .map(|entry| entry.1)
                {
                    *links.entry(child).or_default() += 1;
                }
            }
            for (ino, inode) in &system.inodes {
                assert_eq!(
                    links.remove(ino),
                    Some(inode.links),
                    "{seed}: {ino} {inode:?}"
                );
            }
            assert!(links.is_empty(), "{seed}: {links:?}");
        }
    }
}
