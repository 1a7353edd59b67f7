//! A client as an actor: one operation at a time, at random times.

use crate::history::Record;
use crate::workload::{Answer, Call, Phase, Session, Workload};
use crate::{Body, Packet};
use corsair::{Actor, Addr, Context, Event, Flow, Time, TimerHandle, Token};
use corsair_check::{Outcome, Value};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const NEXT: Token = Token::new(0);
const TIMEOUT: Token = Token::new(1);
/// The time between the load and the final phase.
pub(crate) const RECOVERY: Duration = Duration::from_secs(10);
/// The maximum duration of the final phase.
pub(crate) const FINAL: Duration = Duration::from_secs(10);
/// The maximum number of values in a history.
const MOST_VALUES: usize = 1 << 25;

/// The state that all clients of a test share.
pub(crate) struct Shared {
    pub(crate) workload: &'static dyn Workload,
    pub(crate) clients: u32,
    /// The mean time between two operations of one client.
    pub(crate) gap: Duration,
    pub(crate) limit: Time,
    pub(crate) patience: Duration,
    pub(crate) collected: Mutex<Collected>,
    /// The number of values in all histories.
    pub(crate) values: AtomicUsize,
}

/// The results of clients that have finished.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) history: Vec<Record>,
    /// The number of messages from and to clients.
    pub(crate) messages: u64,
    /// Sentences about violations of the protocol, which end the test.
    pub(crate) faults: Vec<String>,
}

/// The operation that is under way.
struct Pending {
    id: i64,
    timeout: TimerHandle,
    /// The record of the pending operation; `None` during the setup.
    record: Option<Record>,
}

pub(crate) struct Client {
    shared: Arc<Shared>,
    session: Box<dyn Session>,
    node: Addr,
    node_name: String,
    process: u64,
    next_id: i64,
    pending: Option<Pending>,
    /// The time at which the next operation is due.
    due: Time,
    phase: Phase,
    history: Vec<Record>,
    messages: u64,
    /// True if the client must stop, because the node broke the protocol or the history is too long.
    is_over: bool,
}

/// The time between two operations of a client in the final phase.
const FINAL_GAP: Duration = Duration::from_millis(1);

