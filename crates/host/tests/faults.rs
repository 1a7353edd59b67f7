//! Faults that leave the program alive: pauses, steps of the clock, failing look-ups of names.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]
#![allow(
    unsafe_code,
    reason = "calls the C library, as the programs do that are simulated"
)]

use corsair_host::{Fault, HostState, Sim, SimError};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const MINUTE: Duration = Duration::from_secs(60);

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn texts(sim: &Sim) -> Vec<String> {
    sim.lines().into_iter().map(|line| line.text).collect()
}

/// Answers each byte.
#[tokio::main(flavor = "current_thread")]
async fn echo() {
    let listener = tokio::net::TcpListener::bind("0.0.0.0:80").await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut byte = [0];
            while stream.read_exact(&mut byte).await.is_ok() {
                stream.write_all(&byte).await.unwrap();
            }
        });
    }
}

/// Connects and asks once a second, and prints how many seconds each step took.
fn patient() {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect("server:80").unwrap();
    let mut byte = [7];
    for _ in 0..2 {
        let started = Instant::now();
        stream.write_all(&byte).unwrap();
        stream.read_exact(&mut byte).unwrap();
        println!("answer after {} s", started.elapsed().as_secs());
        std::thread::sleep(secs(2));
        let started = Instant::now();
        let other = TcpStream::connect("server:80");
        println!("{} after {} s", other.is_ok(), started.elapsed().as_secs());
    }
}

// Guarantee: host-12.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn a_paused_program_answers_when_it_continues(sim: &mut Sim) -> Result<(), SimError> {
    let server = sim.host("server", echo);
    let client = sim.host("client", patient);
    sim.at(secs(1), Fault::pause(&server));
    sim.at(secs(9), Fault::resume(&server));
    sim.run_until(MINUTE)?;
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    // The kernel accepts the second connection during the pause; the program answers after it.
    let expected = [
        "answer after 0 s",
        "true after 0 s",
        "answer after 6 s",
        "true after 0 s",
    ];
    assert_eq!(texts(sim), expected);
    Ok(())
}

/// An observer sees pauses and partitions from their virtual times on, of programs and of actors.
#[corsair_host::test]
fn pauses_and_partitions_are_seen_while_they_last(sim: &mut Sim) -> Result<(), SimError> {
    let mut hosts = sim.hosts("host", 2, |_| std::thread::sleep(MINUTE));
    hosts.push(sim.actor("actor", |net| async move {
        net.sleep(MINUTE).await;
    }));
    assert_eq!(
        hosts.iter().map(|host| host.index()).collect::<Vec<_>>(),
        [0, 1, 2]
    );
    for host in [&hosts[0], &hosts[2]] {
        sim.at(secs(2), Fault::pause(host));
        sim.at(secs(4), Fault::resume(host));
    }
    sim.at(secs(3), Fault::partition_one_way(&hosts[..1], &hosts[1..]));
    sim.at(secs(5), Fault::heal(&hosts[..1], &hosts[1..2]));
    sim.at(secs(6), Fault::pause(&hosts[1]));
    sim.at(secs(7), Fault::kill(&hosts[1]));
    sim.at(secs(8), Fault::start(&hosts[1]));
    for (until, paused, separated) in [
        (1, vec![], [vec![], vec![], vec![]]),
        (2, vec![0, 2], [vec![], vec![], vec![]]),
        (3, vec![0, 2], [vec![1, 2], vec![0], vec![0]]),
        (4, vec![], [vec![1, 2], vec![0], vec![0]]),
        (5, vec![], [vec![2], vec![], vec![0]]),
        (6, vec![1], [vec![2], vec![], vec![0]]),
        (7, vec![], [vec![2], vec![], vec![0]]),
        (8, vec![], [vec![2], vec![], vec![0]]),
    ] {
        sim.run_until(secs(until) + Duration::from_millis(500))?;
        let stand_still: Vec<usize> = (0..3).filter(|&host| sim.is_paused(&hosts[host])).collect();
        assert_eq!(stand_still, paused, "at {until} s");
        let others = |host| {
            sim.separated_from(host)
                .iter()
                .map(|other| other.index())
                .collect()
        };
        let found: Vec<Vec<usize>> = hosts.iter().map(others).collect();
        assert_eq!(found, separated, "at {until} s");
    }
    Ok(())
}

