//! Heaps at fixed addresses. The addresses of allocations depend only on the program, and not on address randomization,
//! the test harness, or other threads of the process.
//!
//! A thread allocates in the zone that it has entered. Threads outside of any zone use the C library's heap. Only one
//! thread at a time is in a zone: the thread that builds a simulation, or the thread that runs on a host.
#![allow(unsafe_code, reason = "implements malloc")]

use crate::raw::{args, raw};
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;

const HEADER: usize = 16;
/// The size of a zone's address space in bytes. Pages are committed when they are accessed.
const ZONE_SIZE: usize = 1 << 40;
/// The minimum size in bytes of freed blocks that return their pages to the system.
const LARGE: usize = 1 << 20;

/// A heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// The heap of the C library.
    Process = 0,
    /// Allocations of the user's function while it builds a simulation, such as captures of closures.
    Simulation = 1,
    /// Allocations of the program that runs on a host.
    Host = 2,
}

const SIMULATION_BASE: usize = 0x1000_0000_0000;
const SIMULATION_END: usize = SIMULATION_BASE + ZONE_SIZE;
const HOST_BASE: usize = 0x2000_0000_0000;
const HOST_END: usize = HOST_BASE + ZONE_SIZE;

/// The free lists of a zone by size class, the end of the used memory, and the end of the zone.
struct State {
    top: usize,
    end: usize,
    free: [usize; 4 * 40],
}

struct SharedHeap(UnsafeCell<[State; 2]>);

// SAFETY: a thread accesses only the zone in its `ZONE`, and only one thread of a process is in a zone at a time.
unsafe impl Sync for SharedHeap {}

static STATE: SharedHeap = SharedHeap(UnsafeCell::new(
    [const {
        State {
            top: 0,
            end: 0,
            free: [0; 160],
        }
    }; 2],
));

thread_local! {
    static ZONE: Cell<Zone> = const { Cell::new(Zone::Process) };
}

/// Makes the calling thread allocate in `zone`; returns its previous zone. The caller ensures that no other thread of
/// the process is in the zone.
pub(crate) fn enter(zone: Zone) -> Zone {
    if zone != Zone::Process {
        prepare(zone);
    }
    ZONE.replace(zone)
}

fn base(zone: Zone) -> usize {
    match zone {
        Zone::Host => HOST_BASE,
        _ => SIMULATION_BASE,
    }
}

/// Maps a zone if it is not mapped.
fn prepare(zone: Zone) {
    // SAFETY: the caller ensures that no other thread is in the zone.
    let state = unsafe { &mut (*STATE.0.get())[zone as usize - 1] };
    if state.end != 0 {
        return;
    }
    let base = base(zone);
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: `MAP_FIXED_NOREPLACE` fails instead of replacing existing mappings.
    let mapped = unsafe {
        raw(
            libc::SYS_mmap,
            [
                base,
                ZONE_SIZE,
                protection as usize,
                flags as usize,
                usize::MAX,
                0,
            ],
        )
    };
    assert_eq!(
        mapped as usize, base,
        "the address range of the heap is occupied"
    );
    state.top = base;
    state.end = base + ZONE_SIZE;
}

/// Returns the size class of a block and its size: there are four classes between powers of two.
fn class(size: usize) -> (usize, usize) {
    let size = size.max(32);
    let power = usize::BITS - 1 - (size - 1).leading_zeros();
    let quarter = (1usize << power) / 4;
    let step = (size - (1 << power)).div_ceil(quarter);
    (
        (power as usize - 4) * 4 + step,
        (1 << power) + step * quarter,
    )
}

/// Returns the zone that an address belongs to.
fn zone_of(address: usize) -> Zone {
    match address {
        SIMULATION_BASE..SIMULATION_END => Zone::Simulation,
        HOST_BASE..HOST_END => Zone::Host,
        _ => Zone::Process,
    }
}

