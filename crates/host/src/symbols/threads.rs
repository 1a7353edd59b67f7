//! Threads: real threads, of which one at a time has the baton, on stacks at fixed addresses.

use super::Next;
use crate::kernel::memory::GUARD;
use crate::kernel::{On, StartedThread, Wait, current_thread, nested, outside, threads, with};
use crate::raw::Signal;
use crate::setup;
use libc::{c_int, c_void, pthread_attr_t, pthread_key_t, pthread_t, sigset_t};
use std::sync::atomic::{AtomicU32, Ordering};

type Body = extern "C" fn(*mut c_void) -> *mut c_void;
type Create =
    unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Body, *mut c_void) -> c_int;
type Join = unsafe extern "C" fn(pthread_t, *mut *mut c_void) -> c_int;
type Detach = unsafe extern "C" fn(pthread_t) -> c_int;

static CREATE: Next = Next::new(c"pthread_create");
static JOIN: Next = Next::new(c"pthread_join");
type GetAttributes = unsafe extern "C" fn(pthread_t, *mut pthread_attr_t) -> c_int;

static GET_ATTRIBUTES: Next = Next::new(c"pthread_getattr_np");
static DETACH: Next = Next::new(c"pthread_detach");

unsafe extern "C" {
    fn pthread_attr_getdetachstate(attributes: *const pthread_attr_t, state: *mut c_int) -> c_int;
}

/// The pthread key whose destructor makes an ending thread give the baton away.
static EXIT_KEY: AtomicU32 = AtomicU32::new(0);
/// The round of the C library's destructors in which the key's destructor gives the baton away: the last round but one,
/// after the program's own destructors.
const ROUNDS: usize = 3;
/// The stack size of a thread that requests no size.
const DEFAULT_STACK: usize = 8 << 20;

/// The data that a new thread needs before it has the baton.
struct Start {
    body: Body,
    argument: *mut c_void,
    thread: usize,
    baton: &'static Signal,
}

/// Creates the pthread key whose destructor runs at the end of each thread. The function is called once, before the
/// first thread is started.
pub(crate) fn prepare() {
    let mut key: pthread_key_t = 0;
    // SAFETY: the destructor has the type that the call expects.
    unsafe { libc::pthread_key_create(&mut key, Some(on_exit)) };
    EXIT_KEY.store(key, Ordering::Relaxed);
}

/// Ends a thread. Rust's thread-local destructors have run before the destructors of keys.
unsafe extern "C" fn on_exit(round: *mut c_void) {
    let round = round as usize;
    if round < ROUNDS {
        let key = EXIT_KEY.load(Ordering::Relaxed);
        // SAFETY: the key exists, and the value is a number.
        unsafe { libc::pthread_setspecific(key, (round + 1) as *const c_void) };
        return;
    }
    threads::leave();
}

extern "C" fn trampoline(start: *mut c_void) -> *mut c_void {
    let start = start.cast::<Start>();
    // SAFETY: the starting thread made the box and gave it to this thread. This thread only reads it before it has the
    // baton.
    let (thread, baton) = unsafe { ((*start).thread, (*start).baton) };
    let key = EXIT_KEY.load(Ordering::Relaxed);
    // SAFETY: the key exists, and the value is a number.
    unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
    threads::take_baton(thread, baton);
    // SAFETY: the starting thread made the box and gave it to this thread. This thread has the baton, so it may free
    // memory of the host.
    let start = unsafe { Box::from_raw(start) };
    (start.body)(start.argument)
}

/// Starts a thread of the program.
pub(crate) fn start(
    out: &mut pthread_t,
    stack_size: usize,
    body: Body,
    argument: *mut c_void,
) -> c_int {
    reap();
    let Some((stack, base, size)) = with(|kernel| kernel.take_stack(stack_size)) else {
        return libc::EAGAIN;
    };
    let (thread, baton) = with(|kernel| {
        let thread = kernel.add_thread();
        (thread, kernel.baton(thread))
    });
    let start = Box::into_raw(Box::new(Start {
        body,
        argument,
        thread,
        baton,
    }));
    // SAFETY: the attributes are initialized before they are used, and the stack is mapped and unused.
    let result = outside(|| unsafe {
        let mut attributes: pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstack(&mut attributes, base as *mut c_void, size);
        CREATE.get::<Create>()(out, &attributes, trampoline, start.cast())
    });
    with(|kernel| match result {
        0 => kernel.started.push(StartedThread {
            thread,
            handle: *out,
            stack,
            is_detached: false,
        }),
        _ => {
            kernel.remove_last_thread();
            kernel.release_stack(stack);
        }
    });
    result
}

