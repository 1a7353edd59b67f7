//! PHOLD in corsair, with the parameters and the random choices of ROSS's model `phold`.
//!
//! At first, every logical process has one event. An event causes one further event, after the lookahead and an
//! exponential time: with the probability `remote` at a process drawn from all processes, otherwise at the same
//! process. The program prints the number of events, the seconds of the whole run including its setup, and the events
//! per second.

#![allow(clippy::print_stdout, reason = "prints its result")]

use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Flow, Latency, Message, Random, Scenario,
    Spawn, simulate,
};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Message)]
struct Job;

/// The parameters of a run; times are in seconds of virtual time.
#[derive(Clone, Copy)]
struct Phold {
    processes: u32,
    workers: usize,
    lookahead: f64,
    mean: f64,
    remote: f64,
    end: f64,
}

/// A logical process.
struct Process {
    first: u32,
    phold: Phold,
}

impl Process {
    fn send<C: Context<Job>>(&self, to: Addr, random: &mut Random, cx: &mut C) {
        let uniform = ((random.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let delay = Duration::from_secs_f64(self.phold.mean * -uniform.ln());
        cx.send_after(delay, to, Job);
    }
}

impl Actor<Job> for Process {
    fn start<C: Context<Job>>(&mut self, cx: &mut C) {
        // The processes' addresses begin with the page after that of the root.
        self.first = cx.parent().as_u32() + 256;
        let (me, mut random) = (cx.me(), Random::new(cx.random()));
        self.send(me, &mut random, cx);
    }

    fn on<C: Context<Job>>(&mut self, _: Event<Job>, cx: &mut C) -> Flow {
        let mut random = Random::new(cx.random());
        let drawn = (random.bits() >> 11) as f64 / (1u64 << 53) as f64;
        let to = match drawn <= self.phold.remote {
            true => Addr::from_u32(self.first + random.below(self.phold.processes)),
            false => cx.me(),
        };
        self.send(to, &mut random, cx);
        Flow::Continue
    }
}

impl Scenario<Job> for Phold {
    async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
        let spawn = Spawn::many(self.processes, "process", "");
        cx.spawn_actors(spawn, move |_| Process {
            first: 0,
            phold: self,
        })
        .await;
        cx.sleep(Duration::from_secs_f64(self.end)).await;
    }
}

/// Parses the parameters: `phold PROCESSES WORKERS LOOKAHEAD MEAN REMOTE END`.
fn parameters() -> Option<Phold> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at)?.parse::<f64>().ok().filter(|n| n.is_finite());
    let whole = |at: usize| words.get(at)?.parse::<u32>().ok().filter(|&n| n > 0);
    let phold = Phold {
        processes: whole(0)?,
        workers: whole(1)? as usize,
        lookahead: number(2)?,
        mean: number(3)?,
        remote: number(4)?,
        end: number(5)?,
    };
    let is_valid = words.len() == 6
        && phold.lookahead > 0.0
        && phold.mean > 0.0
        && (0.0..=1.0).contains(&phold.remote)
        && (0.0..1e9).contains(&phold.end);
    is_valid.then_some(phold)
}

fn main() -> ExitCode {
    let Some(phold) = parameters() else {
        eprintln!(
            "usage: phold PROCESSES WORKERS LOOKAHEAD MEAN REMOTE END, with times in seconds"
        );
        return ExitCode::from(2);
    };
    let config = Config {
        workers: NonZeroUsize::new(phold.workers).unwrap_or(NonZeroUsize::MIN),
        latency: Latency::constant(Duration::from_secs_f64(phold.lookahead)),
        traces: false,
        ..Config::default()
    };
    let clock = Instant::now();
    match simulate(&config, phold) {
        Ok(report) => {
            let (events, seconds) = (report.delivered(), clock.elapsed().as_secs_f64());
            println!("{events} {seconds:.6} {:.0}", events as f64 / seconds);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("phold: {error}");
            ExitCode::from(2)
        }
    }
}
