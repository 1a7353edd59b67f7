//! The package service, which runs the scripts of endpoints: they work, call other services in sequence or in parallel,
//! and look up values in caches.
//!
//! A request is a task. Each branch of a parallel step is a separate task, which notifies its parent
//! task when it ends. A branch continues even if its parent no longer waits for it. A task makes one
//! call at a time. A call may have several attempts; [`attempts`] has their rules.

mod attempts;
mod breaker;
mod cache;
mod route;

use super::alarms::Alarms;
use super::host::Host;
use super::job::{Job, NO_DEADLINE};
use crate::message::{Answer, Key, Msg};
use crate::saved::RestoreState;
use crate::script::{NOWHERE, Operation, Script, Target};
use attempts::{Alarm, Calling};
use cache::Cache;
use corsair::Context;
use route::Route;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An instance of a service with endpoints.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Service {
    #[serde(skip)]
    script: Arc<Script>,
    /// The services that the instance calls, in the numbering of the script.
    routes: Vec<Route>,
    caches: Vec<Cache>,
    tasks: Vec<Option<Task>>,
    free: Vec<u32>,
    /// The pending operations, the last first.
    #[serde(skip)]
    todo: Vec<Todo>,
    alarms: Alarms<Alarm>,
    /// The number of the last call or parallel step.
    serial: u32,
}

/// A task number that stands for no task.
const NOBODY: u32 = u32::MAX;

/// A pending operation.
#[derive(Clone, Copy, Debug)]
enum Todo {
    /// A task is ready to continue.
    Run(u32),
    /// An attempt has failed: the task, and the tag of the attempt.
    Failed(u32, u32),
    /// A connection of a route may be free.
    Serve(u16),
}

/// A list of steps that is being run.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    job: Job,
    /// The task that waits for this task ([`NOBODY`] for a sent message), and the number of the waiting task's
    /// parallel step.
    parent: Option<(u32, u32)>,
    /// The next operation; during a call or a parallel step, that operation.
    next: u32,
    /// The number of times that the call must still be made.
    left: u32,
    /// The number of the parallel step that the task waits for, the number of branches that must still succeed, and
    /// the number of branches that are still running.
    fork: u32,
    needed: u32,
    open: u32,
    calling: Calling,
    /// The start of the task.
    began: u64,
    /// The start of the task's current work, and the duration of its earlier work, in nanoseconds.
    work_began: u64,
    worked: u64,
}

impl RestoreState for Service {
    fn take_over(&mut self, saved: Service) {
        let mut own = std::mem::replace(self, saved);
        own.routes.take_over(std::mem::take(&mut self.routes));
        own.caches.take_over(std::mem::take(&mut self.caches));
        (self.script, self.routes, self.caches) = (own.script, own.routes, own.caches);
    }
}

impl Service {
    pub(super) fn new(host: &Host) -> Service {
        let service = &host.model.topology.services[host.service as usize];
        let script = service.script.clone().unwrap_or_default();
        Service {
            routes: service.policies.iter().map(Route::new).collect(),
            caches: script.caches.iter().map(|&kind| Cache::new(kind)).collect(),
            script,
            tasks: Vec::new(),
            free: Vec::new(),
            todo: Vec::new(),
            alarms: Alarms::default(),
            serial: 0,
        }
    }

    fn route_to(&self, service: u32) -> Option<usize> {
        self.script
            .routes
            .iter()
            .position(|&known| known == service)
    }

    /// Adds an instance that may be called; false if it was known before, or is never called.
    pub(super) fn add(&mut self, host: &Host, node: u32) -> bool {
        let route = self.route_to(host.model.instance(node).service);
        let here = host.model.place(host.index);
        route.is_some_and(|route| self.routes[route].add(&host.model, here, node))
    }

    /// Removes an instance; false if it was not known.
    pub(super) fn remove(&mut self, host: &Host, node: u32) -> bool {
        let route = self.route_to(host.model.instance(node).service);
        route.is_some_and(|route| self.routes[route].remove(node))
    }

