//! Simulated queues agree with queueing theory: means within 1.5 %, 99th percentiles within 3 %.

use crate::scene::{Ran, plan, run, topology};
use corsair_arch::{LoadText, Plan, Scale, Topology, read_text};
use std::time::Duration;

/// The travel time of both trips in seconds.
const WAYS: f64 = 0.002;

/// Runs a store with these fields under a load of reads, for a number of virtual seconds.
fn store(fields: &str, load: &str, seconds: u64) -> Ran {
    let services = format!(
        r#"{{"name": "db", "package": "store", "count": 1, "regions": 1, {fields}}},
        {{"name": "www", "package": "denominator", "regions": 0, "dependencies": ["db"]}}"#
    );
    let ran = loaded(&services, load, seconds, seconds / 10);
    assert_eq!(ran.entry().unanswered(), 0);
    ran
}

/// Runs these services under a load for a number of virtual seconds. Requests during the warm-up are not counted.
fn loaded(services: &str, load: &str, seconds: u64, warm_up: u64) -> Ran {
    let plan = Plan {
        duration: Duration::from_secs(seconds),
        warm_up: Duration::from_secs(warm_up),
        drain: Duration::from_secs(5),
        poll: Duration::from_secs(3_600),
        ..plan()
    };
    run_loaded(topology(services, Scale::default()), load, &plan)
}

/// Runs a topology under a load.
fn run_loaded(mut topology: Topology, load: &str, plan: &Plan) -> Ran {
    LoadText::read(load).unwrap().apply(&mut topology).unwrap();
    run(topology, plan)
}

/// Returns the mean and the 99th percentile of the time in the store, in seconds.
fn times(ran: &Ran) -> (f64, f64) {
    let times = &ran.entry().times;
    let percentile = ran.entry().percentile(0.99).time.as_secs_f64();
    (times.mean().unwrap() / 1e9 - WAYS, percentile - WAYS)
}

fn close(found: f64, expected: f64, part: f64, what: &str) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() < part,
        "{what}: {found}, not {expected}: off by {:.2} %",
        off * 100.0
    );
}

