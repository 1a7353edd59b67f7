//! The effect of a power loss on a file system.

use super::{Change, FileSystem, Ino, Node, PAGE, ROOT, Version};
use std::collections::BTreeSet;

/// The unit that a disk writes atomically, in bytes.
const SECTOR: usize = 512;

/// The amount of unsynced data of a file, or of changes of names, that survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Survival {
    Nothing,
    Everything,
    /// A random selection of pages, or of changes.
    Some,
    /// A random selection of sectors survives, so that a page may be a mixture of both versions. Of the changes of
    /// names, only the first ones survive.
    Torn,
}

impl Survival {
    fn choose(random: &mut impl FnMut(usize) -> usize) -> Survival {
        [
            Survival::Nothing,
            Survival::Everything,
            Survival::Some,
            Survival::Torn,
        ][random(4)]
    }
}

impl FileSystem {
    /// Loses a part of the unsynced data, chosen by `random`, which returns a number below its argument.
    pub(crate) fn lose_power(&mut self, mut random: impl FnMut(usize) -> usize) {
        self.lose_names(&mut random);
        let files: Vec<Ino> = self.inodes.keys().copied().collect();
        for ino in files {
            self.lose_content(ino, &mut random);
        }
        for inode in self.inodes.values_mut() {
            inode.opens = 0;
        }
        let reachable = self.reachable();
        let lost: Vec<Ino> = self
            .inodes
            .keys()
            .copied()
            .filter(|ino| !reachable.contains(ino))
            .collect();
        for ino in lost {
            self.free(ino);
        }
        self.write_checkpoint();
    }

    /// Ends the program while the power stays on: written data stays, and files without names are removed.
    pub(crate) fn end_program(&mut self) {
        for inode in self.inodes.values_mut() {
            inode.opens = 0;
        }
        self.free_nameless();
    }

    fn lose_names(&mut self, random: &mut impl FnMut(usize) -> usize) {
        let survival = Survival::choose(random);
        let pending = std::mem::take(&mut self.pending);
        let first = random(pending.len() + 1);
        // A change is lost if an earlier change of one of its names was lost.
        let mut lost_names = BTreeSet::new();
        let mut lost: Vec<Change> = vec![];
        for (index, change) in pending.into_iter().enumerate() {
            let key = |edit: &super::Edit| (edit.directory, edit.name.clone());
            let depends = change
                .edits
                .iter()
                .any(|edit| lost_names.contains(&key(edit)));
            let survives = match survival {
                Survival::Nothing => false,
                Survival::Everything => true,
                Survival::Some => random(2) == 0,
                Survival::Torn => index < first,
            };
            if depends || !survives {
                lost_names.extend(change.edits.iter().map(key));
                lost.push(change);
            }
        }
        for change in lost.iter().rev() {
            for edit in change.edits.iter().rev() {
                let undo = super::Edit {
                    before: edit.after,
                    after: edit.before,
                    ..edit.clone()
                };
                self.set_name(&undo, None);
            }
        }
        self.pins.clear();
    }

    fn lose_content(&mut self, ino: Ino, random: &mut impl FnMut(usize) -> usize) {
        let Some(&Node::File {
            size, durable, set, ..
        }) = self.inodes.get(&ino).map(|inode| &inode.node)
        else {
            return;
        };
        let ranges = self.dirty_ranges(ino);
        if ranges.is_empty() && size == durable {
            return;
        }
        let survival = Survival::choose(random);
        // A file grows by writing, sector by sector, beyond the size that it had or that was set.
        let least = durable.max(set);
        let left = match survival {
            Survival::Nothing => durable,
            Survival::Everything => size,
            _ if size > least && random(2) == 0 => {
                let sectors = ((size - least) as usize).div_ceil(SECTOR);
                (least + (random(sectors) * SECTOR) as u64).min(size)
            }
            _ if least > durable => [size, durable, least][random(3)],
            _ => [size, durable][random(2)],
        };
        for page in ranges.iter().flat_map(|&(at, end)| at / PAGE..end / PAGE) {
            let at = page * PAGE;
            let (mut live, mut old) = ([0; PAGE as usize], [0; PAGE as usize]);
            self.medium.read(ino, Version::Live, at, &mut live);
            self.medium.read(ino, Version::Durable, at, &mut old);
            match survival {
                Survival::Nothing => live = old,
                Survival::Everything => {}
                Survival::Some => {
                    if random(2) == 0 {
                        live = old;
                    }
                }
                Survival::Torn => {
                    for sector in (0..PAGE as usize).step_by(SECTOR) {
                        if random(2) == 0 {
                            live[sector..sector + SECTOR]
                                .copy_from_slice(&old[sector..sector + SECTOR]);
                        }
                    }
                }
            }
            for version in [Version::Live, Version::Durable] {
                self.medium.write(ino, version, at, &live);
            }
        }
        let end = size.max(durable).next_multiple_of(PAGE);
        for version in [Version::Live, Version::Durable] {
            self.medium.punch(ino, version, left, end);
        }
        if let Some(Node::File {
            size,
            durable,
            set,
            dirty,
        }) = self.node_mut(ino)
        {
            (*size, *durable, *set) = (left, left, 0);
            *dirty = super::Dirty::Pages(BTreeSet::new());
        }
        self.used = self.used - size + left;
    }

    fn reachable(&self) -> BTreeSet<Ino> {
        let mut found = BTreeSet::from([ROOT]);
        let mut directories = vec![ROOT];
        while let Some(directory) = directories.pop() {
            for &ino in self
                .entries(directory)
                .into_iter()
                .flatten()
                .map(|(_, ino)| ino)
            {
                if found.insert(ino) {
                    directories.push(ino);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Medium;

    // Guarantee: host-6.
    #[test]
    fn a_size_that_was_set_is_reached_at_once() {
        let medium = Medium::new().unwrap();
        let mut left = BTreeSet::new();
        for seed in 0..400 {
            let medium = medium.of_host(seed).unwrap();
            let mut system = FileSystem::open(medium, 0).unwrap();
            let mut random = corsair::Random::new(seed as u64);
            let ino = system.make(libc::DT_REG, 0o644, &[], 0).unwrap();
            system.set_names(vec![(ROOT, b"file", Some(ino))], 0);
            let write = |system: &mut FileSystem, at| {
                let bytes = [7; 1_000];
                system.write(ino, at, bytes.as_ptr() as usize, bytes.len(), 1)
            };
            write(&mut system, 0);
            system.sync(ino);
            system.sync(ROOT);
            system.resize(ino, 100_000, 2).unwrap();
            write(&mut system, 50_000);
            if seed % 2 == 0 {
                write(&mut system, 100_000);
            }
            if seed % 3 == 0 {
                system.write_checkpoint();
            }
            let mut system = FileSystem::open(medium, 0).unwrap();
            system.lose_power(|bound| random.below(bound as u32) as usize);
            left.insert(system.inode(ino).unwrap().size());
        }
        assert_eq!(
            left,
            BTreeSet::from([1_000, 100_000, 100_512, 101_000]),
            "an append grows by sectors"
        );
    }
}