/// The last lines of one host are a part of the log.
#[corsair_host::test]
fn the_last_lines_of_a_host_are_its_own(sim: &mut Sim) -> Result<(), SimError> {
    let hosts = sim.hosts("host", 2, |number| {
        (0..5).for_each(|line| println!("{number}: {line}"))
    });
    assert!(sim.last_lines(&hosts[0], 3).is_empty());
    sim.run_until(MINUTE)?;
    let texts = |count| {
        sim.last_lines(&hosts[1], count)
            .into_iter()
            .map(|line| line.text)
    };
    assert_eq!(texts(2).collect::<Vec<_>>(), ["1: 3", "1: 4"]);
    assert_eq!(texts(usize::MAX).count(), 5);
    assert_eq!(texts(0).count(), 0);
    Ok(())
}

/// Signals wait for the end of the pause, except the one that kills.
#[corsair_host::test]
fn signals_wait_for_the_end_of_a_pause(sim: &mut Sim) -> Result<(), SimError> {
    let hosts = sim.hosts("host", 2, |_| std::thread::sleep(MINUTE));
    for host in &hosts {
        sim.at(secs(1), Fault::pause(host));
    }
    sim.at(secs(2), Fault::signal(&hosts[0], libc::SIGTERM as u32));
    sim.at(secs(2), Fault::signal(&hosts[1], libc::SIGKILL as u32));
    sim.at(secs(4), Fault::resume(&hosts[0]));
    sim.run_until(secs(3))?;
    assert_eq!(sim.state(&hosts[0]), HostState::Running);
    assert_eq!(sim.state(&hosts[1]), HostState::Killed);
    sim.run_until(secs(5))?;
    assert_eq!(sim.state(&hosts[0]), HostState::Killed);
    Ok(())
}

/// A program may stop itself, and a paused host is not a deadlocked one.
#[corsair_host::test]
fn a_program_can_pause_itself(sim: &mut Sim) -> Result<(), SimError> {
    let host = sim.host("host", || {
        // SAFETY: the call takes no pointers.
        assert_eq!(unsafe { libc::raise(libc::SIGSTOP) }, 0);
        println!("continued");
    });
    sim.at(secs(3), Fault::resume(&host));
    sim.run_until(secs(2))?;
    assert_eq!(sim.state(&host), HostState::Running);
    sim.run_until(MINUTE)?;
    assert_eq!(texts(sim), ["continued"]);
    Ok(())
}

/// An actor stands still as well; its sockets work.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn an_actor_can_be_paused(sim: &mut Sim) -> Result<(), SimError> {
    let server = sim.actor("server", |net| async move {
        let listener = net.listen(80)?;
        loop {
            let mut stream = listener.accept().await;
            let mut byte = [0];
            while stream.read_exact(&mut byte).await.is_ok() {
                stream.write_all(&byte).await?;
            }
        }
        #[allow(unreachable_code, reason = "says the type of the body's result")]
        Ok::<(), std::io::Error>(())
    });
    sim.host("client", || {
        use std::io::{Read, Write};
        std::thread::sleep(secs(2));
        let mut stream = TcpStream::connect("server:80").unwrap();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        println!("answered");
    });
    sim.at(secs(1), Fault::pause(&server));
    sim.at(secs(5), Fault::resume(&server));
    sim.run_until(secs(4))?;
    assert!(texts(sim).is_empty());
    sim.run_until(secs(6))?;
    assert_eq!(texts(sim), ["answered"]);
    Ok(())
}

/// Prints the seconds of the wall clock since 2025 and those of the monotonic clock since the start.
fn clocks() {
    let started = Instant::now();
    for _ in 0..4 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let wall = wall.as_secs() as i64 - 1_735_689_600;
        println!("{wall} {}", started.elapsed().as_secs());
        std::thread::sleep(secs(2));
    }
}

