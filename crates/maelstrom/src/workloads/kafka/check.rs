//! The checker of `kafka`: offsets, order, and lost messages.

use crate::history::Record;
use crate::workload::Findings;
use corsair_check::{Outcome, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The known facts about a key.
#[derive(Default)]
struct Log<'a> {
    /// The messages of each offset.
    messages: BTreeMap<i64, BTreeSet<&'a Value>>,
    /// The offsets of each message.
    offsets: BTreeMap<&'a Value, BTreeSet<i64>>,
    polled: BTreeSet<i64>,
}

impl<'a> Log<'a> {
    fn note(&mut self, offset: i64, message: &'a Value) {
        self.messages.entry(offset).or_default().insert(message);
        self.offsets.entry(message).or_default().insert(offset);
    }
}

type Logs<'a> = BTreeMap<&'a str, Log<'a>>;

/// Returns the lists of a poll by key: offsets with messages.
fn polls(record: &Record) -> impl Iterator<Item = (&str, Vec<(i64, &Value)>)> {
    let entries = match record.result() {
        Some(Value::Map(entries)) if record.function == "poll" => &entries[..],
        _ => &[],
    };
    entries.iter().filter_map(|(key, pairs)| {
        let pairs = pairs.list()?.iter().filter_map(|pair| match pair.list()? {
            [offset, message] => Some((offset.int()?, message)),
            _ => None,
        });
        Some((key.text()?, pairs.collect()))
    })
}

/// Returns the key, offset and message of a send that succeeded.
fn sent(record: &Record) -> Option<(&str, i64, &Value)> {
    match (record.function, record.result()?.list()?) {
        ("send", [key, offset, message]) => Some((key.text()?, offset.int()?, message)),
        _ => None,
    }
}

pub(super) fn check(history: &[Record]) -> Findings {
    let mut findings = Findings::default();
    let mut logs = Logs::new();
    for record in history {
        if let Some((key, offset, message)) = sent(record) {
            logs.entry(key).or_default().note(offset, message);
        }
        for (key, pairs) in polls(record) {
            let log = logs.entry(key).or_default();
            for (offset, message) in pairs {
                log.note(offset, message);
                log.polled.insert(offset);
            }
        }
    }
    agreement(&logs, &mut findings);
    lost(history, &logs, &mut findings);
    aborted(history, &logs, &mut findings);
    order(history, &logs, &mut findings);
    let messages: usize = logs.values().map(|log| log.offsets.len()).sum();
    findings
        .notes
        .push(format!("{messages} messages of {} keys", logs.len()));
    findings
}

/// Checks that each offset has one message, and each message one offset.
fn agreement(logs: &Logs, findings: &mut Findings) {
    let (mut inconsistent, mut duplicates) = (Vec::new(), Vec::new());
    for (key, log) in logs {
        for (offset, messages) in log.messages.iter().filter(|(_, all)| all.len() > 1) {
            let shown: Vec<String> = messages.iter().map(ToString::to_string).collect();
            let shown = shown.join(" and ");
            inconsistent.push(format!("offset {offset} of key {key} has {shown}"));
        }
        for (message, offsets) in log.offsets.iter().filter(|(_, all)| all.len() > 1) {
            duplicates.push(format!(
                "{message} of key {key} has the offsets {offsets:?}"
            ));
        }
    }
    findings.list("inconsistent offset", inconsistent);
    findings.list("duplicate", duplicates);
}

/// Checks that every acknowledged message was polled. A message that was not polled is a lost write if a later offset
/// of its key was polled, and unseen otherwise.
fn lost(history: &[Record], logs: &Logs, findings: &mut Findings) {
    let (mut lost, mut unseen) = (Vec::new(), Vec::new());
    for (key, offset, message) in history.iter().filter_map(sent) {
        let polled = &logs[key].polled;
        if polled.contains(&offset) {
            continue;
        }
        match polled.last() {
            Some(last) if *last > offset => lost.push(format!(
                "{message} at offset {offset} of key {key} was acknowledged; offset {last} was polled, and it never"
            )),
            _ => unseen.push(format!(
                "{message} at offset {offset} of key {key} was acknowledged and never polled"
            )),
        }
    }
    findings.list("lost write", lost);
    findings.list("unseen", unseen);
}

/// Checks that messages whose send certainly failed are never polled.
fn aborted(history: &[Record], logs: &Logs, findings: &mut Findings) {
    let failed = history
        .iter()
        .filter(|record| record.function == "send" && matches!(record.outcome, Outcome::Failed(_)));
    let sentences = failed.filter_map(|record| {
        let [key, message] = record.value.list()? else {
            return None;
        };
        let log = logs.get(key.text()?)?;
        log.offsets
            .contains_key(message)
            .then(|| format!("the send of {message} to key {key} failed, but it was polled"))
    });
    findings.list("aborted read", sentences.collect());
}

