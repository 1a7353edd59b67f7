//! Tests of networks in virtual time.

use corsair::network::{
    Constant, Cutoff, Duplicating, FaultyLinks, Fifo, Jitter, LinkFault, LognormalLatency, Lossy,
    Network, NetworkError, Partitioned, Plane, Table,
};
use corsair::{
    AskError, AsyncContext, Config, Distribution, Event, Executor, Experiment, Latency, Message,
    Reason, Report, RunError, Spawn, Time, Token, measure,
};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Message)]
#[message(duplicate)]
enum Note {
    Number(u32),
    Ask,
}

const MS: Duration = Duration::from_millis(1);

fn config(network: impl Network) -> Config {
    Config {
        network: Some(Arc::new(network)),
        workers: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    }
}

/// For each message in the order of arrival: its travel time and its number.
type Arrivals = Vec<(Duration, u32)>;

/// Sends `count` messages, one per millisecond, and returns their arrivals.
struct Sends {
    count: u32,
}

impl Experiment<Note> for Sends {
    type Value = Arrivals;

    async fn root<C: AsyncContext<Note>>(self, mut cx: C) -> Arrivals {
        let (parent, count) = (cx.me(), self.count);
        cx.spawn_one("sender", move |mut cx: C| async move {
            for number in 0..count {
                cx.send(parent, Note::Number(number));
                cx.sleep(MS).await;
            }
            cx.settle().await;
        })
        .await;
        let mut arrivals = Vec::new();
        while let Some(event) = cx.recv_timeout(MS * 5000).await {
            if let Event::Message {
                body: Note::Number(number),
                ..
            } = event
            {
                arrivals.push((cx.now().since(cx.envelope().sent), number));
            }
        }
        arrivals
    }
}

#[track_caller]
fn arrivals(network: impl Network, count: u32) -> (Arrivals, Report) {
    let config = config(network);
    let (arrivals, report) = measure(Executor::Virtual, &config, Sends { count }).unwrap();
    let one = Config {
        workers: NonZeroUsize::MIN,
        ..config
    };
    let (again, other) = measure(Executor::Virtual, &one, Sends { count }).unwrap();
    assert_eq!((&arrivals, report.digest), (&again, other.digest));
    (arrivals, report)
}

fn numbers(arrivals: &Arrivals) -> Vec<u32> {
    arrivals.iter().map(|(_, number)| *number).collect()
}

/// Sends messages with transit times of 30 ms, 2 ms and zero, and returns each number with its time of arrival.
struct SendsIn;

impl Experiment<Note> for SendsIn {
    type Value = Vec<(u32, Duration)>;

    async fn root<C: AsyncContext<Note>>(self, mut cx: C) -> Vec<(u32, Duration)> {
        let parent = cx.me();
        cx.spawn_one("sender", move |mut cx: C| async move {
            cx.send_in(MS * 30, parent, Note::Number(30));
            cx.send_in(MS * 2, parent, Note::Number(2));
            cx.send_in(Duration::ZERO, parent, Note::Number(0));
            cx.settle().await;
        })
        .await;
        let began = cx.now();
        let mut arrivals = Vec::new();
        while let Some(event) = cx.recv_timeout(MS * 100).await {
            if let Event::Message {
                body: Note::Number(number),
                ..
            } = event
            {
                arrivals.push((number, cx.now().since(began)));
            }
        }
        arrivals
    }
}

#[test]
fn a_message_with_its_own_transit_time_takes_exactly_that_but_at_least_the_lookahead() {
    let constant = Config {
        latency: Latency::constant(MS),
        workers: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    };
    // The transit time does not depend on the network: not on its jitter, nor on its lower latency, nor on its order.
    let networks = [
        constant.clone(),
        config(Jitter::new(MS, MS * 9).unwrap()),
        config(Fifo(Constant::new(MS).unwrap())),
    ];
    for config in networks {
        let (arrivals, report) = measure(Executor::Virtual, &config, SendsIn).unwrap();
        let began = arrivals[0].1;
        let after = |number: u32| {
            let found = arrivals.iter().find(|(arrived, _)| *arrived == number);
            found.unwrap().1 - began
        };
        assert_eq!([after(0), after(2), after(30)], [0, 1, 29].map(|n| MS * n));
        let one = Config {
            workers: NonZeroUsize::MIN,
            ..config.clone()
        };
        let (_, other) = measure(Executor::Virtual, &one, SendsIn).unwrap();
        assert_eq!(report.digest, other.digest);
    }
    let lossy = Lossy::new(Constant::new(MS).unwrap(), 1.0).unwrap();
    let (arrivals, report) = measure(Executor::Virtual, &config(lossy), SendsIn).unwrap();
    assert_eq!((arrivals.len(), report.lost), (0, 3));
}

