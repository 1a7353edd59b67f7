//! Estimates the time of a run over several machines from two measurements on this machine: a part of the run, and an
//! exchange.

use super::PlanArgs;
use crate::console::Console;
use crate::format::Format;
use crate::memory::PIRATE;
use crate::text::{GoDuration, bytes};
use anyhow::{Result, anyhow, bail};
use corsair::fsm::{self, Fsm};
use corsair::{Config, Executor, Report, available_memory};
use corsair_arch::simulate;
use corsair_cluster::{ExchangeCost, Mpi, measure_exchange};
use serde::Serialize;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::time::Duration;

/// The number of pirates in the measured part of the run.
const SOME_PIRATES: u32 = 100_000;
/// The duration of the measured part of the run.
const SOME_TALK: Duration = Duration::from_secs(1);
/// The bytes of an event in a batch: its label and a small message.
const EVENT_BYTES: f64 = 21.0;

/// A model of a run: its work between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Model {
    events: f64,
    windows: f64,
    window_seconds: f64,
    event_seconds: f64,
    memory_bytes: u64,
}

/// The estimate for a number of machines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct MachineEstimate {
    hosts: u32,
    seconds: f64,
    speed_up: f64,
    exchange_share: f64,
    /// The number of bytes that each machine sends in a window.
    sent_bytes: f64,
}

/// The estimate, for JSON output.
#[derive(Debug, Serialize)]
struct Plan<'a> {
    arch: &'a str,
    workers: usize,
    model: Model,
    exchange_seconds: f64,
    peer_seconds: f64,
    byte_seconds: f64,
    round_trip_seconds: f64,
    expected: Vec<MachineEstimate>,
    /// The number of machines at which the run is fastest.
    fastest: u32,
    /// The smallest number of machines with enough memory.
    needed: u32,
    advice: String,
}

/// Measures the cost of an exchange between two processes of this machine, which `mpirun` starts.
fn exchange_cost() -> Result<ExchangeCost> {
    let output = corsair_cluster::output(2, &["plan".into()])?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let cost = printed
        .lines()
        .find_map(|line| serde_json::from_str(line).ok());
    cost.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.lines().find(|line| !line.trim_matches('-').is_empty());
        anyhow!(
            "the exchange between two processes could not be measured: {}",
            said.unwrap_or("mpirun says nothing")
        )
    })
}

/// Runs one of the two processes of the measured exchange. The first one prints the cost as JSON.
pub fn measure() -> Result<()> {
    let mpi = Mpi::begin()?;
    let member = mpi.member();
    let is_first = member.process() == 0;
    let cost = measure_exchange(member)?;
    if is_first {
        Console::new(true).print(|out| {
            serde_json::to_writer(&mut *out, &cost).map_err(io::Error::from)?;
            writeln!(out)
        });
    }
    Ok(())
}

/// Prints the estimate; see [`super::run`].
pub fn print_estimate(args: &PlanArgs) -> Result<()> {
    let workers = args.run.config().workers.get();
    let model = if args.arch == "fsm" {
        pirates(args)?
    } else {
        services(args)?
    };
    let cost = exchange_cost()?;
    let machines = Machines {
        workers: workers as f64,
        cost,
        round_trip: args.round_trip.as_secs_f64(),
    };
    let fastest = (1..=1024).min_by(|&a, &b| {
        let seconds = |hosts| model.on(hosts, &machines).seconds;
        seconds(a).total_cmp(&seconds(b))
    });
    let fastest = fastest.unwrap_or(1);
    let available = available_memory().unwrap_or(u64::MAX).max(1);
    let needed = u32::try_from(model.memory_bytes.div_ceil(available))
        .unwrap_or(u32::MAX)
        .max(1);
    let mut hosts: Vec<u32> = (0..=10).map(|power| 1 << power).collect();
    hosts.retain(|&some| some <= args.hosts.max(fastest));
    hosts.extend([args.hosts, fastest]);
    hosts.sort_unstable();
    hosts.dedup();
    let expected = hosts.iter().map(|&hosts| model.on(hosts, &machines));
    let plan = Plan {
        arch: &args.arch,
        workers,
        model,
        exchange_seconds: cost.window.as_secs_f64(),
        peer_seconds: cost.peer.as_secs_f64(),
        byte_seconds: cost.byte,
        round_trip_seconds: machines.round_trip,
        expected: expected.collect(),
        fastest,
        needed,
        advice: advice(args.hosts, &model, &machines, fastest, needed),
    };
    Console::new(true).print(|out| match args.format {
        Format::Json => {
            serde_json::to_writer(&mut *out, &plan).map_err(io::Error::from)?;
            writeln!(out)
        }
        Format::Text => lines(&plan, args, out),
    });
    Ok(())
}

