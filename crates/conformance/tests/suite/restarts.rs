//! Actors that are stopped while supervision restarts them, and supervisors that are stopped.

use crate::everywhere::config;
use crate::supervisor::{Note, report_children};
use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Executor, Experiment, Flow, Panics, Reason,
    RestartPolicy, Spawn, Strategy, Supervisor, Token, measure, restarting,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

on_every_executor! {
    an_actor_that_is_stopped_while_it_is_made_anew_ends_once_and_stays_ended
    children_that_are_stopped_while_others_are_restarted_stay_ended
    a_supervisor_that_is_stopped_leaves_no_child
}

/// The number of created instances, and the number of live ones.
#[derive(Clone, Default)]
struct Count {
    made: Arc<AtomicU32>,
    live: Arc<AtomicU32>,
}

/// An instance, which is counted until it is dropped.
struct One(Count);

impl Count {
    fn one(&self) -> One {
        self.made.fetch_add(1, SeqCst);
        self.live.fetch_add(1, SeqCst);
        One(self.clone())
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, SeqCst);
    }
}

fn config_of(seed: u64) -> Config {
    Config {
        seed,
        panics: Panics::EndActor,
        end: Some(corsair::Time::ZERO.after(Duration::from_secs(60))),
        ..config()
    }
}

/// Pauses for up to `most` microseconds, for one turn of the other actors, or not at all.
async fn a_while<C: AsyncContext<Note>>(cx: &mut C, most: u32) {
    match cx.below(4) {
        0 => {}
        1 => cx.yield_now().await,
        _ => {
            let micros = cx.below(most);
            cx.sleep(Duration::from_micros(micros.into())).await;
        }
    }
}

/// Panics on request, at some ticks of its timer, and at some of its starts.
struct Fragile {
    _one: One,
}

impl Actor<Note> for Fragile {
    fn start<C: Context<Note>>(&mut self, cx: &mut C) {
        cx.every(Duration::from_micros(300), Token::new(1));
        assert!(cx.below(3) != 0, "at its start");
    }

    fn on<C: Context<Note>>(&mut self, event: Event<Note>, cx: &mut C) -> Flow {
        assert!(!matches!(event, Event::Message { .. }), "on request");
        assert!(cx.below(4) != 0, "by its timer");
        Flow::Continue
    }
}

/// For each victim, one actor makes it panic repeatedly, and another actor stops it.
struct RepeatedPanics {
    victims: u32,
    count: Count,
}

impl Experiment<Note> for RepeatedPanics {
    type Value = (BTreeMap<Addr, Reason>, [u32; 2], u32);

    async fn root<C: AsyncContext<Note>>(self, mut cx: C) -> Self::Value {
        let count = self.count.clone();
        let make = move |cx: C, index: u32| {
            let policy = RestartPolicy {
                max_restarts: u32::MAX,
                backoff: Duration::from_micros(u64::from(index % 4) * 150),
                factor: 1.0,
                ..RestartPolicy::default()
            };
            let count = count.clone();
            restarting(policy, move || Fragile { _one: count.one() }, cx)
        };
        let how = Spawn::many(self.victims, "victim", "").watched();
        let victims = cx.spawn(how, make).await;
        cx.spawn(
            Spawn::many(self.victims, "tease", ""),
            move |mut cx: C, index| async move {
                for _ in 0..20 {
                    cx.send(victims.get(index), Note::Panic);
                    a_while(&mut cx, 400).await;
                }
            },
        )
        .await;
        cx.spawn(
            Spawn::many(self.victims, "stop", ""),
            move |mut cx: C, index| async move {
                for _ in 0..=index % 8 {
                    a_while(&mut cx, 700).await;
                }
                cx.stop(victims.get(index));
                cx.stop(victims.get(index));
            },
        )
        .await;
        let mut ended = BTreeMap::new();
        while ended.len() < victims.len() as usize {
            if let Event::Down { who, reason } = cx.recv().await {
                assert_eq!(ended.insert(who, reason), None, "{who} has ended twice");
            }
        }
        let made = self.count.made.load(SeqCst);
        let live = self.count.live.load(SeqCst);
        // No victim restarts, and no victim ends twice.
        assert_eq!(cx.recv_timeout(Duration::from_millis(5)).await, None);
        (ended, [made, self.count.made.load(SeqCst)], live)
    }
}

// Guarantee: core-40.
fn an_actor_that_is_stopped_while_it_is_made_anew_ends_once_and_stays_ended(executor: Executor) {
    let mut digests = BTreeMap::new();
    for seed in 0..12 {
        for workers in [1, 2, 4] {
            let config = Config {
                workers: workers.try_into().unwrap(),
                ..config_of(seed)
            };
            let experiment = RepeatedPanics {
                victims: 40,
                count: Count::default(),
            };
            let ((ended, [made, later], live), report) =
                measure(executor, &config, experiment).unwrap();
            assert!(
                ended.values().all(|&reason| reason == Reason::Stopped),
                "{ended:?}"
            );
            assert_eq!((made, live), (later, 0));
            assert!(made > 0, "nobody was made");
            assert_eq!(report.panics, []);
            let digest = digests.entry(seed).or_insert(report.digest);
            assert_eq!(*digest, report.digest);
        }
    }
}

async fn child<C: AsyncContext<Note>>(mut cx: C, one: One) {
    let _one = one;
    loop {
        if let Event::Message {
            body: Note::Panic, ..
        } = cx.recv().await
        {
            panic!("on request");
        }
    }
}