#[test]
fn links_with_faults_delay_lose_and_double_in_one_direction_while_they_last() {
    let during = |from: u32, to: u32| Time::ZERO.after(MS * from)..Time::ZERO.after(MS * to);
    let parent = |_, to: corsair::Addr| to.as_u32() == 0;
    let slow = LinkFault::new([during(500, 1000)], parent)
        .delaying(Distribution::constant(0.005).unwrap(), MS * 100);
    let lossy = LinkFault::new([during(1000, 1500)], parent)
        .losing(1.0)
        .unwrap();
    let elsewhere = LinkFault::new([during(0, 9000)], |_, to| to.as_u32() != 0);
    let elsewhere = elsewhere.losing(1.0).unwrap();
    let network = FaultyLinks::new(Constant::new(MS).unwrap(), vec![slow, lossy, elsewhere]);
    let (arrivals, report) = arrivals(network, 2000);
    assert!((498..=502).contains(&report.lost), "{}", report.lost);
    let slowed = arrivals.iter().filter(|(took, _)| *took == MS * 6).count();
    assert!((498..=502).contains(&slowed), "{slowed}");
    let others = arrivals.iter().filter(|(took, _)| *took == MS).count();
    assert_eq!(others + slowed + report.lost as usize, 2000);
}

#[test]
fn a_constant_network_takes_that_time() {
    let (arrivals, _) = arrivals(Constant::new(MS * 7).unwrap(), 5);
    assert!(arrivals.iter().all(|(took, _)| *took == MS * 7));
    assert_eq!(numbers(&arrivals), [0, 1, 2, 3, 4]);
}

// Guarantee: core-7.
#[test]
fn jitter_is_uniform_and_reorders_unless_order_is_kept() {
    let jitter = || Jitter::new(MS, MS * 21).unwrap();
    let (free, _) = arrivals(jitter(), 2000);
    let sum: Duration = free.iter().map(|(took, _)| *took).sum();
    let mean = sum.as_secs_f64() / 2000.0;
    // The tolerance is five standard errors of a uniform distribution with a width of 20 ms.
    assert!(
        (mean - 0.011).abs() < 5.0 * 0.020 / 12f64.sqrt() / 2000f64.sqrt(),
        "{mean}"
    );
    assert!(free.iter().all(|(took, _)| (MS..=MS * 21).contains(took)));
    assert!(!numbers(&free).is_sorted());
    let (kept, _) = arrivals(Fifo(jitter()), 2000);
    assert_eq!(numbers(&kept), (0..2000).collect::<Vec<_>>());
    assert!(kept.iter().all(|(took, _)| (MS..=MS * 21).contains(took)));
}

// Guarantee: core-7.
#[test]
fn lost_messages_are_counted_and_so_are_those_that_come_twice() {
    let lossy = Lossy::new(Constant::new(MS).unwrap(), 0.3).unwrap();
    let (some, report) = arrivals(lossy, 3000);
    assert_eq!(some.len() as u64 + report.lost, 3000);
    let error = (3000.0f64 * 0.3 * 0.7).sqrt();
    assert!(
        (report.lost as f64 - 900.0).abs() < 5.0 * error,
        "{}",
        report.lost
    );
    let twice = Duplicating::new(Jitter::new(MS, MS * 3).unwrap(), 0.25).unwrap();
    let (more, report) = arrivals(twice, 3000);
    assert_eq!(more.len() as u64, 3000 + report.duplicated);
    let error = (3000.0f64 * 0.25 * 0.75).sqrt();
    assert!(
        (report.duplicated as f64 - 750.0).abs() < 5.0 * error,
        "{}",
        report.duplicated
    );
    assert_eq!(report.lost, 0);
}

