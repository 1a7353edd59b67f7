//! Shared memory on Linux: a file without a name, which the other process opens through `/proc`.
#![allow(unsafe_code, reason = "memory that another process writes, too")]

use super::Offer;
use crate::lines::Wire;
use crate::secret::random;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::fs::{fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::Duration;

/// How many bytes a ring has: a power of two.
const RING: usize = 1 << 18;
/// What lies before the rings.
const HEAD: usize = 4096;
const SIZE: usize = HEAD + 2 * RING;

/// On a cache line of its own.
#[repr(C, align(128))]
struct Apart<T>(T);

/// What both sides know of a ring. Each field has one writer, but for the flags.
#[repr(C)]
struct Ring {
    /// How many bytes were ever written.
    written: Apart<AtomicU64>,
    /// How many of them were read.
    read: Apart<AtomicU64>,
    /// Who reads sleeps until there is something.
    reader_sleeps: Apart<AtomicBool>,
    /// Who writes sleeps until there is room.
    writer_sleeps: Apart<AtomicBool>,
}

#[repr(C)]
struct Head {
    key: AtomicU64,
    /// From the process that has connected, and to it.
    rings: [Ring; 2],
}

const _: () = assert!(size_of::<Head>() <= HEAD);

/// A mapping of the memory, whose first page is a [`Head`].
#[derive(Debug)]
struct Mapping(NonNull<u8>);

// SAFETY: of what is mapped, the head has atomics only, and the bytes of rings are accessed as `Half` says.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file of this size, which no process can make smaller.
    fn new(file: &OwnedFd) -> io::Result<Mapping> {
        let none = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the system's choice touches nothing else.
        let start = unsafe {
            mmap(
                none,
                SIZE,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )
        }?;
        NonNull::new(start.cast())
            .map(Mapping)
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    fn head(&self) -> &Head {
        // SAFETY: a page of `SIZE` mapped bytes, aligned as pages are; it was zeroed at first, any bits are a valid head, and
        // nobody accesses it but by its atomics.
        unsafe { self.0.cast().as_ref() }
    }

    /// The first byte of a ring.
    fn bytes(&self, ring: usize) -> *mut u8 {
        // SAFETY: within the mapping.
        unsafe { self.0.as_ptr().add(HEAD + ring * RING) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly this was mapped, and nobody has a pointer into it any more. A failure leaves it mapped.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), SIZE) };
    }
}

/// One process's side of the memory.
#[derive(Debug)]
pub(crate) struct Memory {
    mapping: Mapping,
    /// Which ring this side writes.
    writes: usize,
    /// Open until the other one has had its time to open it.
    file: Option<OwnedFd>,
}

impl Memory {
    /// Memory for this process and the one that it connects with, and where it is; none if the system has none.
    pub(crate) fn new() -> Option<(Memory, Offer)> {
        let machine = machine()?;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("corsair", flags).ok()?;
        ftruncate(&file, SIZE as u64).ok()?;
        fcntl_add_seals(&file, sealed()).ok()?;
        let mapping = Mapping::new(&file).ok()?;
        let key = u64::from_le_bytes(random().ok()?);
        mapping.head().key.store(key, Ordering::Release);
        let offer = Offer {
            machine,
            process: std::process::id(),
            file: file.as_raw_fd(),
            key,
        };
        let memory = Memory {
            mapping,
            writes: 0,
            file: Some(file),
        };
        Some((memory, offer))
    }

    /// The memory that another process offers; none if it is on another machine, or cannot be opened.
    pub(crate) fn open(offer: &Offer) -> Option<Memory> {
        if machine()? != offer.machine {
            return None;
        }
        let path = format!("/proc/{}/fd/{}", offer.process, offer.file);
        // Nothing else is opened, which might wait or do something.
        let about = std::fs::metadata(&path).ok()?;
        if !about.is_file() || about.len() != SIZE as u64 {
            return None;
        }
        let file = File::options().read(true).write(true).open(path).ok()?;
        let file = OwnedFd::from(file);
        // Only files of this kind have seals, and it stays as long as it is.
        if !fcntl_get_seals(&file).ok()?.contains(sealed()) {
            return None;
        }
        let mapping = Mapping::new(&file).ok()?;
        let is_it = mapping.head().key.load(Ordering::Acquire) == offer.key;
        is_it.then_some(Memory {
            mapping,
            writes: 1,
            file: None,
        })
    }

