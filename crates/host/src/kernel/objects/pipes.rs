//! The data of pipes: their ends and the buffered pages.

use super::files::LARGE_FILE;
use crate::filesystem::Ino;
use crate::kernel::user::{Error, error};
use crate::tcp::Id;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const PAGE: usize = 4096;
/// The number of pages that a new pipe buffers.
const PAGES: usize = 16;
/// The maximum number of pages that `F_SETPIPE_SZ` sets without privileges.
const MOST_PAGES: usize = 256;

/// The key of a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PipeKey {
    /// The number of a pipe without a name.
    Unnamed(u64),
    /// The inode of a named pipe.
    Named(Ino),
}

/// A descriptor's end of a pipe. The end of a named pipe can be opened for both directions.
#[derive(Debug)]
pub(crate) struct PipeEnd {
    pub pipe: PipeKey,
    pub can_read: bool,
    pub can_write: bool,
    /// The number of ends of the other direction that had been opened before this one, if all of them were closed;
    /// otherwise 0. While the number stays the same, this end has not had a partner.
    pub others_before: u64,
}

impl PipeEnd {
    /// Returns the flags that `F_GETFL` reports, without `O_NONBLOCK`.
    pub(crate) fn flags(&self) -> i32 {
        let mode = match (self.can_read, self.can_write) {
            (true, true) => libc::O_RDWR,
            (false, true) => libc::O_WRONLY,
            _ => libc::O_RDONLY,
        };
        mode | self.ino().map_or(0, |_| LARGE_FILE)
    }

    /// Returns the inode of a named pipe.
    pub(crate) fn ino(&self) -> Option<Ino> {
        match self.pipe {
            PipeKey::Named(ino) => Some(ino),
            PipeKey::Unnamed(_) => None,
        }
    }
}

/// A page of buffered bytes.
#[derive(Debug, Default)]
pub(crate) struct Page {
    bytes: Vec<u8>,
    /// The number of bytes that have been read.
    read: usize,
}

/// The ends of one direction.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    pub open: BTreeSet<Id>,
    /// The number of ends that have ever been opened.
    pub opened: u64,
}

impl Ends {
    pub(crate) fn add(&mut self, id: Id) {
        self.open.insert(id);
        self.opened += 1;
    }
}

/// A pipe to which at least one descriptor refers.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub pages: VecDeque<Page>,
    most_pages: usize,
    pub readers: Ends,
    pub writers: Ends,
}

impl Pipe {
    pub(crate) fn new() -> Pipe {
        Pipe {
            pages: VecDeque::new(),
            most_pages: PAGES,
            readers: Ends::default(),
            writers: Ends::default(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.pages.len() >= self.most_pages
    }

    fn len(&self) -> usize {
        let pages = self.pages.iter();
        pages.map(|page| page.bytes.len() - page.read).sum()
    }

    /// Takes at most `most` bytes.
    pub(crate) fn take(&mut self, most: usize) -> Vec<u8> {
        let mut taken = vec![];
        while let Some(page) = self.pages.front_mut()
            && taken.len() < most
        {
            let end = page.bytes.len().min(page.read + most - taken.len());
            taken.extend_from_slice(&page.bytes[page.read..end]);
            page.read = end;
            if page.read == page.bytes.len() {
                self.pages.pop_front();
            }
        }
        taken
    }

    /// Appends as many bytes as fit, and returns their number. Bytes beyond whole pages are merged into the last page if
    /// all of them fit there.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> usize {
        let (merged, mut rest) = bytes.split_at(bytes.len() % PAGE);
        match self.pages.back_mut() {
            Some(last) if last.bytes.len() + merged.len() <= PAGE => {
                last.bytes.extend_from_slice(merged);
            }
            _ => rest = bytes,
        }
        while !rest.is_empty() && !self.is_full() {
            let (page, after) = rest.split_at(rest.len().min(PAGE));
            self.pages.push_back(Page {
                bytes: page.to_vec(),
                read: 0,
            });
            rest = after;
        }
        bytes.len() - rest.len()
    }

    fn readiness(&self, end: &PipeEnd) -> u32 {
        let mut ready = 0;
        if end.can_read {
            ready |= if self.pages.is_empty() {
                0
            } else {
                libc::EPOLLIN
            };
            let is_over = self.writers.open.is_empty() && self.writers.opened != end.others_before;
            ready |= if is_over { libc::EPOLLHUP } else { 0 };
        }
        if end.can_write {
            ready |= if self.is_full() { 0 } else { libc::EPOLLOUT };
            let is_lost = self.readers.open.is_empty();
            ready |= if is_lost { libc::EPOLLERR } else { 0 };
        }
        ready as u32
    }
}

/// All pipes of a host.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    pub open: BTreeMap<PipeKey, Pipe>,
    /// The number of pipes without a name that have been created.
    pub created: u64,
}

impl Pipes {
    /// Returns the readiness of an end, as bits of epoll.
    pub(crate) fn readiness(&self, end: &PipeEnd) -> u32 {
        self.open
            .get(&end.pipe)
            .map_or(0, |pipe| pipe.readiness(end))
    }

    /// Returns the number of bytes that can be read.
    pub(crate) fn readable(&self, end: &PipeEnd) -> usize {
        self.open.get(&end.pipe).map_or(0, Pipe::len)
    }

    /// `F_GETPIPE_SZ`, and `F_SETPIPE_SZ` with a size. Returns the capacity in bytes.
    pub(crate) fn capacity(&mut self, end: &PipeEnd, size: Option<usize>) -> Result<isize, Error> {
        let pipe = self.open.get_mut(&end.pipe).ok_or(error(libc::EBADF))?;
        if let Some(size) = size {
            let pages = size.div_ceil(PAGE).max(1).next_power_of_two();
            if pages > MOST_PAGES {
                return Err(error(libc::EPERM));
            }
            if pages < pipe.pages.len() {
                return Err(error(libc::EBUSY));
            }
            pipe.most_pages = pages;
        }
        Ok((pipe.most_pages * PAGE) as isize)
    }
}
