//! Services with scripts: the steps of their endpoints, their calls, and their response times.

use crate::scene::{Ran, plan, run, topology};
use corsair_arch::{LoadText, Plan, Scale};
use std::time::Duration;

/// Returns these services behind an entry point www that depends on api.
fn behind_www(services: &str) -> String {
    format!(
        r#"{services}, {{"name": "www", "package": "denominator", "regions": 0,
        "dependencies": ["api"]}}"#
    )
}

/// Runs services behind www, with this load.
pub fn run_load(services: &str, load: &str, plan: &Plan) -> Ran {
    let mut topology = topology(&behind_www(services), Scale::default());
    LoadText::read(load).unwrap().apply(&mut topology).unwrap();
    run(topology, plan)
}

/// Runs two virtual seconds with a hundred requests per second for the first endpoint of api.
fn run_api(services: &str) -> Ran {
    let load = r#"{"rate": 100, "requests": {"common": 1}}"#;
    run_load(services, load, &plan())
}

/// Returns a service with one instance and one endpoint with these steps.
pub fn service(name: &str, steps: &str, more: &str) -> String {
    format!(
        r#"{{"name": "{name}", "package": "service", "count": 1, "regions": 1 {more},
        "endpoints": [{{"name": "get", "steps": [{steps}]}}]}}"#
    )
}

/// Rounds to whole milliseconds, because histograms give nanoseconds to three digits.
fn whole(nanos: u64) -> u64 {
    (nanos + 500_000) / 1_000_000
}

/// Returns the only response time, in milliseconds.
fn millis(ran: &Ran) -> f64 {
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
    let (least, most) = ran.micros();
    assert!(most - least < 20, "{least} to {most} µs");
    (least as f64 / 100.0).round() / 10.0
}