    /// Carries bytes by it, and wakes the other side by the socket.
    pub(crate) fn wire(mut self, socket: TcpStream) -> io::Result<Box<dyn Wire>> {
        self.file = None;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        Ok(Box::new(SharedMemory {
            mapping: self.mapping,
            writes: self.writes,
            writing: Mutex::new(()),
            reading: Mutex::new(()),
            socket,
            is_closed: AtomicBool::new(false),
        }))
    }
}

fn sealed() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

/// What tells this machine, since it was started, and its space of process numbers from others.
fn machine() -> Option<[u8; 32]> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(crate::hash(
        format!("{boot} {}", space.display()).as_bytes(),
    ))
}

/// Rings in both directions.
///
/// Of a ring, the bytes from `read` up to `written` are the reader's, and all others the writer's. Each side moves its own
/// mark only, behind the bytes that it has copied (release, and acquire at the other side), and one thread at a time does so,
/// which holds the lock of its direction.
struct SharedMemory {
    mapping: Mapping,
    writes: usize,
    writing: Mutex<()>,
    reading: Mutex<()>,
    socket: TcpStream,
    /// The other process has closed the socket.
    is_closed: AtomicBool,
}

impl SharedMemory {
    fn ring(&self, number: usize) -> &Ring {
        &self.mapping.head().rings[number]
    }

    fn outgoing(&self) -> &Ring {
        self.ring(self.writes)
    }

    fn incoming(&self) -> &Ring {
        self.ring(1 - self.writes)
    }

    /// Wakes the other side, if it sleeps.
    fn wake(&self, sleeps: &AtomicBool) {
        // Either this sees that it sleeps, or it sees what was done before.
        fence(Ordering::SeqCst);
        if sleeps.load(Ordering::Relaxed) && sleeps.swap(false, Ordering::Relaxed) {
            // If there is no room for another byte it has enough to wake up for; if it is gone, that is noticed by who reads.
            let _ = (&self.socket).write(&[0]);
        }
    }

    /// Takes what has come to wake this side.
    fn hear(&self) {
        let mut bytes = [0; 256];
        loop {
            match (&self.socket).read(&mut bytes) {
                Ok(count) if count == bytes.len() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(1..) => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Ok(0) | Err(_) => return self.is_closed.store(true, Ordering::Release),
            }
        }
    }
}

impl Ring {
    /// How many bytes there are to be read, if that makes sense.
    fn filled(&self) -> io::Result<usize> {
        let written = self.written.0.load(Ordering::Acquire);
        let filled = written.wrapping_sub(self.read.0.load(Ordering::Acquire));
        match usize::try_from(filled) {
            Ok(filled) if filled <= RING => Ok(filled),
            _ => Err(io::Error::new(
                ErrorKind::InvalidData,
                "the memory that is shared with it makes no sense",
            )),
        }
    }

    fn has_bytes(&self) -> bool {
        self.filled().map_or(true, |filled| filled > 0)
    }

    fn has_room(&self) -> bool {
        self.filled().map_or(true, |filled| filled < RING)
    }
}

/// So many bytes from this mark on, in one piece up to the end of the ring and another one from its beginning.
fn pieces(mark: u64, count: usize) -> [(usize, usize); 2] {
    let at = mark as usize % RING;
    let first = count.min(RING - at);
    [(at, first), (0, count - first)]
}

