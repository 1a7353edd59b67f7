//! Tests of each kind of fault: what it does to nodes and messages, and that it ends.

use corsair::{Context, Message};
use corsair_hunt::{
    BUGGIFY, Cause, FaultPlan, Input, Machine, Node, Program, Step, Subject, Trace, sometimes,
};
use std::sync::Arc;

/// Three nodes that send a message to each other node every 10 ms.
struct Pingers;

#[derive(Clone, Message)]
#[message(duplicate)]
struct Ping;

#[derive(Default)]
struct Pinger {
    boots: u64,
    clock: u64,
}

impl Node<Ping> for Pinger {
    fn boot<C: Context<Ping>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.boots = machine.disk.number("boots").unwrap_or(0) + 1;
        machine.disk.write_number("boots", self.boots);
        machine.disk.sync();
        machine.timer(cx, 10, 0);
    }

    fn on<C: Context<Ping>>(&mut self, input: Input<Ping>, cx: &mut C, machine: &mut Machine) {
        self.clock = machine.clock(cx).as_millis() as u64;
        if let Input::Timer(_) = input {
            let is_rare = machine.buggify(cx, 500);
            sometimes!(cx, is_rare, "the rare path is taken");
            machine.send_others(cx, &Ping);
            machine.timer(cx, 10, 0);
        }
    }

    fn describe(&self) -> String {
        format!("{} {}", self.boots, self.clock)
    }
}

impl Program for Pingers {
    type Message = Ping;
    type Node = Pinger;
    type Observer = ();

    fn name(&self) -> &'static str {
        "pingers"
    }

    fn nodes(&self) -> u32 {
        3
    }

    fn time(&self) -> u32 {
        900
    }

    fn node(&self, _: u32) -> Pinger {
        Pinger::default()
    }

    fn observer(&self) {}
}

fn plan(fault: &str) -> FaultPlan {
    FaultPlan {
        faults: serde_json::from_str(fault).unwrap(),
        ..FaultPlan::calm(900)
    }
}

fn trace(plan: &FaultPlan) -> Trace {
    let trace = Arc::new(Pingers).trace(7, plan).unwrap();
    for workers in 2..=4 {
        let other = Arc::new(Pingers).run(7, plan, workers).unwrap();
        assert_eq!(other.digest, trace.result.digest, "{workers} workers");
    }
    trace
}

fn steps(fault: &str) -> Vec<Step> {
    trace(&plan(fault)).steps
}

/// Returns the times in milliseconds at which a node handled timers.
fn ticks(steps: &[Step], node: u32) -> Vec<u64> {
    let all = steps.iter().filter(|step| step.node == node);
    all.filter(|step| matches!(step.cause, Cause::Timer(_)))
        .map(|step| step.at / 1_000_000)
        .collect()
}

/// Returns the times in milliseconds at which the messages from a node to another that arrived were sent.
fn sent(steps: &[Step], sender: u32, to: u32) -> Vec<u64> {
    let all = steps.iter().filter(|step| step.node == to);
    all.filter_map(|step| match step.cause {
        Cause::Message { from, sent, .. } if from == Some(sender) => Some(sent / 1_000_000),
        _ => None,
    })
    .collect()
}

fn between(times: &[u64], from: u64, until: u64) -> usize {
    times.iter().filter(|at| (from..until).contains(at)).count()
}

#[test]
fn without_faults_every_message_arrives() {
    let steps = steps("[]");
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        assert_eq!(between(&sent(&steps, from, to), 100, 800), 70);
    }
    assert_eq!(between(&ticks(&steps, 0), 100, 800), 70);
}