// Guarantee: arch-4.
#[test]
fn steps_are_done_one_after_the_other() {
    let api = service(
        "api",
        r#"{"work": "2ms"}, {"call": "db.get"}, {"work": "1ms"}"#,
        "",
    );
    let db = service("db", r#"{"work": "3ms"}"#, "");
    // Four trips of a millisecond, and six milliseconds of work.
    assert_eq!(millis(&run_api(&format!("{api}, {db}"))), 10.0);
}

#[test]
fn a_service_without_endpoints_and_one_without_steps_answer_at_once() {
    let bare = r#"{"name": "api", "package": "service", "count": 1, "regions": 1}"#;
    assert_eq!(millis(&run_api(bare)), 2.0);
    assert_eq!(millis(&run_api(&service("api", "", ""))), 2.0);
}

#[test]
fn the_service_time_comes_before_the_steps() {
    let api = service("api", r#"{"work": "2ms"}"#, r#", "service_time": "5ms""#);
    assert_eq!(millis(&run_api(&api)), 9.0);
}

// Guarantee: arch-4.
#[test]
fn parallel_steps_wait_for_all_for_the_first_or_for_a_quorum() {
    for (wait, expected) in [("", 13.0), (r#", "wait": 1"#, 5.0), (r#", "wait": 2"#, 9.0)] {
        let branches = r#"[{"call": "a"}], [{"call": "b"}], [{"call": "c"}]"#;
        let api = service("api", &format!(r#"{{"parallel": [{branches}]{wait}}}"#), "");
        let others = [("a", "1ms"), ("b", "5ms"), ("c", "9ms")]
            .map(|(name, work)| service(name, &format!(r#"{{"work": "{work}"}}"#), ""));
        let ran = run_api(&format!("{api}, {}", others.join(", ")));
        assert_eq!(millis(&ran), expected, "{wait}");
        // All three branches are completed.
        let requests = ran.entry().requests;
        assert_eq!(
            ["a", "b", "c"].map(|name| ran.service(name).requests),
            [requests; 3]
        );
    }
}

#[test]
fn a_list_of_parallel_steps_is_repeated_at_once() {
    let api = service(
        "api",
        r#"{"parallel": [[{"work": "1ms"}, {"call": "db"}]], "times": 5}"#,
        "",
    );
    let db = service("db", r#"{"work": "3ms"}"#, "");
    let ran = run_api(&format!("{api}, {db}"));
    assert_eq!(millis(&ran), 8.0);
    assert_eq!(ran.service("db").requests, 5 * ran.entry().requests);
}

#[test]
fn a_parallel_step_fails_when_too_few_lists_can_succeed() {
    let bad = service("bad", "", r#", "error_rate": 1"#);
    let good = service("good", r#"{"work": "4ms"}"#, "");
    for (wait, fails) in [(2, true), (1, false)] {
        let steps = format!(
            r#"{{"parallel": [[{{"call": "bad"}}], [{{"call": "good"}}]], "wait": {wait}}}"#
        );
        let ran = run_api(&format!("{}, {bad}, {good}", service("api", &steps, "")));
        let expected = if fails { ran.entry().requests } else { 0 };
        assert_eq!(ran.entry().errors, expected, "{wait}");
    }
}

#[test]
fn a_step_may_be_left_out_and_a_call_repeated() {
    let steps = r#"{"call": "rare", "probability": 0.2}, {"call": "often", "times": 3}"#;
    let services = [
        service("api", steps, ""),
        service("rare", "", ""),
        service("often", "", ""),
    ];
    let long = Plan {
        duration: Duration::from_secs(100),
        ..plan()
    };
    let load = r#"{"rate": 200, "requests": {"api.get": 1}}"#;
    let ran = run_load(&services.join(", "), load, &long);
    let requests = ran.entry().requests;
    assert_eq!(ran.service("often").requests, 3 * requests);
    let share = ran.service("rare").requests as f64 / requests as f64;
    // Within three standard deviations of twenty thousand draws.
    assert!((share - 0.2).abs() < 0.0085, "{share}");
    assert_eq!(ran.entry().errors, 0);
}

#[test]
fn targets_are_drawn_by_their_weights() {
    let steps = r#"{"call": {"one": 3, "two": 1, "none": 0}}"#;
    let services = [
        service("api", steps, ""),
        service("one", "", ""),
        service("two", "", ""),
        service("none", "", ""),
    ];
    let long = Plan {
        duration: Duration::from_secs(100),
        ..plan()
    };
    let load = r#"{"rate": 200, "requests": {"common": 1}}"#;
    let ran = run_load(&services.join(", "), load, &long);
    let share = ran.service("one").requests as f64 / ran.entry().requests as f64;
    assert!((share - 0.75).abs() < 0.0092, "{share}");
    assert!(
        ran.try_service("none")
            .is_none_or(|none| none.requests == 0)
    );
}

#[test]
fn what_is_sent_is_done_and_not_waited_for() {
    let services = [
        service("api", r#"{"send": "mail", "times": 2}"#, ""),
        service("mail", r#"{"work": "50ms"}, {"call": "db"}"#, ""),
        service("db", "", ""),
    ];
    let ran = run_api(&services.join(", "));
    assert_eq!(millis(&ran), 2.0);
    let sent = 2 * ran.entry().requests;
    assert_eq!(
        (ran.service("mail").one_way, ran.service("db").requests),
        (sent, sent)
    );
}

#[test]
fn a_call_that_fails_fails_the_request_unless_there_is_a_fallback() {
    let bad = service("bad", "", r#", "error_rate": 1"#);
    let api = |fallback: &str| service("api", &format!(r#"{{"call": "bad"{fallback}}}"#), "");
    let ran = run_api(&format!("{}, {bad}", api("")));
    assert_eq!(ran.entry().errors, ran.entry().requests);
    let ran = run_api(&format!("{}, {bad}", api(r#", "fallback": []"#)));
    assert_eq!(millis(&ran), 4.0);
    let ran = run_api(&format!(
        "{}, {bad}",
        api(r#", "fallback": [{"work": "3ms"}]"#)
    ));
    assert_eq!(millis(&ran), 7.0);
    assert_eq!(ran.service("api").fallbacks, ran.entry().requests);
}

#[test]
fn a_parallel_step_has_a_fallback_too() {
    let bad = service("bad", "", r#", "error_rate": 1"#);
    let steps = r#"{"parallel": [[{"call": "bad"}], [{"work": "9ms"}]],
        "fallback": [{"work": "2ms"}]}, {"work": "1ms"}"#;
    let ran = run_api(&format!("{}, {bad}", service("api", steps, "")));
    assert_eq!(millis(&ran), 7.0);
}

#[test]
fn a_cache_hits_as_often_as_it_says() {
    let api = service(
        "api",
        r#"{"cache": {"hit_rate": 0.7}, "miss": [{"call": "db"}]}, {"work": "1ms"}"#,
        "",
    );
    let long = Plan {
        duration: Duration::from_secs(100),
        ..plan()
    };
    let load = r#"{"rate": 200, "requests": {"common": 1}}"#;
    let ran = run_load(&format!("{api}, {}", service("db", "", "")), load, &long);
    let share = ran.service("db").requests as f64 / ran.entry().requests as f64;
    assert!((share - 0.3).abs() < 0.0098, "{share}");
}

#[test]
fn a_cache_of_a_size_and_one_of_a_time_to_live_hit_as_theory_says() {
    let long = Plan {
        duration: Duration::from_secs(200),
        warm_up: Duration::from_secs(20),
        ..plan()
    };
    let load = r#"{"rate": 200, "arrivals": "poisson", "requests": {"api.get": 1}, "keys": 100}"#;
    let hits = |cache: &str| {
        let steps = format!(r#"{{"cache": {cache}, "miss": [{{"call": "db"}}]}}"#);
        let services = format!("{}, {}", service("api", &steps, ""), service("db", "", ""));
        let ran = run_load(&services, load, &long);
        let [api, db] = ["api", "db"].map(|name| ran.service(name).requests as f64);
        1.0 - db / api
    };
    // Keys are equally likely, so the hit rate is the fraction of keys that fit in the cache.
    let found = hits(r#"{"size": 40}"#);
    assert!((found - 0.4).abs() < 0.01, "{found}");
    // Each key is requested twice per second and expires after half a second: the hit rate is λT / (1 + λT).
    let found = hits(r#"{"ttl": "500ms"}"#);
    assert!((found - 0.5).abs() < 0.01, "{found}");
    // The cache chooses from its own keys, and all of them fit.
    let found = hits(r#"{"keys": 10, "size": 10}"#);
    assert!(found > 0.999, "{found}");
}

#[test]
fn endpoints_are_kinds_of_requests_by_weight() {
    let api = r#"{"name": "api", "package": "service", "count": 1, "regions": 1, "endpoints": [
        {"name": "list", "steps": [{"work": "1ms"}]},
        {"name": "add", "steps": [{"work": "5ms"}]}]}"#;
    let load = r#"{"rate": 500, "requests": {"list": 4, "api.add": 1}}"#;
    let ran = run_load(api, load, &plan());
    let kinds = &ran.entry().kinds;
    let of = |kind: &str| {
        (
            whole(kinds[kind].times.least().unwrap()),
            kinds[kind].requests,
        )
    };
    assert_eq!((of("list").0, of("api.add").0), (3, 7));
    let share = of("list").1 as f64 / ran.entry().requests as f64;
    assert!((share - 0.8).abs() < 0.05, "{share}");
}

#[test]
fn a_load_balancer_passes_requests_to_the_service_of_their_endpoint() {
    let services = format!(
        r#"{}, {}, {{"name": "elb", "package": "elb", "regions": 1, "dependencies": ["one", "two"]}},
        {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["elb"]}}"#,
        service("one", r#"{"work": "1ms"}"#, ""),
        service("two", r#"{"work": "5ms"}"#, ""),
    );
    let mut topology = topology(&services, Scale::default());
    let load = r#"{"rate": 500, "requests": {"one.get": 1, "two.get": 1}}"#;
    LoadText::read(load).unwrap().apply(&mut topology).unwrap();
    let ran = run(topology, &plan());
    assert_eq!(ran.entry().errors, 0);
    let kinds = &ran.entry().kinds;
    let millis = ["one.get", "two.get"].map(|kind| {
        let times = &kinds[kind].times;
        (
            whole(times.least().unwrap()),
            whole(times.greatest().unwrap()),
        )
    });
    assert_eq!(millis, [(5, 5), (9, 9)]);
}

#[test]
fn hashing_sends_a_key_to_the_same_instance_unless_that_has_too_much_to_do() {
    // Each instance has a separate cache, so a key causes a miss at each instance that gets a request for it.
    let misses = |policy: &str| {
        let api = format!(
            r#"{{"name": "api", "package": "service", "count": 1, "regions": 1,
            "calls": {{"cache": {{{policy}}}}},
            "endpoints": [{{"name": "get", "steps": [{{"call": "cache"}}]}}]}}"#
        );
        let cache = r#"{"name": "cache", "package": "service", "count": 6, "regions": 1,
            "endpoints": [{"name": "get", "steps": [
                {"cache": {}, "miss": [{"call": "db"}]}]}]}"#;
        let services = format!("{api}, {cache}, {}", service("db", "", ""));
        let load = r#"{"rate": 1000, "requests": {"api.get": 1}, "keys": 50}"#;
        let long = Plan {
            duration: Duration::from_secs(5),
            ..plan()
        };
        run_load(&services, load, &long).service("db").requests
    };
    assert_eq!(misses(r#""balance": "hash", "hash_bound": 1000"#), 50);
    assert_eq!(misses(r#""balance": "random""#), 300);
    // About one request in twelve finds its instance busy.
    let bounded = misses(r#""balance": "hash", "hash_bound": 1"#);
    assert!((51..=300).contains(&bounded), "{bounded}");
}

#[test]
fn the_own_zone_comes_first_and_spills_over() {
    let services = |policy: &str, work: &str| {
        format!(
            r#"{{"name": "api", "package": "service", "count": 3, "regions": 1,
            "calls": {{"*": {{{policy}}}}},
            "endpoints": [{{"name": "get", "steps": [{{"call": "db"}}]}}]}},
            {{"name": "db", "package": "service", "count": 6, "regions": 1,
            "endpoints": [{{"name": "get", "steps": [{{"work": "{work}"}}]}}]}},
            {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["api"]}}"#
        )
    };
    let run_with = |policy: &str, work: &str| {
        let text = format!(
            r#"{{"arch": "x", "network": {{"same_zone": "1ms", "same_region": "3ms"}},
            "services": [{}]}}"#,
            services(policy, work)
        );
        let checked = corsair_arch::read_text(&text, "x").unwrap();
        let mut topology = corsair_arch::Topology::new(&checked, Scale::default()).unwrap();
        let load = r#"{"rate": 300, "requests": {"common": 1}}"#;
        LoadText::read(load).unwrap().apply(&mut topology).unwrap();
        let (least, most) = run(topology, &plan()).micros();
        (whole(least * 1000), whole(most * 1000))
    };
    assert_eq!(run_with(r#""balance": "zone""#, "1ms"), (9, 9));
    assert_eq!(run_with(r#""balance": "random""#, "1ms"), (9, 13));
    // Three requests are always in flight, and each of the two instances in the zone takes one of them.
    assert_eq!(
        run_with(r#""balance": "zone", "zone_spill": 1"#, "25ms"),
        (33, 37)
    );
}

#[test]
fn better_informed_balances_wait_less() {
    let mean = |balance: &str| {
        let api = format!(
            r#"{{"name": "api", "package": "service", "count": 1, "regions": 1,
            "calls": {{"db": {{"balance": "{balance}"}}}},
            "endpoints": [{{"name": "get", "steps": [{{"call": "db"}}]}}]}},
            {{"name": "db", "package": "service", "count": 6, "regions": 1, "concurrency": 1,
            "endpoints": [{{"name": "get", "steps": [{{"work": {{"exponential": "10ms"}}}}]}}]}}"#
        );
        let long = Plan {
            duration: Duration::from_secs(100),
            drain: Duration::from_secs(3),
            ..plan()
        };
        let load = r#"{"rate": 480, "arrivals": "poisson", "requests": {"common": 1}}"#;
        let ran = run_load(&api, load, &long);
        ran.entry().times.mean().unwrap() / 1e6 - 4.0
    };
    let [random, turns, two, least] =
        ["random", "round_robin", "two_choices", "least_requests"].map(mean);
    // Six M/M/1 queues at ρ = 0.8 have a mean time of 50 ms. The other policies are better, in this order.
    assert!((random / 50.0 - 1.0).abs() < 0.08, "{random}");
    assert!(
        turns < 0.8 * random && two < turns && least < two,
        "{random} {turns} {two} {least}"
    );
}

#[test]
fn connections_are_limited_opened_and_used_again() {
    let api = |pool: &str| {
        format!(
            r#"{}, {}"#,
            service(
                "api",
                r#"{"call": "db"}"#,
                &format!(r#", "calls": {{"db": {{"connections": {{{pool}}}}}}}"#)
            ),
            service("db", r#"{"work": "3ms"}"#, "")
        )
    };
    // The connection is opened once and shared by all. Each request waits until the previous one is answered.
    let one = r#"{"users": 2, "requests": {"common": 1}}"#;
    let ran = run_load(&api(r#""most": 1, "connect": "4ms""#), one, &plan());
    let times = &ran.entry().times;
    assert_eq!(ran.entry().errors, 0);
    // Two users share a connection that is busy for 5 ms per request. A round takes 10 ms, which includes 2 ms of
    // travel to api.
    assert_eq!(whole(times.at_most(0.5).unwrap()), 10);
    let many = r#"{"users": 5, "requests": {"common": 1}}"#;
    let ran = run_load(&api(r#""most": 1, "waiting": 3"#), many, &plan());
    assert!(ran.entry().errors > 0 && ran.service("api").rejected == ran.entry().errors);
    let ran = run_load(&api(r#""most": 1, "waiting": 4"#), many, &plan());
    assert_eq!(ran.entry().errors, 0);
}

#[test]
fn a_killed_service_answers_nothing_and_comes_back_without_its_tasks() {
    let faults =
        r#", "concurrency": 2, "faults": [{"kind": "kill", "at": "500ms", "for": "500ms"}]"#;
    let services = format!(
        "{}, {}",
        service("api", r#"{"work": "30ms"}, {"call": "db"}"#, faults),
        service("db", r#"{"work": "20ms"}"#, "")
    );
    let load = r#"{"users": 4, "think": "1ms", "requests": {"common": 1}}"#;
    let ran = run_load(&services, load, &plan());
    let entry = ran.entry();
    assert_eq!(entry.unanswered(), 0);
    assert!(entry.errors > 4 && entry.errors < entry.requests);
    // Two concurrent requests of 52 ms each, for 1.5 of two seconds.
    let good = entry.requests - entry.errors;
    assert!((50..=58).contains(&good), "{good}");
}

#[test]
fn a_paused_service_goes_on_where_it_was() {
    let faults = r#", "faults": [{"kind": "pause", "at": "505ms", "for": "200ms"}]"#;
    let services = format!(
        "{}, {}",
        service(
            "api",
            r#"{"work": "8ms"}, {"call": "db"}, {"work": "8ms"}"#,
            faults
        ),
        service("db", r#"{"work": "2ms"}"#, "")
    );
    let ran = run_api(&services);
    assert_eq!((ran.entry().errors, ran.entry().unanswered()), (0, 0));
    let (least, most) = ran.micros();
    assert_eq!(whole(least * 1000), 22);
    assert!((215_000..=222_500).contains(&most), "{most}");
}