/// The machines and the network between them.
struct Machines {
    workers: f64,
    cost: ExchangeCost,
    round_trip: f64,
}

impl Machines {
    /// Returns the duration in seconds of an exchange without bytes between this number of machines.
    fn meeting(&self, hosts: f64) -> f64 {
        let peers = hosts - 2.0;
        self.cost.window.as_secs_f64()
            + self.round_trip / 2.0
            + peers * self.cost.peer.as_secs_f64()
    }
}

impl Model {
    /// Returns the work of a machine in a window, in seconds of one worker.
    fn work(&self) -> f64 {
        self.events / self.windows * self.event_seconds
    }

    fn on(&self, hosts: u32, machines: &Machines) -> MachineEstimate {
        let (count, workers) = (f64::from(hosts), machines.workers);
        let work = self.work() / (count * workers);
        // The receiver of an event is independent of the machine of its sender.
        let crossing = self.events / self.windows * (count - 1.0) / count;
        let sent = crossing * EVENT_BYTES / count;
        let exchange = match hosts {
            1 => 0.0,
            _ => machines.meeting(count) + sent * machines.cost.byte,
        };
        let alone = self.work() / workers;
        MachineEstimate {
            hosts,
            seconds: self.windows * (work + exchange),
            speed_up: alone / (work + exchange),
            exchange_share: exchange / (work + exchange),
            sent_bytes: sent,
        }
    }

    /// Returns the smallest width of windows at which two machines are faster than one; `None` if sending an event
    /// takes longer than the other machine saves.
    fn least_window(&self, machines: &Machines) -> Option<Duration> {
        let work_of_event = self.event_seconds / machines.workers / 2.0;
        let bytes_of_event = EVENT_BYTES / 4.0 * machines.cost.byte;
        let gain = work_of_event - bytes_of_event;
        let events = machines.meeting(2.0) / gain;
        let least = self.window_seconds * events / (self.events / self.windows);
        let least = Duration::try_from_secs_f64(least).ok();
        least.filter(|_| gain > 0.0)
    }
}

/// Measures a smaller number of pirates for a part of the duration.
fn pirates(args: &PlanArgs) -> Result<Model> {
    let pirates = args.run.population;
    let mut config = Config {
        seed: args.run.seed,
        workers: NonZeroUsize::MIN,
        traces: false,
        ..Config::default()
    };
    config.latency = args.latency.unwrap_or(config.latency);
    config.check().map_err(|wrong| anyhow!("{wrong}"))?;
    let (some, talk) = (pirates.min(SOME_PIRATES), args.run.duration.min(SOME_TALK));
    let measure = |talk| {
        let scenario = Fsm {
            population: some,
            chat: args.kv,
            talk,
            ..Fsm::default()
        };
        let ran = fsm::run(Executor::Virtual, &config, scenario);
        ran.map(|(report, _)| report)
            .map_err(|error| anyhow!("{error}"))
    };
    let (before, with) = (measure(Duration::ZERO)?, measure(talk)?);
    let scale = f64::from(pirates) / f64::from(some);
    let longer = args.run.duration.as_secs_f64() / talk.as_secs_f64().max(f64::MIN_POSITIVE);
    let talked = (events(&with) - events(&before)).max(0.0) * longer * scale;
    // The number of windows of introductions and goodbyes grows with the number of pirates, and the number of windows
    // of the talk with its duration.
    let chat_windows = (with.windows.saturating_sub(before.windows)) as f64 * longer;
    let (took, all) = (with.wall + before.wall, events(&with) + events(&before));
    Ok(Model {
        events: events(&before) * scale + talked,
        windows: (before.windows as f64 * scale + chat_windows).max(1.0),
        window_seconds: width(config.latency.min()),
        event_seconds: took.as_secs_f64() / all.max(1.0),
        memory_bytes: u64::from(pirates) * PIRATE,
    })
}

