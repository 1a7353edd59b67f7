//! Children that are restarted together.

use crate::everywhere::config;
use corsair::{
    Addr, AsyncContext, Config, Event, Executor, Experiment, FinalAction, Flow, Message, Panics,
    Reason, RestartPolicy, Spawn, Strategy, Supervised, Supervisor, measure,
};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Message)]
pub enum Note {
    /// The children's addresses.
    Children(Vec<Addr>),
    Panic,
    Return,
    Echo(u32),
}

on_every_executor! {
    one_for_one_restarts_the_child_that_panicked
    one_for_all_restarts_every_child
    rest_for_one_restarts_the_child_and_those_after_it
    too_many_restarts_escalate_and_leave_no_child
    a_supervisor_that_gives_up_returns_and_leaves_no_child
    a_child_that_returns_is_not_restarted
}

async fn child<C: AsyncContext<Note>>(mut cx: C) {
    loop {
        match cx.recv().await {
            Event::Message {
                body: Note::Panic, ..
            } => panic!("on request"),
            Event::Message {
                body: Note::Return, ..
            } => return,
            Event::Message { from, body } => {
                cx.send(from, body);
            }
            _ => {}
        }
    }
}

/// Sends the children's addresses to the supervisor's parent, until a request to return arrives.
pub fn report_children<C: AsyncContext<Note>>(
    cx: &mut C,
    children: &[Addr],
    what: Supervised<Note>,
) -> Flow {
    let parent = cx.parent();
    match what {
        Supervised::Started => {
            cx.send(parent, Note::Children(children.to_vec()));
        }
        Supervised::Event(Event::Message {
            body: Note::Return, ..
        }) => return Flow::Stop,
        Supervised::Event(_) => {}
    }
    Flow::Continue
}

/// A supervisor with three children. The root sends one request to a child of each generation, and returns all
/// generations, the end of the supervisor and the number of children that still live.
struct Family {
    strategy: Strategy,
    policy: RestartPolicy,
    /// For each generation, the index of a child and the request that it gets.
    orders: Vec<(usize, Note)>,
}

type SupervisorOutcome = (Vec<Vec<Addr>>, Option<Reason>, usize);

impl Experiment<Note> for Family {
    type Value = SupervisorOutcome;

    async fn root<C: AsyncContext<Note>>(self, mut cx: C) -> SupervisorOutcome {
        let Family {
            strategy,
            policy,
            orders,
        } = self;
        let make = move |cx: C, _| async move {
            Supervisor::new(strategy, policy)
                .child("a", child)
                .child("b", child)
                .child("c", child)
                .run(cx, report_children)
                .await;
        };
        let supervisor = cx
            .spawn(Spawn::one("supervisor").watched(), make)
            .await
            .get(0);
        let (mut generations, mut orders) = (Vec::new(), orders.into_iter());
        let reason = loop {
            match cx.recv().await {
                Event::Message {
                    body: Note::Children(children),
                    ..
                } => {
                    match orders.next() {
                        Some((which, order)) => {
                            cx.send(children[which], order);
                        }
                        None => {
                            cx.send(supervisor, Note::Return);
                        }
                    }
                    generations.push(children);
                }
                Event::Down { who, reason } if who == supervisor => break Some(reason),
                _ => {}
            }
        };
        // Children that still live answer.
        let mut living = 0;
        for &child in generations.last().into_iter().flatten() {
            let asked = cx.recv_timeout(Duration::ZERO).await;
            assert_eq!(asked, None);
            cx.send(child, Note::Echo(1));
            let answer = cx.recv_timeout(Duration::from_millis(20)).await;
            living += usize::from(answer.is_some());
        }
        (generations, reason, living)
    }
}