fn reads(rate: f64) -> String {
    format!(r#"{{"rate": {rate}, "arrivals": "poisson", "requests": {{"common": 1}}}}"#)
}

// Guarantee: arch-4.
#[test]
fn one_server_with_exponential_work() {
    // M/M/1: the time in the system is exponential with the mean 1/(μ − λ).
    for (rate, seconds) in [(500.0, 400), (700.0, 1_500)] {
        let ran = store(
            r#""service_time": {"exponential": "1ms"}, "concurrency": 1"#,
            &reads(rate),
            seconds,
        );
        let mean = 1.0 / (1_000.0 - rate);
        let (found, p99) = times(&ran);
        close(found, mean, 0.015, "mean");
        close(p99, mean * 100f64.ln(), 0.03, "p99");
    }
}

#[test]
fn one_server_with_constant_and_with_uniform_work() {
    // M/G/1 by Pollaczek and Khinchine: the wait is λ·E[S²] / (2 (1 − ρ)).
    for (work, square) in [
        (r#""1ms""#, 1e-6),
        (r#"{"uniform": ["0ms", "2ms"]}"#, 4e-6 / 3.0),
    ] {
        let fields = format!(r#""service_time": {work}, "concurrency": 1"#);
        let ran = store(&fields, &reads(700.0), 500);
        let mean = 1e-3 + 700.0 * square / (2.0 * (1.0 - 0.7));
        close(times(&ran).0, mean, 0.015, work);
    }
}

// Guarantee: arch-4.
#[test]
fn several_servers() {
    // M/M/4 at ρ = 0.75: a request waits with probability 0.5094 (Erlang C), for 1/(4μ − λ) on average.
    let ran = store(
        r#""service_time": {"exponential": "1ms"}, "concurrency": 4"#,
        &reads(3_000.0),
        120,
    );
    close(times(&ran).0, 1e-3 + 0.509_434 / 1_000.0, 0.015, "mean");
}

/// Returns the time at which a decreasing function is 0.01.
fn percentile_99(beyond: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beyond(middle) > 0.01 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn the_99th_percentile_of_one_server_with_constant_work() {
    // M/D/1 at ρ = 0.8, by Erlang: the wait is at most t with the probability (1 − ρ) Σ (λ(kD − t))ᵏ / k! · e^(−λ(kD −
    // t)) over all k up to t/D.
    let (rate, work) = (800.0, 1e-3);
    let within = |time: f64| {
        let mut sum = 0.0;
        for k in 0..=(time / work) as i32 {
            let x = rate * (f64::from(k) * work - time);
            let factorial: f64 = (1..=k).map(f64::from).product();
            sum += x.powi(k) / factorial * (-x).exp();
        }
        (1.0 - rate * work) * sum
    };
    // The terms alternate, and cancel each other out for longer times.
    let beyond = |time: f64| {
        if time > 0.015 {
            0.0
        } else {
            1.0 - within(time)
        }
    };
    let fields = r#""service_time": "1ms", "concurrency": 1"#;
    let (mean, p99) = times(&store(fields, &reads(rate), 800));
    close(mean, work + 0.8 * work / (2.0 * 0.2), 0.015, "mean");
    close(p99, percentile_99(beyond) + work, 0.03, "p99");
}

#[test]
fn the_99th_percentile_of_several_servers() {
    // M/M/4 at ρ = 0.8: a request waits with the probability of Erlang's C formula. The wait is exponential with the
    // rate cμ − λ, and the work is exponential with the rate μ.
    let (rate, work, servers) = (3_200.0, 1_000.0, 4.0);
    let load: f64 = rate / work;
    let mut blocked = 1.0;
    for server in 1..=4 {
        blocked = load * blocked / (f64::from(server) + load * blocked);
    }
    let waits = blocked / (1.0 - rate / (servers * work) * (1.0 - blocked));
    let spare = servers * work - rate;
    let beyond = |time: f64| {
        let both = work / (work - spare) * ((-spare * time).exp() - (-work * time).exp());
        (-work * time).exp() + waits * both
    };
    let fields = r#""service_time": {"exponential": "1ms"}, "concurrency": 4"#;
    let (mean, p99) = times(&store(fields, &reads(rate), 300));
    close(mean, 1.0 / work + waits / spare, 0.015, "mean");
    close(p99, percentile_99(beyond), 0.03, "p99");
}

// Guarantee: arch-4.
#[test]
fn a_closed_network_of_one_station() {
    // Ten users who think for 20 ms, one server of 2 ms: mean value analysis.
    let (think, work, users) = (0.02, 0.002, 10);
    let mut length = 0.0;
    let mut throughput = 0.0;
    for n in 1..=users {
        let response = work * (1.0 + length);
        throughput = f64::from(n) / (think + WAYS + response);
        length = throughput * response;
    }
    let ran = store(
        r#""service_time": {"exponential": "2ms"}, "concurrency": 1"#,
        r#"{"users": 10, "think": {"exponential": "20ms"}, "requests": {"common": 1}}"#,
        300,
    );
    let found = ran.entry().times.len() as f64 / 270.0;
    close(found, throughput, 0.015, "throughput");
    close(times(&ran).0, length / throughput, 0.015, "mean");
}

#[test]
fn two_stations_in_tandem() {
    // Jackson: both stations are M/M/1 queues in series.
    let services = r#"{"name": "db", "package": "store", "count": 1, "regions": 1,
         "service_time": {"exponential": "1ms"}, "concurrency": 1},
        {"name": "app", "package": "monolith", "count": 1, "regions": 1, "dependencies": ["db"],
         "service_time": {"exponential": "2ms"}},
        {"name": "www", "package": "denominator", "regions": 0, "dependencies": ["app"]}"#;
    let ran = loaded(services, &reads(600.0), 900, 20);
    // The first station has unlimited servers and the second one server: two independent exponential times.
    let (first, second) = (1.0 / 0.002, 1_000.0 - 600.0);
    let beyond = |time: f64| {
        (first * (-second * time).exp() - second * (-first * time).exp()) / (first - second)
    };
    let (mean, p99) = times(&ran);
    close(mean - WAYS, 1.0 / first + 1.0 / second, 0.015, "mean");
    close(p99 - WAYS, percentile_99(beyond), 0.03, "p99");
}

// Guarantee: arch-4.
#[test]
fn processor_sharing_does_not_care_how_work_is_distributed() {
    // M/G/1-PS: the mean is E[S] / (1 − ρ), for any distribution.
    for work in [
        r#""1ms""#,
        r#"{"exponential": "1ms"}"#,
        r#"{"uniform": ["0ms", "2ms"]}"#,
    ] {
        let fields = format!(r#""service_time": {work}, "processors": 1"#);
        let ran = store(&fields, &reads(700.0), 400);
        close(times(&ran).0, 1e-3 / 0.3, 0.015, work);
    }
}

// Guarantee: arch-4.
#[test]
fn requests_take_turns_on_a_processor() {
    let mean = |work: &str, slice: &str, seconds| {
        let fields = format!(r#""service_time": {work}, "processors": 1, "time_slice": "{slice}""#);
        times(&store(&fields, &reads(700.0), seconds)).0
    };
    // The remaining time of exponential work does not depend on what is done, so the mean is that of M/M/1.
    let exponential = mean(r#"{"exponential": "1ms"}"#, "400us", 400);
    close(exponential, 1.0 / 300.0, 0.02, "M/M/1");
    // Slices as long as the work are a queue: M/D/1. Short ones come close to even sharing.
    let queue = mean(r#""1ms""#, "1ms", 200);
    close(queue, 1e-3 + 700.0 * 1e-6 / (2.0 * 0.3), 0.02, "M/D/1");
    let even = mean(r#""1ms""#, "20us", 60);
    close(even, 1e-3 / 0.3, 0.04, "M/D/1-PS");
}

#[test]
fn the_99th_percentile_of_processor_sharing() {
    // M/M/1-PS: a request finds n others with the probability (1 − ρ) ρⁿ, and completes at the rate μ / (n + 1). A
    // Markov chain of n, uniformised at the rate λ + μ, gives the probability that the request is present after k
    // transitions. The transitions are a Poisson process.
    let (rate, speed) = (700.0, 1_000.0);
    let (come, go) = (rate / (rate + speed), speed / (rate + speed));
    let mut here: Vec<f64> = (0..160).map(|n| 0.3 * 0.7f64.powi(n)).collect();
    let mut there = Vec::new();
    // Twice the mean number of transitions in 80 ms.
    for _ in 0..272 {
        there.push(here.iter().sum::<f64>());
        let mut next = vec![0.0; here.len()];
        for (n, part) in here.iter().enumerate() {
            let others = n as f64;
            if n + 1 < next.len() {
                next[n + 1] += part * come;
            }
            if n > 0 {
                next[n - 1] += part * go * others / (others + 1.0);
            }
        }
        here = next;
    }
    let beyond = |time: f64| {
        let mean = (rate + speed) * time;
        let mut log = -mean;
        let mut sum = 0.0;
        for (k, part) in there.iter().enumerate() {
            sum += log.exp() * part;
            log += mean.ln() - (k as f64 + 1.0).ln();
        }
        sum
    };
    // The transitions above do not cover longer times.
    let beyond = |time: f64| if time > 0.08 { 0.0 } else { beyond(time) };
    let fields = r#""service_time": {"exponential": "1ms"}, "processors": 1"#;
    let (mean, p99) = times(&store(fields, &reads(rate), 1_500));
    close(mean, 1e-3 / 0.3, 0.015, "mean");
    close(p99, percentile_99(beyond), 0.03, "p99");
}

#[test]
fn shared_processors_are_as_fast_as_servers_with_exponential_work() {
    // M/M/4-PS has the same number of requests in the system as M/M/4, and so the same mean.
    let ran = store(
        r#""service_time": {"exponential": "1ms"}, "processors": 4"#,
        &reads(3_000.0),
        120,
    );
    close(times(&ran).0, 1e-3 + 0.509_434 / 1_000.0, 0.015, "mean");
}

// Guarantee: arch-4.
#[test]
fn services_on_one_machine_share_its_processors() {
    // M/M/1-PS: the mean is E[S] / (1 − ρ), where ρ is the load of both services together.
    let service = |name: &str| {
        format!(
            r#"{{"name": "{name}", "package": "service", "count": 2, "regions": 1, "machine": "box",
            "endpoints": [{{"name": "get", "steps": [{{"work": {{"exponential": "10ms"}}}}]}}]}}"#
        )
    };
    let text = format!(
        r#"{{"arch": "x", "network": {{"same_zone": "1ms", "same_region": "1ms"}},
        "machines": {{"box": {{"processors": 1}}}}, "services": [{}, {},
        {{"name": "www", "package": "denominator", "dependencies": ["a", "b"]}}]}}"#,
        service("a"),
        service("b")
    );
    let topology = Topology::new(&read_text(&text, "x").unwrap(), Scale::default()).unwrap();
    let load = r#"{"rate": 60, "arrivals": "poisson", "requests": {"a.get": 1, "b.get": 1}}"#;
    let plan = Plan {
        duration: Duration::from_secs(4_000),
        warm_up: Duration::from_secs(10),
        drain: Duration::from_secs(5),
        poll: Duration::from_secs(36_000),
        ..plan()
    };
    let ran = run_loaded(topology, load, &plan);
    close(times(&ran).0, 10e-3 / 0.4, 0.02, "mean");
    assert!(ran.service("box").requests > 200_000);
}

// Guarantee: arch-4.
#[test]
fn a_queue_that_is_full_refuses_as_many_as_it_should() {
    // M/M/1/K: a request finds the system full with the probability (1 − ρ) ρᴷ / (1 − ρᴷ⁺¹).
    let (rho, places) = (0.8f64, 5);
    let ran = store(
        r#""service_time": {"exponential": "1ms"}, "concurrency": 1, "queue": {"size": 4}"#,
        &reads(1_000.0 * rho),
        400,
    );
    let lost = (1.0 - rho) * rho.powi(places) / (1.0 - rho.powi(places + 1));
    let found = ran.entry().errors as f64 / ran.entry().requests as f64;
    close(found, lost, 0.015, "losses");
    assert_eq!(ran.service("db").longest_queue, 4);
}

#[test]
fn the_last_come_is_served_first_with_the_same_mean_and_longer_extremes() {
    let fields = |order: &str| {
        format!(
            r#""service_time": {{"exponential": "1ms"}}, "concurrency": 1,
            "queue": {{"order": "{order}"}}"#
        )
    };
    let [first, last] =
        ["fifo", "lifo"].map(|order| times(&store(&fields(order), &reads(700.0), 400)));
    close(last.0, 1.0 / 300.0, 0.015, "mean");
    assert!(last.1 > 1.5 * first.1, "{last:?} {first:?}");
}

/// Returns a service with endpoints behind an entry point. Each trip takes a millisecond.
fn service(name: &str, fields: &str, endpoints: &str) -> String {
    format!(
        r#"{{"name": "{name}", "package": "service", "count": 1, "regions": 1 {fields},
        "endpoints": [{endpoints}]}}"#
    )
}

fn run_services(services: &str, load: &str, seconds: u64) -> Ran {
    let services = format!(
        r#"{services}, {{"name": "www", "package": "denominator", "regions": 0,
        "dependencies": ["api"]}}"#
    );
    loaded(&services, load, seconds, seconds / 20)
}

// Guarantee: arch-4.
#[test]
fn those_with_priority_wait_less_as_cobham_says() {
    // Without preemption: W0 = λ·E[S²]/2; the first class waits W0/(1−ρ₁), the second
    // W0/((1−ρ₁)(1−ρ)).
    let endpoint = |name: &str, priority: u32| {
        format!(
            r#"{{"name": "{name}", "priority": {priority},
            "steps": [{{"work": {{"exponential": "1ms"}}}}]}}"#
        )
    };
    let fields = r#", "concurrency": 1, "queue": {"order": "priority"}"#;
    let endpoints = format!("{}, {}", endpoint("high", 5), endpoint("low", 1));
    let load = r#"{"rate": 700, "arrivals": "poisson", "requests": {"high": 3, "low": 4}}"#;
    let ran = run_services(&service("api", fields, &endpoints), load, 600);
    let mean = |kind: &str| ran.entry().kinds[kind].times.mean().unwrap() / 1e9 - WAYS - 1e-3;
    let residual = 700.0 * 2e-6 / 2.0;
    close(mean("high"), residual / 0.7, 0.015, "high");
    close(mean("low"), residual / (0.7 * 0.3), 0.015, "low");
}