/// Measures a tenth of the run of an architecture.
fn services(args: &PlanArgs) -> Result<Model> {
    if args.kv.is_some() || args.latency.is_some() {
        bail!(
            "--kv and --latency are for -a fsm; {} says itself how far its places are from each other",
            args.arch
        );
    }
    let topology = args
        .run
        .topology(&args.run.find(&args.arch)?, &[], None, false)?;
    let config = Config {
        workers: NonZeroUsize::MIN,
        ..args.run.config()
    };
    let mut plan = args.run.plan()?;
    let whole = plan.duration;
    plan.duration = (whole / 10).max(Duration::from_secs(1)).min(whole);
    plan.warm_up = Duration::ZERO;
    let part = whole.as_secs_f64() / plan.duration.as_secs_f64();
    let ran = simulate(Executor::Virtual, &config, topology, &plan);
    let (report, _) = ran.map_err(|error| anyhow!("{error}"))?;
    let lasted = report.time.elapsed().as_secs_f64();
    Ok(Model {
        events: events(&report) * part,
        windows: (report.windows as f64 * part).max(1.0),
        window_seconds: lasted / (report.windows as f64).max(1.0),
        event_seconds: report.wall.as_secs_f64() / events(&report).max(1.0),
        memory_bytes: corsair::peak_memory().unwrap_or(0),
    })
}

fn events(report: &Report) -> f64 {
    (report.delivered() + report.timers) as f64
}

/// Returns the width of windows for this lookahead: a power of two of nanoseconds.
fn width(lookahead: Duration) -> f64 {
    let nanos = u64::try_from(lookahead.as_nanos())
        .unwrap_or(u64::MAX)
        .max(1);
    (1_u64 << nanos.ilog2()) as f64 * 1e-9
}

/// Returns the recommendation of the report as a sentence.
fn advice(hosts: u32, model: &Model, machines: &Machines, fastest: u32, needed: u32) -> String {
    let memory = |text: String| match needed {
        1 => text,
        _ => format!("its memory needs {needed} machines like this one; {text}"),
    };
    let wanted = model.on(hosts, machines);
    if wanted.speed_up >= 1.0 || hosts == 1 {
        return memory(match fastest {
            1 => "it is fastest on one machine".to_owned(),
            _ => format!(
                "it is fastest on {fastest} machines, each with a utilisation of {:.0} %",
                100.0 * (1.0 - model.on(fastest, machines).exchange_share)
            ),
        });
    }
    let way_out = match model.least_window(machines) {
        Some(least) => format!(
            "run it on one, or with a lookahead of {} or more",
            GoDuration::rounded(least)
        ),
        None => "run it on one: to carry an event takes longer here than to handle it".to_owned(),
    };
    memory(format!(
        "the lookahead is too small for more than one machine: a window has {:.0} events, which take {}, and an exchange takes {}; {way_out}",
        model.events / model.windows,
        short(model.work() / machines.workers),
        short(machines.meeting(f64::from(hosts.max(2)))),
    ))
}