// Guarantee: host-12.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn a_clock_is_ahead_and_is_stepped(sim: &mut Sim) -> Result<(), SimError> {
    let ahead = sim.host("ahead", clocks);
    sim.at(Duration::ZERO, Fault::clock_forward(&ahead, secs(100)));
    sim.at(secs(3), Fault::clock_back(&ahead, secs(1_000)));
    sim.at(secs(9), Fault::start(&ahead));
    sim.run_until(MINUTE)?;
    let first = ["100 0", "102 2", "-896 4", "-894 6"];
    assert_eq!(texts(sim)[..4], first, "{}", sim.log());
    // The step outlives the program.
    assert_eq!(texts(sim)[4], "-891 0");
    Ok(())
}

/// Prints the milliseconds of its own monotonic clock that three kinds of waits took.
fn waits() {
    let started = Instant::now();
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    std::thread::sleep(secs(10));
    println!("slept {}", started.elapsed().as_millis());
    receiver.recv_timeout(secs(10)).unwrap_err();
    println!("waited {}", started.elapsed().as_millis());
    drop(sender);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .unwrap()
        .block_on(async { tokio::time::sleep(secs(10)).await });
    println!("timer {}", started.elapsed().as_millis() / 10);
}

/// A clock that is ten percent faster ends waits sooner, while the program sees their full length.
// Guarantee: host-12.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn clocks_run_at_different_speeds(sim: &mut Sim) -> Result<(), SimError> {
    let fast = sim.host("fast", waits);
    let slow = sim.host("slow", waits);
    sim.at(Duration::ZERO, Fault::clock_rate(&fast, 250_000));
    sim.at(Duration::ZERO, Fault::clock_rate(&slow, -500_000));
    // The drift stays while the program is started again, and ends in the middle of a wait.
    sim.at(secs(100), Fault::start(&fast));
    sim.at(secs(104), Fault::clock_rate(&fast, 0));
    sim.run_until(secs(200))?;
    let seen = |host: usize| -> Vec<(u64, String)> {
        let lines = sim.lines().into_iter().filter(|line| line.host == host);
        let line = lines.map(|line| (line.time.as_nanos() / 100_000_000, line.text));
        line.collect()
    };
    let expected = |lines: [(u64, &str); 3]| lines.map(|(time, text)| (time, text.to_string()));
    let own = [
        (80, "slept 10000"),
        (160, "waited 20000"),
        (240, "timer 3000"),
    ];
    assert_eq!(seen(0)[..3], expected(own), "{}", sim.log());
    // Four seconds at the higher speed are five of the program, which sleeps for another five.
    let again = [
        (1_090, "slept 10000"),
        (1_190, "waited 20000"),
        (1_290, "timer 3000"),
    ];
    assert_eq!(seen(0)[3..], expected(again), "{}", sim.log());
    let own = [
        (200, "slept 10000"),
        (400, "waited 20000"),
        (600, "timer 3000"),
    ];
    assert_eq!(seen(1), expected(own), "{}", sim.log());
    Ok(())
}

/// Waits for an absolute time of the wall clock, by a timer descriptor and by a sleep.
fn alarm(by_descriptor: bool) {
    let until = libc::timespec {
        tv_sec: 1_735_689_600 + 50,
        tv_nsec: 0,
    };
    let started = Instant::now();
    // SAFETY: the structures live during the calls.
    unsafe {
        if by_descriptor {
            let timer = libc::timerfd_create(libc::CLOCK_REALTIME, 0);
            let setting = libc::itimerspec {
                it_interval: libc::timespec {
                    tv_sec: 0,
                    tv_nsec: 0,
                },
                it_value: until,
            };
            let set = libc::timerfd_settime(
                timer,
                libc::TFD_TIMER_ABSTIME,
                &setting,
                std::ptr::null_mut(),
            );
            assert_eq!(set, 0);
            let mut count = 0u64;
            assert_eq!(libc::read(timer, (&raw mut count).cast(), 8), 8);
        } else {
            let slept = libc::clock_nanosleep(
                libc::CLOCK_REALTIME,
                libc::TIMER_ABSTIME,
                &until,
                std::ptr::null_mut(),
            );
            assert_eq!(slept, 0);
        }
    }
    println!("after {} s", started.elapsed().as_secs());
}