// Guarantee: arch-4.
#[test]
fn a_network_of_services_is_that_of_jackson() {
    // From a to b, with probability 0.5 to c, and then to d: each station is a separate M/M/1.
    let work = |time: &str| format!(r#"{{"work": {{"exponential": "{time}"}}}}"#);
    let one = r#", "concurrency": 1"#;
    let endpoint = |steps: &str| format!(r#"{{"name": "get", "steps": [{steps}]}}"#);
    let services = [
        service(
            "api",
            "",
            &endpoint(
                r#"{"call": "a"}, {"call": "b"}, {"call": "c", "probability": 0.5}, {"call": "d"}"#,
            ),
        ),
        service("a", one, &endpoint(&work("1ms"))),
        service("b", one, &endpoint(&work("1.5ms"))),
        service("c", one, &endpoint(&work("3ms"))),
        service("d", one, &endpoint(&work("0.5ms"))),
    ];
    let load = r#"{"rate": 400, "arrivals": "poisson", "requests": {"api.get": 1}}"#;
    let ran = run_services(&services.join(", "), load, 200);
    let station = |work: f64, rate: f64| 1.0 / (1.0 / work - rate) + WAYS;
    let mean = WAYS
        + station(1e-3, 400.0)
        + station(1.5e-3, 400.0)
        + 0.5 * station(3e-3, 200.0)
        + station(0.5e-3, 400.0);
    close(ran.entry().times.mean().unwrap() / 1e9, mean, 0.015, "mean");
}

#[test]
fn a_closed_network_of_several_stations() {
    // Twelve users think for 30 ms and visit three stations: mean value analysis.
    let demands = [0.002, 0.001, 0.003];
    let ways = 4.0 * WAYS;
    let mut lengths = [0.0; 3];
    let (mut throughput, mut response) = (0.0, 0.0);
    for users in 1..=12 {
        let times: Vec<f64> = (demands.iter().zip(lengths))
            .map(|(demand, length)| demand * (1.0 + length))
            .collect();
        response = times.iter().sum();
        throughput = f64::from(users) / (0.03 + ways + response);
        for (length, time) in lengths.iter_mut().zip(&times) {
            *length = throughput * time;
        }
    }
    let endpoint = |steps: &str| format!(r#"{{"name": "get", "steps": [{steps}]}}"#);
    let station = |name: &str, work: &str| {
        let steps = format!(r#"{{"work": {{"exponential": "{work}"}}}}"#);
        service(name, r#", "concurrency": 1"#, &endpoint(&steps))
    };
    let services = [
        service(
            "api",
            "",
            &endpoint(r#"{"call": "a"}, {"call": "b"}, {"call": "c"}"#),
        ),
        station("a", "2ms"),
        station("b", "1ms"),
        station("c", "3ms"),
    ];
    let load = r#"{"users": 12, "think": {"exponential": "30ms"}, "requests": {"common": 1}}"#;
    let ran = run_services(&services.join(", "), load, 800);
    let found = ran.entry().times.len() as f64 / 760.0;
    close(found, throughput, 0.015, "throughput");
    close(
        ran.entry().times.mean().unwrap() / 1e9 - ways,
        response,
        0.015,
        "mean",
    );
}

// Guarantee: arch-4.
#[test]
fn two_branches_join_as_nelson_and_tantawi_say() {
    // Fork-join of two M/M/1 queues: exactly (12 − ρ)/8 times the mean of one.
    let endpoint = |steps: &str| format!(r#"{{"name": "get", "steps": [{steps}]}}"#);
    let work = r#"{"work": {"exponential": "1ms"}}"#;
    let one = r#", "concurrency": 1"#;
    let services = [
        service(
            "api",
            "",
            &endpoint(r#"{"parallel": [[{"call": "a"}], [{"call": "b"}]]}"#),
        ),
        service("a", one, &endpoint(work)),
        service("b", one, &endpoint(work)),
    ];
    let load = r#"{"rate": 600, "arrivals": "poisson", "requests": {"common": 1}}"#;
    let ran = run_services(&services.join(", "), load, 1_200);
    let mean = (12.0 - 0.6) / 8.0 / 400.0;
    close(
        ran.entry().times.mean().unwrap() / 1e9 - 2.0 * WAYS,
        mean,
        0.015,
        "mean",
    );
}

#[test]
fn controlled_delay_keeps_the_wait_near_its_target() {
    // The load exceeds the capacity. Without controlled delay, the wait would grow to the size of the queue.
    let fields =
        |queue: &str| format!(r#""service_time": "1ms", "concurrency": 1, "queue": {{{queue}}}"#);
    let load = r#"{"rate": 1050, "arrivals": "poisson", "requests": {"common": 1}}"#;
    let codel = r#""codel": {"target": "5ms", "interval": "100ms"}"#;
    let controlled = store(&fields(codel), load, 60);
    let full = store(&fields(r#""size": 200"#), load, 60);
    let half = |ran: &Ran| ran.entry().percentile(0.5).time.as_secs_f64() - WAYS;
    assert!(half(&full) > 0.15, "{}", half(&full));
    assert!(half(&controlled) < 0.05, "{}", half(&controlled));
    // Controlled delay refuses the excess load, and little more.
    let lost = controlled.entry().errors as f64 / controlled.entry().requests as f64;
    assert!((0.045..0.07).contains(&lost), "{lost}");
}
