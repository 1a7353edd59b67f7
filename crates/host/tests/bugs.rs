//! Five published kinds of bugs that simulation has found in other projects. Each is planted in a small service, and is
//! found by trying seeds in turn. The repaired service passes the same seeds.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]

use corsair::network::{Fifo, Jitter};
use corsair_host::{Fault, Sim, simulate};
use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

type Verdict = Result<(), Box<dyn Error>>;

/// The seeds within which a planted bug is found, each a fraction of a second.
const MOST_SEEDS: u64 = 300;
/// The seeds that a repaired service passes.
const REPAIRED_SEEDS: u64 = 10;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Finds the planted bug, and none in the repaired service.
fn hunt(scenario: fn(&mut Sim, bool) -> Verdict) {
    let failure = |seed, is_repaired| {
        let run = simulate(seed, NonZeroUsize::MIN, |sim| scenario(sim, is_repaired));
        run.unwrap().0
    };
    let found = (1..=MOST_SEEDS).find_map(|seed| failure(seed, false).map(|text| (seed, text)));
    let (seed, text) = found.expect("the planted bug is found");
    println!(
        "found with seed {seed}: {}",
        text.lines().next().unwrap_or_default()
    );
    for seed in (1..=REPAIRED_SEEDS).chain([seed]) {
        assert_eq!(
            failure(seed, true),
            None,
            "the repaired service, seed {seed}"
        );
    }
}

/// Answers each line of each connection, with a thread for each.
fn serve(answer: impl Fn(&str) -> String + Send + Sync + 'static) {
    let answer = Arc::new(answer);
    let listener = TcpListener::bind("0.0.0.0:80").unwrap();
    for stream in listener.incoming() {
        let (answer, stream) = (Arc::clone(&answer), stream.unwrap());
        std::thread::spawn(move || {
            let mut lines = BufReader::new(stream.try_clone()?).lines();
            while let Some(line) = lines.next().transpose()? {
                (&stream).write_all((answer(&line) + "\n").as_bytes())?;
            }
            io::Result::Ok(())
        });
    }
}

/// Sends a line to a host on a connection of its own, and returns the answer.
fn ask(host: &str, line: &str, limit: Duration) -> io::Result<String> {
    let until = Instant::now() + limit;
    let left = || {
        let left = until.checked_duration_since(Instant::now());
        left.filter(|left| !left.is_zero())
            .ok_or(io::Error::from(io::ErrorKind::TimedOut))
    };
    let address = (host, 80).to_socket_addrs()?.next();
    let address = address.ok_or(io::ErrorKind::NotFound)?;
    let stream = TcpStream::connect_timeout(&address, left()?)?;
    (&stream).write_all((line.to_owned() + "\n").as_bytes())?;
    stream.set_read_timeout(Some(left()?))?;
    let mut answer = String::new();
    match BufReader::new(stream).read_line(&mut answer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(answer.trim_end().to_owned()),
    }
}

fn number(text: &str) -> u64 {
    text.parse()
        .unwrap_or_else(|_| panic!("'{text}' is not a number"))
}

/// The numbers that the log has after a word.
fn numbers(sim: &Sim, word: &str) -> Vec<u64> {
    let lines = sim.lines();
    let texts = lines.iter().filter_map(|line| line.text.strip_prefix(word));
    texts.map(|text| number(text.trim())).collect()
}

// ---- a rename without a sync, which ate configuration files ---------------------------------------

fn settings_service(is_repaired: bool) {
    fs::create_dir_all("/var/app").unwrap();
    let value = fs::read_to_string("/var/app/settings").unwrap_or("0".to_owned());
    let value = Mutex::new(value.trim().to_owned());
    if is_repaired {
        File::open("/var").unwrap().sync_all().unwrap();
    }
    serve(move |line| {
        let mut value = value.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(new) = line.strip_prefix("set ") {
            let mut file = File::create("/var/app/settings.new").unwrap();
            file.write_all(new.as_bytes()).unwrap();
            if is_repaired {
                file.sync_all().unwrap();
            }
            fs::rename("/var/app/settings.new", "/var/app/settings").unwrap();
            if is_repaired {
                File::open("/var/app").unwrap().sync_all().unwrap();
            }
            *value = new.to_owned();
        }
        value.clone()
    });
}

fn settings_client() {
    for step in 1..200 {
        match ask("server", &format!("set {step}"), ms(100)) {
            Ok(_) => println!("set {step}"),
            Err(_) => std::thread::sleep(ms(50)),
        }
        std::thread::sleep(ms(20));
        if let Ok(value) = ask("server", "get", ms(100)) {
            println!("get {}", if value.is_empty() { "0" } else { &value });
        }
    }
}