/// Two actors make children of each generation panic and stop them, in random order. At the end, the supervisor is
/// asked to return or is stopped.
struct RandomEnds {
    strategy: Strategy,
    generations: u32,
    stop: bool,
    is_virtual: bool,
    count: Count,
}

impl Experiment<Note> for RandomEnds {
    type Value = (Reason, u32);

    async fn root<C: AsyncContext<Note>>(self, mut cx: C) -> Self::Value {
        let RandomEnds {
            strategy, count, ..
        } = self;
        let counted = count.clone();
        let make = move |cx: C, _| {
            let policy = RestartPolicy {
                max_restarts: u32::MAX,
                backoff: Duration::from_micros(100),
                factor: 1.0,
                ..RestartPolicy::default()
            };
            let mut supervisor = Supervisor::new(strategy, policy);
            for name in ["a", "b", "c", "d"] {
                let count = counted.clone();
                supervisor = supervisor.child(name, move |cx| child(cx, count.one()));
            }
            supervisor.run(cx, report_children)
        };
        let how = Spawn::one("supervisor").watched();
        let supervisor = cx.spawn(how, make).await.get(0);
        let mut generation = 0;
        let reason = loop {
            let children = match cx.recv_timeout(Duration::from_millis(30)).await {
                Some(Event::Message {
                    body: Note::Children(children),
                    ..
                }) => children,
                Some(Event::Down { who, reason }) if who == supervisor => break reason,
                Some(_) => continue,
                // The child that was to panic had been stopped before.
                None => Vec::new(),
            };
            generation += 1;
            if generation > self.generations || children.is_empty() {
                match self.stop {
                    true => cx.stop(supervisor),
                    false => drop(cx.send(supervisor, Note::Return)),
                }
            }
            for act in [Note::Panic, Note::Return] {
                let children = children.clone();
                let act = move |mut cx: C| async move {
                    a_while(&mut cx, 200).await;
                    for _ in 0..2 {
                        let Some(&child) = children.get(cx.below(4) as usize) else {
                            return;
                        };
                        match act {
                            Note::Panic => drop(cx.send(child, Note::Panic)),
                            // One child in eight is stopped, so that some are left for the next generation.
                            _ if cx.below(8) == 0 => cx.stop(child),
                            _ => {}
                        }
                        a_while(&mut cx, 200).await;
                    }
                };
                cx.spawn_one("act", act).await;
            }
        };
        // A stop takes the latency of a message. In virtual time, the run must not depend on the counter.
        for _ in 0..50 {
            if !self.is_virtual && count.live.load(SeqCst) == 0 {
                break;
            }
            cx.sleep(Duration::from_millis(2)).await;
        }
        (reason, count.live.load(SeqCst))
    }
}

fn random_ends(executor: Executor, stop: bool) {
    let strategies = [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ];
    for (strategy, seed) in strategies
        .into_iter()
        .flat_map(|s| (0..8).map(move |n| (s, n)))
    {
        let mut digest = None;
        for workers in [1, 2, 4] {
            let config = Config {
                workers: workers.try_into().unwrap(),
                ..config_of(seed)
            };
            let experiment = RandomEnds {
                strategy,
                generations: 1 + seed as u32 * 2,
                stop,
                is_virtual: executor == Executor::Virtual,
                count: Count::default(),
            };
            let ((reason, live), report) = measure(executor, &config, experiment).unwrap();
            let case = format!("{strategy:?}, seed {seed}, {workers} workers");
            assert_eq!(live, 0, "{case}: children are left");
            // The supervisor may have returned before, if all of its children were stopped.
            let expected = [Reason::Returned, Reason::Stopped];
            assert!(
                expected[..1 + usize::from(stop)].contains(&reason),
                "{case}: {reason:?}"
            );
            assert_eq!(
                *digest.get_or_insert(report.digest),
                report.digest,
                "{case}"
            );
        }
    }
}

// Guarantee: core-41.
fn children_that_are_stopped_while_others_are_restarted_stay_ended(executor: Executor) {
    random_ends(executor, false);
}

// Guarantee: core-42.
fn a_supervisor_that_is_stopped_leaves_no_child(executor: Executor) {
    random_ends(executor, true);
}

/// Ticks once per millisecond, and panics at each tenth tick.
struct Ticking {
    ticks: u32,
    all: Arc<AtomicU32>,
}

impl Actor<Note> for Ticking {
    fn start<C: Context<Note>>(&mut self, cx: &mut C) {
        cx.every(Duration::from_millis(1), Token::new(1));
    }

    fn on<C: Context<Note>>(&mut self, _: Event<Note>, _: &mut C) -> Flow {
        self.all.fetch_add(1, SeqCst);
        self.ticks += 1;
        assert!(self.ticks < 10, "at its tenth tick");
        Flow::Continue
    }
}

struct Restarted(Arc<AtomicU32>);

impl Experiment<Note> for Restarted {
    type Value = ();

    async fn root<C: AsyncContext<Note>>(self, mut cx: C) {
        let Restarted(all) = self;
        let policy = RestartPolicy {
            backoff: Duration::ZERO,
            ..RestartPolicy::default()
        };
        cx.spawn_one("ticking", move |cx: C| {
            let all = all.clone();
            let make = move || Ticking {
                ticks: 0,
                all: all.clone(),
            };
            restarting(policy, make, cx)
        })
        .await;
        cx.sleep(Duration::from_millis(59)).await;
    }
}

// Guarantee: core-40.
#[test]
fn a_period_ends_with_the_handler_that_set_it() {
    let all = Arc::<AtomicU32>::default();
    measure(Executor::Virtual, &config_of(1), Restarted(all.clone())).unwrap();
    assert_eq!(all.load(SeqCst), 60);
}
