//! Messages to ranges of actors in virtual time: the result does not depend on the thread that makes the messages, and
//! panics are reported.

use super::number::{MS, Number, config, run};
use corsair::{
    AddrRange, AsyncContext, Config, Panics, Report, RunError, Scenario, Simulation, Spawn, Time,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// More than six pages of addresses; fewer under miri, which is slow.
const CROWD: u32 = if cfg!(miri) { 12 } else { 1600 };

/// Two speakers, both in the last page of addresses, each send a message to all actors. Making some of these messages
/// panics.
#[derive(Clone)]
struct Speakers {
    heard: Arc<AtomicU32>,
}

impl Scenario<Number> for Speakers {
    async fn root<C: AsyncContext<Number>>(self, mut cx: C) {
        let Speakers { heard } = self;
        let first = Arc::new(std::sync::OnceLock::<AddrRange>::new());
        let all = Arc::clone(&first);
        let crowd = Spawn::many(CROWD, "x", "");
        let crowd = cx
            .spawn(crowd, move |mut cx: C, index| {
                let (heard, all) = (Arc::clone(&heard), Arc::clone(&all));
                async move {
                    if index >= CROWD - 2 {
                        cx.recv().await;
                        let all = *all.get().expect("the root has reported");
                        cx.send_each(all, move |to| {
                            assert!(to == 0 || to % (CROWD / 3) > 0, "{index} to {to}");
                            [Number(to.into())]
                        });
                        // Sent after the multicast, whose messages are built only later.
                        cx.send(all.get(1), Number(7));
                    }
                    loop {
                        cx.recv().await;
                        heard.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
            .await;
        first.set(crowd).expect("once");
        for speaker in CROWD - 2..CROWD {
            cx.send(crowd.get(speaker), Number(1));
        }
        cx.sleep(10 * MS).await;
    }
}

/// Runs the scenario in several ways, checks that all have the same result, and returns it.
fn in_all_ways(panics: Panics, what: impl Fn(Result<Report, RunError>, u32) -> String) -> String {
    let mut first = None;
    for (workers, lookahead, traces) in [
        (1, None, false),
        (1, None, true),
        (2, None, false),
        (3, Some(MS / 10), false),
        (4, None, true),
    ] {
        for pauses in [false, true] {
            let heard = Arc::new(AtomicU32::new(0));
            let speakers = Speakers {
                heard: Arc::clone(&heard),
            };
            let config = Config {
                lookahead,
                traces,
                panics,
                ..config(workers)
            };
            let result = if pauses {
                let mut simulation = Simulation::new(&config, speakers).unwrap();
                // Pauses within the window in which they speak, and after it.
                for micros in [0, 2_000, 3_000, 3_001, 3_500, 4_000] {
                    simulation.run_until(Time::ZERO.after(Duration::from_micros(micros)));
                }
                simulation.finish()
            } else {
                run(&config, speakers)
            };
            let got = what(result, heard.load(Ordering::Relaxed));
            let first = first.get_or_insert_with(|| got.clone());
            let way = format!("{workers} workers, {lookahead:?}, {traces}, {pauses}");
            assert_eq!(*first, got, "{way}");
        }
    }
    first.expect("there are ways")
}

// Guarantee: core-1.
#[test]
fn messages_that_cannot_be_made_are_their_senders_panics_whoever_makes_them() {
    let reported = in_all_ways(Panics::EndActor, |result, heard| {
        let report = result.unwrap();
        let panics = report.panics.iter().map(|panic| format!("\n{panic}"));
        let (delivered, digest) = (report.delivered(), report.digest);
        format!(
            "{heard} {delivered} {digest:?}{}",
            panics.collect::<String>()
        )
    });
    let unmade = 2 * (1..CROWD).filter(|to| to % (CROWD / 3) == 0).count() as u32;
    let (heard, panics) = (2 * CROWD + 2 - unmade, reported.lines().skip(1));
    assert!(reported.starts_with(&format!("{heard} ")), "{reported}");
    assert_eq!(panics.clone().count(), unmade as usize);
    let (who, to) = (CROWD - 2, CROWD / 3);
    let expected =
        format!("x{who} panicked at 0.002000000s on making its messages for x{to}: {who} to {to}");
    assert_eq!(panics.clone().next(), Some(&*expected));
}

#[test]
fn the_first_message_that_cannot_be_made_ends_the_run() {
    let reported = in_all_ways(Panics::EndRun, |result, _| {
        let Err(RunError::Panicked { panic, .. }) = result else {
            panic!("{result:?}")
        };
        // The number of messages received before the end of the run depends on the lookahead, so it is not compared.
        panic.to_string()
    });
    assert!(reported.contains("making its messages for"), "{reported}");
}
