//! Raft's elections (Ongaro, Ousterhout 2014) in a network with message loss and partitions: over 200 seeds, no term
//! ever has two leaders, and after the partition has healed there is one leader.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::network::{Delivery, Network, Route};
use corsair::{
    Actor, Addr, AsyncContext, Config, Context, Event, Experiment, Flow, Message, Random,
    ReplicationError, Spawn, Time, TimerHandle, Token, replicate,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const NODES: u32 = 5;
/// The address of the first node. The second spawn of a run begins at the second page of addresses.
const FIRST: u32 = 256;
const MS: Duration = Duration::from_millis(1);
const PARTED: std::ops::Range<Time> =
    Time::from_nanos(3_000_000_000)..Time::from_nanos(9_000_000_000);
const HEARTBEAT: Token = Token::new(0);
const ELECTION: Token = Token::new(1);

#[derive(Clone, Copy, Message)]
enum Msg {
    Begin {
        first: Addr,
        root: Addr,
    },
    AskVote {
        term: u32,
    },
    Vote {
        term: u32,
        granted: bool,
    },
    Heartbeat {
        term: u32,
    },
    /// Notifies the root that the sender leads in this term. The root observes the elections.
    Leads {
        term: u32,
    },
}

/// A network with latencies from 1 to 20 ms that loses a fifth of the messages and, for a while, cuts off the first two
/// nodes from the others. Messages to and from the root are not part of the experiment and are always delivered.
#[derive(Debug)]
struct Unreliable;

impl Network for Unreliable {
    fn least(&self) -> Duration {
        MS
    }

    fn most(&self) -> Duration {
        20 * MS
    }

    fn latency(&self, _: &Route, random: &mut Random) -> Duration {
        Duration::from_micros(1_000 + u64::from(random.below(19_000)))
    }

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        let [from, to] = [route.from, route.to].map(Addr::as_u32);
        let apart = |who: u32| who < FIRST + 2;
        let parted = PARTED.contains(&route.sent) && apart(from) != apart(to);
        if from == 0 || to == 0 || !parted && random.below(5) > 0 {
            return Delivery::Arrives;
        }
        Delivery::Lost
    }
}

#[derive(PartialEq)]
enum Role {
    Follower,
    Candidate { votes: u32 },
    Leader,
}

struct Node {
    first: Addr,
    root: Addr,
    term: u32,
    voted_for: Option<Addr>,
    role: Role,
    timer: Option<TimerHandle>,
}

impl Node {
    fn send_others<C: Context<Msg>>(&self, cx: &mut C, message: Msg) {
        for index in 0..NODES {
            let other = Addr::from_u32(self.first.as_u32() + index);
            if other != cx.me() {
                cx.send(other, message);
            }
        }
    }

    /// Begins a wait of 150 to 300 ms for a message from a leader.
    fn wait<C: Context<Msg>>(&mut self, cx: &mut C) {
        self.timer.take().map(|timer| cx.cancel(timer));
        let time = MS * (150 + cx.below(150));
        self.timer = Some(cx.timer_handle(time, ELECTION));
    }

    /// Steps down, if another server has a later term.
    fn see<C: Context<Msg>>(&mut self, cx: &mut C, term: u32) {
        if term > self.term {
            (self.term, self.voted_for, self.role) = (term, None, Role::Follower);
            self.wait(cx);
        }
    }

    fn on_message<C: Context<Msg>>(&mut self, cx: &mut C, from: Addr, message: Msg) {
        match message {
            Msg::Begin { first, root } => {
                (self.first, self.root) = (first, root);
                self.wait(cx);
            }
            Msg::AskVote { term } => {
                self.see(cx, term);
                let granted = term == self.term && self.voted_for.is_none_or(|who| who == from);
                if granted {
                    self.voted_for = Some(from);
                    self.wait(cx);
                }
                cx.send(
                    from,
                    Msg::Vote {
                        term: self.term,
                        granted,
                    },
                );
            }
            Msg::Vote { term, granted } => {
                self.see(cx, term);
                if let Role::Candidate { votes } = &mut self.role
                    && granted
                    && term == self.term
                {
                    *votes += 1;
                    if *votes > NODES / 2 {
                        self.role = Role::Leader;
                        cx.send(self.root, Msg::Leads { term });
                        cx.timer(Duration::ZERO, HEARTBEAT);
                    }
                }
            }
            Msg::Heartbeat { term } => {
                self.see(cx, term);
                if term == self.term {
                    self.role = Role::Follower;
                    self.wait(cx);
                }
            }
            Msg::Leads { .. } => {}
        }
    }
}

impl Actor<Msg> for Node {
    fn on<C: Context<Msg>>(&mut self, event: Event<Msg>, cx: &mut C) -> Flow {
        match event {
            Event::Message { from, body } => self.on_message(cx, from, body),
            Event::Timer(HEARTBEAT) if self.role == Role::Leader => {
                self.send_others(cx, Msg::Heartbeat { term: self.term });
                cx.timer(40 * MS, HEARTBEAT);
            }
            Event::Timer(ELECTION) if self.role != Role::Leader => {
                (self.term, self.voted_for) = (self.term + 1, Some(cx.me()));
                self.role = Role::Candidate { votes: 1 };
                self.send_others(cx, Msg::AskVote { term: self.term });
                self.wait(cx);
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// The root. Its result is the leader of each term, and the last term at the time when the partition healed.
struct Elections;

impl Experiment<Msg> for Elections {
    type Value = (BTreeMap<u32, Vec<Addr>>, u32);

    async fn root<C: AsyncContext<Msg>>(self, mut cx: C) -> Self::Value {
        let node = |_| Node {
            first: Addr::NONE,
            root: Addr::NONE,
            term: 0,
            voted_for: None,
            role: Role::Follower,
            timer: None,
        };
        let nodes = cx.spawn_actors(Spawn::many(NODES, "node", ""), node).await;
        assert_eq!(nodes.get(0).as_u32(), FIRST);
        let (first, root) = (nodes.get(0), cx.me());
        for node in nodes.iter() {
            cx.send(node, Msg::Begin { first, root });
        }
        let over = PARTED.end.after(6000 * MS);
        let mut leaders: BTreeMap<u32, Vec<Addr>> = BTreeMap::new();
        while let Some(event) = cx.recv_timeout(over.since(cx.now())).await {
            if let Event::Message {
                from,
                body: Msg::Leads { term },
            } = event
            {
                leaders.entry(term).or_default().push(from);
            }
        }
        let last = leaders.keys().next_back().copied().unwrap_or_default();
        (leaders, last)
    }
}

fn main() -> Result<(), ReplicationError> {
    let config = Config {
        network: Some(Arc::new(Unreliable)),
        ..Config::default()
    };
    let runs = replicate(200, &config, |_seed| Elections)?;
    let (mut terms, mut lost) = (0, 0);
    for run in &runs {
        let (leaders, last) = &run.value;
        for (term, who) in leaders {
            assert_eq!(
                who.len(),
                1,
                "seed {}: term {term} has the leaders {who:?}",
                run.seed
            );
        }
        assert!(*last > 0, "seed {}: nobody ever led", run.seed);
        terms += leaders.len();
        lost += run.report.lost;
    }
    println!(
        "{terms} terms with a leader in {} runs, {lost} messages lost, never two leaders",
        runs.len()
    );
    Ok(())
}