fn rename_without_sync(sim: &mut Sim, is_repaired: bool) -> Verdict {
    let server = sim.host("server", move || settings_service(is_repaired));
    sim.host("client", settings_client);
    sim.at(ms(500), Fault::power_loss(&server));
    sim.at(ms(700), Fault::start(&server));
    sim.run_until(secs(3))?;
    let mut acknowledged = 0;
    for line in sim.lines() {
        if let Some(value) = line.text.strip_prefix("set ") {
            acknowledged = number(value);
        } else if let Some(value) = line.text.strip_prefix("get ")
            && number(value) < acknowledged
        {
            return Err(format!("{value} is read after {acknowledged} was acknowledged").into());
        }
    }
    Ok(())
}

#[corsair_host::test]
fn a_rename_without_a_sync_is_found(_: &mut Sim) {
    hunt(rename_without_sync);
}

// ---- a lost wake-up: the condition is checked before the lock of the wait --------------------------

#[derive(Default)]
struct Jobs {
    queue: Mutex<VecDeque<TcpStream>>,
    changed: Condvar,
}

impl Jobs {
    fn next(&self, is_repaired: bool) -> TcpStream {
        loop {
            let mut queue = self.queue.lock().unwrap();
            if let Some(job) = queue.pop_front() {
                return job;
            }
            let idle_since = Instant::now();
            if !is_repaired {
                // Statistics are written without the lock; a job that arrives now wakes nobody.
                drop(queue);
                println!("idle at {idle_since:?}");
                queue = self.queue.lock().unwrap();
            }
            drop(self.changed.wait(queue).unwrap());
        }
    }
}

fn queue_service(is_repaired: bool) {
    let jobs = Arc::new(Jobs::default());
    let worker = Arc::clone(&jobs);
    std::thread::spawn(move || {
        loop {
            let mut job = worker.next(is_repaired);
            let _ = job.write_all(b"done\n");
        }
    });
    // Each connection is a request of three jobs.
    let listener = TcpListener::bind("0.0.0.0:80").unwrap();
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        for job in 0..3 {
            jobs.queue
                .lock()
                .unwrap()
                .push_back(stream.try_clone().unwrap());
            jobs.changed.notify_one();
            println!("job {job} at {:?}", Instant::now());
        }
    }
}

fn queue_client() {
    std::thread::sleep(ms(10));
    for request in 0..30 {
        let stream = TcpStream::connect("server:80").unwrap();
        stream.set_read_timeout(Some(secs(5))).unwrap();
        let answered = BufReader::new(stream)
            .lines()
            .take(3)
            .all(|line| line.is_ok());
        assert!(answered, "request {request}: a job was not done in 5 s");
    }
}

fn lost_wake_up(sim: &mut Sim, is_repaired: bool) -> Verdict {
    sim.preemption(100);
    sim.host("server", move || queue_service(is_repaired));
    sim.host("client", queue_client);
    sim.run_until(secs(60))?;
    Ok(())
}

#[corsair_host::test]
fn a_lost_wake_up_is_found(_: &mut Sim) {
    hunt(lost_wake_up);
}

// ---- a retry storm: the service works on requests that nobody waits for any more --------------------

fn slow_service(is_repaired: bool) {
    let jobs = Arc::new((
        Mutex::new(VecDeque::<(TcpStream, Instant)>::new()),
        Condvar::new(),
    ));
    let worker = Arc::clone(&jobs);
    std::thread::spawn(move || {
        loop {
            let mut queue = worker.0.lock().unwrap();
            let (mut stream, since) = loop {
                match queue.pop_front() {
                    Some(job) => break job,
                    None => queue = worker.1.wait(queue).unwrap(),
                }
            };
            drop(queue);
            if is_repaired && since.elapsed() > ms(25) {
                continue;
            }
            std::thread::sleep(ms(16));
            let _ = stream.write_all(b"done\n");
        }
    });
    let listener = TcpListener::bind("0.0.0.0:80").unwrap();
    for stream in listener.incoming() {
        jobs.0
            .lock()
            .unwrap()
            .push_back((stream.unwrap(), Instant::now()));
        jobs.1.notify_one();
    }
}

/// Asks ten times a second, and repeats each request that takes longer than 50 ms.
fn eager_client() {
    for _ in 0..80 {
        let started = Instant::now();
        let attempts = (1..=5).find(|_| ask("server", "work", ms(50)).is_ok());
        println!("attempts {}", attempts.unwrap_or(6));
        std::thread::sleep(ms(100).saturating_sub(started.elapsed()));
    }
}

