//! Faults: kill, pause, slow and partition, at a time, for a duration, and for a share of the instances.

use crate::scene::{Ran, plan, run, run_services, topology};
use corsair_arch::{LoadText, Plan, Scale};
use std::time::Duration;

/// Runs one store behind one entry point, with a fault.
fn with(fault: &str) -> Ran {
    run_services(
        &format!(
            r#"{{"name": "db", "package": "store", "count": 1, "regions": 1, "faults": [{fault}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
        ),
        &plan(),
    )
}

// Guarantee: arch-5.
#[test]
fn requests_to_a_killed_instance_are_refused_until_it_is_forgotten() {
    let services = r#"{"name": "db", "package": "store", "count": 1, "regions": 1,
         "faults": [{"kind": "kill", "at": "1s"}]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}"#;
    let mut topology = topology(services, Scale::default());
    let load = LoadText::read(r#"{"rate": 100, "requests": {"common": 1}}"#).unwrap();
    load.apply(&mut topology).unwrap();
    let ran = run(topology, &plan());
    let entry = ran.entry();
    // A request arrives every ten milliseconds, and 99 of them come before the kill. The others are refused, and later
    // have no instance.
    assert!((199..=200).contains(&entry.requests), "{entry:?}");
    assert_eq!(entry.errors, entry.requests - 99);
    let refused = entry.errors - entry.unrouted;
    assert_eq!(refused, ran.totals.dropped);
    // Instances poll registries every 100 ms and get the answer within 4 ms.
    assert!((1..=11).contains(&refused), "{refused}");
}