fn supervise(
    executor: Executor,
    strategy: Strategy,
    policy: RestartPolicy,
    orders: &[(usize, Note)],
) -> SupervisorOutcome {
    let config = Config {
        panics: Panics::EndActor,
        ..config()
    };
    let family = Family {
        strategy,
        policy,
        orders: orders.to_vec(),
    };
    measure(executor, &config, family).unwrap().0
}

/// Returns the indices of the children whose address differs in the second generation.
fn restarted(generations: &[Vec<Addr>]) -> Vec<usize> {
    assert_eq!(generations.len(), 2);
    (0..3)
        .filter(|&child| generations[0][child] != generations[1][child])
        .collect()
}

fn one_panic(executor: Executor, strategy: Strategy) -> Vec<usize> {
    let (generations, reason, living) = supervise(
        executor,
        strategy,
        RestartPolicy::default(),
        &[(1, Note::Panic)],
    );
    assert_eq!((reason, living), (Some(Reason::Returned), 0));
    restarted(&generations)
}

// Guarantee: core-41.
fn one_for_one_restarts_the_child_that_panicked(executor: Executor) {
    assert_eq!(one_panic(executor, Strategy::OneForOne), [1]);
}

// Guarantee: core-41.
fn one_for_all_restarts_every_child(executor: Executor) {
    assert_eq!(one_panic(executor, Strategy::OneForAll), [0, 1, 2]);
}

// Guarantee: core-41.
fn rest_for_one_restarts_the_child_and_those_after_it(executor: Executor) {
    assert_eq!(one_panic(executor, Strategy::RestForOne), [1, 2]);
}

fn too_often(executor: Executor, then: FinalAction) -> SupervisorOutcome {
    let policy = RestartPolicy {
        max_restarts: 2,
        backoff: Duration::from_millis(1),
        on_exhausted: then,
        ..RestartPolicy::default()
    };
    let orders = [(0, Note::Panic), (2, Note::Panic), (1, Note::Panic)];
    supervise(executor, Strategy::OneForAll, policy, &orders)
}

// Guarantee: core-41.
fn too_many_restarts_escalate_and_leave_no_child(executor: Executor) {
    let (generations, reason, living) = too_often(executor, FinalAction::Escalate);
    assert_eq!(
        (generations.len(), reason, living),
        (3, Some(Reason::Panicked), 0)
    );
}

// Guarantee: core-41.
fn a_supervisor_that_gives_up_returns_and_leaves_no_child(executor: Executor) {
    let (generations, reason, living) = too_often(executor, FinalAction::GiveUp);
    assert_eq!(
        (generations.len(), reason, living),
        (3, Some(Reason::Returned), 0)
    );
}

/// Lets all children return. The value is the number of generations and the end of the supervisor.
struct Returns;

impl Experiment<Note> for Returns {
    type Value = (usize, Reason);

    async fn root<C: AsyncContext<Note>>(self, mut cx: C) -> (usize, Reason) {
        let make = |cx: C, _| async move {
            Supervisor::new(Strategy::OneForAll, RestartPolicy::default())
                .child("a", child)
                .child("b", child)
                .run(cx, |cx, children, what| {
                    if what == Supervised::Started {
                        let parent = cx.parent();
                        cx.send(parent, Note::Children(children.to_vec()));
                    }
                    Flow::Continue
                })
                .await;
        };
        cx.spawn(Spawn::one("supervisor").watched(), make).await;
        let mut generations = 0;
        loop {
            match cx.recv().await {
                Event::Message {
                    body: Note::Children(children),
                    ..
                } => {
                    generations += 1;
                    for child in children {
                        cx.send(child, Note::Return);
                    }
                }
                Event::Down { reason, .. } => return (generations, reason),
                _ => {}
            }
        }
    }
}

// Guarantee: core-41.
fn a_child_that_returns_is_not_restarted(executor: Executor) {
    let config = Config {
        panics: Panics::EndActor,
        ..config()
    };
    let ended = measure(executor, &config, Returns).unwrap().0;
    assert_eq!(ended, (1, Reason::Returned));
}