impl Wire for SharedMemory {
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let _turn = self.writing.lock();
        let (ring, bytes) = (self.outgoing(), self.mapping.bytes(self.writes));
        let mut room = RING - ring.filled()?;
        let begin = ring.written.0.load(Ordering::Relaxed);
        let mut end = begin;
        for part in parts {
            let mut from = &part[..part.len().min(room)];
            room -= from.len();
            for (at, count) in pieces(end, from.len()) {
                let (piece, rest) = from.split_at(count);
                // SAFETY: the bytes lie within the ring, and behind what is to be read; they are this thread's, as the type says.
                unsafe {
                    bytes
                        .add(at)
                        .copy_from_nonoverlapping(piece.as_ptr(), count)
                };
                end = end.wrapping_add(count as u64);
                from = rest;
            }
        }
        if end == begin && parts.iter().any(|part| !part.is_empty()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        ring.written.0.store(end, Ordering::Release);
        self.wake(&ring.reader_sleeps.0);
        Ok(end.wrapping_sub(begin) as usize)
    }

    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let _turn = self.reading.lock();
        let (ring, bytes) = (self.incoming(), self.mapping.bytes(1 - self.writes));
        // Asked before it is looked for what was written before the end.
        let is_closed = self.is_closed.load(Ordering::Acquire);
        let count = ring.filled()?.min(buffer.len());
        if count == 0 && !is_closed && !buffer.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let begin = ring.read.0.load(Ordering::Relaxed);
        let mut done = 0;
        for (at, count) in pieces(begin, count) {
            let to = buffer[done..done + count].as_mut_ptr();
            // SAFETY: the bytes lie within the ring, and have been written; they are this thread's, as the type says.
            unsafe { bytes.add(at).copy_to_nonoverlapping(to, count) };
            done += count;
        }
        ring.read
            .0
            .store(begin.wrapping_add(count as u64), Ordering::Release);
        self.wake(&ring.writer_sleeps.0);
        Ok(count)
    }

    fn sleep(&self, wants_to_write: bool, most: Duration) {
        let (incoming, outgoing) = (self.incoming(), self.outgoing());
        incoming.reader_sleeps.0.store(true, Ordering::Relaxed);
        outgoing
            .writer_sleeps
            .0
            .store(wants_to_write, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let is_awaited = incoming.has_bytes() || wants_to_write && outgoing.has_room();
        if !is_awaited {
            let most = Timespec {
                tv_sec: 0,
                tv_nsec: most.subsec_nanos().into(),
            };
            // Whatever ends it, who sleeps looks again.
            let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&most));
            self.hear();
        }
        incoming.reader_sleeps.0.store(false, Ordering::Relaxed);
        outgoing.writer_sleeps.0.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;
    use std::time::Instant;

    fn sockets() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (to, listener.accept().unwrap().0)
    }

    /// Both sides of some memory, as two processes have it.
    fn sides() -> [Box<dyn Wire>; 2] {
        let (mine, offer) = Memory::new().unwrap();
        let theirs = Memory::open(&offer).unwrap();
        let (here, there) = sockets();
        [mine.wire(here).unwrap(), theirs.wire(there).unwrap()]
    }

    const LONG: Duration = Duration::from_millis(900);

    /// What is the byte at this place of what is sent.
    fn byte(place: usize) -> u8 {
        (place * 7 + place / 251) as u8
    }

    /// Writes so many bytes, in parts of all lengths.
    fn write(wire: &dyn Wire, all: usize) {
        let bytes: Vec<u8> = (0..all).map(byte).collect();
        let (mut done, mut length) = (0, 1);
        while done < all {
            let rest = &bytes[done..];
            let first = rest.len().min(length);
            let second = (rest.len() - first).min(length / 3);
            let parts = [&rest[..first], &[], &rest[first..first + second]];
            match wire.write(&parts.map(IoSlice::new)) {
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => wire.sleep(true, LONG),
                Err(error) => panic!("{error}"),
            }
            length = (length * 5 + 3) % (3 * RING / 2);
        }
    }

    fn read(wire: &dyn Wire, all: usize) {
        let mut buffer = vec![0; RING + 7];
        let (mut done, mut length) = (0, 1);
        while done < all {
            match wire.read(&mut buffer[..length]) {
                Ok(count) => {
                    let expected = done..done + count;
                    assert!(buffer[..count].iter().copied().eq(expected.map(byte)));
                    done += count;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => wire.sleep(false, LONG),
                Err(error) => panic!("{error}"),
            }
            length = 1 + (length * 3) % (RING + 7);
        }
        assert_eq!(
            wire.read(&mut buffer).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
    }

    // Guarantee: cluster-1.
    #[test]
    fn bytes_come_in_their_order_in_both_directions_at_once() {
        let [here, there] = &sides();
        let all = 5 * RING + 12_345;
        let began = Instant::now();
        thread::scope(|scope| {
            for [from, to] in [[here, there], [there, here]] {
                scope.spawn(|| write(&**from, all));
                scope.spawn(|| read(&**to, all));
            }
        });
        // Whoever sleeps is woken: there are hundreds of sleeps.
        assert!(began.elapsed() < 20 * LONG, "{:?}", began.elapsed());
    }

    // Guarantee: cluster-1.
    #[test]
    fn who_sleeps_is_woken_by_a_byte_by_room_and_by_the_end_of_the_other() {
        let [here, there] = sides();
        let within = |wakes: &(dyn Fn() + Sync), sleeps: &dyn Fn()| {
            thread::scope(|scope| {
                scope.spawn(|| {
                    thread::sleep(LONG / 9);
                    wakes();
                });
                let began = Instant::now();
                sleeps();
                assert!(began.elapsed() < LONG / 2, "{:?}", began.elapsed());
            });
        };
        let write = || here.write(&[IoSlice::new(&[5; 100])]).unwrap();
        within(&|| assert_eq!(write(), 100), &|| there.sleep(false, LONG));
        let mut buffer = vec![0; RING];
        assert_eq!(there.read(&mut buffer).unwrap(), 100);
        while here.write(&[IoSlice::new(&buffer)]).is_ok() {}
        within(&|| drop(there.read(&mut [0; 3])), &|| {
            here.sleep(true, LONG)
        });
        assert_eq!(here.write(&[IoSlice::new(&buffer)]).unwrap(), 3);
        // What it has written before its end is read first.
        drop(here);
        there.sleep(false, LONG);
        let mut left = RING;
        while left > 0 {
            left -= there.read(&mut buffer[..left.min(99_999)]).unwrap();
        }
        within(&|| {}, &|| there.sleep(false, LONG));
        assert_eq!(there.read(&mut buffer).unwrap(), 0);
    }

    // Guarantee: cluster-1.
    #[test]
    fn what_is_another_machines_or_another_file_is_not_opened() {
        let (mine, offer) = Memory::new().unwrap();
        let refused = |change: fn(&mut Offer)| {
            let mut other = offer.clone();
            change(&mut other);
            Memory::open(&other).is_none()
        };
        assert!(refused(|offer| offer.machine[3] ^= 1));
        assert!(refused(|offer| offer.key ^= 1));
        assert!(refused(|offer| offer.file = 1_000_000));
        assert!(refused(|offer| offer.process = 0));
        // A file of the right length that can be made shorter.
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("other", flags).unwrap();
        ftruncate(&file, SIZE as u64).unwrap();
        let mut other = offer.clone();
        (other.file, other.key) = (file.as_raw_fd(), 0);
        assert!(Memory::open(&other).is_none());
        fcntl_add_seals(&file, sealed()).unwrap();
        assert!(Memory::open(&other).is_some(), "its key is 0");
        assert!(Memory::open(&offer).is_some());
        drop(mine);
        assert!(Memory::open(&offer).is_none(), "it is gone");
    }

    // Guarantee: cluster-1.
    #[test]
    fn marks_that_make_no_sense_are_an_error_and_no_access() {
        let (mine, offer) = Memory::new().unwrap();
        let evil = Memory::open(&offer).unwrap();
        let head = evil.mapping.head();
        let (here, _there) = sockets();
        let wire = mine.wire(here).unwrap();
        for ring in &head.rings {
            for (written, read) in [(RING as u64 + 1, 0), (0, 1), (5, u64::MAX / 2)] {
                ring.written.0.store(written, Ordering::Release);
                ring.read.0.store(read, Ordering::Release);
            }
        }
        let error = wire.read(&mut [0; 9]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let error = wire.write(&[IoSlice::new(&[1])]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        wire.sleep(true, LONG);
    }
}