// Guarantee: core-7.
#[test]
fn a_partition_loses_what_is_sent_while_it_lasts() {
    let at = |ms: u32| Time::ZERO.after(MS * ms);
    let is_root = |who: corsair::Addr| who.as_u32() == 0;
    let cutoff = Cutoff::between(at(100)..at(200), is_root);
    let network = Partitioned::new(Constant::new(MS).unwrap(), vec![cutoff]);
    let (arrivals, report) = arrivals(network, 300);
    // The sender begins after one latency, and sends number n at n + 1 ms.
    let expected: Vec<u32> = (0..99).chain(199..300).collect();
    assert_eq!((numbers(&arrivals), report.lost), (expected, 100));
}

// Guarantee: core-7.
#[test]
fn tables_planes_and_lognormal_networks_take_what_theory_says() {
    let group = |who: corsair::Addr| usize::from(who.as_u32() > 0);
    let table = Table::new(vec![vec![MS, MS * 2], vec![MS * 9, MS * 4]], group).unwrap();
    assert_eq!((table.least(), table.most()), (MS, MS * 9));
    let (took, _) = arrivals(table, 3);
    assert!(took.iter().all(|(took, _)| *took == MS * 9));

    let position = |who: corsair::Addr| {
        if who.as_u32() == 0 {
            (0.0, 0.0)
        } else {
            (30.0, 40.0)
        }
    };
    let plane = Plane::new(position, 10_000.0, MS, MS * 100).unwrap();
    let (took, _) = arrivals(plane, 3);
    assert!(took.iter().all(|(took, _)| *took == MS * 5));

    let lognormal = LognormalLatency::new(MS * 10, 0.5, MS, MS * 200).unwrap();
    let (mut took, _) = arrivals(lognormal, 4000);
    took.sort_unstable();
    // The quartiles of the logarithm are at ± 0.6745 sigma.
    for (part, theory) in [(1000, -0.6745f64), (2000, 0.0), (3000, 0.6745)] {
        let (got, theory) = (took[part].0.as_secs_f64(), 0.010 * (theory * 0.5).exp());
        assert!(
            (got / theory - 1.0).abs() < 0.06,
            "{part}: {got}, not {theory}"
        );
    }
}

// Guarantee: core-7.
#[test]
fn a_lost_request_times_out_and_a_stop_comes_after_what_was_sent_before() {
    struct Asks;
    impl Experiment<Note> for Asks {
        type Value = ();
        async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
            let body = |mut cx: C, _| async move {
                let mut seen = 0;
                while let Event::Message {
                    body: Note::Number(_),
                    ..
                } = cx.recv().await
                {
                    seen += 1;
                    assert!(seen < 100);
                }
            };
            let who = cx.spawn(Spawn::one("ear").watched(), body).await.get(0);
            (0..50).for_each(|number| drop_span(cx.send(who, Note::Number(number))));
            cx.stop(who);
            let reason = Reason::Stopped;
            assert_eq!(cx.recv().await, Event::Down { who, reason });
            let deaf = cx.spawn_one("deaf", |mut cx: C| async move {
                cx.sleep(MS * 10_000).await;
            });
            let deaf = deaf.await;
            let asked = cx.ask(deaf, Note::Ask, MS * 300).await;
            assert!(matches!(asked, Err(AskError::TimedOut { .. })));
        }
    }
    fn drop_span(_: corsair::SpanId) {}
    let jitter = Jitter::new(MS, MS * 30).unwrap();
    let (_, report) = measure(Executor::Virtual, &config(jitter), Asks).unwrap();
    // All fifty messages were handled, whatever their travel times.
    assert_eq!((report.delivered(), report.dead()), (51, 0));
    let deaf = Lossy::new(Constant::new(MS).unwrap(), 1.0).unwrap();
    let (_, report) = measure(Executor::Virtual, &config(deaf), Asks).unwrap();
    assert_eq!((report.delivered(), report.lost), (0, 51));
}

