//! Chooses the addresses of the memory that a program maps, and of the stacks of threads. They depend only on the
//! program.
#![allow(unsafe_code, reason = "maps memory")]

use super::objects::Kind;
use super::user::{Error, error};
use super::{Attempt, Kernel, Step};
use crate::filesystem::Ino;
use crate::raw::{Args, raw};

/// The lowest address of mappings of anonymous memory and files, which are placed one after the other.
pub(super) const MAPPINGS: usize = 0x3000_0000_0000;
const MAPPINGS_END: usize = 0x3800_0000_0000;
/// The address of the slots for the stacks of threads.
const STACKS: usize = 0x3800_0000_0000;
const STACK_SLOT: usize = 1 << 30;
const MOST_STACKS: usize = 4096;
/// The size in bytes of the guard below a stack.
pub(crate) const GUARD: usize = 4096;
const PAGE: usize = 4096;

/// Maps anonymous memory at a fixed address. Returns the result of the kernel.
fn map_at(address: usize, length: usize, protection: i32) -> isize {
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: `MAP_FIXED_NOREPLACE` fails instead of replacing existing mappings.
    unsafe {
        raw(
            libc::SYS_mmap,
            [
                address,
                length,
                protection as usize,
                flags as usize,
                usize::MAX,
                0,
            ],
        )
    }
}

impl Kernel {
    /// Simulates `mmap`. If the program requests no address, the next free one is chosen.
    pub(super) fn mmap(&mut self, args: &Args) -> Result<isize, Error> {
        let mut args = *args;
        let anonymous = args[3] as i32 & libc::MAP_ANONYMOUS != 0;
        let mapped = match anonymous {
            true => None,
            false => self.mapped_file(&mut args)?,
        };
        if args[3] as i32 & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) == 0 {
            let length = args[1].next_multiple_of(PAGE);
            // An unmapped page separates mappings, so that the kernel never merges two of them.
            let next = self.memory.next_mapping + length + PAGE;
            if next > MAPPINGS_END {
                return Err(error(libc::ENOMEM));
            }
            args[0] = std::mem::replace(&mut self.memory.next_mapping, next);
            args[3] |= libc::MAP_FIXED_NOREPLACE as usize;
        }
        // SAFETY: the program has requested this mapping. If the kernel has chosen the address, `MAP_FIXED_NOREPLACE`
        // replaces nothing.
        let result = unsafe { raw(libc::SYS_mmap, args) };
        if (-4095..0).contains(&result) {
            return Err(result);
        }
        if let Some((ino, is_written)) = mapped {
            self.files.map(ino, is_written);
            if is_written {
                let range = (result as usize, result as usize + args[1]);
                self.memory.written.push((range, ino));
            }
        }
        Ok(result)
    }

    /// Replaces the descriptor and the offset of a mapping with the real ones. Returns the inode, unless the file
    /// belongs to the real system, and whether the mapping writes to it.
    fn mapped_file(&mut self, args: &mut Args) -> Result<Option<(Ino, bool)>, Error> {
        let [_, _, protection, flags, fd, offset] = *args;
        let shared = matches!(
            flags as i32 & libc::MAP_TYPE,
            libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE
        );
        let writes = protection as i32 & libc::PROT_WRITE != 0;
        match &self.descriptors.object(fd)?.1.kind {
            Kind::Image(image) => {
                args[4] = image.fd as usize;
                Ok(None)
            }
            Kind::File(file) => {
                if !file.can_read() || shared && writes && !file.can_write() {
                    return Err(error(libc::EACCES));
                }
                // A mapping that may be made writable later counts as writing.
                let is_written = shared && file.can_write();
                let ino = file.ino;
                let (real, base) = self.files.offset(ino);
                (args[4], args[5]) = (real as usize, base as usize + offset);
                Ok(Some((ino, is_written)))
            }
            _ => Err(error(libc::ENODEV)),
        }
    }

    /// Simulates `msync`. With `MS_SYNC`, it syncs the files of the mappings in the range.
    pub(super) fn msync(
        &mut self,
        start: usize,
        length: usize,
        flags: usize,
        attempt: &mut Attempt,
    ) -> Result<Step, Error> {
        if flags as i32 & libc::MS_SYNC == 0 {
            return Ok(Step::Done(0));
        }
        let overlaps =
            |&&((from, to), _): &&((usize, usize), Ino)| from < start + length && start < to;
        let written = self.memory.written.iter().filter(overlaps);
        let inodes = written.map(|&(_, ino)| ino).collect();
        self.sync_inodes(Some(inodes), attempt)
    }

    /// Returns memory for the stack of a thread: its slot, lowest address and size. The lowest free slot of this size
    /// is reused.
    pub(crate) fn take_stack(&mut self, size: usize) -> Option<(usize, usize, usize)> {
        let size = size.next_multiple_of(PAGE) + GUARD;
        if size > STACK_SLOT {
            return None;
        }
        let stacks = &mut self.memory.stacks;
        if let Some(slot) = stacks.iter().position(|&(own, used)| !used && own == size) {
            stacks[slot].1 = true;
            return Some((slot, STACKS + slot * STACK_SLOT + GUARD, size - GUARD));
        }
        let slot = stacks.len();
        if slot >= MOST_STACKS {
            return None;
        }
        let base = STACKS + slot * STACK_SLOT;
        let stack = map_at(
            base + GUARD,
            size - GUARD,
            libc::PROT_READ | libc::PROT_WRITE,
        );
        if map_at(base, GUARD, libc::PROT_NONE) != base as isize || stack != (base + GUARD) as isize
        {
            return None;
        }
        self.memory.stacks.push((size, true));
        Some((slot, base + GUARD, size - GUARD))
    }

    /// Releases the stack of a thread that has ended.
    pub(crate) fn release_stack(&mut self, slot: usize) {
        self.memory.stacks[slot].1 = false;
    }
}