/// As in Linux, who waits for a time of the wall clock waits less after a step forward, and longer after one back.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn waits_for_the_wall_clock_follow_its_steps(sim: &mut Sim) -> Result<(), SimError> {
    for (number, by_descriptor) in [(0, true), (1, false)] {
        let forward = sim.host(format!("forward-{number}"), move || alarm(by_descriptor));
        let back = sim.host(format!("back-{number}"), move || alarm(by_descriptor));
        sim.at(secs(10), Fault::clock_forward(&forward, secs(20)));
        sim.at(secs(10), Fault::clock_back(&back, secs(5)));
    }
    sim.run_until(2 * MINUTE)?;
    assert_eq!(
        texts(sim),
        ["after 29 s", "after 29 s", "after 54 s", "after 54 s"],
        "{}",
        sim.log()
    );
    Ok(())
}

/// Resolves a name, an address and itself.
fn look_up() {
    for _ in 0..3 {
        for name in ["other:1", "10.0.0.2:1", "localhost:1"] {
            let found = name.to_socket_addrs().map(|mut all| all.next().is_some());
            println!(
                "{name} {}",
                found.map_or_else(|error| error.to_string(), |is| is.to_string())
            );
        }
        std::thread::sleep(secs(2));
    }
}

// Guarantee: host-12.
#[corsair_host::test(seeds = 2, deterministic = true)]
fn names_fail_for_a_while(sim: &mut Sim) -> Result<(), SimError> {
    let host = sim.host("host", look_up);
    sim.host("other", || {});
    let actor = sim.actor("actor", |net| async move {
        net.sleep(secs(2)).await;
        let refused = net.connect("other:1").await.map(drop);
        net.log(&format!("actor {}", refused.unwrap_err()));
    });
    for host in [&host, &actor] {
        sim.at(secs(1), Fault::names_fail(host));
        sim.at(secs(3), Fault::names_work(host));
    }
    sim.run_until(MINUTE)?;
    let failure = "failed to lookup address information: Temporary failure in name resolution";
    let lines = texts(sim);
    let of_name: Vec<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("other:1 "))
        .collect();
    assert_eq!(of_name, ["true", failure, "true"], "{}", sim.log());
    assert!(
        lines.contains(&"actor Temporary failure in name resolution".to_string()),
        "{lines:?}"
    );
    assert_eq!(
        lines.iter().filter(|line| line.ends_with(" true")).count(),
        8
    );
    Ok(())
}

// Guarantee: host-2.
#[corsair_host::test(deterministic = true)]
fn the_processors_clock_shows_virtual_time(sim: &mut Sim) -> Result<(), SimError> {
    use core::arch::x86_64::{__rdtscp, _rdtsc};
    sim.host("x", || {
        let started = Instant::now();
        // SAFETY: all processors have these instructions.
        let read = || unsafe {
            let mut processor = 7;
            let ticks = [_rdtsc(), __rdtscp(&raw mut processor)];
            assert_eq!(processor, 0);
            assert_eq!(ticks[0], ticks[1], "computing takes no virtual time");
            ticks[0]
        };
        let first = read();
        std::thread::sleep(Duration::from_secs(6));
        let ticks = std::thread::spawn(move || read() - first).join().unwrap();
        assert_eq!(u128::from(ticks), started.elapsed().as_nanos());
        assert_eq!(ticks, 6_000_000_000);
    });
    sim.run_until(Duration::from_secs(10))?;
    // The test itself reads the real clocks.
    // SAFETY: all processors have this instruction.
    let read = || unsafe { _rdtsc() };
    let (before, started) = (read(), Instant::now());
    std::thread::sleep(Duration::from_millis(20));
    let elapsed = started.elapsed();
    assert!(read() > before);
    assert!(
        (Duration::from_millis(20)..Duration::from_secs(60)).contains(&elapsed),
        "{elapsed:?}"
    );
    Ok(())
}
