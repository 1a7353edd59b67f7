//! A queue with several servers (M/M/c), compared with Erlang's formula for the mean wait.
//!
//! ```text
//!   source ──jobs──▶ station: c servers, one queue
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    AsyncContext, Config, Context, Distribution, Estimate, Event, Experiment, Message,
    ReplicationError, Time, Token, replicate,
};
use std::collections::VecDeque;

const SERVERS: u32 = 3;
/// The number of jobs that arrive per second, and the number that one server handles per second.
const ARRIVALS: f64 = 24.0;
const SERVICE: f64 = 10.0;
const JOBS: u32 = 20_000;

#[derive(Message)]
struct Job;

/// The root, which is the station; its result is the mean wait in seconds.
struct Queue;

impl Experiment<Job> for Queue {
    type Value = f64;

    async fn root<C: AsyncContext<Job>>(self, mut cx: C) -> f64 {
        let station = cx.me();
        cx.spawn_one("source", move |mut cx: C| async move {
            let between = Distribution::exponential(1.0 / ARRIVALS).expect("a mean is positive");
            for _ in 0..JOBS {
                let time = cx.sample_time(&between);
                cx.sleep(time).await;
                cx.send(station, Job);
            }
        })
        .await;
        let service = Distribution::exponential(1.0 / SERVICE).expect("a mean is positive");
        let (mut waiting, mut busy) = (VecDeque::new(), 0);
        let (mut waited, mut begun) = (0.0, 0);
        while begun < JOBS {
            match cx.recv().await {
                Event::Message { .. } => waiting.push_back(cx.now()),
                _ => busy -= 1,
            }
            while busy < SERVERS
                && let Some(arrived) = waiting.pop_front()
            {
                waited += wait(&cx, arrived);
                (busy, begun) = (busy + 1, begun + 1);
                let time = cx.sample_time(&service);
                cx.timer(time, Token::new(0));
            }
        }
        waited / f64::from(JOBS)
    }
}

fn wait(cx: &impl Context<Job>, arrived: Time) -> f64 {
    cx.now().since(arrived).as_secs_f64()
}

/// Returns the mean wait: Erlang's C (the share of jobs that must wait), divided by the spare
/// capacity of the servers.
fn theory() -> f64 {
    let (load, servers) = (ARRIVALS / SERVICE, f64::from(SERVERS));
    let (mut term, mut sum) = (1.0, 0.0);
    for number in 0..SERVERS {
        sum += term;
        term *= load / f64::from(number + 1);
    }
    let all_busy = term * servers / (servers - load);
    all_busy / (sum + all_busy) / (servers * SERVICE - ARRIVALS)
}

fn main() -> Result<(), ReplicationError> {
    let runs = replicate(20, &Config::default(), |_seed| Queue)?;
    let wait = Estimate::of(runs.iter().map(|run| run.value));
    println!("mean wait: {wait} s; theory: {:.5} s", theory());
    assert!(
        wait.interval(0.9999).contains(&theory()),
        "{wait}, not {}",
        theory()
    );
    Ok(())
}