/// Allocates `size` bytes in a zone; null if there is no memory. The flag is true if the memory is zeroed.
unsafe fn allocate_in(zone: Zone, size: usize, align: usize) -> (*mut u8, bool) {
    // SAFETY: the calling thread is in the zone, and no other thread is.
    let state = unsafe { &mut (*STATE.0.get())[zone as usize - 1] };
    let align = align.max(16);
    // The block has additional space so that the address after the header can be aligned.
    let Some(wanted) = size
        .checked_add(HEADER + align - 16)
        .filter(|&size| size < ZONE_SIZE / 2)
    else {
        return (std::ptr::null_mut(), false);
    };
    let (class, block_size) = class(wanted);
    let (block, zeroed) = match state.free[class] {
        0 => {
            let block = state.top;
            if block + block_size > state.end {
                return (std::ptr::null_mut(), false);
            }
            state.top = (block + block_size).next_multiple_of(16);
            (block, true)
        }
        block => {
            // SAFETY: the first word of a free block is the address of the next one.
            state.free[class] = unsafe { *(block as *const usize) };
            (block, false)
        }
    };
    let address = (block + HEADER).next_multiple_of(align);
    // SAFETY: the header is within the block, in front of the address.
    unsafe {
        *((address - 16) as *mut usize) = block;
        *((address - 8) as *mut usize) = class << 48 | size;
    }
    (address as *mut u8, zeroed)
}

/// Returns the start of a block, its class and the requested size.
unsafe fn header(address: usize) -> (usize, usize, usize) {
    // SAFETY: the caller passes an address that `allocate_in` has returned, so a header precedes it.
    let (block, word) = unsafe {
        (
            *((address - 16) as *const usize),
            *((address - 8) as *const usize),
        )
    };
    (block, word >> 48, word & ((1 << 48) - 1))
}

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(old: *mut c_void);
}

unsafe fn release(address: usize) {
    let zone = zone_of(address);
    if ZONE.get() != zone {
        // The block was freed by a thread outside of the zone, for instance while the C library ends a thread. It is
        // not reused, because addresses would then depend on the time of this call.
        return;
    }
    // SAFETY: `allocate_in` has returned the address, and the calling thread is the only one in the zone.
    unsafe {
        let (block, class, size) = header(address);
        if size >= LARGE {
            let start = (block + 16).next_multiple_of(4096);
            let length = ((address + size) & !4095).saturating_sub(start);
            raw(
                libc::SYS_madvise,
                args([start, length, libc::MADV_DONTNEED as usize]),
            );
        }
        let state = &mut (*STATE.0.get())[zone as usize - 1];
        *(block as *mut usize) = state.free[class];
        state.free[class] = block;
    }
}

fn or_no_memory(address: *mut u8) -> *mut c_void {
    if address.is_null() {
        crate::raw::set_errno(libc::ENOMEM);
    }
    address.cast()
}

/// Replaces the C library's `malloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    match ZONE.get() {
        // SAFETY: passes on the caller's arguments.
        Zone::Process => unsafe { __libc_malloc(size) },
        // SAFETY: the calling thread is in the zone.
        zone => or_no_memory(unsafe { allocate_in(zone, size, 16) }.0),
    }
}

/// Replaces the C library's `calloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let zone = ZONE.get();
    if zone == Zone::Process {
        // SAFETY: passes on the caller's arguments.
        return unsafe { __libc_calloc(count, size) };
    }
    let Some(size) = count.checked_mul(size) else {
        return or_no_memory(std::ptr::null_mut());
    };
    // SAFETY: the calling thread is in the zone; the block has `size` bytes.
    unsafe {
        let (address, zeroed) = allocate_in(zone, size, 16);
        if !address.is_null() && !zeroed {
            std::ptr::write_bytes(address, 0, size);
        }
        or_no_memory(address)
    }
}