/// Starts a thread during the set-up. Its stack, where the C library stores the thread's variables, is at the same address
/// in each process: some allocators draw random numbers from this address.
fn start_in_setup(
    out: &mut pthread_t,
    size: usize,
    state: c_int,
    body: Body,
    argument: *mut c_void,
) -> c_int {
    let size = size.next_multiple_of(GUARD);
    let Some(base) = nested::map_stack(size + GUARD) else {
        return libc::EAGAIN;
    };
    // SAFETY: the stack is mapped and unused, and the attributes are initialised before they are used. The stack is never
    // unmapped: a process starts few threads before its simulation.
    unsafe {
        libc::mprotect(base as *mut c_void, GUARD, libc::PROT_NONE);
        let mut attributes: pthread_attr_t = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setstack(&mut attributes, (base + GUARD) as *mut c_void, size);
        libc::pthread_attr_setdetachstate(&mut attributes, state);
        CREATE.get::<Create>()(out, &attributes, body, argument)
    }
}

/// True if a stack was mapped during the set-up.
///
/// # Safety
/// The attributes are initialised.
unsafe fn is_of_setup(attributes: *const pthread_attr_t) -> bool {
    let (mut base, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are initialised, and the results are valid for writes.
    unsafe { libc::pthread_attr_getstack(attributes, &mut base, &mut size) };
    nested::maps(base.addr())
}

/// Makes the calling thread, which is the only thread of its process, the first thread of the program. Returns when the
/// thread has the baton for the first time.
pub(crate) fn adopt() {
    let (thread, baton) = with(|kernel| {
        let thread = kernel.add_thread();
        (thread, kernel.baton(thread))
    });
    let key = EXIT_KEY.load(Ordering::Relaxed);
    // SAFETY: the key exists, and the value is a number.
    unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) };
    crate::heap::enter(crate::heap::Zone::Process);
    let mut handle: pthread_t = 0;
    // SAFETY: the handle is valid for a write, and the function has the type that the call expects.
    let result = unsafe {
        CREATE.get::<Create>()(&mut handle, std::ptr::null(), machine, std::ptr::null_mut())
    };
    if result != 0 {
        crate::kernel::fatal("cannot start the thread that serves the simulation");
    }
    threads::take_baton(thread, baton);
}

/// The additional thread that serves the simulation while no thread of the program runs.
extern "C" fn machine(_: *mut c_void) -> *mut c_void {
    crate::heap::enter(crate::heap::Zone::Host);
    crate::kernel::run_machine()
}

/// Joins detached threads that have ended, so that their stacks can be reused.
fn reap() {
    loop {
        let ended = with(|kernel| {
            let has_ended =
                |started: &StartedThread| started.is_detached && kernel.has_ended(started.thread);
            let index = kernel.started.iter().position(has_ended)?;
            Some(kernel.started.remove(index))
        });
        let Some(ended) = ended else { return };
        join_really(&ended, std::ptr::null_mut());
    }
}

/// Waits until a thread that has given the baton away for the last time has really ended, and frees its stack. The wait
/// is short.
fn join_really(ended: &StartedThread, value: *mut *mut c_void) -> c_int {
    // SAFETY: the thread was started with `pthread_create`, is joined once, and is not detached in the C library.
    let result = outside(|| unsafe { JOIN.get::<Join>()(ended.handle, value) });
    with(|kernel| kernel.release_stack(ended.stack));
    result
}

