//! Raft's elections (Ongaro, Ousterhout 2014), hunted for faults: whatever messages are lost, doubled or late, and
//! whichever servers crash or are cut off, no term has two leaders, and after the last fault there is a leader.
//!
//! `raft` makes 200 runs, `raft MINUTES` hunts for this time. The exit code is 1 if a property is violated.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::{Addr, Context, Message, Time};
use corsair_hunt::{
    Hunt, Input, Machine, Node, Observer, Program, always, explain, hunt, shrink, sometimes,
};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const SERVERS: u32 = 5;
/// The longest time without a leader when there are no faults.
const SILENCE: Duration = Duration::from_millis(100);
/// The name of the timer for heartbeats; other names are the numbers of election time-outs.
const HEARTBEAT: u16 = u16::MAX;

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub(crate) enum Msg {
    AskVote {
        term: u64,
    },
    Vote {
        term: u64,
        granted: bool,
    },
    Heartbeat {
        term: u64,
    },
    /// Notifies the observer that the sender leads in this term, with each of its heartbeats.
    Leads {
        term: u64,
    },
}

#[derive(Debug, Default, PartialEq)]
enum Role {
    #[default]
    Follower,
    /// The servers that have voted for this server, as bits.
    Candidate {
        votes: u64,
    },
    Leader,
}

#[derive(Debug, Default)]
pub(crate) struct Server {
    term: u64,
    /// The server that has this server's vote in the term, counted from 1; 0 if none has.
    voted_for: u64,
    role: Role,
    /// The number of the current election time-out; earlier ones are ignored.
    waiting: u16,
}

impl Server {
    /// Begins a wait of 150 to 300 ms for a message from a leader.
    fn wait<C: Context<Msg>>(&mut self, cx: &mut C, machine: &Machine) {
        self.waiting = (self.waiting + 1) % HEARTBEAT;
        let time = 150 + cx.below(150);
        machine.timer(cx, time, self.waiting);
    }

    /// Makes the term and the vote durable. A server that forgets them in a crash may vote twice in a term.
    fn save(&self, machine: &mut Machine) {
        machine.disk.write_number("term", self.term);
        machine.disk.write_number("voted for", self.voted_for);
        machine.disk.sync();
    }

    /// Steps down, if another server has a later term.
    fn see<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine, term: u64) {
        if term > self.term {
            (self.term, self.voted_for, self.role) = (term, 0, Role::Follower);
            self.save(machine);
            self.wait(cx, machine);
        }
    }

    fn on_timer<C: Context<Msg>>(&mut self, name: u16, cx: &mut C, machine: &mut Machine) {
        if name == HEARTBEAT && self.role == Role::Leader {
            let (term, parent) = (self.term, cx.parent());
            machine.send_others(cx, &Msg::Heartbeat { term });
            cx.send(parent, Msg::Leads { term });
            machine.timer(cx, 40, HEARTBEAT);
        } else if name == self.waiting && self.role != Role::Leader {
            (self.term, self.voted_for) = (self.term + 1, u64::from(machine.index) + 1);
            self.save(machine);
            let votes = 1 << machine.index;
            self.role = Role::Candidate { votes };
            machine.send_others(cx, &Msg::AskVote { term: self.term });
            self.wait(cx, machine);
        }
    }

    fn on_message<C: Context<Msg>>(
        &mut self,
        from: Addr,
        message: Msg,
        cx: &mut C,
        machine: &mut Machine,
    ) {
        let Some(sender) = machine.nodes.index_of(from) else {
            return;
        };
        match message {
            Msg::AskVote { term } => {
                self.see(cx, machine, term);
                let candidate = u64::from(sender) + 1;
                let is_free = self.voted_for == 0 || self.voted_for == candidate;
                let granted = term == self.term && is_free;
                if granted {
                    self.voted_for = candidate;
                    self.save(machine);
                    self.wait(cx, machine);
                }
                let term = self.term;
                cx.send(from, Msg::Vote { term, granted });
            }
            Msg::Vote { term, granted } => {
                self.see(cx, machine, term);
                if let Role::Candidate { votes } = &mut self.role
                    && granted
                    && term == self.term
                {
                    // A set, because the network may deliver a vote twice.
                    *votes |= 1 << sender;
                    if votes.count_ones() > SERVERS / 2 {
                        self.role = Role::Leader;
                        machine.timer(cx, 0, HEARTBEAT);
                    }
                }
            }
            Msg::Heartbeat { term } => {
                self.see(cx, machine, term);
                if term == self.term {
                    self.role = Role::Follower;
                    self.wait(cx, machine);
                }
            }
            Msg::Leads { .. } => {}
        }
    }
}

impl Node<Msg> for Server {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        self.term = machine.disk.number("term").unwrap_or(0);
        self.voted_for = machine.disk.number("voted for").unwrap_or(0);
        self.wait(cx, machine);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        match input {
            Input::Timer(name) => self.on_timer(name, cx, machine),
            Input::Message { from, body } => self.on_message(from, body, cx, machine),
        }
    }

    fn describe(&self) -> String {
        match &self.role {
            Role::Leader => format!("leader of term {}", self.term),
            Role::Candidate { votes } => {
                format!(
                    "candidate of term {}, {} votes",
                    self.term,
                    votes.count_ones()
                )
            }
            Role::Follower => format!("term {}, vote {}", self.term, self.voted_for),
        }
    }
}

/// The observer: the leader of each term, and the time at which a leader was last heard.
#[derive(Debug, Default)]
pub(crate) struct Elections {
    leaders: BTreeMap<u64, Addr>,
    heard: Time,
}

impl Observer<Msg> for Elections {
    fn on<C: Context<Msg>>(&mut self, from: Addr, body: Msg, cx: &mut C) {
        if let Msg::Leads { term } = body {
            self.heard = cx.now();
            let leader = *self.leaders.entry(term).or_insert(from);
            always!(cx, leader == from, "a term has one leader");
            sometimes!(cx, term > 5, "there are many elections");
        }
    }

    fn end<C: Context<Msg>>(&mut self, cx: &mut C) {
        let silence = cx.now().since(self.heard);
        always!(cx, silence < SILENCE, "a leader is heard in the end");
    }
}

/// Five servers for six seconds.
#[derive(Debug)]
pub(crate) struct Raft;

impl Program for Raft {
    type Message = Msg;
    type Node = Server;
    type Observer = Elections;

    fn name(&self) -> &'static str {
        "raft"
    }

    fn nodes(&self) -> u32 {
        SERVERS
    }

    fn time(&self) -> u32 {
        6_000
    }

    fn node(&self, _: u32) -> Server {
        Server::default()
    }

    fn observer(&self) -> Elections {
        Elections::default()
    }
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let raft = Arc::new(Raft);
    let mut settings = Hunt {
        runs: 200,
        ..Hunt::default()
    };
    if let Some(minutes) = std::env::args().nth(1) {
        let number: f64 = minutes.parse().unwrap_or(f64::NAN);
        let Ok(time) = Duration::try_from_secs_f64(60.0 * number) else {
            eprintln!("'{minutes}' is not a number of minutes; give one, such as 60 or 0.5");
            return Ok(ExitCode::from(2));
        };
        (settings.runs, settings.time) = (u64::MAX, time);
    }
    let hunted = hunt(&raft, &settings)?;
    print!("{} runs\n{}", hunted.runs, hunted.properties);
    let Some(failure) = hunted.failure else {
        return Ok(ExitCode::SUCCESS);
    };
    let shrunk = shrink(&raft, &failure)?;
    println!("{}", explain(&raft, &shrunk.failure)?.text());
    Ok(ExitCode::FAILURE)
}