impl Client {
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: u32,
        session: Box<dyn Session>,
        (node, node_name): (Addr, String),
    ) -> Client {
        Client {
            shared,
            session,
            node,
            node_name,
            process: index.into(),
            next_id: 0,
            pending: None,
            due: Time::ZERO,
            phase: Phase::Load,
            history: Vec::new(),
            messages: 0,
            is_over: false,
        }
    }

    fn ask<C: Context<Packet>>(&mut self, body: Body, record: Option<Record>, cx: &mut C) {
        self.next_id += 1;
        let id = self.next_id;
        let timeout = cx.timer_handle(self.shared.patience, TIMEOUT);
        self.pending = Some(Pending {
            id,
            timeout,
            record,
        });
        self.messages += 1;
        cx.send(self.node, Packet::Body(body.with_id(id)));
    }

    /// Begins the next operation, or waits until it is due. Returns false if the client has finished.
    fn go_on<C: Context<Packet>>(&mut self, cx: &mut C) -> bool {
        let now = cx.now();
        if self.phase == Phase::Load && now >= self.shared.limit {
            if !self.shared.workload.has_final_phase() {
                return false;
            }
            self.phase = Phase::Final;
            self.due = self.shared.limit.after(RECOVERY);
        }
        let is_late = now >= self.shared.limit.after(RECOVERY + FINAL);
        if self.is_over || self.phase == Phase::Final && is_late {
            return false;
        }
        if now < self.due {
            cx.timer(self.due.since(now), NEXT);
            return true;
        }
        let phase = self.phase;
        let Some(call) = self.session.call(&mut |bound| cx.below(bound), phase) else {
            return false;
        };
        self.due = match phase {
            Phase::Load => {
                let part = u128::from(cx.below(1 << 20));
                let gap = ((self.shared.gap.as_nanos() * part) >> 19) as u64;
                let due = self.due.after(Duration::from_nanos(gap));
                due.min(self.shared.limit)
            }
            Phase::Final => now.after(FINAL_GAP),
        };
        self.begin(call, cx)
    }

    fn begin<C: Context<Packet>>(&mut self, call: Call, cx: &mut C) -> bool {
        let record = Record {
            process: self.process,
            function: call.function,
            value: call.value,
            call: cx.now().as_nanos(),
            returned: u64::MAX,
            outcome: Outcome::Unknown,
            is_final: self.phase == Phase::Final,
        };
        match call.body {
            Some(body) => {
                self.ask(body, Some(record), cx);
                true
            }
            None => {
                self.finish_operation(record, Outcome::Unknown, cx.now());
                self.go_on(cx)
            }
        }
    }

    fn finish_operation(&mut self, mut record: Record, outcome: Outcome, now: Time) {
        match &outcome {
            Outcome::Unknown => self.process += u64::from(self.shared.clients),
            _ => record.returned = now.as_nanos(),
        }
        if !matches!(outcome, Outcome::Ok(_)) {
            self.session.failed();
        }
        record.outcome = outcome;
        let size = 1 + record.result().map_or(0, size);
        let all = self.shared.values.fetch_add(size, Ordering::Relaxed);
        if all > MOST_VALUES {
            let text = "the history has more than 33554432 values; lower --rate or --time-limit";
            self.fault(text.to_owned());
        }
        self.history.push(record);
    }

    fn fault(&mut self, sentence: String) {
        self.is_over = true;
        let mut collected = lock(&self.shared.collected);
        if collected.faults.len() < 10 {
            collected.faults.push(sentence);
        }
    }

    /// Handles a reply to the pending request.
    fn reply<C: Context<Packet>>(&mut self, pending: Pending, body: &Body, cx: &mut C) {
        cx.cancel(pending.timeout);
        let now = cx.now();
        if body.kind == "error" {
            let Some(record) = pending.record else {
                let node = self.node_name.clone();
                self.fault(format!(
                    "{node} answers the setup with an error: {}",
                    text(body)
                ));
                return;
            };
            let code = body.int("code");
            let is_definite = matches!(code, Some(1 | 10..=12 | 14 | 20..=22 | 30));
            let is_definite = is_definite || self.shared.workload.is_idempotent(record.function);
            let outcome = match is_definite {
                true => Outcome::Failed(Value::Text(text(body).into())),
                false => Outcome::Unknown,
            };
            self.finish_operation(record, outcome, now);
            return;
        }
        let Some(record) = pending.record else {
            return;
        };
        match self.session.answer(body) {
            Ok(Answer::Done(value)) => self.finish_operation(record, Outcome::Ok(value), now),
            Ok(Answer::Ask(body)) => self.ask(body, Some(record), cx),
            Err(expected) => {
                let (node, function) = (self.node_name.clone(), record.function);
                let shown: String = text(body).chars().take(200).collect();
                self.fault(format!(
                    "{node} answers '{function}' with {shown}; expected {expected}"
                ));
                self.finish_operation(record, Outcome::Unknown, now);
            }
        }
    }

    fn time_out(&mut self, pending: Pending, now: Time) {
        match pending.record {
            Some(record) => {
                let outcome = match self.shared.workload.is_idempotent(record.function) {
                    true => Outcome::Failed("timeout".into()),
                    false => Outcome::Unknown,
                };
                self.finish_operation(record, outcome, now);
            }
            None => {
                let (node, patience) = (self.node_name.clone(), self.shared.patience);
                self.fault(format!(
                    "{node} does not answer the setup within {patience:?}"
                ));
            }
        }
    }

    fn end<C: Context<Packet>>(&mut self, cx: &mut C) -> Flow {
        let mut collected = lock(&self.shared.collected);
        collected.history.append(&mut self.history);
        collected.messages += self.messages;
        drop(collected);
        cx.send(cx.parent(), Packet::Finished);
        Flow::Stop
    }
}

impl Actor<Packet> for Client {
    fn start<C: Context<Packet>>(&mut self, cx: &mut C) {
        match self.session.setup() {
            Some(body) => self.ask(body, None, cx),
            None => cx.timer(Duration::ZERO, NEXT),
        }
    }

    fn on<C: Context<Packet>>(&mut self, event: Event<Packet>, cx: &mut C) -> Flow {
        match event {
            Event::Timer(TIMEOUT) => {
                if let Some(pending) = self.pending.take() {
                    self.time_out(pending, cx.now());
                }
            }
            Event::Message { body, .. } => {
                let (Packet::Body(body) | Packet::Forwarded(_, body)) = body else {
                    return Flow::Continue;
                };
                self.messages += 1;
                match self.pending.take() {
                    Some(pending) if body.in_reply_to == Some(pending.id) => {
                        self.reply(pending, &body, cx);
                    }
                    // A reply to a request that was given up.
                    other => {
                        self.pending = other;
                        return Flow::Continue;
                    }
                }
            }
            Event::Timer(_) => {}
            _ => return Flow::Continue,
        }
        if self.pending.is_none() && !self.go_on(cx) {
            return self.end(cx);
        }
        Flow::Continue
    }
}

/// Formats the type, code and text of a body for messages.
fn text(body: &Body) -> String {
    let code = body
        .int("code")
        .map_or(String::new(), |code| format!(" {code}"));
    match body.get("text") {
        Some(text) => format!("{}{code} {text}", body.kind),
        None => format!("'{}'{code}", body.kind),
    }
}

/// Returns the number of values nested in a value.
fn size(value: &Value) -> usize {
    match value {
        Value::List(values) => values.len() + values.iter().map(size).sum::<usize>(),
        Value::Map(entries) => entries.iter().map(|(_, value)| 1 + size(value)).sum(),
        _ => 0,
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