/// Formats a time with a few digits.
fn short(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{:.0} ns", s * 1e9),
        s if s < 1e-3 => format!("{:.1} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

fn lines(plan: &Plan, args: &PlanArgs, out: &mut dyn Write) -> io::Result<()> {
    let model = &plan.model;
    writeln!(
        out,
        "corsair: {} for {}: about {:.3e} events in {:.0} windows of {}, {:.0} each; {} of memory",
        plan.arch,
        GoDuration::rounded(args.run.duration),
        model.events,
        model.windows,
        short(model.window_seconds),
        model.events / model.windows,
        bytes(model.memory_bytes)
    )?;
    writeln!(
        out,
        "  measured here  {} an event; {} an exchange, {} more for each further machine, {} a megabyte; round trip {}",
        short(model.event_seconds),
        short(plan.exchange_seconds),
        short(plan.peer_seconds),
        short(plan.byte_seconds * 1e6),
        short(plan.round_trip_seconds)
    )?;
    writeln!(
        out,
        "  {:>6} {:>10} {:>10} {:>10} {:>14}",
        "hosts", "time", "speed-up", "exchange", "sent a window"
    )?;
    for expected in &plan.expected {
        writeln!(
            out,
            "  {:>6} {:>10} {:>10.2} {:>8.0} % {:>14}",
            expected.hosts,
            short(expected.seconds),
            expected.speed_up,
            100.0 * expected.exchange_share,
            bytes(expected.sent_bytes as u64)
        )?;
    }
    writeln!(out, "corsair: {}", plan.advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machines(exchange: Duration) -> Machines {
        Machines {
            workers: 1.0,
            cost: ExchangeCost {
                window: exchange,
                peer: Duration::from_micros(1),
                byte: 1e-9,
            },
            round_trip: 0.0,
        }
    }

    fn model(events_a_window: f64) -> Model {
        Model {
            events: events_a_window * 1000.0,
            windows: 1000.0,
            window_seconds: 1e-3,
            event_seconds: 100e-9,
            memory_bytes: 0,
        }
    }

    #[test]
    fn what_is_gained_depends_on_the_events_of_a_window() {
        let machines = machines(Duration::from_micros(50));
        let large = model(100_000.0).on(2, &machines);
        assert!(large.speed_up > 1.6 && large.speed_up < 2.0, "{large:?}");
        assert!((model(100_000.0).on(1, &machines).speed_up - 1.0).abs() < 1e-9);
        let small = model(10.0).on(2, &machines);
        assert!(
            small.speed_up < 0.1 && small.exchange_share > 0.9,
            "{small:?}"
        );
    }

    #[test]
    fn windows_that_are_too_small_are_reported_with_those_that_are_not() {
        let machines = machines(Duration::from_micros(50));
        let small = model(10.0);
        let said = advice(2, &small, &machines, 1, 1);
        assert!(
            said.contains("too small") && said.contains("10 events"),
            "{said}"
        );
        // With a lookahead of this width two machines are as fast as one.
        let least = small.least_window(&machines).unwrap();
        let factor = least.as_secs_f64() / small.window_seconds;
        let enough = model(10.0 * factor).on(2, &machines);
        assert!((enough.speed_up - 1.0).abs() < 0.02, "{enough:?}");
        let said = advice(2, &model(100_000.0), &machines, 7, 3);
        assert!(
            said.contains("needs 3 machines") && said.contains("fastest on 7"),
            "{said}"
        );
    }

    #[test]
    fn where_no_lookahead_helps_none_is_advised() {
        let mut machines = machines(Duration::from_micros(50));
        machines.cost.byte = 1e-6;
        assert_eq!(model(10.0).least_window(&machines), None);
        let said = advice(2, &model(10.0), &machines, 1, 1);
        assert!(
            said.ends_with("to carry an event takes longer here than to handle it"),
            "{said}"
        );
    }
}