#[test]
fn lost_doubled_and_late_messages_are_as_frequent_as_the_plan_says() {
    let arrived = |fault: &str| sent(&steps(fault), 0, 1).len();
    let all = arrived("[]");
    let faulty = 59; // Until 600 ms.
    let lost = all - arrived(r#"[{"loss": {"share": 500}}]"#);
    assert!((15..45).contains(&lost), "{lost} of {faulty}");
    let doubled = arrived(r#"[{"duplicates": {"share": 500}}]"#) - all;
    assert!((15..45).contains(&doubled), "{doubled} of {faulty}");
    let steps = steps(r#"[{"late": {"share": 500, "by": 100}}]"#);
    let times = sent(&steps, 0, 1);
    assert!(
        times.windows(2).any(|pair| pair[0] > pair[1]),
        "messages overtake each other"
    );
}

#[test]
fn a_one_way_partition_loses_messages_in_one_direction_until_it_ends() {
    let fault = r#"[{"partition": {"from": 100, "until": 300, "side": [0], "one_way": true}}]"#;
    let steps = steps(fault);
    assert_eq!(between(&sent(&steps, 0, 1), 100, 300), 0);
    assert_eq!(between(&sent(&steps, 1, 0), 100, 300), 20);
    assert_eq!(between(&sent(&steps, 0, 1), 300, 800), 50);
}

#[test]
fn a_partial_partition_leaves_a_node_that_reaches_both_sides() {
    let steps =
        steps(r#"[{"partition": {"from": 100, "until": 300, "side": [0], "others": [1]}}]"#);
    for (from, to, arrived) in [(0, 1, 0), (1, 0, 0), (0, 2, 20), (2, 1, 20)] {
        assert_eq!(between(&sent(&steps, from, to), 100, 300), arrived);
    }
    assert_eq!(between(&sent(&steps, 0, 1), 300, 800), 50);
}

#[test]
fn a_flapping_partition_lets_messages_pass_in_the_second_half_of_each_period() {
    let fault = r#"[{"partition": {"from": 100, "until": 300, "side": [0], "every": 100}}]"#;
    let steps = steps(fault);
    for pair in [(0, 1), (1, 0)] {
        let times = sent(&steps, pair.0, pair.1);
        for (from, until, count) in [(100, 150, 0), (150, 200, 5), (200, 250, 0), (250, 300, 5)] {
            assert_eq!(between(&times, from, until), count, "{pair:?} from {from}");
        }
    }
    assert_eq!(between(&sent(&steps, 1, 2), 100, 300), 20);
}

#[test]
fn nodes_of_a_group_crash_and_start_together() {
    let steps = steps(r#"[{"crash": {"nodes": [0, 2], "at": 105, "down": 100}}]"#);
    for (cause, at) in [(Cause::Crash, 105), (Cause::Restart, 205)] {
        let found = steps.iter().filter(|step| step.cause == cause);
        let found: Vec<(u32, u64)> = found.map(|step| (step.node, step.at / 1_000_000)).collect();
        assert_eq!(found, [(0, at), (2, at)]);
    }
    assert_eq!(between(&ticks(&steps, 2), 105, 205), 0);
    assert_eq!(between(&ticks(&steps, 1), 105, 205), 10);
}

#[test]
fn a_node_stays_down_until_the_last_of_overlapping_crashes_ends() {
    let steps = steps(
        r#"[{"crash": {"nodes": [0], "at": 105, "down": 200}}, {"crash": {"nodes": [0], "at": 155, "down": 10}}]"#,
    );
    assert_eq!(between(&ticks(&steps, 0), 105, 305), 0);
    assert!(between(&ticks(&steps, 0), 305, 600) > 20);
}

#[test]
fn a_crash_loses_synced_data_only_if_it_loses_the_disk() {
    for (loses, boots) in [("false", "2 "), ("true", "1 ")] {
        let fault = format!(
            r#"[{{"crash": {{"nodes": [1], "at": 105, "down": 10, "loses_disk": {loses}}}}}]"#
        );
        let steps = steps(&fault);
        let last = steps.iter().rfind(|step| step.node == 1).unwrap();
        assert!(last.states[1].starts_with(boots), "{loses}: {last:?}");
    }
}

#[test]
fn all_messages_of_a_slow_sender_are_late() {
    let steps = steps(r#"[{"delay": {"nodes": [0], "from": 100, "until": 200, "by": 50}}]"#);
    for step in &steps {
        let Cause::Message { from, sent, .. } = step.cause else {
            continue;
        };
        let is_slow = from == Some(0) && (100_000_000..200_000_000).contains(&sent);
        assert_eq!(step.at - sent >= 51_000_000, is_slow, "{step:?}");
    }
}

#[test]
fn a_paused_node_handles_everything_when_the_pause_ends() {
    let steps = steps(r#"[{"pause": {"nodes": [1], "from": 105, "until": 205}}]"#);
    let own: Vec<&Step> = steps.iter().filter(|step| step.node == 1).collect();
    let at = |step: &&&Step| step.at / 1_000_000;
    assert_eq!(
        own.iter()
            .filter(|step| (105..205).contains(&at(step)))
            .count(),
        0
    );
    let resumed = own.iter().filter(|step| at(step) == 205).count();
    assert!((18..=24).contains(&resumed), "{resumed}");
    // No message is lost.
    assert_eq!(between(&sent(&steps, 0, 1), 100, 800), 70);
    assert_eq!(between(&ticks(&steps, 0), 100, 800), 70);
}

#[test]
fn events_that_wait_in_a_pause_are_lost_in_a_crash() {
    let steps = steps(
        r#"[{"pause": {"nodes": [1], "from": 105, "until": 205}}, {"crash": {"nodes": [1], "at": 155, "down": 1}}]"#,
    );
    let received = sent(&steps, 0, 1);
    assert_eq!(between(&received, 105, 150), 0);
    assert_eq!(between(&received, 160, 600), 44);
}

#[test]
fn a_slow_node_handles_one_event_at_a_time() {
    let steps = steps(r#"[{"slow": {"nodes": [1], "from": 100, "until": 200, "by": 7}}]"#);
    let own = steps.iter().filter(|step| step.node == 1);
    let own: Vec<u64> = own.map(|step| step.at / 1_000_000).collect();
    let busy: Vec<u64> = own
        .iter()
        .copied()
        .filter(|at| (110..200).contains(at))
        .collect();
    assert!(
        busy.len() > 10 && busy.windows(2).all(|pair| pair[1] - pair[0] == 7),
        "{busy:?}"
    );
    assert_eq!(between(&sent(&steps, 0, 1), 100, 800), 70);
}

#[test]
fn a_skewed_clock_changes_timers_and_the_time_that_a_node_reads() {
    for (rate, count, ahead) in [(500, 10, -100), (2000, 40, 200)] {
        let fault =
            format!(r#"[{{"skew": {{"nodes": [1], "from": 100, "until": 300, "rate": {rate}}}}}]"#);
        let steps = steps(&fault);
        let found = between(&ticks(&steps, 1), 100, 300);
        assert!(found.abs_diff(count) <= 1, "{found}");
        assert_eq!(between(&ticks(&steps, 0), 100, 300), 20);
        let last = steps.iter().rfind(|step| step.node == 1).unwrap();
        let clock = last.states[1].split(' ').nth(1).unwrap();
        let skew = clock.parse::<i64>().unwrap() - (last.at / 1_000_000) as i64;
        assert!((skew - ahead).abs() <= 1, "{skew}");
    }
}

#[test]
fn the_plan_switches_the_rare_paths() {
    for (fault, is_reached) in [("[]", false), (r#"["buggify"]"#, BUGGIFY)] {
        let properties = trace(&plan(fault)).result.properties;
        assert_eq!(properties.never_reached().is_empty(), is_reached, "{fault}");
    }
}

// Guarantee: hunt-9.
#[test]
fn random_choices_can_be_listed_and_removed_one_by_one() {
    let faults = r#"[{"loss": {"share": 100}}, {"duplicates": {"share": 100}}, {"late": {"share": 100, "by": 30}}]"#;
    let mut plan = plan(faults);
    let drawn = trace(&plan);
    let chosen: Vec<_> = drawn.chosen().collect();
    assert!(chosen.len() > 30, "{}", chosen.len());
    plan.only = Some(chosen.clone());
    let listed = trace(&plan);
    assert_eq!(listed.result, drawn.result);
    assert_eq!(listed.steps, drawn.steps);
    plan.only = Some(chosen[3..4].to_vec());
    let one = trace(&plan);
    assert_eq!(one.chosen().collect::<Vec<_>>(), chosen[3..4]);
    plan.only = Some(Vec::new());
    let none = trace(&plan);
    assert_eq!(none.chosen().count(), 0);
    assert_eq!(
        sent(&none.steps, 0, 1).len(),
        sent(&steps("[]"), 0, 1).len()
    );
}

#[test]
fn an_absent_node_does_nothing_and_returns_with_its_disk() {
    let mut plan = FaultPlan::calm(900);
    plan.absent = serde_json::from_str(
        r#"[{"node": 0, "from": 0, "until": 900}, {"node": 1, "from": 105, "until": 305}]"#,
    )
    .unwrap();
    let steps = trace(&plan).steps;
    assert!(steps.iter().all(|step| step.node != 0));
    let own = steps.iter().filter(|step| step.node == 1);
    let times: Vec<u64> = own.map(|step| step.at / 1_000_000).collect();
    assert_eq!(between(&times, 105, 305), 0);
    assert!(between(&times, 306, 900) > 50);
    let last = steps.iter().rfind(|step| step.node == 1).unwrap();
    assert!(last.states[1].starts_with("2 "));
}
