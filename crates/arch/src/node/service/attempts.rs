//! Calls and their attempts: time-outs, retries, hedges, connections.
//!
//! An attempt is identified by a tag: the number of the call, and in the lower bits the number of the attempt within
//! the call. Answers and alarms for attempts that are no longer in flight are ignored, because the call is over or has
//! abandoned the attempt.

use super::super::host::Host;
use super::super::job::PendingRequest;
use super::super::{TO_ALARM, job::NO_DEADLINE};
use super::route::Connection;
use super::{Service, Todo, about, key_for};
use crate::message::{Answer, Msg};
use crate::script::Target;
use corsair::Context;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The number of bits of a tag that identify the attempt within its call.
const ATTEMPT_BITS: u32 = 5;
/// The number of bits of a tag that identify the call.
pub(super) const SERIAL_BITS: u32 = 32 - ATTEMPT_BITS;

/// The call of a task.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Calling {
    /// The number of the call; zero if there is no call.
    serial: u32,
    target: Target,
    deadline: u64,
    /// The number of attempts so far, and a bit for each that is in flight.
    attempts: u8,
    under_way: u32,
    /// The attempts that wait for a connection.
    waiting: u32,
    retries: u8,
    hedges: u8,
    /// The instances that the latest attempts have asked. The index is the number of the attempt modulo
    /// [`MOST_AT_ONCE`], which is the maximum number of attempts in flight.
    asked: [Option<u32>; MOST_AT_ONCE],
}

/// The largest number of concurrent attempts: the first attempt and its hedges.
const MOST_AT_ONCE: usize = 1 + crate::policy::MOST_HEDGES as usize;

impl Default for Calling {
    fn default() -> Self {
        Calling {
            serial: 0,
            target: Target {
                route: 0,
                key: crate::message::Key::WHY,
            },
            deadline: NO_DEADLINE,
            attempts: 0,
            under_way: 0,
            waiting: 0,
            retries: 0,
            hedges: 0,
            asked: [None; MOST_AT_ONCE],
        }
    }
}

impl Calling {
    fn has(&self, tag: u32) -> bool {
        self.is(tag) && self.under_way & bit(tag) != 0
    }

    /// Returns the entry for the instance that an attempt has asked.
    fn asked(&mut self, tag: u32) -> &mut Option<u32> {
        &mut self.asked[tag as usize % MOST_AT_ONCE]
    }

    fn is(&self, tag: u32) -> bool {
        self.serial != 0 && self.serial == tag >> ATTEMPT_BITS
    }
}

/// The bits of a tag that contain the number of the attempt.
const ATTEMPTS: u32 = (1 << ATTEMPT_BITS) - 1;

/// Returns the bit that stands for an attempt among the attempts of its call.
fn bit(tag: u32) -> u32 {
    1 << (tag & ATTEMPTS)
}

/// An alarm of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Alarm {
    task: u32,
    tag: u32,
    what: AttemptAlarmKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
enum AttemptAlarmKind {
    /// An attempt takes too long.
    TimeOut,
    /// The next retry is due.
    Retry,
    /// The next hedge is due.
    Hedge,
}

