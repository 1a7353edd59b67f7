//! A shop with any number of customers who arrive, stay for a while and leave, one at a time or in
//! groups. Memory is needed only for the customers who are present.
//!
//! ```text
//! cargo run --release --example churn -- 1000000000       a billion, one at a time
//! cargo run --release --example churn -- 1000000000 300   in groups of 300
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{
    Actor, AsyncContext, Config, Context, Event, Executor, Flow, Message, RunError, Scenario,
    Spawn, Token, peak_memory, run,
};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Message)]
enum Note {
    Paid(u32),
}

/// A customer who looks around for a while, pays, and leaves.
struct Customer;

impl Actor<Note> for Customer {
    fn start<C: Context<Note>>(&mut self, cx: &mut C) {
        let micros = 1000 + cx.below(9000);
        cx.timer(Duration::from_micros(micros.into()), Token::new(0));
    }

    fn on<C: Context<Note>>(&mut self, _: Event<Note>, cx: &mut C) -> Flow {
        let (door, price) = (cx.parent(), cx.below(100));
        cx.send(door, Note::Paid(price));
        Flow::Stop
    }
}

/// The number of doors of the shop.
const DOORS: u64 = 64;

/// The shop. Through each door come `customers` customers, a `group` at a time.
struct Shop {
    customers: u64,
    group: u32,
}

impl Scenario<Note> for Shop {
    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let Shop { customers, group } = self;
        let doors = Spawn::many(DOORS as u32, "door", "").watched();
        cx.spawn(doors, move |mut cx: C, _| async move {
            let (mut outside, mut paid) = (customers, 0);
            while paid < customers {
                let come = outside.min(group.into());
                if come > 0 {
                    let group = Spawn::many(come as u32, "customer", "");
                    cx.spawn_request(group, |_| Customer);
                    outside -= come;
                }
                // Answers arrive one by one. The next group follows when this group has entered.
                loop {
                    match cx.recv().await {
                        Event::Message { .. } => paid += 1,
                        Event::Spawned { .. } => break,
                        _ => {}
                    }
                    if outside == 0 && paid == customers {
                        break;
                    }
                }
            }
        })
        .await;
        let mut open = DOORS;
        while open > 0 {
            if let Event::Down { .. } = cx.recv().await {
                open -= 1;
            }
        }
    }
}

fn main() -> Result<ExitCode, RunError> {
    let arguments = std::env::args().skip(1);
    let numbers: Result<Vec<u64>, _> = arguments.map(|argument| argument.parse()).collect();
    let (customers, group) = match numbers.as_deref() {
        Ok([]) => (100_000, 1),
        Ok([customers]) => (*customers, 1),
        Ok([customers, group @ 1..=0xffff_ffff]) => (*customers, *group as u32),
        _ => {
            eprintln!(
                "expected: churn [CUSTOMERS [GROUP]], whole numbers, a group from 1 to 4294967295"
            );
            return Ok(ExitCode::from(2));
        }
    };
    let scenario = Shop {
        customers: customers.div_ceil(DOORS),
        group,
    };
    let report = run(Executor::Virtual, &Config::default(), scenario)?;
    println!("{} actors in {:?}", report.spawned, report.wall);
    println!("{} of them lived at the end", report.waiting_total);
    if let Some(peak) = peak_memory() {
        println!("{} MB at most", peak >> 20);
    }
    Ok(ExitCode::SUCCESS)
}