fn retry_storm(sim: &mut Sim, is_repaired: bool) -> Verdict {
    let server = sim.host("server", move || slow_service(is_repaired));
    // 80 % of the capacity.
    sim.hosts("client", 5, |_| eager_client());
    sim.at(secs(2), Fault::pause(&server));
    sim.at(secs(3), Fault::resume(&server));
    sim.run_until(secs(8))?;
    let late = sim
        .lines()
        .into_iter()
        .filter(|line| line.time.as_nanos() > 6_000_000_000);
    let attempts: Vec<String> = late.map(|line| line.text).collect();
    let good = attempts.iter().filter(|text| *text == "attempts 1").count();
    match good * 2 > attempts.len() {
        true => Ok(()),
        false => Err(format!(
            "three seconds after the pause, {good} of {} requests succeed at once",
            attempts.len()
        )
        .into()),
    }
}

#[corsair_host::test]
fn a_retry_storm_is_found(_: &mut Sim) {
    hunt(retry_storm);
}

// ---- a lease whose holder is paused between the check and the write ---------------------------------

const LEASE: Duration = secs(1);

/// Grants a lease with a number that grows.
fn lease_service() {
    let granted = Mutex::new((0, String::new(), None::<Instant>));
    serve(move |name| {
        let mut granted = granted.lock().unwrap();
        let is_held = granted.2.is_some_and(|until| Instant::now() < until);
        if is_held && granted.1 != name {
            return "held".to_owned();
        }
        if !is_held {
            granted.0 += 1;
        }
        granted.1 = name.to_owned();
        granted.2 = Some(Instant::now() + LEASE);
        granted.0.to_string()
    });
}

/// Stores values; the repaired service refuses the values of an older lease.
fn storage(is_repaired: bool) {
    let newest = Mutex::new(0);
    serve(move |line| {
        let lease = number(line);
        let mut newest = newest.lock().unwrap();
        if is_repaired && lease < *newest {
            return "fenced".to_owned();
        }
        *newest = lease.max(*newest);
        println!("write {lease}");
        "ok".to_owned()
    });
}

fn lease_holder(name: usize) {
    while Instant::now().elapsed() < secs(60) {
        let asked = Instant::now();
        if let Ok(lease) = ask("leases", &name.to_string(), ms(200))
            && lease != "held"
        {
            while asked.elapsed() < LEASE / 2 {
                if asked.elapsed() < LEASE {
                    // Computes what is to be written.
                    std::thread::sleep(ms(5));
                    let _ = ask("storage", &lease, secs(5));
                }
            }
        }
        std::thread::sleep(ms(50));
    }
}

fn lease_of_a_paused_holder(sim: &mut Sim, is_repaired: bool) -> Verdict {
    sim.host("leases", lease_service);
    sim.host("storage", move || storage(is_repaired));
    let holders = sim.hosts("holder", 2, lease_holder);
    let at = ms(1_000 + sim.seed() * 7 % 500);
    sim.at(at, Fault::pause(&holders[0]));
    sim.at(at + secs(2), Fault::resume(&holders[0]));
    sim.run_until(secs(6))?;
    let writes = numbers(sim, "write ");
    match writes.is_sorted() && !writes.is_empty() {
        true => Ok(()),
        false => Err("a write of an old lease is stored after one of a newer lease".into()),
    }
}

#[corsair_host::test]
fn a_lease_of_a_paused_holder_is_found(_: &mut Sim) {
    hunt(lease_of_a_paused_holder);
}

// ---- a request that is repeated after a time-out, and applied twice ---------------------------------

fn account(is_repaired: bool) {
    let state = Mutex::new((0, HashMap::<String, u64>::new()));
    serve(move |line| {
        let mut state = state.lock().unwrap();
        let (total, answered) = &mut *state;
        if line == "total" {
            return total.to_string();
        }
        if is_repaired && let Some(total) = answered.get(line) {
            return total.to_string();
        }
        *total += 1;
        answered.insert(line.to_owned(), *total);
        total.to_string()
    });
}

fn payer() {
    for payment in 0..20 {
        while ask("account", &format!("pay {payment}"), ms(120)).is_err() {}
    }
    loop {
        if let Ok(total) = ask("account", "total", secs(1)) {
            println!("total {total}");
            return;
        }
    }
}

fn repeated_request(sim: &mut Sim, is_repaired: bool) -> Verdict {
    sim.network(Fifo(Jitter::new(ms(1), ms(40))?));
    sim.host("account", move || account(is_repaired));
    sim.host("payer", payer);
    sim.run_until(secs(60))?;
    match numbers(sim, "total ")[..] {
        [20] => Ok(()),
        [total] => Err(format!("20 payments were made, and {total} are booked").into()),
        _ => Err("the payer did not end".into()),
    }
}

#[corsair_host::test]
fn a_repeated_request_is_found(_: &mut Sim) {
    hunt(repeated_request);
}
