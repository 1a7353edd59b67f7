//! Properties and rare cases inside of programs and actors.
#![allow(clippy::print_stdout, reason = "what programs print is the log")]

use corsair_host::{Host, Sim, SimError};
use corsair_hunt::{Properties, always, sometimes};
use std::time::Duration;

fn program() {
    let mut rare = 0;
    for number in 0..10 {
        always!(Host, number < 9, "numbers are below nine");
        sometimes!(Host, number == 3, "three is reached");
        sometimes!(Host, number == 30, "thirty is reached");
        rare += u32::from(Host.below(1_000) < 500);
    }
    println!("{rare}");
}

// Guarantee: host-13.
#[corsair_host::test(seeds = 3, deterministic = true)]
fn programs_and_actors_state_properties(sim: &mut Sim) -> Result<(), SimError> {
    sim.hosts("host", 2, |_| program());
    sim.actor("actor", |net| async move {
        net.sleep(Duration::from_millis(1)).await;
        sometimes!(net, true, "an actor runs");
        always!(net, net.below(3) < 3, "random numbers have a bound");
    });
    sim.run_until(Duration::from_secs(1))?;
    let counters = sim.counters();
    let counters = counters.iter().map(|(name, count)| (name.as_str(), *count));
    let properties = Properties::of_counters(counters);
    assert_eq!(properties.violated(), ["numbers are below nine"]);
    assert_eq!(properties.never_reached(), ["thirty is reached"]);
    let text = properties.to_string();
    assert!(text.contains("VIOLATED 2 of 20 times"), "{text}");
    assert!(text.contains("three is reached: 2 times"), "{text}");
    assert!(text.contains("an actor runs: 1 times"), "{text}");
    Ok(())
}

#[test]
fn nothing_is_counted_outside_of_a_simulation() {
    program();
    assert_eq!(Host.below(1_000), 999);
}