// Guarantee: core-8.
#[test]
fn a_message_to_oneself_takes_no_time_and_comes_before_what_is_later() {
    struct Selfish;
    impl Experiment<Note> for Selfish {
        type Value = ();
        async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
            let (me, begun) = (cx.me(), cx.now());
            cx.timer(Duration::from_nanos(1), Token::new(9));
            cx.timer(Duration::ZERO, Token::new(1));
            let first = cx.send_self(Note::Number(2));
            cx.timer(Duration::ZERO, Token::new(3));
            cx.send_self(Note::Number(4));
            let mut seen = Vec::new();
            while seen.len() < 5 {
                match cx.recv().await {
                    Event::Timer(token) => seen.push(token.number()),
                    Event::Message {
                        from,
                        body: Note::Number(number),
                    } => {
                        assert_eq!(from, me);
                        seen.push(number);
                        if number == 2 {
                            assert_eq!((cx.envelope().span, cx.now()), (first, begun));
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!(seen, [1, 2, 3, 4, 9]);
        }
    }
    for network in [None, Some(Jitter::new(MS, MS * 2).unwrap())] {
        let network = network.map(|jitter| Arc::new(jitter) as Arc<dyn Network>);
        let config = Config {
            network,
            ..Config::default()
        };
        let (_, report) = measure(Executor::Virtual, &config, Selfish).unwrap();
        assert_eq!(report.delivered(), 2);
    }
    // A message that an actor has sent itself is a dead letter if the actor ends first.
    struct Ends;
    impl Experiment<Note> for Ends {
        type Value = ();
        async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
            let body = |mut cx: C, _| async move { drop_span(cx.send_self(Note::Ask)) };
            cx.spawn(Spawn::many(3, "short", ""), body).await;
            cx.sleep(MS * 10).await;
        }
    }
    fn drop_span(_: corsair::SpanId) {}
    let (_, report) = measure(Executor::Virtual, &Config::default(), Ends).unwrap();
    assert_eq!((report.delivered(), report.dead()), (0, 3));
}

#[test]
fn what_is_no_network_is_refused_with_its_reason() {
    assert_eq!(Constant::new(Duration::ZERO), Err(NetworkError::NoLatency));
    assert!(matches!(
        Jitter::new(MS * 2, MS),
        Err(NetworkError::Range { .. })
    ));
    let constant = Constant::new(MS).unwrap();
    let lossy = Lossy::new(constant, 1.5).unwrap_err();
    assert_eq!(lossy.to_string(), "a probability is from 0 to 1, not 1.5");
    let table = Table::new(vec![vec![MS], vec![MS, MS]], |_| 0).unwrap_err();
    assert!(table.to_string().contains("row 0 has 1"), "{table}");
    assert!(Table::new(Vec::new(), |_| 0).is_err());
    assert!(Plane::new(|_| (0.0, 0.0), 0.0, MS, MS).is_err());
    // The lookahead may not be longer than the network's smallest latency.
    let config = Config {
        lookahead: Some(MS * 2),
        ..config(constant)
    };
    let refused = measure(Executor::Virtual, &config, Sends { count: 1 }).unwrap_err();
    assert!(matches!(refused, RunError::Config(_)), "{refused}");
}

#[test]
fn a_network_that_duplicates_messages_that_cannot_be_copied_is_refused() {
    #[derive(Message)]
    struct Unique;
    struct Nothing;
    impl corsair::Scenario<Unique> for Nothing {
        async fn root<C: AsyncContext<Unique>>(self, _: C) {}
    }
    let twice = |part| config(Duplicating::new(Constant::new(MS).unwrap(), part).unwrap());
    let error = corsair::simulate(&twice(0.5), Nothing).unwrap_err();
    assert!(matches!(error, RunError::Config(_)));
    let error = error.to_string();
    assert!(
        error.contains("Unique") && error.contains("#[message(duplicate)]"),
        "{error}"
    );
    let fifo = Lossy::new(
        Fifo(Duplicating::new(Constant::new(MS).unwrap(), 0.5).unwrap()),
        0.1,
    );
    assert!(
        corsair::simulate(&config(fifo.unwrap()), Nothing).is_err(),
        "within others"
    );
    assert!(corsair::Simulation::new(&twice(0.5), Nothing).is_err());
    corsair::simulate(&twice(0.0), Nothing).unwrap();
}