impl Service {
    /// Makes a call for a task, which waits for the result.
    pub(super) fn call<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        id: u32,
        target: Target,
        cx: &mut C,
    ) {
        let now = cx.now().as_nanos();
        let serial = self.next_serial();
        let Some(task) = &mut self.tasks[id as usize] else {
            return;
        };
        let route = &mut self.routes[usize::from(target.route)];
        let own = (route.policy.deadline).map_or(NO_DEADLINE, |time| now.saturating_add(time));
        let deadline = own.min(task.job.deadline);
        if now >= deadline || !route.admits(now) {
            host.totals.rejected += 1;
            return self.step_failed(host, id, cx);
        }
        route.calls += 1;
        route.earn();
        task.calling = Calling {
            serial,
            target,
            deadline,
            ..Calling::default()
        };
        self.attempt(host, id, cx);
    }

    /// Starts an attempt: the first, a retry or a hedge.
    fn attempt<C: Context<Msg>>(&mut self, host: &mut Host, id: u32, cx: &mut C) {
        let now = cx.now().as_nanos();
        let Some(task) = &mut self.tasks[id as usize] else {
            return;
        };
        let calling = &mut task.calling;
        let tag = calling.serial << ATTEMPT_BITS | u32::from(calling.attempts);
        calling.attempts += 1;
        calling.under_way |= bit(tag);
        let number = calling.target.route;
        let route = &mut self.routes[usize::from(number)];
        let policy = &route.policy;
        let due = policy
            .timeout
            .map_or(NO_DEADLINE, |time| now.saturating_add(time));
        let due = due.min(calling.deadline);
        let hedge = (policy.hedge).filter(|&(_, most)| calling.hedges < most);
        if route
            .breaker
            .as_mut()
            .is_some_and(|breaker| !breaker.allows(now))
        {
            host.totals.rejected += 1;
            self.todo.push(Todo::Failed(id, tag));
            return;
        }
        match route.connect() {
            Connection::Ready(opening) => self.launch(host, id, tag, opening, cx),
            Connection::Wait => {
                route.waiting.push_back((id, tag));
                calling.waiting |= bit(tag);
            }
            Connection::Refused => {
                if let Some(breaker) = &mut route.breaker {
                    breaker.forget();
                }
                host.totals.rejected += 1;
                self.todo.push(Todo::Failed(id, tag));
                return;
            }
        }
        if due < NO_DEADLINE {
            self.set_alarm(due, id, tag, AttemptAlarmKind::TimeOut, cx);
        }
        if let Some((after, _)) = hedge {
            self.set_alarm(
                now.saturating_add(after),
                id,
                tag,
                AttemptAlarmKind::Hedge,
                cx,
            );
        }
    }

    /// Sends the request of an attempt after `opening`, the time that it takes to open a connection.
    fn launch<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        id: u32,
        tag: u32,
        opening: u64,
        cx: &mut C,
    ) {
        let Some(task) = &mut self.tasks[id as usize] else {
            return;
        };
        let calling = &mut task.calling;
        let route = &mut self.routes[usize::from(calling.target.route)];
        let about = about(&task.job);
        let to = if host.pending.has_room() {
            let last = *calling.asked(tag.wrapping_sub(1));
            route.pick(about, last.filter(|_| tag & ATTEMPTS > 0), cx)
        } else {
            None
        };
        let Some(to) = to else {
            route.disconnect(true);
            if let Some(breaker) = &mut route.breaker {
                breaker.forget();
            }
            host.totals.rejected += 1;
            self.todo.push(Todo::Failed(id, tag));
            return;
        };
        *calling.asked(tag) = Some(to);
        let mut job = task.job;
        job.deadline = calling.deadline;
        let key = key_for(calling.target, &job);
        let stage = u64::from(id) << 32 | u64::from(tag);
        host.ask_after(opening, job, to, key, stage, cx);
    }

    /// Handles the answer to a request of a task.
    pub(in super::super) fn resume<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        request: &PendingRequest,
        answer: Answer,
        cx: &mut C,
    ) {
        let server = request.server;
        let called = host.model.instance(server).service;
        let Some(number) = self.route_to(called) else {
            return;
        };
        let route = &mut self.routes[number];
        route.answered(server);
        let (id, tag) = ((request.stage >> 32) as u32, request.stage as u32);
        let task = self.tasks.get_mut(id as usize).and_then(Option::as_mut);
        let Some(task) = task.filter(|task| task.calling.has(tag)) else {
            return;
        };
        route.disconnect(false);
        if !route.waiting.is_empty() {
            self.todo.push(Todo::Serve(number as u16));
        }
        route.record(server, answer.is_error(), cx.now().as_nanos());
        if answer.is_error() {
            self.todo.push(Todo::Failed(id, tag));
        } else {
            task.calling.under_way &= !bit(tag);
            self.call_over(host, id, true, cx);
        }
        self.run_pending(host, cx);
    }

    /// Handles a failed attempt: the call waits for other attempts, tries again, or fails.
    pub(super) fn attempt_failed<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        id: u32,
        tag: u32,
        cx: &mut C,
    ) {
        let now = cx.now().as_nanos();
        let task = self.tasks[id as usize].as_mut();
        let Some(task) = task.filter(|task| task.calling.has(tag)) else {
            return;
        };
        let calling = &mut task.calling;
        calling.under_way &= !bit(tag);
        if calling.under_way != 0 {
            return;
        }
        let route = &mut self.routes[usize::from(calling.target.route)];
        let rules = route.policy.retries;
        if let Some(rules) = rules.filter(|rules| calling.retries < rules.most) {
            let wait = match rules.backoff {
                0 => 0,
                _ => rules.wait(calling.retries, cx.random()),
            };
            if now.saturating_add(wait) < calling.deadline && route.spend() {
                calling.retries += 1;
                host.totals.retries += 1;
                if wait == 0 {
                    return self.attempt(host, id, cx);
                }
                return self.set_alarm(
                    now.saturating_add(wait),
                    id,
                    tag,
                    AttemptAlarmKind::Retry,
                    cx,
                );
            }
        }
        self.call_over(host, id, false, cx);
    }

    /// Ends a call and abandons its attempts in flight.
    fn call_over<C: Context<Msg>>(&mut self, host: &mut Host, id: u32, succeeds: bool, cx: &mut C) {
        let Some(task) = &mut self.tasks[id as usize] else {
            return;
        };
        let calling = std::mem::take(&mut task.calling);
        let number = calling.target.route;
        let route = &mut self.routes[usize::from(number)];
        route.calls -= 1;
        if calling.under_way != 0 {
            for attempt in 0..u32::from(calling.attempts) {
                let tag = calling.serial << ATTEMPT_BITS | attempt;
                if calling.under_way & bit(tag) == 0 {
                    continue;
                }
                if let Some(breaker) = &mut route.breaker {
                    breaker.forget();
                }
                if calling.waiting & bit(tag) != 0 {
                    route.waiting.retain(|&waits| waits != (id, tag));
                } else {
                    route.disconnect(true);
                }
            }
            if !route.waiting.is_empty() {
                self.todo.push(Todo::Serve(number));
            }
        }
        if !succeeds {
            return self.step_failed(host, id, cx);
        }
        task.left -= 1;
        if task.left == 0 {
            task.next += 1;
        }
        self.todo.push(Todo::Run(id));
    }

    /// Assigns free connections of a route to waiting attempts.
    pub(super) fn serve_waiting<C: Context<Msg>>(
        &mut self,
        host: &mut Host,
        number: u16,
        cx: &mut C,
    ) {
        let route = &mut self.routes[usize::from(number)];
        let Some(&(id, tag)) = route.waiting.front() else {
            return;
        };
        if let Connection::Ready(opening) = route.connect() {
            route.waiting.pop_front();
            self.todo.push(Todo::Serve(number));
            if let Some(task) = &mut self.tasks[id as usize] {
                task.calling.waiting &= !bit(tag);
                host.on_account_of(&task.job, cx);
            }
            self.launch(host, id, tag, opening, cx);
        }
    }

    fn set_alarm<C: Context<Msg>>(
        &mut self,
        due: u64,
        task: u32,
        tag: u32,
        what: AttemptAlarmKind,
        cx: &mut C,
    ) {
        let alarm = Alarm { task, tag, what };
        if let Some(after) = self.alarms.set(due, alarm, cx.now().as_nanos()) {
            cx.timer(Duration::from_nanos(after), TO_ALARM);
        }
    }

    /// Handles due alarms.
    pub(in super::super) fn wake<C: Context<Msg>>(&mut self, host: &mut Host, cx: &mut C) {
        let now = cx.now().as_nanos();
        loop {
            let tasks = &self.tasks;
            let next = self.alarms.next(now, |alarm| {
                let task = tasks.get(alarm.task as usize).and_then(Option::as_ref);
                task.is_some_and(|task| match alarm.what {
                    AttemptAlarmKind::TimeOut => task.calling.has(alarm.tag),
                    AttemptAlarmKind::Retry => task.calling.is(alarm.tag),
                    AttemptAlarmKind::Hedge => {
                        task.calling.is(alarm.tag) && task.calling.under_way != 0
                    }
                })
            });
            let Some(Alarm { task, tag, what }) = next else {
                break;
            };
            if let Some(task) = &self.tasks[task as usize] {
                host.on_account_of(&task.job, cx);
            }
            match what {
                AttemptAlarmKind::TimeOut => self.timed_out(host, task, tag, cx),
                AttemptAlarmKind::Retry => self.attempt(host, task, cx),
                AttemptAlarmKind::Hedge => {
                    if let Some(task) = &mut self.tasks[task as usize] {
                        task.calling.hedges += 1;
                    }
                    host.totals.hedges += 1;
                    self.attempt(host, task, cx);
                }
            }
            self.run_pending(host, cx);
        }
        if let Some(after) = self.alarms.next_timer(now) {
            cx.timer(Duration::from_nanos(after), TO_ALARM);
        }
    }

    /// Handles the time-out of an attempt: it is abandoned, and its connection is closed.
    fn timed_out<C: Context<Msg>>(&mut self, host: &mut Host, id: u32, tag: u32, cx: &mut C) {
        let Some(task) = &mut self.tasks[id as usize] else {
            return;
        };
        let calling = &mut task.calling;
        let number = calling.target.route;
        let route = &mut self.routes[usize::from(number)];
        host.totals.timeouts += 1;
        let called = self.script.routes[usize::from(number)];
        let lasted = route.policy.timeout.unwrap_or(NO_DEADLINE);
        host.trace_given_up(&task.job, called, lasted, cx.now().as_nanos());
        if calling.waiting & bit(tag) != 0 {
            calling.waiting &= !bit(tag);
            route.waiting.retain(|&waits| waits != (id, tag));
            if let Some(breaker) = &mut route.breaker {
                breaker.forget();
            }
        } else {
            route.disconnect(true);
            if let Some(server) = calling.asked(tag).take() {
                route.record(server, true, cx.now().as_nanos());
            }
        }
        if !route.waiting.is_empty() {
            self.todo.push(Todo::Serve(number));
        }
        self.todo.push(Todo::Failed(id, tag));
    }
}