/// Replaces the C library's `realloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: `old` is null, or belongs to the allocator that `zone_of` returns.
    unsafe {
        if zone_of(old as usize) == Zone::Process {
            if ZONE.get() == Zone::Process || !old.is_null() {
                return __libc_realloc(old, size);
            }
            return malloc(size);
        }
        let (block, class_of_old, old_size) = header(old as usize);
        let moved_up = old as usize - block;
        if class(size.saturating_add(moved_up)).0 == class_of_old
            && ZONE.get() == zone_of(old as usize)
        {
            *((old as usize - 8) as *mut usize) = class_of_old << 48 | size;
            return old;
        }
        let new = malloc(size);
        if !new.is_null() {
            std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast(), old_size.min(size));
            release(old as usize);
        }
        new
    }
}

/// Replaces the C library's `free`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(old: *mut c_void) {
    // SAFETY: `old` is null, or belongs to the allocator that `zone_of` returns.
    unsafe {
        match zone_of(old as usize) {
            Zone::Process => __libc_free(old),
            _ => release(old as usize),
        }
    }
}

/// Replaces the C library's `memalign`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match ZONE.get() {
        // SAFETY: passes on the caller's arguments.
        Zone::Process => unsafe { __libc_memalign(align, size) },
        // SAFETY: the calling thread is in the zone.
        zone => or_no_memory(unsafe { allocate_in(zone, size, align.next_power_of_two()) }.0),
    }
}

/// Replaces the C library's `aligned_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: passes on the caller's arguments.
    unsafe { memalign(align, size) }
}

/// Replaces the C library's `posix_memalign`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> i32 {
    if !align.is_power_of_two() || align < size_of::<usize>() {
        return libc::EINVAL;
    }
    // SAFETY: the C standard requires that `out` is valid for a write.
    unsafe {
        let address = memalign(align, size);
        if address.is_null() {
            return libc::ENOMEM;
        }
        *out = address;
    }
    0
}

/// Replaces the C library's `malloc_usable_size`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(address: *mut c_void) -> usize {
    type Usable = unsafe extern "C" fn(*mut c_void) -> usize;
    match zone_of(address as usize) {
        // SAFETY: the name and the type are those of the C library's function.
        Zone::Process => unsafe {
            let next = libc::dlsym(libc::RTLD_NEXT, c"malloc_usable_size".as_ptr());
            std::mem::transmute::<*mut c_void, Usable>(next)(address)
        },
        // SAFETY: `allocate_in` has returned the address.
        _ => unsafe { header(address as usize).2 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_was_asked_for_and_differ_from_it_by_a_quarter() {
        for size in (1..100_000).chain([1 << 30, (1 << 30) + 1]) {
            let (number, block) = class(size);
            assert!(block >= size && block.is_multiple_of(8), "{size}");
            assert!(
                size < 32 || block <= size + size / 4 + 8,
                "{size} in {block}"
            );
            assert_eq!(class(block), (number, block), "{size}");
        }
    }

    #[test]
    fn blocks_of_a_zone_are_its_own_and_keep_their_contents() {
        let before = enter(Zone::Simulation);
        let mut blocks: Vec<Vec<u8>> = (1..200).map(|n| vec![n as u8; n * 37]).collect();
        let addresses = blocks.iter().map(|block| block.as_ptr() as usize);
        let own = addresses
            .clone()
            .all(|address| zone_of(address) == Zone::Simulation);
        let aligned = addresses.clone().all(|address| address.is_multiple_of(16));
        blocks.iter_mut().for_each(|block| block.push(0));
        let kept = (1..200).all(|n| blocks[n - 1][..n * 37].iter().all(|&byte| byte == n as u8));
        drop(blocks);
        let layout = std::alloc::Layout::from_size_align(100, 4096).unwrap();
        // SAFETY: the layout is not empty, and the block is freed with this layout.
        let page = unsafe {
            let block = std::alloc::alloc_zeroed(layout);
            let address = block as usize;
            std::alloc::dealloc(block, layout);
            address
        };
        enter(before);
        assert!(own && aligned && kept && page.is_multiple_of(4096));
    }
}