// Guarantee: arch-5.
#[test]
fn a_paused_instance_answers_when_it_goes_on() {
    let ran = with(r#"{"kind": "pause", "at": "500ms", "for": "400ms"}"#);
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
    let (shortest, longest) = ran.micros();
    assert!(shortest < 2_100);
    assert!((380_000..=403_000).contains(&longest), "{longest}");
}

#[test]
fn a_slow_instance_is_slow_by_its_factor_while_it_lasts() {
    let ran = with(r#"{"kind": "slow", "at": "500ms", "for": "500ms", "factor": 20}"#);
    let (shortest, longest) = ran.micros();
    // The trip to the instance takes a millisecond as before, and the return trip twenty.
    assert!((1_990..=2_010).contains(&shortest), "{shortest}");
    assert!((20_900..=21_100).contains(&longest), "{longest}");
    let slow = ran.entry().times.iter();
    let slow: u64 = slow
        .filter(|(bounds, _)| *bounds.end() > 10_000_000)
        .map(|(_, count)| count)
        .sum();
    let part = slow as f64 / ran.entry().requests as f64;
    assert!((0.2..0.3).contains(&part), "{part}");
}

// Guarantee: arch-5.
#[test]
fn what_a_partition_swallows_is_given_up_after_a_while() {
    let ran = with(r#"{"kind": "partition", "at": "500ms", "for": "500ms"}"#);
    let entry = ran.entry();
    let part = entry.errors as f64 / entry.requests as f64;
    assert!((0.2..0.3).contains(&part), "{part}");
    let (_, longest) = ran.micros();
    assert!((300_000..=303_000).contains(&longest), "{longest}");
    assert!(ran.totals.dropped >= entry.errors);
    assert_eq!(entry.unanswered(), 0);
}

#[test]
fn faults_of_one_kind_may_overlap() {
    let ran = with(
        r#"{"kind": "pause", "at": "500ms", "for": "400ms"},
        {"kind": "pause", "at": "700ms", "for": "400ms"}"#,
    );
    let (_, longest) = ran.micros();
    assert!((580_000..=603_000).contains(&longest), "{longest}");
}

/// Runs one store behind one entry point, with work, slots and a fault, and a request every `chat`.
fn busy(fields: &str, fault: &str, chat: Duration) -> Ran {
    let plan = Plan { chat, ..plan() };
    run_services(
        &format!(
            r#"{{"name": "db", "package": "store", "count": 1, "regions": 1, {fields},
            "faults": [{fault}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
        ),
        &plan,
    )
}

#[test]
fn a_paused_instance_leaves_its_queue_and_its_work_as_they_are() {
    // Work takes nine of ten milliseconds. Requests in the queue and at work when the pause begins cannot be answered
    // before the pause ends.
    let ran = busy(
        r#""service_time": "9ms", "concurrency": 1"#,
        r#"{"kind": "pause", "at": "500ms", "for": "400ms"}"#,
        Duration::from_millis(10),
    );
    let slow = ran.entry().times.iter();
    let slow: Vec<u64> = slow
        .filter(|(bounds, _)| *bounds.end() > 100_000_000)
        .map(|(_, count)| count)
        .collect();
    // Forty requests arrive during the pause, and two thirds of them need an answer. Requests after the pause queue
    // behind them.
    assert!(slow.iter().sum::<u64>() > 20, "{slow:?}");
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
}

// Guarantee: arch-5.
#[test]
fn work_takes_as_much_longer_as_a_pause_lasts() {
    let ran = busy(
        r#""service_time": "200ms""#,
        r#"{"kind": "pause", "at": "500ms", "for": "400ms"}"#,
        Duration::from_millis(50),
    );
    // Each trip takes a millisecond. Work that began before the pause is completed after it.
    let (shortest, longest) = ran.micros();
    assert!((201_000..=203_000).contains(&shortest), "{shortest}");
    assert!((600_000..=603_000).contains(&longest), "{longest}");
    let times = &ran.entry().times;
    let between = times.count_between(210_000_000, 599_000_000);
    // Requests that arrive during the pause begin after it, so they wait for a part of it.
    assert!((3..=8).contains(&between), "{between}");
}

// Guarantee: arch-5.
#[test]
fn a_killed_instance_answers_nothing_that_it_was_working_on() {
    let ran = busy(
        r#""service_time": "100ms""#,
        r#"{"kind": "kill", "at": "500ms", "for": "1s"}"#,
        Duration::from_millis(10),
    );
    let entry = ran.entry();
    assert_eq!(entry.unanswered(), 0);
    // A response time of at least a tenth of a second means that the work was done. Requests in progress at the kill
    // are refused earlier.
    let early = entry.times.count_between(0, 101_000_000);
    assert!(early >= 5, "{early}");
    assert_eq!(early + entry.unrouted, entry.errors, "{entry:?}");
}

#[test]
fn a_killed_instance_refuses_those_for_whom_it_was_asking_others() {
    let ran = run_services(
        r#"{"name": "db", "package": "store", "count": 1, "regions": 1, "service_time": "300ms"},
        {"name": "app", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["db"],
         "faults": [{"kind": "kill", "at": "500ms", "for": "200ms"}]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]}"#,
        &plan(),
    );
    let entry = ran.entry();
    assert_eq!(entry.unanswered(), 0);
    // An answered request takes four milliseconds in addition to the work in the store.
    let early = entry.times.count_between(0, 303_000_000);
    assert!(early >= 15, "{early}");
    assert_eq!(early + entry.unrouted, entry.errors);
}

#[test]
fn a_request_for_which_there_is_no_instance_fails_once() {
    let ran = with(r#"{"kind": "kill", "at": "0s"}"#);
    let entry = ran.entry();
    assert!(entry.unrouted > 50, "{entry:?}");
    assert_eq!((entry.errors, entry.unanswered()), (entry.requests, 0));
}

#[test]
fn a_share_is_a_decimal_number() {
    let services = |share: f64| {
        format!(
            r#"{{"name": "db", "package": "store", "count": 100, "regions": 1,
            "faults": [{{"kind": "kill", "at": "100ms", "share": {share}}}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
        )
    };
    for (share, killed) in [(0.07, 7), (0.071, 8), (0.29, 29), (0.58, 58), (0.001, 1)] {
        let topology = crate::scene::topology(&services(share), corsair_arch::Scale::default());
        let (_, text, _) = crate::scene::run_with_graph(topology, &plan());
        let done = crate::scene::lines(&text, "done", "\"exit\":\"killed\"");
        assert_eq!(done, killed, "{share}");
    }
}

const TWO_TIERS: &str = r#"{"name": "db", "package": "service", "count": 6, "regions": 1,
        "endpoints": [{"name": "get", "steps": [{"work": "1ms"}]}]},
    {"name": "api", "package": "service", "count": 6, "regions": 1,
        "calls": {"db": {"balance": "zone"}},
        "endpoints": [{"name": "get", "steps": [{"call": "db"}]}]},
    {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"]}"#;

/// Runs two tiers of services with these top-level faults and links, for a number of seconds.
fn places(faults: &str, seconds: u64) -> Ran {
    let text = format!(
        r#"{{"arch": "x", "network": {{"same_zone": "1ms", "same_region": "1ms"}}, {faults},
        "load": {{"www": {{"rate": 300, "requests": {{"api.get": 1}}}}}},
        "services": [{TWO_TIERS}]}}"#
    );
    let checked = corsair_arch::read_text(&text, "x").unwrap();
    let topology = corsair_arch::Topology::new(&checked, Scale::default()).unwrap();
    let plan = Plan {
        duration: Duration::from_secs(seconds),
        ..plan()
    };
    run(topology, &plan)
}

fn failed(ran: &Ran) -> f64 {
    let entry = ran.entry();
    assert_eq!(entry.unanswered(), 0);
    entry.errors as f64 / entry.requests as f64
}

#[test]
fn a_zone_that_is_paused_takes_a_third_of_the_requests_with_it() {
    let ran = places(
        r#""faults": [{"zone": "zoneB", "kind": "pause", "at": "1s", "for": "1s"}]"#,
        4,
    );
    assert_eq!(failed(&ran), 0.0);
    let slow = |millis: u64| {
        let times = &ran.entry().times;
        times.count_between(millis * 1_000_000, u64::MAX) as f64 / times.len() as f64
    };
    // A third of the requests that arrive in one of four seconds.
    assert!((slow(20) - 1.0 / 12.0).abs() < 0.012, "{}", slow(20));
    let one = places(
        r#""faults": [{"zone": "zoneB", "services": ["db"], "kind": "slow", "at": "1s",
            "for": "1s", "factor": 30}]"#,
        4,
    );
    assert!(one.micros().1 > 30_000);
}

#[test]
fn a_fault_comes_again_and_is_as_likely_as_it_says() {
    let killed = |more: &str| {
        let faults = format!(
            r#""faults": [{{"kind": "kill", "at": "1s", "for": "100ms", "every": "1s" {more}}}]"#
        );
        failed(&places(&faults, 41))
    };
    // All instances are down for a tenth of the time, and calls fail slightly longer, until callers know that they are
    // up.
    let always = killed("");
    assert!((0.095..0.3).contains(&always), "{always}");
    let sometimes = killed(r#", "probability": 0.25"#);
    assert!(
        (0.1..0.45).contains(&(sometimes / always)),
        "{sometimes} of {always}"
    );
    assert_eq!(killed(r#", "probability": 0"#), 0.0);
}

// Guarantee: arch-5.
#[test]
fn a_link_loses_in_one_direction_only() {
    let to = r#""links": [{"to": {"service": "db"}, "at": "0s", "loss": 0.2}]"#;
    let ran = places(to, 10);
    // Three standard deviations of three thousand draws.
    assert!((failed(&ran) - 0.2).abs() < 0.022, "{}", failed(&ran));
    let arrived = ran.service("db").requests as f64 / ran.entry().requests as f64;
    assert!((arrived - 0.8).abs() < 0.022, "{arrived}");
    let from = r#""links": [{"from": {"service": "db"}, "at": "0s", "loss": 0.2}]"#;
    let ran = places(from, 10);
    assert!((failed(&ran) - 0.2).abs() < 0.022, "{}", failed(&ran));
    assert_eq!(ran.service("db").requests, ran.entry().requests);
    // Zone A is partitioned from zone B for one of four seconds. No request fails, because calls stay in their zone.
    let zones = r#""links": [{"from": {"zone": "zoneA", "service": "api"},
        "to": {"zone": "zoneB"}, "at": "1s", "for": "1s", "loss": 1}]"#;
    assert_eq!(failed(&places(zones, 4)), 0.0);
    let own = r#""links": [{"from": {"zone": "zoneA", "service": "api"},
        "to": {"zone": "zoneA"}, "at": "1s", "for": "1s", "loss": 1}]"#;
    let own = failed(&places(own, 4));
    assert!((own - 1.0 / 12.0).abs() < 0.015, "{own}");
}

