//! A queue that hands out a job again after a time-out, although a worker has reported that the job is done.
//!
//! Report: Amazon SQS, "Visibility timeout" (a message is deleted by its receipt); Jepsen,
//! "Disque 1.0-rc1", 2015 (jobs that come back after their acknowledgement).

use crate::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Node 0 is the queue, nodes 1 and 2 work.
#[derive(Debug)]
pub struct Visibility {
    pub bug: bool,
}

#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Msg {
    /// Asks for a job.
    Take,
    /// Hands out a job.
    Job(u64),
    /// The job is done.
    Done(u64),
}

/// The queue or a worker.
#[derive(Debug, Default)]
pub struct Peer {
    bug: bool,
    jobs: VecDeque<u64>,
    /// The jobs that were handed out, each with the number of steps since then.
    taken: BTreeMap<u64, u32>,
    done: BTreeSet<u64>,
    acknowledged: BTreeSet<u64>,
    job: Option<u64>,
    next: u64,
}

const TICK: u16 = 0;
const DONE: u16 = 1;

impl Peer {
    fn tick(&mut self) {
        self.next += 1;
        if self.next.is_multiple_of(3) {
            self.jobs.push_back(self.next);
        }
        for steps in self.taken.values_mut() {
            *steps += 1;
        }
        let late: Vec<u64> = (self.taken.iter())
            .filter(|(_, steps)| **steps > 5)
            .map(|(job, _)| *job)
            .collect();
        for job in late {
            self.taken.remove(&job);
            self.jobs.push_back(job);
        }
    }
}

impl Node<Msg> for Peer {
    fn boot<C: Context<Msg>>(&mut self, cx: &mut C, machine: &mut Machine) {
        // After a crash earlier jobs are lost, and their numbers are not used again.
        self.next = now(cx);
        machine.timer(cx, 20, TICK);
    }

    fn on<C: Context<Msg>>(&mut self, input: Input<Msg>, cx: &mut C, machine: &mut Machine) {
        let queue = machine.nodes.get(0);
        match input {
            Input::Timer(DONE) => {
                if let Some(job) = self.job.take() {
                    cx.send(queue, Msg::Done(job));
                }
            }
            Input::Timer(_) => {
                machine.timer(cx, 20, TICK);
                if machine.index == 0 {
                    self.tick();
                } else if self.job.is_none() {
                    cx.send(queue, Msg::Take);
                }
            }
            Input::Message { from, body } => match body {
                Msg::Take => {
                    let jobs = &mut self.jobs;
                    let job = std::iter::from_fn(|| jobs.pop_front())
                        .find(|job| !self.done.contains(job));
                    if let Some(job) = job {
                        let is_open = !self.acknowledged.contains(&job);
                        always!(cx, is_open, "a job that is done stays done");
                        self.taken.insert(job, 0);
                        cx.send(from, Msg::Job(job));
                    }
                }
                Msg::Job(job) => {
                    if self.job.is_none() {
                        self.job = Some(job);
                        machine.timer(cx, 30, DONE);
                    }
                }
                Msg::Done(job) => {
                    sometimes!(cx, true, "a job is done");
                    let was_taken = self.taken.remove(&job).is_some();
                    self.acknowledged.insert(job);
                    // The bug: a job that is waiting again cannot be done.
                    if was_taken || !self.bug {
                        self.done.insert(job);
                    }
                }
            },
        }
    }

    fn state(&self) -> u64 {
        (self.jobs.len() as u64).min(4) | (self.taken.len() as u64).min(4) << 3
    }
}

program!(Visibility "visibility": 3 nodes, 3_000 ms, ());