/// Replaces the C library's `pthread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    out: *mut pthread_t,
    attributes: *const pthread_attr_t,
    body: Body,
    argument: *mut c_void,
) -> c_int {
    let is_in_host = current_thread().is_some();
    if !is_in_host && !setup::is_running() {
        // SAFETY: passes on the caller's arguments.
        return unsafe { CREATE.get::<Create>()(out, attributes, body, argument) };
    }
    let mut size = DEFAULT_STACK;
    let mut state = libc::PTHREAD_CREATE_JOINABLE;
    if !attributes.is_null() {
        // SAFETY: the caller has passed initialised attributes.
        unsafe {
            libc::pthread_attr_getstacksize(attributes, &mut size);
            pthread_attr_getdetachstate(attributes, &mut state);
        }
    }
    if !is_in_host {
        // SAFETY: the caller has passed a pointer to a handle.
        return start_in_setup(unsafe { &mut *out }, size, state, body, argument);
    }
    // SAFETY: the caller has passed a pointer to a handle.
    let result = start(unsafe { &mut *out }, size, body, argument);
    if result == 0 && state == libc::PTHREAD_CREATE_DETACHED {
        with(|kernel| {
            if let Some(started) = kernel.started.last_mut() {
                started.is_detached = true;
            }
        });
    }
    result
}

/// Replaces the C library's `pthread_join`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_join(handle: pthread_t, value: *mut *mut c_void) -> c_int {
    if current_thread().is_none() {
        // SAFETY: passes on the caller's arguments.
        return unsafe { JOIN.get::<Join>()(handle, value) };
    }
    let find = |kernel: &mut crate::kernel::Kernel| {
        kernel
            .started
            .iter()
            .position(|started| started.handle == handle && !started.is_detached)
    };
    let thread = with(|kernel| find(kernel).map(|index| kernel.started[index].thread));
    let Some(thread) = thread else {
        return libc::ESRCH;
    };
    while !with(|kernel| kernel.has_ended(thread)) {
        threads::pass_on(Some(Wait {
            on: On::End(thread),
            until: u64::MAX,
        }));
    }
    match with(|kernel| find(kernel).map(|index| kernel.started.remove(index))) {
        Some(ended) => join_really(&ended, value),
        None => libc::ESRCH,
    }
}

/// Replaces the C library's `pthread_detach`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_detach(handle: pthread_t) -> c_int {
    if current_thread().is_none() {
        // SAFETY: passes on the caller's argument.
        return unsafe { DETACH.get::<Detach>()(handle) };
    }
    with(|kernel| {
        let started = kernel
            .started
            .iter_mut()
            .find(|started| started.handle == handle);
        match started {
            Some(started) => started.is_detached = true,
            None => return libc::ESRCH,
        }
        0
    })
}

/// Replaces the C library's `pthread_getattr_np`. The C library assumes that a stack which it did not allocate has no
/// guard, but stacks of hosts and of the set-up have a guard of one page.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getattr_np(handle: pthread_t, out: *mut pthread_attr_t) -> c_int {
    // SAFETY: passes on the caller's arguments; the call initialises the attributes.
    unsafe {
        let get = || GET_ATTRIBUTES.get::<GetAttributes>()(handle, out);
        let is_in_host = current_thread().is_some();
        let result = if is_in_host { outside(get) } else { get() };
        if result == 0 && (is_in_host || is_of_setup(out)) {
            libc::pthread_attr_setguardsize(out, GUARD);
        }
        result
    }
}

type SetMask = unsafe extern "C" fn(c_int, *const sigset_t, *mut sigset_t) -> c_int;

static THREAD_MASK: Next = Next::new(c"pthread_sigmask");
static PROCESS_MASK: Next = Next::new(c"sigprocmask");

/// Changes the calling thread's signal mask, but never blocks the signal of the filter.
unsafe fn set_mask(next: &Next, how: c_int, set: *const sigset_t, old: *mut sigset_t) -> c_int {
    // SAFETY: the caller has passed null or valid sets.
    unsafe {
        let set_mask = next.get::<SetMask>();
        match set.as_ref() {
            Some(set) if current_thread().is_some() && how != libc::SIG_UNBLOCK => {
                let mut set = *set;
                libc::sigdelset(&mut set, libc::SIGSYS);
                set_mask(how, &set, old)
            }
            _ => set_mask(how, set, old),
        }
    }
}

/// Replaces the C library's `pthread_sigmask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: passes on the caller's arguments.
    unsafe { set_mask(&THREAD_MASK, how, set, old) }
}

/// Replaces the C library's `sigprocmask`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const sigset_t,
    old: *mut sigset_t,
) -> c_int {
    // SAFETY: passes on the caller's arguments.
    unsafe { set_mask(&PROCESS_MASK, how, set, old) }
}
