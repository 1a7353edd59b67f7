//! Inodes: files, directories and other nodes of a file system, and changes of their names.

use std::collections::{BTreeMap, BTreeSet};

/// The number of an inode, which is the slot of its contents. Numbers of removed inodes are reused.
pub(crate) type Ino = u32;
/// The root directory.
pub(crate) const ROOT: Ino = 1;

/// The size of a page in bytes.
pub(super) const PAGE: u64 = 4096;
/// The maximum number of dirty pages of one file that are listed; beyond it, all pages count as dirty.
const MOST_DIRTY: usize = 1 << 16;

/// The pages of a file whose versions may differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Dirty {
    Pages(BTreeSet<u64>),
    /// Any page may differ: a program writes through a mapping, or the process that knew the dirty pages has ended.
    Any,
}

impl Dirty {
    pub(super) fn mark(&mut self, at: u64, end: u64) {
        let Dirty::Pages(pages) = self else { return };
        let (first, last) = (at / PAGE, end.div_ceil(PAGE));
        if (last - first) as usize + pages.len() > MOST_DIRTY {
            *self = Dirty::Any;
        } else {
            pages.extend(first..last);
        }
    }
}

/// The type of an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    File {
        size: u64,
        durable: u64,
        /// The size that was set since the last sync, and not reached by writing, at most `size`; 0 if there is none.
        /// The disk has a size before or after it was set, and none in between.
        set: u64,
        dirty: Dirty,
    },
    Directory {
        entries: BTreeMap<Vec<u8>, Ino>,
        parent: Ino,
    },
    Link(Vec<u8>),
    /// The name of a Unix socket.
    Socket,
    /// The name of a pipe.
    Pipe,
}

impl Node {
    /// Returns the number of the node's type in the journal, and in directories as `d_type`.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Node::File { .. } => libc::DT_REG,
            Node::Directory { .. } => libc::DT_DIR,
            Node::Link(_) => libc::DT_LNK,
            Node::Socket => libc::DT_SOCK,
            Node::Pipe => libc::DT_FIFO,
        }
    }

    pub(super) fn new(code: u8, target: Vec<u8>) -> Node {
        match code {
            libc::DT_DIR => Node::Directory {
                entries: BTreeMap::new(),
                parent: ROOT,
            },
            libc::DT_LNK => Node::Link(target),
            libc::DT_SOCK => Node::Socket,
            libc::DT_FIFO => Node::Pipe,
            _ => Node::File {
                size: 0,
                durable: 0,
                set: 0,
                dirty: Dirty::Pages(BTreeSet::new()),
            },
        }
    }
}

/// An inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inode {
    pub node: Node,
    /// Permissions.
    pub mode: u32,
    /// The number of names.
    pub links: u32,
    /// The number of descriptors and mappings that refer to the inode. Mappings are never removed while the process
    /// lives.
    pub opens: u32,
    /// True if a mapping of this process writes to the file.
    pub is_mapped: bool,
    pub accessed: u64,
    pub modified: u64,
    pub changed: u64,
}

impl Inode {
    /// Returns the size of the content in bytes.
    pub(crate) fn size(&self) -> u64 {
        match &self.node {
            Node::File { size, .. } => *size,
            Node::Link(target) => target.len() as u64,
            Node::Directory { .. } => PAGE,
            Node::Socket | Node::Pipe => 0,
        }
    }
}

/// A change of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub directory: Ino,
    pub name: Vec<u8>,
    pub before: Option<Ino>,
    pub after: Option<Ino>,
}
