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
