//! Checks whether messages were lost, duplicated, invented or reordered.
//!
//! ```
//! use corsair_check::deliveries::{Guarantees, check};
//! use corsair_check::{Outcome, Record};
//!
//! let event = |function: &str, value: i64, call, returned| Record {
//!     process: 0,
//!     function: function.into(),
//!     key: None,
//!     value: value.into(),
//!     call,
//!     returned,
//!     outcome: Outcome::Ok(value.into()),
//!     line: 1,
//! };
//! let history = [event("send", 1, 0, 1), event("send", 2, 2, 3), event("receive", 2, 4, 5)];
//! let report = check(&history, Guarantees::default())?;
//! assert_eq!(report.lost.len(), 1);
//! # Ok::<(), corsair_check::models::UnknownOperation>(())
//! ```

use crate::models::UnknownOperation;
use crate::{Outcome, Record, Value};
use rustc_hash::FxHashMap;

/// The guarantees for the messages of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// If true, every message whose sending was acknowledged must be received.
    pub no_loss: bool,
    /// If true, no receiver may get a message twice, and no two receivers may get the same message.
    pub no_duplicates: bool,
    /// If true, a receiver must get the messages of a key in the order in which they were sent.
    pub order: bool,
}

/// By default all guarantees are checked.
impl Default for Guarantees {
    fn default() -> Guarantees {
        Guarantees {
            no_loss: true,
            no_duplicates: true,
            order: true,
        }
    }
}

/// The violations of a history, as indices of its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// The number of messages that were sent and acknowledged.
    pub sent: usize,
    /// The number of received messages.
    pub received: usize,
    /// Acknowledged messages that nobody received.
    pub lost: Vec<usize>,
    /// Receptions of a message that had been received before.
    pub duplicates: Vec<usize>,
    /// Receptions of a message that nobody had sent before.
    pub invented: Vec<usize>,
    /// Pairs of messages that were received in the wrong order: first the message that was sent earlier, then the one
    /// that was sent later.
    pub reordered: Vec<(usize, usize)>,
}

impl Deliveries {
    /// True if no violation was found.
    pub fn is_correct(&self) -> bool {
        self.lost.is_empty()
            && self.duplicates.is_empty()
            && self.invented.is_empty()
            && self.reordered.is_empty()
    }
}

/// Checks `send` (or `enqueue`) and `receive` (or `dequeue`, `poll`) operations. A value identifies
/// a message, so each value may be sent only once; if records have a key, the key is part of the
/// identity.
///
/// Takes time and memory in proportion to the number of records.
///
/// # Errors
/// If a record has any other operation.
pub fn check(records: &[Record], guarantees: Guarantees) -> Result<Deliveries, UnknownOperation> {
    let mut found = Deliveries::default();
    let mut sends: FxHashMap<(Option<&Value>, &Value), Send> = FxHashMap::default();
    let mut receptions = Vec::new();
    for (index, record) in records.iter().enumerate() {
        match (&*record.function, &record.outcome) {
            ("send" | "enqueue", Outcome::Failed(_)) => {}
            ("send" | "enqueue", outcome) => {
                let acknowledged = *outcome != Outcome::Unknown;
                found.sent += usize::from(acknowledged);
                let name = (record.key.as_ref(), &record.value);
                let send = sends.entry(name).or_insert(Send {
                    index,
                    receptions: 0,
                    acknowledged: false,
                });
                send.acknowledged |= acknowledged;
            }
            ("receive" | "dequeue" | "poll", Outcome::Ok(Value::Nil)) => {}
            ("receive" | "dequeue" | "poll", Outcome::Ok(value)) => {
                receptions.push((record.returned, index, value));
            }
            ("receive" | "dequeue" | "poll", _) => {}
            _ => return Err(unknown(record)),
        }
    }
    receptions.sort_by_key(|(time, index, _)| (*time, *index));
    found.received = receptions.len();
    // By receiver and key: the reception so far whose message was sent last.
    let mut latest: FxHashMap<(u64, Option<&Value>), (usize, u64)> = FxHashMap::default();
    for (time, index, value) in receptions {
        let record = &records[index];
        let key = record.key.as_ref();
        let Some(send) = sends.get_mut(&(key, value)) else {
            found.invented.push(index);
            continue;
        };
        if records[send.index].call > time {
            found.invented.push(index);
        }
        send.receptions += 1;
        if send.receptions > 1 && guarantees.no_duplicates {
            found.duplicates.push(index);
        }
        let (called, returned) = (records[send.index].call, records[send.index].returned);
        let last = latest
            .entry((record.process, key))
            .or_insert((index, called));
        // A duplicate is not also counted as out of order.
        if guarantees.order && send.receptions == 1 && returned < last.1 {
            found.reordered.push((index, last.0));
        }
        if called > last.1 {
            *last = (index, called);
        }
    }
    if guarantees.no_loss {
        let lost = sends
            .values()
            .filter(|send| send.acknowledged && send.receptions == 0);
        found.lost = lost.map(|send| send.index).collect();
        found.lost.sort_unstable();
    }
    Ok(found)
}

