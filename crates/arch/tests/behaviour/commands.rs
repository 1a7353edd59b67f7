//! Commands to an architecture while it runs, and its observation during the run.

use crate::scene::topology;
use corsair::{Config, Report, Time};
use corsair_arch::live::{Live, Sending};
use corsair_arch::{Command, Plan, Scale, Totals};
use std::num::NonZeroUsize;
use std::time::Duration;

/// Two instances with work of a millisecond behind an entry point with 100 requests per second; the entry point is
/// instance 0.
const TWO: &str = r#"
    {"name": "www", "package": "denominator", "regions": 0, "count": 0, "dependencies": ["web"]},
    {"name": "web", "package": "store", "regions": 1, "count": 2, "concurrency": 1,
     "service_time": "1ms"}"#;

fn live(services: &str, workers: usize) -> Live {
    let config = Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        ..Config::default()
    };
    let plan = Plan {
        duration: Duration::from_secs(4),
        poll: Duration::from_millis(100),
        ..Plan::default()
    };
    Live::new(&config, topology(services, Scale::default()), &plan).unwrap()
}

fn millis(n: u64) -> Time {
    Time::ZERO.after(Duration::from_millis(n))
}

fn send_commands(live: &mut Live, commands: &[(u64, u32, Command)]) {
    for &(at, instance, command) in commands {
        live.command(millis(at), instance, command).unwrap();
    }
}

fn run(commands: &[(u64, u32, Command)]) -> (Report, Totals) {
    let mut live = live(TWO, 1);
    send_commands(&mut live, commands);
    live.finish().unwrap()
}

// Guarantee: arch-12.
#[test]
fn what_is_commanded_gives_the_same_run_for_any_workers_and_watched_or_not() {
    let commands = [
        (500, 1, Command::Kill),
        (700, 2, Command::Slow(500)),
        (900, 1, Command::Revive),
        (1000, 2, Command::Pause),
        (1000, 0, Command::Load(300)),
        (1500, 2, Command::Resume),
        (1500, 1, Command::Partition),
        (1800, 1, Command::Rejoin),
        (2000, 2, Command::Serve(false)),
        (2500, 2, Command::Serve(true)),
    ];
    let run = |workers, watched, at_once| {
        let mut live = live(TWO, workers);
        live.watch(watched);
        if at_once {
            send_commands(&mut live, &commands);
        } else {
            for &(at, instance, command) in &commands {
                live.simulation().run_until(millis(at - 3));
                live.command(millis(at), instance, command).unwrap();
                live.next_interval();
                live.watch(at % 1000 == 0);
            }
        }
        live.finish().unwrap().0.digest.unwrap()
    };
    let digest = run(1, false, true);
    for (workers, watched, at_once) in [(1, true, false), (2, false, false), (3, true, true)] {
        assert_eq!(
            run(workers, watched, at_once),
            digest,
            "{workers} {watched} {at_once}"
        );
    }
    let plain = live(TWO, 1).finish().unwrap().0.digest.unwrap();
    assert_ne!(plain, digest);
}

#[test]
fn a_killed_instance_is_down_until_it_is_revived() {
    let mut live = live(TWO, 1);
    send_commands(
        &mut live,
        &[(500, 1, Command::Kill), (501, 2, Command::Kill)],
    );
    live.simulation().run_until(millis(600));
    assert!(live.state(1).unwrap().is_down && live.state(2).unwrap().is_down);
    send_commands(
        &mut live,
        &[(1000, 1, Command::Revive), (1001, 1, Command::Revive)],
    );
    live.simulation().run_until(millis(1002));
    assert!(!live.state(1).unwrap().is_down && live.state(2).unwrap().is_down);
    let (_, totals) = live.finish().unwrap();
    let entry = &totals.entries["www"];
    // For half a second no instance is up, and two of three requests need an answer.
    assert!((25..50).contains(&entry.errors), "{}", entry.errors);
}

// Guarantee: arch-15.
#[test]
fn what_a_fault_ends_later_may_have_been_ended_before() {
    for (kind, undo) in [
        ("kill", Command::Revive),
        ("pause", Command::Resume),
        ("partition", Command::Rejoin),
    ] {
        let services = TWO.replace(
            r#""concurrency""#,
            &format!(
                r#""faults": [{{"kind": "{kind}", "at": "500ms", "for": "1s"}}], "concurrency""#
            ),
        );
        let mut live = live(&services, 1);
        send_commands(&mut live, &[(1000, 1, undo), (1000, 2, undo)]);
        live.simulation().run_until(millis(800));
        let before = live.state(1).unwrap();
        assert!(
            before.is_down || before.is_paused || before.is_cut_off,
            "{kind}"
        );
        for at in [1_100, 2_000] {
            live.simulation().run_until(millis(at));
            let after = live.state(1).unwrap();
            assert!(
                !after.is_down && !after.is_paused && !after.is_cut_off,
                "{kind}"
            );
        }
        let (_, totals) = live.finish().unwrap();
        let entry = &totals.entries["www"];
        assert!(entry.requests - entry.errors > 150, "{kind}: {entry:?}");
    }
}