    /// Iterates over all instances that this instance may call.
    pub(super) fn known(&self) -> impl Iterator<Item = u32> + '_ {
        self.routes.iter().flat_map(Route::nodes)
    }

    /// Returns the number of requests in progress.
    pub(super) fn tasks_under_way(&self) -> u64 {
        let tasks = self.tasks.iter().flatten();
        tasks.filter(|task| task.parent.is_none()).count() as u64
    }

    /// Returns how often the breakers of the instance have opened.
    pub(super) fn opened(&self) -> u64 {
        let breakers = self
            .routes
            .iter()
            .filter_map(|route| route.breaker.as_ref());
        breakers.map(breaker::Breaker::opened).sum()
    }

    /// Starts the requested endpoint, or the first one by default.
    pub(super) fn act<C: Context<Msg>>(&mut self, host: &mut Host, job: Job, cx: &mut C) {
        let endpoints = &self.script.endpoints;
        let begins = match job.key.as_endpoint() {
            None => endpoints.first(),
            Some((number, ..)) => {
                endpoints.get(usize::from(number.wrapping_sub(self.script.first)))
            }
        };
        match begins {
            Some(&(begins, _)) => {
                let task = self.begin(job, None, begins, cx.now().as_nanos());
                self.todo.push(Todo::Run(task));
                self.run_pending(host, cx);
            }
            // A service without endpoints answers at once.
            None if endpoints.is_empty() => host.finish(job, Answer::Found, cx),
            // The endpoint belongs to another service.
            None => host.fail(job, cx),
        }
    }

    /// Completes the work of a task, which has waited for shared processors for `waited` nanoseconds.
    pub(super) fn work_done<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        id: u32,
        waited: u64,
        cx: &mut C,
    ) {
        if let Some(task) = &mut self.tasks[id as usize] {
            host.trace_work(&task.job, task.work_began, waited, cx);
            task.worked += cx.now().as_nanos() - task.work_began;
            self.todo.push(Todo::Run(id));
            self.run_pending(host, cx);
        }
    }

    /// Drops all tasks, because the instance is killed, and returns the jobs that are lost.
    pub(super) fn drop_tasks(&mut self) -> Vec<Job> {
        let tasks = std::mem::take(&mut self.tasks);
        self.free.clear();
        self.todo.clear();
        self.alarms.clear();
        self.routes.iter_mut().for_each(Route::reset);
        self.caches = self
            .script
            .caches
            .iter()
            .map(|&kind| Cache::new(kind))
            .collect();
        let roots = tasks.into_iter().flatten();
        let roots = roots.filter(|task| task.parent.is_none());
        roots.map(|task| task.job).collect()
    }

    fn begin(&mut self, job: Job, parent: Option<(u32, u32)>, next: u32, now: u64) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.tasks.push(None);
            self.tasks.len() as u32 - 1
        });
        self.tasks[id as usize] = Some(Task {
            job,
            parent,
            next,
            left: 0,
            fork: 0,
            needed: 0,
            open: 0,
            calling: Calling::default(),
            began: now,
            work_began: 0,
            worked: 0,
        });
        id
    }

    /// Returns the number of the next call or parallel step; zero is unused.
    fn next_serial(&mut self) -> u32 {
        self.serial = (self.serial + 1) % (1 << attempts::SERIAL_BITS);
        self.serial = self.serial.max(1);
        self.serial
    }

    /// Runs all pending operations.
    fn run_pending<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        while let Some(todo) = self.todo.pop() {
            match todo {
                Todo::Run(id) => while self.step(host, id, cx) {},
                Todo::Failed(id, tag) => self.attempt_failed(host, id, tag, cx),
                Todo::Serve(route) => self.serve_waiting(host, route, cx),
            }
        }
    }

    /// Runs the next operation of a task. False if the task waits or has ended.
    fn step<C: Context<Msg>>(&mut self, host: &mut Host, id: u32, cx: &mut C) -> bool {
        let Some(task) = &mut self.tasks[id as usize] else {
            return false;
        };
        host.on_account_of(&task.job, cx);
        match &self.script.operations[task.next as usize] {
            Operation::Work(times) => {
                let work = host.health.slowed(times.sample(|| cx.random()));
                task.next += 1;
                if work == 0 {
                    return true;
                }
                task.work_began = cx.now().as_nanos();
                if host.work_on(id, work, cx) {
                    return false;
                }
                self.end(host, id, false, cx);
                false
            }
            &Operation::Chance { done, skip } => {
                let is_done = cx.random() < done;
                task.next = if is_done { task.next + 1 } else { skip };
                true
            }
            Operation::Call { targets, times, .. } => {
                if task.left == 0 {
                    task.left = *times;
                }
                let target = targets.draw(|| cx.random());
                self.call(host, id, target, cx);
                false
            }
            &Operation::Send { times, .. } => {
                let (job, place) = (task.job, task.next as usize);
                task.next += 1;
                for _ in 0..times {
                    let Operation::Send { targets, .. } = &self.script.operations[place] else {
                        break;
                    };
                    let target = targets.draw(|| cx.random());
                    let key = key_for(target, &job);
                    let route = &mut self.routes[usize::from(target.route)];
                    if route.minds_answers {
                        self.send_by_policy(host, job, target, cx);
                        continue;
                    }
                    if let Some(to) = route.pick(about(&job), None, cx) {
                        host.put(&job, to, Msg::Put, key, cx);
                        // A sent message has no answer, so it does not count as in flight.
                        route.answered(to);
                    }
                }
                true
            }
            &Operation::Fork {
                first,
                branches,
                needed,
                ..
            } => {
                (task.needed, task.open) = (needed, branches);
                let job = task.job;
                let fork = self.next_serial();
                if let Some(task) = &mut self.tasks[id as usize] {
                    task.fork = fork;
                }
                let now = cx.now().as_nanos();
                // Operations are taken from the end of the list, so the first branch is added last.
                for branch in (first..first + branches).rev() {
                    let begins = self.script.branches[branch as usize];
                    let branch = self.begin(job, Some((id, fork)), begins, now);
                    self.todo.push(Todo::Run(branch));
                }
                false
            }
            &Operation::Cache { number, found } => {
                let cache = &mut self.caches[usize::from(number)];
                let key = cache.draw(cx).unwrap_or_else(|| about(&task.job));
                let hits = cache.look_up(key, cx.now().as_nanos());
                task.next = if hits { found } else { task.next + 1 };
                true
            }
            &Operation::Jump(to) => {
                task.next = to;
                true
            }
            Operation::End => {
                self.end(host, id, true, cx);
                false
            }
        }
    }

    /// Sends a message to a target whose policy depends on the outcome. The message is a call without a waiting task,
    /// and may last longer than the request that sent it.
    fn send_by_policy<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        job: Job,
        target: Target,
        cx: &mut C,
    ) {
        let job = Job {
            deadline: NO_DEADLINE,
            ..job
        };
        let (sent, now) = (self.script.sent, cx.now().as_nanos());
        let id = self.begin(job, Some((NOBODY, 0)), sent, now);
        if let Some(task) = &mut self.tasks[id as usize] {
            task.left = 1;
        }
        self.call(host, id, target, cx);
    }

    /// Handles the failure of a task's current step: runs the fallback, if there is one.
    fn step_failed<C: Context<Msg>>(&mut self, host: &mut Host, id: u32, cx: &mut C) {
        if !self.falls_back(host, id) {
            self.end(host, id, false, cx);
        }
    }

    /// Starts the fallback of a task's current step; false if there is none.
    fn falls_back(&mut self, host: &mut Host, id: u32) -> bool {
        let Some(task) = &mut self.tasks[id as usize] else {
            return false;
        };
        match self.script.operations[task.next as usize] {
            Operation::Call { fallback, .. } | Operation::Fork { fallback, .. }
                if fallback != NOWHERE =>
            {
                host.totals.fallbacks += 1;
                (task.next, task.left, task.fork) = (fallback, 0, 0);
                self.todo.push(Todo::Run(id));
                true
            }
            _ => false,
        }
    }

    /// Ends a task. The task of a request answers its job. The end of a branch makes the waiting task
    /// continue once enough branches have succeeded, or fail once too few can succeed.
    fn end<C: Context<Msg>>(&mut self, host: &mut Host, id: u32, succeeds: bool, cx: &mut C) {
        let mut id = id;
        while let Some(task) = self.tasks[id as usize].take() {
            self.free.push(id);
            let Some((parent, fork)) = task.parent else {
                let mut job = task.job;
                // The time since the start in which the task did not work is waiting time.
                let lasted = cx.now().as_nanos().saturating_sub(task.began);
                job.waited = lasted.saturating_sub(task.worked);
                let answer = if succeeds {
                    Answer::Found
                } else {
                    Answer::Failed
                };
                return host.finish(job, answer, cx);
            };
            let above = self.tasks.get_mut(parent as usize).and_then(Option::as_mut);
            let Some(above) = above else {
                return;
            };
            if above.fork != fork {
                return;
            }
            above.open -= 1;
            above.worked += task.worked;
            if succeeds {
                above.needed -= 1;
                if above.needed == 0 {
                    above.fork = 0;
                    above.next += 1;
                    self.todo.push(Todo::Run(parent));
                }
                return;
            }
            if above.open >= above.needed {
                return;
            }
            // Too few branches are left to succeed, so the waiting task fails, too.
            above.fork = 0;
            if self.falls_back(host, parent) {
                return;
            }
            id = parent;
        }
    }
}

/// Returns the number of the value that a job requests.
fn about(job: &Job) -> u32 {
    job.key.as_endpoint().map_or(0, |(.., about)| about)
}

/// Returns the key of a job's request: an endpoint, with the priority and the value of the job; for other
/// packages, the value that every storage has.
fn key_for(target: Target, job: &Job) -> Key {
    let Some((endpoint, ..)) = target.key.as_endpoint() else {
        return target.key;
    };
    let (_, priority, about) = job.key.as_endpoint().unwrap_or_default();
    Key::endpoint(endpoint, priority, about)
}
