//! Joins the events of a history to operations.

use super::ReadError;
use crate::{Outcome, Record, Value};
use rustc_hash::FxHashMap;

/// Collects events, and joins each call with its return or failure.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    records: Vec<Record>,
    /// The open operation of each process.
    open: FxHashMap<u64, usize>,
    events: u64,
}

/// An event of a history.
pub(super) struct Event<'a> {
    pub(super) process: u64,
    pub(super) kind: &'a str,
    pub(super) function: &'a str,
    pub(super) key: Option<Value>,
    pub(super) value: Value,
    pub(super) line: usize,
}

impl Pairs {
    /// Adds an event that is a map of EDN or JSON.
    pub(super) fn map(&mut self, mut map: Value, line: usize) -> Result<(), ReadError> {
        let error = |problem: String| Err(ReadError { line, problem });
        let process = match map.get("process") {
            Some(Value::Int(process)) => u64::try_from(*process),
            Some(Value::Text(_)) => return Ok(()),
            _ => return error("an event has no :process; expected a number".to_owned()),
        };
        let Ok(process) = process else {
            return error("a process has a negative number".to_owned());
        };
        let Some(function) = map.get("f").and_then(Value::text).map(Box::<str>::from) else {
            return error("an event has no :f; expected the name of an operation".to_owned());
        };
        if map.get("type").is_none() && map.get("call").is_some() {
            return self.complete(process, function, map, line);
        }
        let Some(kind) = map.get("type").and_then(Value::text).map(Box::<str>::from) else {
            return error(
                "an event has no :type; expected :invoke, :ok, :fail or :info".to_owned(),
            );
        };
        self.event(Event {
            process,
            kind: &kind,
            function: &function,
            key: take(&mut map, "key"),
            value: take(&mut map, "value").unwrap_or_default(),
            line,
        })
    }

    pub(super) fn event(&mut self, event: Event<'_>) -> Result<(), ReadError> {
        let Event { process, line, .. } = event;
        let error = |problem: String| Err(ReadError { line, problem });
        let time = self.events;
        self.events += 1;
        if event.kind == "invoke" {
            let index = self.records.len();
            if let Some(earlier) = self.open.insert(process, index) {
                return error(format!(
                    "process {process} calls while its operation of line {} has not returned",
                    self.records[earlier].line
                ));
            }
            self.records.push(Record {
                process,
                function: event.function.into(),
                key: event.key,
                value: event.value,
                call: time,
                returned: u64::MAX,
                outcome: Outcome::Unknown,
                line,
            });
            return Ok(());
        }
        let outcome = match event.kind {
            "ok" => Outcome::Ok(event.value),
            "fail" => Outcome::Failed(event.value),
            "info" => Outcome::Unknown,
            other => {
                return error(format!(
                    "':{other}' is not a type of events; expected :invoke, :ok, :fail or :info"
                ));
            }
        };
        let Some(index) = self.open.remove(&process) else {
            return error(format!("process {process} returns, but has not called"));
        };
        let record = &mut self.records[index];
        if *record.function != *event.function {
            return error(format!(
                "process {process} returns from :{}, but has called :{}",
                event.function, record.function
            ));
        }
        if outcome != Outcome::Unknown {
            record.returned = time;
        }
        record.outcome = outcome;
        Ok(())
    }

    /// Adds an operation with its times.
    fn complete(
        &mut self,
        process: u64,
        function: Box<str>,
        mut map: Value,
        line: usize,
    ) -> Result<(), ReadError> {
        let error = |problem: &str| {
            let problem = problem.to_owned();
            Err(ReadError { line, problem })
        };
        let time = |name: &str| match map.get(name) {
            None | Some(Value::Nil) => Ok(None),
            Some(Value::Int(time)) => u64::try_from(*time).map(Some).map_err(|_| ()),
            Some(_) => Err(()),
        };
        let (Ok(Some(call)), Ok(returned)) = (time("call"), time("return")) else {
            return error("\"call\" and \"return\" have to be whole numbers of at least 0");
        };
        if returned.is_some_and(|returned| returned < call) {
            return error("an operation returns before it is called");
        }
        let output = take(&mut map, "output").unwrap_or_default();
        self.records.push(Record {
            process,
            function,
            key: take(&mut map, "key"),
            value: take(&mut map, "value").unwrap_or_default(),
            call,
            returned: returned.unwrap_or(u64::MAX),
            outcome: match returned {
                Some(_) => Outcome::Ok(output),
                None => Outcome::Unknown,
            },
            line,
        });
        Ok(())
    }

    /// Returns the operations, in the order of the file.
    pub(super) fn finish(self) -> Result<Vec<Record>, ReadError> {
        if self.records.is_empty() {
            let problem = "the history is empty; expected operations in EDN or JSON, or a log of \
                           jepsen.util"
                .to_owned();
            return Err(ReadError { line: 1, problem });
        }
        Ok(self.records)
    }
}

fn take(map: &mut Value, key: &str) -> Option<Value> {
    let Value::Map(entries) = map else {
        return None;
    };
    let entry = entries
        .iter_mut()
        .find(|(name, _)| name.text() == Some(key))?;
    Some(std::mem::take(&mut entry.1))
}