#[test]
fn a_link_delays_and_doubles() {
    let ran = places(
        r#""links": [{"from": {"service": "api"}, "to": {"service": "db"}, "at": "0s",
            "delay": "7ms", "duplicate": 0.5}]"#,
        10,
    );
    assert_eq!(failed(&ran), 0.0);
    let (least, most) = ran.micros();
    assert!((11_900..12_100).contains(&least) && (11_900..12_100).contains(&most));
    let share = ran.service("db").requests as f64 / ran.entry().requests as f64;
    assert!((share - 1.5).abs() < 0.028, "{share}");
}

// Guarantee: arch-5.
#[test]
fn a_rolling_restart_with_a_drain_loses_nothing_and_one_without_does() {
    let restart = |drain: &str| {
        let services = TWO_TIERS.replace(
            r#""name": "db", "package": "service", "count": 6, "regions": 1,"#,
            &format!(
                r#""name": "db", "package": "service", "count": 6, "regions": 1,
                "faults": [{{"kind": "restart", "at": "1s", "gap": "700ms", "for": "400ms"
                {drain}}}],"#
            ),
        );
        let load = corsair_arch::LoadText::read(r#"{"rate": 300, "requests": {"api.get": 1}}"#);
        let mut topology = topology(&services, Scale::default());
        load.unwrap().apply(&mut topology).unwrap();
        let long = Plan {
            duration: Duration::from_secs(7),
            ..plan()
        };
        let ran = run(topology, &long);
        assert_eq!(ran.entry().unanswered(), 0);
        (ran.entry().errors, ran.messages("Goodbye"))
    };
    // A caller asks its registry every 100 ms.
    assert_eq!(restart(r#", "drain": "150ms""#).0, 0);
    assert!(restart("").0 > 0);
}

#[test]
fn a_health_check_takes_a_silent_instance_out_until_it_answers_again() {
    let services = |check: &str| {
        format!(
            r#"{{"name": "api", "package": "service", "count": 3, "regions": 1 {check},
            "faults": [{{"kind": "pause", "at": "2s", "for": "4s", "share": 0.3}}],
            "endpoints": [{{"name": "get", "steps": [{{"work": "1ms"}}]}}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"]}}"#
        )
    };
    let slow = |check: &str| {
        let load = corsair_arch::LoadText::read(r#"{"rate": 300, "requests": {"api.get": 1}}"#);
        let mut topology = topology(&services(check), Scale::default());
        load.unwrap().apply(&mut topology).unwrap();
        let long = Plan {
            duration: Duration::from_secs(10),
            ..plan()
        };
        let ran = run(topology, &long);
        assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
        let slow = ran.entry().times.count_between(20_000_000, u64::MAX);
        (slow, ran.service("api").ejected)
    };
    let (all, none) = slow("");
    assert!((350..450).contains(&all) && none == 0, "{all}");
    let (some, once) = slow(r#", "health_check": {"every": "200ms", "failures": 2}"#);
    // Two health checks without an answer and a poll of the registry take about half a second of the four.
    assert_eq!(once, 1);
    assert!((30..80).contains(&some), "{some}");
}

#[test]
fn an_autoscaler_follows_the_load_up_and_down() {
    let services = r#"{"name": "api", "package": "service", "count": 2, "regions": 1,
            "concurrency": 4,
            "autoscaler": {"target": 0.5, "least": 2, "most": 12, "every": "1s", "delay": "3s",
                "calm": "5s"},
            "endpoints": [{"name": "get", "steps": [{"work": "10ms"}]}]},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"]}"#;
    // From 10 to 40 s the load needs twelve slots, which are half of the slots of six instances.
    let load = r#"{"arrivals": "poisson", "requests": {"api.get": 1}, "rate": [
        {"at": "0s", "rate": 300}, {"at": "10s", "rate": 1200}, {"at": "40s", "rate": 300}]}"#;
    let at = |seconds: u64| {
        let mut topology = topology(services, Scale::default());
        let load = corsair_arch::LoadText::read(load);
        load.unwrap().apply(&mut topology).unwrap();
        let long = Plan {
            duration: Duration::from_secs(seconds),
            drain: Duration::from_secs(5),
            ..plan()
        };
        let ran = run(topology, &long);
        assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
        let api = ran.service("api");
        (2 + api.started - api.stopped, api.stopped)
    };
    assert_eq!(at(10), (2, 0));
    // Both instances are saturated, so the number is doubled. The new instances start three seconds later and reach a
    // utilisation of seven eighths.
    assert_eq!(at(14), (4, 0));
    assert_eq!(at(20), (7, 0));
    // Once the queues are empty, fewer instances are enough.
    let (many, _) = at(39);
    assert!((6..=7).contains(&many), "{many}");
    let (few, stopped) = at(55);
    assert!(few == 2 && stopped >= 4, "{few} {stopped}");
}

// Guarantee: arch-8.
#[test]
fn messages_to_registries_over_a_bad_link_arrives_when_the_link_is_well_again() {
    // Half of the instances are killed after 700 ms, and half of all calls fail until callers know it.
    let failed_until = |links: &str| {
        let faults = format!(
            r#""faults": [{{"services": ["db"], "kind": "kill", "at": "700ms", "share": 0.5}}] {links}"#
        );
        let faults = faults.replace("'", "\"");
        failed(&places(&faults, 4)) * 4.0
    };
    let known_at_once = failed_until("");
    assert!((0.01..0.12).contains(&known_at_once), "{known_at_once}");
    // The registries learn of the kills when the link recovers, 800 ms later. Until the next poll after that, half of
    // the calls fail.
    let untold = failed_until(
        ", 'links': [{'to': {'service': 'eureka'}, 'at': '500ms', 'for': '1s', 'loss': 1}]",
    );
    assert!((0.36..0.56).contains(&untold), "{untold}");
    // The registries know of the kills, but their answers are lost, so as many calls fail. After the fault all callers
    // know.
    let unheard = failed_until(
        ", 'links': [{'from': {'service': 'eureka'}, 'at': '500ms', 'for': '1s', 'loss': 1}]",
    );
    assert!((0.36..0.56).contains(&unheard), "{unheard}");
    // The registries cannot replicate. Each learns only of kills in its own zone, so only calls to other zones fail.
    let apart = failed_until(
        ", 'links': [{'from': {'service': 'eureka'}, 'to': {'service': 'eureka'}, 'at': '500ms', 'for': '1s', 'loss': 1}]",
    );
    assert!(apart > known_at_once && apart < 0.2, "{apart}");
}

#[test]
fn a_link_that_loses_requests_makes_a_health_check_wrong() {
    let services = TWO_TIERS.replace(
        r#""name": "db", "package": "service", "count": 6, "regions": 1,"#,
        r#""name": "db", "package": "service", "count": 6, "regions": 1,
        "health_check": {"every": "100ms", "failures": 3},"#,
    );
    let text = format!(
        r#"{{"arch": "x", "network": {{"same_zone": "1ms", "same_region": "1ms"}},
        "links": [{{"from": {{"service": "db"}}, "to": {{"service": "web"}}, "at": "1s", "for": "1s", "loss": 1}}],
        "load": {{"www": {{"rate": 300, "requests": {{"api.get": 1}}}}}},
        "services": [{services}]}}"#
    );
    let said = corsair_arch::read_text(&text, "x").unwrap_err().to_string();
    assert!(
        said.contains("is for 'web', which is not a service"),
        "{said}"
    );
    let run_with = |to: &str| {
        let text = text.replace(r#""to": {"service": "web"}"#, to);
        let checked = corsair_arch::read_text(&text, "x").unwrap();
        let topology = corsair_arch::Topology::new(&checked, Scale::default()).unwrap();
        let plan = Plan {
            duration: Duration::from_secs(4),
            ..plan()
        };
        run(topology, &plan)
    };
    // All answers of db's instances are lost, including their answers to health checks.
    let ran = run_with(r#""to": {}"#);
    assert_eq!(ran.service("db").ejected, 6);
    let ran = run_with(r#""to": {"service": "api"}"#);
    assert_eq!(ran.service("db").ejected, 0);
}