#[test]
fn a_paused_instance_queues_and_goes_on() {
    let mut live = live(TWO, 1);
    let both = |at, command| [(at, 1, command), (at, 2, command)];
    send_commands(&mut live, &both(500, Command::Pause));
    live.simulation().run_until(millis(900));
    let waiting = live.state(0).unwrap().under_way;
    assert!(waiting > 10, "{waiting}");
    send_commands(&mut live, &both(1000, Command::Resume));
    live.simulation().run_until(millis(1200));
    assert!(live.state(0).unwrap().under_way < 5);
    let (_, totals) = live.finish().unwrap();
    let entry = &totals.entries["www"];
    assert_eq!((entry.errors, entry.unanswered()), (0, 0));
    assert!(entry.percentile(1.0).time > Duration::from_millis(450));
}

#[test]
fn the_load_changes_by_per_cent_and_back() {
    let requests = |commands: &[_]| {
        let (_, totals) = run(commands);
        (totals.entries["www"].requests + totals.entries["www"].puts) as f64
    };
    let plain = requests(&[]);
    assert!((390.0..=400.0).contains(&plain), "{plain}");
    let twice = requests(&[(2000, 0, Command::Load(200))]);
    assert!((twice / plain - 1.5).abs() < 0.05, "{twice}");
    let none = requests(&[(1000, 0, Command::Load(0)), (3000, 0, Command::Load(100))]);
    assert!((none / plain - 0.5).abs() < 0.05, "{none}");
}

#[test]
fn slow_is_by_so_many_per_cent() {
    let (_, plain) = run(&[]);
    let (_, slow) = run(&[(2, 1, Command::Slow(1000)), (2, 2, Command::Slow(1000))]);
    let median = |totals: &Totals| totals.entries["www"].percentile(0.5).time.as_secs_f64();
    // A trip at the usual speed, ten milliseconds of work, and a return trip of ten milliseconds.
    assert!(median(&slow) / median(&plain) > 5.0);
}

#[test]
fn calls_spans_and_messages_are_remembered_while_watched() {
    let mut live = live(TWO, 1);
    live.simulation().run_until(millis(500));
    let counts = |live: &mut Live| {
        let (mut sent, mut recent) = (0, 0);
        live.calls(0, |calls| sent += calls.sent);
        live.recent(0, |_, calls| recent += calls.sent);
        (sent, recent)
    };
    assert_eq!(counts(&mut live), (0, 0));
    live.watch(true);
    live.simulation().run_until(millis(1500));
    assert_eq!(counts(&mut live), (100, 100));
    live.next_interval();
    live.simulation().run_until(millis(2000));
    assert_eq!(counts(&mut live), (150, 50));
    let mut times = corsair_arch::live::Times::default();
    live.calls(0, |calls| calls.add_times(&mut times));
    // A millisecond for each trip and one of work.
    let median = times.quantile(0.5).unwrap();
    assert!((2_900_000..3_200_000).contains(&median), "{median}");
    let spans = live.spans(0);
    assert!(spans.len() == 32 && spans.iter().all(|span| !span.answer.is_error()));
    let details = live.details(1).unwrap();
    assert_eq!((&*details.service, details.messages.len()), ("web", 16));
    assert!(
        details
            .messages
            .iter()
            .any(|message| message.from == "www00")
    );
    live.watch(false);
    live.simulation().run_until(millis(2500));
    assert_eq!(counts(&mut live), (150, 0));
    assert!(live.spans(0).is_empty() && live.details(1).unwrap().messages.is_empty());
    live.watch(true);
    live.simulation().run_until(millis(2600));
    assert_eq!(counts(&mut live), (160, 10));
    // Those of the first period are forgotten.
    let spans = live.spans(0);
    assert!((5..=10).contains(&spans.len()), "{spans:?}");
    assert!(spans.iter().all(|span| span.received > 2_500_000_000));
    // A request that was sent in the period begins a trace.
    assert!(spans.iter().filter(|span| span.trace == span.span).count() > 4);
    assert!(!live.details(1).unwrap().messages.is_empty());
}

#[test]
fn what_is_sent_from_outside_is_done_and_answered_to_no_actor() {
    let services = TWO.to_owned();
    let text = format!(
        r#"{{"arch": "x", "links": [{{"at": "0s", "loss": 0.5}}], "services": [{services}]}}"#
    );
    let checked = corsair_arch::read_text(&text, "x").unwrap();
    let topology = corsair_arch::Topology::new(&checked, Scale::default()).unwrap();
    let config = Config::default();
    let mut live = Live::new(&config, topology, &Plan::default()).unwrap();
    live.watch(true);
    for number in 0..20 {
        live.send(millis(500 + number), 1, Sending::Request(None))
            .unwrap();
        live.send(millis(500 + number), 1, Sending::Put(number as u32))
            .unwrap();
    }
    live.send(millis(600), 0, Sending::Request(None)).unwrap();
    live.command(millis(605), 1, Command::Kill).unwrap();
    live.send(millis(610), 1, Sending::Request(None)).unwrap();
    live.simulation().run_until(millis(550));
    let details = live.details(1).unwrap();
    assert!(details.fields["values"] >= 20);
    assert!(
        details
            .messages
            .iter()
            .any(|message| message.from == "outside")
    );
    live.finish().unwrap();
}

#[test]
fn no_command_is_accepted_for_a_time_that_has_passed() {
    let mut live = live(TWO, 1);
    live.simulation().run_until(millis(500));
    let late = live.command(millis(500), 1, Command::Kill).unwrap_err();
    assert!(late.to_string().contains("choose a later time"));
}
