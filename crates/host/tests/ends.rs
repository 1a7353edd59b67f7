//! Tests of the ends of programs, each of which is reported with the complete log.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]
#![allow(unsafe_code, reason = "crashes on purpose")]

use corsair_host::{HostState, Sim, SimError};
use std::sync::Mutex;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// Runs a program that fails, and returns its state and the text of the error.
fn failure(sim: &mut Sim, program: fn()) -> (HostState, String) {
    sim.host("x", move || {
        std::thread::sleep(Duration::from_millis(30));
        println!("about to fail");
        program();
    });
    let error = sim.run_until(MINUTE).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("about to fail"), "{text}");
    assert!(text.contains("last calls of x:\n  thread 0\n"), "{text}");
    match error {
        SimError::Host { state, .. } => (state, text),
        other => panic!("{other}"),
    }
}

#[corsair_host::test]
fn an_exit_with_a_status(sim: &mut Sim) {
    let (state, text) = failure(sim, || std::process::exit(3));
    assert_eq!(state, HostState::Exited(3), "{text}");
}

// Guarantee: host-4.
#[corsair_host::test]
fn a_main_that_returns_an_error(sim: &mut Sim) {
    sim.host("x", || Err::<(), _>("no such database"));
    let error = sim.run_until(MINUTE).unwrap_err().to_string();
    assert!(error.contains("no such database"), "{error}");
    assert!(error.contains("status 1"), "{error}");
}

#[corsair_host::test]
fn a_main_that_returns_a_status(sim: &mut Sim) {
    let host = sim.host("x", || std::process::ExitCode::from(7));
    sim.run_until(MINUTE).unwrap_err();
    assert_eq!(sim.state(&host), HostState::Exited(7));
}

#[corsair_host::test]
fn an_abort(sim: &mut Sim) {
    let (state, text) = failure(sim, || std::process::abort());
    assert_eq!(state, HostState::Crashed(6), "{text}");
}

// Guarantee: host-4.
#[corsair_host::test]
fn a_segmentation_fault(sim: &mut Sim) {
    // SAFETY: none: the invalid access is intended, and the test checks that it is reported.
    let (state, text) = failure(sim, || unsafe {
        std::ptr::without_provenance_mut::<u8>(8).write_volatile(1);
    });
    assert_eq!(state, HostState::Crashed(11), "{text}");
}

// Guarantee: host-4.
#[corsair_host::test]
fn a_thread_that_locks_twice(sim: &mut Sim) {
    let (state, text) = failure(sim, || {
        let lock = Mutex::new(());
        let one = lock.lock();
        let other = lock.lock();
        drop((one, other));
    });
    assert_eq!(state, HostState::Deadlocked, "{text}");
    assert!(text.contains("thread 0 waits for a futex"), "{text}");
}

// Guarantee: host-3.
#[corsair_host::test]
fn a_call_that_is_not_simulated_is_named_with_its_caller(sim: &mut Sim) {
    #[inline(never)]
    fn the_culprit() {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::inotify_init1(0) };
        println!("{fd}");
    }
    let (state, text) = failure(sim, the_culprit);
    assert_eq!(state, HostState::Unsupported, "{text}");
    assert!(text.contains("host x called inotify_init1"), "{text}");
    assert!(text.contains("the_culprit"), "{text}");
}

#[corsair_host::test]
fn a_fork_is_refused(sim: &mut Sim) {
    let (state, text) = failure(sim, || {
        let _ = std::process::Command::new("/bin/true").status();
    });
    assert_eq!(state, HostState::Unsupported, "{text}");
}

#[corsair_host::test]
fn a_loop_that_polls_the_clock_ends(sim: &mut Sim) -> Result<(), SimError> {
    sim.host("x", || {
        let started = std::time::Instant::now();
        while started.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
    });
    sim.run_until(MINUTE)
}