/// A message that was sent.
struct Send {
    index: usize,
    receptions: usize,
    acknowledged: bool,
}

fn unknown(record: &Record) -> UnknownOperation {
    UnknownOperation {
        line: record.line,
        model: "deliveries",
        operation: format!(":{}", record.function),
        expected: ":send VALUE (or :enqueue), :receive (or :dequeue, :poll)",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(process: u64, function: &str, value: i64, call: u64, outcome: Outcome) -> Record {
        Record {
            process,
            function: function.into(),
            key: None,
            value: value.into(),
            call,
            returned: match outcome {
                Outcome::Unknown => u64::MAX,
                _ => call + 1,
            },
            outcome,
            line: 1,
        }
    }

    fn send(value: i64, call: u64) -> Record {
        record(0, "send", value, call, Outcome::Ok(Value::Nil))
    }

    fn receive(process: u64, value: i64, call: u64) -> Record {
        record(process, "receive", 0, call, Outcome::Ok(value.into()))
    }

    fn found(records: &[Record]) -> Deliveries {
        check(records, Guarantees::default()).unwrap()
    }

    // Guarantee: check-7.
    #[test]
    fn messages_that_all_arrive_in_order_are_correct() {
        let history = [send(1, 0), send(2, 2), receive(1, 1, 4), receive(1, 2, 6)];
        let found = found(&history);
        assert!(found.is_correct(), "{found:?}");
        assert_eq!((found.sent, found.received), (2, 2));
    }

    // Guarantee: check-7.
    #[test]
    fn each_fault_is_found_and_named() {
        assert_eq!(found(&[send(1, 0)]).lost, [0]);
        let twice = [send(1, 0), receive(1, 1, 2), receive(2, 1, 4)];
        assert_eq!(found(&twice).duplicates, [2]);
        assert_eq!(found(&[receive(1, 7, 0)]).invented, [0]);
        assert_eq!(found(&[receive(1, 1, 0), send(1, 5)]).invented, [0]);
        let swapped = [send(1, 0), send(2, 2), receive(1, 2, 4), receive(1, 1, 6)];
        assert_eq!(found(&swapped).reordered, [(3, 2)]);
    }

    // Guarantee: check-7.
    #[test]
    fn only_what_is_promised_is_demanded() {
        // Concurrent sends have no order, different receivers may get any, and a message whose
        // sending nobody acknowledged may be lost.
        let mut concurrent = [send(1, 0), send(2, 0), receive(1, 2, 4), receive(1, 1, 6)];
        assert!(found(&concurrent).is_correct());
        concurrent[1] = send(2, 2);
        concurrent[3] = receive(2, 1, 6);
        assert!(found(&concurrent).is_correct());
        assert!(found(&[record(0, "send", 1, 0, Outcome::Unknown)]).is_correct());
    }
}
