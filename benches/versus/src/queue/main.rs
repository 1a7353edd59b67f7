//! A single queue in virtual time (M/M/1), a model that every simulator has, in corsair and in nexosim: customers
//! arrive at a server and wait for their service; both times are exponentially distributed.
//!
//! ```text
//! cargo bench --manifest-path benches/versus/Cargo.toml --bench queue
//! cargo bench --manifest-path benches/versus/Cargo.toml --bench queue -- 1000000 7    customers, rounds
//! ```
//!
//! Both contenders use the [`Source`] and the [`Server`] of this file, so their random numbers and times are equal to
//! the nanosecond. After every run, the program checks that both served all customers, and that the total time of all
//! customers is equal. At the end, it checks that the mean time agrees with theory (40 ms).

#![allow(clippy::print_stdout, reason = "it prints a table")]

mod corsair;
mod nexosim;

use ::corsair::Random;
use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The mean times between two arrivals and of a service: the load is four fifths of the server's capacity.
const ARRIVAL: Duration = Duration::from_millis(10);
const SERVICE: Duration = Duration::from_millis(8);

/// Draws an exponentially distributed time with this mean, which is never zero: simulators require events to be in the
/// future.
fn exponential(random: &mut Random, mean: Duration) -> Duration {
    let uniform = ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    mean.mul_f64(-uniform.ln()).max(Duration::from_nanos(1))
}

/// The arrivals of customers.
struct Source {
    random: Random,
    left: u32,
}

impl Source {
    fn new(customers: u32) -> Source {
        Source {
            random: Random::new(1),
            left: customers,
        }
    }

    /// Returns the time until the next customer arrives; `None` if all have arrived.
    fn next(&mut self) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        Some(exponential(&mut self.random, ARRIVAL))
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ServiceTotals {
    customers: u32,
    /// The sum of all customers' times at the server, in nanoseconds.
    nanos: u64,
}

/// The server and its queue: the arrival times of the customers who are present.
struct Server {
    random: Random,
    there: VecDeque<u64>,
    totals: ServiceTotals,
}

impl Server {
    fn new() -> Server {
        Server {
            random: Random::new(2),
            there: VecDeque::new(),
            totals: ServiceTotals::default(),
        }
    }

    /// Records that a customer arrives. Returns the duration of the service if it begins now.
    fn arrive(&mut self, now: u64) -> Option<Duration> {
        self.there.push_back(now);
        (self.there.len() == 1).then(|| exponential(&mut self.random, SERVICE))
    }

    /// Records that a service is over. Returns the duration of the next one, if there is one.
    fn done(&mut self, now: u64) -> Option<Duration> {
        let came = self.there.pop_front()?;
        self.totals.customers += 1;
        self.totals.nanos += now - came;
        (!self.there.is_empty()).then(|| exponential(&mut self.random, SERVICE))
    }
}

/// A contender: its name, and a function that runs it.
type Contender = (&'static str, fn(u32) -> Result<ServiceTotals, String>);

/// The suffix of a contender that takes ten seconds and is therefore run only once.
const SLOW: &str = "… a thread per core";

const SHORT: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_millis(100);

const CONTENDERS: [Contender; 5] = [
    ("corsair, messages take 1 ms", |customers| {
        corsair::run(customers, 1, SHORT)
    }),
    ("… two workers", |customers| {
        corsair::run(customers, 2, SHORT)
    }),
    ("… messages take 100 ms", |customers| {
        corsair::run(customers, 1, LONG)
    }),
    ("nexosim, one thread", |customers| {
        nexosim::run(customers, 1)
    }),
    (SLOW, |customers| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        nexosim::run(customers, cores)
    }),
];

fn main() -> ExitCode {
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("queue: {error}");
            ExitCode::from(2)
        }
    }
}

fn compare() -> Result<(), String> {
    let mut numbers = std::env::args().skip(1).filter(|word| word != "--bench");
    let mut number = |what: &str, usual: u32| match numbers.next() {
        None => Ok(usual),
        Some(word) => match word.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!(
                "`{word}` is not a number of {what}; give one above 0"
            )),
        },
    };
    let (customers, rounds) = (number("customers", 100_000)?, number("rounds", 5)?);
    let mut times = CONTENDERS.map(|_| Vec::new());
    let mut expected = None;
    for round in 0..rounds {
        for ((name, run), times) in CONTENDERS.iter().zip(&mut times) {
            if round > 0 && *name == SLOW {
                continue;
            }
            let begin = Instant::now();
            let totals = run(customers).map_err(|error| format!("{name}: {error}"))?;
            times.push(begin.elapsed());
            let expected = *expected.get_or_insert(totals);
            if totals != expected || totals.customers != customers {
                return Err(format!("{name}: {totals:?} instead of {expected:?}"));
            }
        }
    }
    let mean = expected.unwrap_or_default().nanos / u64::from(customers);
    let theory = 1.0 / (1.0 / SERVICE.as_secs_f64() - 1.0 / ARRIVAL.as_secs_f64());
    println!(
        "{customers} customers, medians of {rounds}; each was there for {:.1} ms (theory: {:.1})",
        mean as f64 / 1e6,
        theory * 1e3
    );
    if customers >= 100_000 && (mean as f64 / 1e9 / theory - 1.0).abs() > 0.1 {
        return Err("that is far from theory".to_owned());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let medians = times.each_mut().map(median);
    println!("| contender                   | ns a customer | times corsair's |");
    println!("|-----------------------------|--------------:|----------------:|");
    for ((name, _), time) in CONTENDERS.iter().zip(medians) {
        println!(
            "| {name:27} | {:13.0} | {:15.2} |",
            time.as_nanos() as f64 / f64::from(customers),
            time.as_secs_f64() / medians[0].as_secs_f64(),
        );
    }
    Ok(())
}