// Guarantee: host-4.
#[corsair_host::test]
fn a_loop_without_an_end_is_stuck(sim: &mut Sim) {
    sim.processor_limit(Duration::from_secs(1));
    let (state, text) = failure(sim, || {
        loop {
            std::hint::spin_loop();
        }
    });
    assert_eq!(state, HostState::Stuck, "{text}");
    assert!(text.contains("without a system call"), "{text}");
}

/// Sends a signal of the machine to the processes of all hosts, which are children of a child of this process.
fn signal_hosts(signal: i32) {
    let parent = |pid: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    };
    let own = std::process::id() as i32;
    let mut count = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        if parent(pid).and_then(parent) == Some(own) {
            // SAFETY: the call has no memory arguments.
            unsafe { libc::kill(pid, signal) };
            count += 1;
        }
    }
    assert!(count > 0, "no process of a host was found");
}

#[corsair_host::test]
fn a_host_to_which_the_machine_gives_no_processor_is_not_stuck(sim: &mut Sim) {
    sim.processor_limit(Duration::from_secs(1));
    let host = sim.host("x", || {
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    sim.run_until(Duration::from_millis(10)).unwrap();
    signal_hosts(libc::SIGSTOP);
    let resumed = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(4));
        signal_hosts(libc::SIGCONT);
    });
    sim.run_until(MINUTE).unwrap();
    resumed.join().unwrap();
    assert_eq!(sim.state(&host), HostState::Exited(0));
}

// Guarantee: host-4.
#[corsair_host::test]
fn a_stack_overflow_is_named(sim: &mut Sim) {
    #[allow(unconditional_recursion, reason = "overflows the stack on purpose")]
    fn deeper(level: &mut [u8; 1024]) -> u8 {
        let mut next = *level;
        next[0] = std::hint::black_box(level[0].wrapping_add(1));
        deeper(&mut next).wrapping_add(next[1])
    }
    let (state, text) = failure(sim, || {
        // The thread of the test harness has no guard page that its handler knows, a thread of the program has one.
        std::thread::spawn(|| deeper(&mut [0; 1024]))
            .join()
            .unwrap();
    });
    assert_eq!(state, HostState::Crashed(6), "{text}");
    assert!(text.contains("has overflowed its stack"), "{text}");
}

/// Ends the program from within a handler.
extern "C" fn exit_with_4(_: i32) {
    // SAFETY: the call is allowed in a handler.
    unsafe { libc::_exit(4) }
}

#[corsair_host::test]
fn a_program_handles_its_own_faults(sim: &mut Sim) {
    // SAFETY: the handler has the type of a handler; the invalid access is intended.
    let (state, text) = failure(sim, || unsafe {
        let before = libc::signal(libc::SIGSEGV, exit_with_4 as *const () as usize);
        assert_ne!(before, libc::SIG_ERR);
        let handler = libc::signal(libc::SIGSEGV, exit_with_4 as *const () as usize);
        assert_eq!(handler, exit_with_4 as *const () as usize);
        let ticks = core::arch::x86_64::_rdtsc();
        assert!(
            ticks > 0,
            "the processor's clock does not reach the handler"
        );
        std::ptr::without_provenance_mut::<u8>(8).write_volatile(1);
    });
    assert_eq!(state, HostState::Exited(4), "{text}");
}

#[corsair_host::test]
fn a_sent_segmentation_fault_ends_a_program(sim: &mut Sim) {
    // SAFETY: the calls take no pointers.
    let (state, text) = failure(sim, || unsafe {
        libc::signal(libc::SIGSEGV, libc::SIG_IGN);
        libc::raise(libc::SIGSEGV);
        println!("ignored");
        libc::signal(libc::SIGSEGV, libc::SIG_DFL);
        libc::raise(libc::SIGSEGV);
    });
    assert!(text.contains("ignored"), "{text}");
    assert_eq!(state, HostState::Crashed(11), "{text}");
}