/// Checks that each process polls and sends in the order of offsets and without gaps, until it is
/// assigned new keys.
fn order(history: &[Record], logs: &Logs, findings: &mut Findings) {
    let mut by_process: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
    for record in history {
        by_process.entry(record.process).or_default().push(record);
    }
    let (mut back, mut skipped, mut sent_back) = (Vec::new(), Vec::new(), Vec::new());
    for (process, mut records) in by_process {
        records.sort_by_key(|record| record.call);
        let (mut polled, mut last_sent) = (BTreeMap::new(), BTreeMap::new());
        for record in records {
            if record.function == "assign" {
                polled.clear();
            }
            if let Some((key, offset, _)) = sent(record)
                && let Some(last) = last_sent.insert(key, offset)
                && last >= offset
            {
                sent_back.push(format!(
                    "process {process} sent to offset {last} of key {key}, and then to {offset}"
                ));
            }
            for (key, pairs) in polls(record) {
                for (offset, _) in pairs {
                    let Some(last) = polled.insert(key, offset) else {
                        continue;
                    };
                    if last >= offset {
                        back.push(format!(
                            "process {process} polled offset {last} of key {key}, and then {offset}"
                        ));
                    } else if let Some((missed, _)) =
                        logs[key].messages.range(last + 1..offset).next()
                    {
                        skipped.push(format!(
                            "process {process} polled offset {last} of key {key}, and then {offset}, without {missed}"
                        ));
                    }
                }
            }
        }
    }
    findings.list("nonmonotonic poll", back);
    findings.list("poll skip", skipped);
    findings.list("nonmonotonic send", sent_back);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(message: i64, offset: i64, call: u64) -> Record {
        let result = ["k".into(), Value::Int(offset), Value::Int(message)];
        record("send", call, Outcome::Ok(result.into()))
    }

    fn poll(pairs: &[[i64; 2]], call: u64) -> Record {
        let pairs = pairs.iter().map(|pair| pair.map(Value::Int).into());
        let map = [("k".into(), Value::List(pairs.collect()))];
        record("poll", call, Outcome::Ok(Value::Map(map.into())))
    }

    fn record(function: &'static str, call: u64, outcome: Outcome) -> Record {
        Record {
            process: 0,
            function,
            value: Value::Nil,
            call,
            returned: call + 1,
            outcome,
            is_final: false,
        }
    }

    fn kinds(history: &[Record]) -> Vec<String> {
        let all = check(history).violations;
        all.iter()
            .map(|text| text.split(':').next().unwrap().to_owned())
            .collect()
    }

    // Guarantee: maelstrom-3.
    #[test]
    fn logs_that_are_read_in_order_are_valid() {
        let history = [
            send(10, 0, 0),
            send(11, 3, 2),
            poll(&[[0, 10]], 4),
            poll(&[[3, 11]], 6),
            record("assign", 8, Outcome::Ok(Value::Nil)),
            poll(&[[0, 10], [3, 11]], 10),
        ];
        assert_eq!(kinds(&history), [""; 0]);
    }

    // Guarantee: maelstrom-3.
    #[test]
    fn each_fault_of_a_log_is_named() {
        let two = [send(10, 0, 0), send(11, 1, 2)];
        let with = |more: &[Record]| kinds(&[&two[..], more].concat());
        assert_eq!(with(&[poll(&[[1, 11]], 4)]), ["lost write"]);
        assert_eq!(with(&[poll(&[[0, 10]], 4)]), ["unseen"]);
        assert_eq!(
            with(&[poll(&[[0, 10], [1, 10]], 4)]),
            ["inconsistent offset", "duplicate"]
        );
        let back = [poll(&[[0, 10], [1, 11]], 4), poll(&[[0, 10]], 6)];
        assert_eq!(with(&back), ["nonmonotonic poll"]);
        let all = poll(&[[0, 10], [1, 11], [2, 12]], 4);
        let again = record("assign", 5, Outcome::Ok(Value::Nil));
        assert_eq!(
            with(&[all, again, poll(&[[0, 10], [2, 12]], 6)]),
            ["poll skip"]
        );
        let lower = send(12, 0, 4);
        assert!(with(&[lower, poll(&[[0, 10], [1, 11]], 6)]).contains(&"nonmonotonic send".into()));
        let mut failed = record("send", 4, Outcome::Failed(Value::Nil));
        failed.value = ["k".into(), Value::Int(12)].into();
        let all = poll(&[[0, 10], [1, 11], [2, 12]], 6);
        assert_eq!(with(&[failed, all]), ["aborted read"]);
    }
}
