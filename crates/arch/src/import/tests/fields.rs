//! The table of fields in the documentation, and its agreement with what an import does.
//!
//! The table is that of `IMPORT.md`. A row is tried on sample systems: changing the field of a "used" row changes the
//! definition, and the field of a "reported" row is reported and changes nothing.

mod samples;

use super::*;
use samples::System;

/// A row of the table.
struct Row {
    format: String,
    kind: String,
    path: String,
    effect: String,
}

impl Row {
    fn is_used(&self) -> bool {
        self.effect.starts_with("used: ")
    }

    /// Returns the keys of the path in a document of the row's kind.
    fn keys(&self) -> Vec<&str> {
        let keys: Vec<&str> = self.path.split('.').collect();
        match (self.kind.as_str(), keys.as_slice()) {
            ("Pod", ["spec", "template", "spec", rest @ ..]) => [&["spec"], rest].concat(),
            _ => keys,
        }
    }

    fn shown(&self) -> String {
        format!("{} {} {}", self.format, self.kind, self.path)
    }
}

/// Returns the rows of the documentation, one for each kind.
fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for line in field_table().lines().skip(2) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [format, kinds, path, effect] = cells.as_slice() else {
            panic!("{line}");
        };
        rows.extend(kinds.split(", ").map(|kind| Row {
            format: (*format).to_owned(),
            kind: kind.to_owned(),
            path: path.trim_matches('`').to_owned(),
            effect: (*effect).to_owned(),
        }));
    }
    assert!(rows.len() > 200, "{} rows", rows.len());
    rows
}

/// What an import says, apart from the fields without effect.
#[derive(Debug, PartialEq)]
struct Outcome {
    definition: Definition,
    objectives: Vec<String>,
    /// Notes of what was left out and assumed, and the calls.
    notes: Vec<String>,
}

fn outcome(system: &System) -> Result<(Outcome, Vec<Unused>), String> {
    let files: Vec<(String, String)> = system.files();
    let files: Vec<(&str, &str)> = (files.iter())
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let imported = import_texts(&files).map_err(|error| error.to_string())?;
    let notes = imported.left_out.iter().chain(&imported.assumed).cloned();
    let outcome = Outcome {
        notes: notes.chain(calls(&imported)).collect(),
        definition: imported.definition,
        objectives: imported.objectives,
    };
    Ok((outcome, imported.unused))
}

/// Values that are tried in place of others.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(0.0);
            vec![(number * 2.0 + 1.0).into(), (number / 2.0).into(), 0.into()]
        }
        Value::String(text) => {
            let others = [
                "777ms",
                "0.125",
                "elsewhere",
                "Gateway",
                "RANDOM",
                "true",
                "constant-vus",
            ];
            let others = others.iter().map(|other| Value::from(*other));
            others.chain([format!("{text}x").into()]).collect()
        }
        Value::Bool(yes) => vec![(!yes).into()],
        _ => Vec::new(),
    }
}

/// Applies a change to each value at a path; lists have no key. Returns the number of values.
fn change(value: &mut Value, keys: &[&str], by: &mut impl FnMut(&mut Value)) -> usize {
    match (value, keys) {
        (Value::Array(list), _) => {
            let list = list.iter_mut();
            list.map(|value| change(value, keys, by)).sum()
        }
        (value, []) => {
            by(value);
            1
        }
        (Value::Object(map), ["*", rest @ ..]) => {
            let values = map.values_mut();
            values.map(|value| change(value, rest, by)).sum()
        }
        (Value::Object(map), [key, rest @ ..]) => {
            let value = map.get_mut(*key);
            value.map_or(0, |value| change(value, rest, by))
        }
        _ => 0,
    }
}

/// Changes each scalar in a value.
fn change_scalars(value: &mut Value, to: &impl Fn(&Value) -> Option<Value>) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|one| change_scalars(one, to)),
        Value::Object(map) => map.values_mut().for_each(|one| change_scalars(one, to)),
        scalar => *scalar = to(scalar).unwrap_or(Value::Null),
    }
}

/// Returns the systems in which the values at a row's path are removed or replaced by others.
fn variants<'a>(
    system: &'a System,
    document: usize,
    row: &'a Row,
) -> impl Iterator<Item = System> + 'a {
    (0..9).filter_map(move |number| {
        let mut changed = system.clone();
        let by = |value: &mut Value| match number {
            0 => *value = Value::Null,
            _ => change_scalars(value, &|value| others(value).get(number - 1).cloned()),
        };
        let found = change(&mut changed.documents[document].1, &row.keys(), &mut { by });
        (found > 0).then_some(changed)
    })
}

#[test]
fn changing_a_field_that_is_used_changes_the_definition() {
    let systems: Vec<(System, Outcome)> = (samples::all().into_iter())
        .map(|system| {
            let outcome =
                outcome(&system).unwrap_or_else(|error| panic!("{}: {error}", system.name));
            (system, outcome.0)
        })
        .collect();
    let mut wrong = Vec::new();
    for row in rows().iter().filter(|row| row.is_used()) {
        let mut tried = 0;
        let has_effect = systems.iter().any(|(system, before)| {
            let documents = 0..system.documents.len();
            documents
                .filter(|place| system.has(*place, &row.format, &row.kind))
                .any(|place| {
                    variants(system, place, row).any(|changed| {
                        tried += 1;
                        outcome(&changed).is_ok_and(|(after, _)| {
                            if row.effect.starts_with("used: a note") {
                                after.notes != before.notes
                            } else if row.effect.starts_with("used: objectives") {
                                after.objectives != before.objectives
                            } else {
                                after.definition != before.definition
                            }
                        })
                    })
                })
        });
        if !has_effect {
            wrong.push(format!("{} ({tried} changes): {}", row.shown(), row.effect));
        }
    }
    assert!(
        wrong.is_empty(),
        "rows without effect:\n{}",
        wrong.join("\n")
    );
}

/// Sets a field that nobody knows at a path, below what the sample has there. False if the sample has no such place.
fn probe(value: &mut Value, keys: &[&str]) -> bool {
    let unknown = || serde_json::json!({"corsairProbe": "x"});
    match (value, keys) {
        (Value::Array(list), _) => list.first_mut().is_some_and(|value| probe(value, keys)),
        (Value::Object(map), []) => map.insert("corsairProbe".to_owned(), "x".into()).is_none(),
        (Value::Object(map), ["*"]) => {
            let first = map.values_mut().next();
            first.is_some_and(|value| probe(value, &[]))
        }
        // A scalar that is there is reported itself.
        (_, []) => true,
        (Value::Object(map), ["*", rest @ ..]) => {
            let mut values = map.values_mut();
            values.any(|value| probe(value, rest))
        }
        (Value::Object(map), [key]) => match map.get_mut(*key) {
            Some(value) => probe(value, &[]),
            None => map.insert((*key).to_owned(), unknown()).is_none(),
        },
        (Value::Object(map), [key, rest @ ..]) => {
            let place = map.entry((*key).to_owned());
            probe(place.or_insert_with(|| serde_json::json!({})), rest)
        }
        _ => false,
    }
}

#[test]
fn a_field_that_is_ignored_is_reported_and_changes_nothing() {
    let systems = samples::all();
    let mut wrong = Vec::new();
    for row in rows().iter().filter(|row| !row.is_used()) {
        let reason = row.effect.strip_prefix("reported: ").unwrap();
        let mut found = false;
        for system in &systems {
            let of_kind = |place: &usize| system.has(*place, &row.format, &row.kind);
            let mut places = (0..system.documents.len()).filter(of_kind).peekable();
            if found || places.peek().is_none() {
                continue;
            }
            let (before, _) = outcome(system).unwrap();
            found = places.any(|place| {
                let mut changed = system.clone();
                if !probe(&mut changed.documents[place].1, &row.keys()) {
                    return false;
                }
                let Ok((after, unused)) = outcome(&changed) else {
                    return false;
                };
                let kind = &system.documents[place].1["kind"];
                let is_named = unused.iter().any(|one| {
                    let same = *kind == one.kind || kind.is_null();
                    one.format == row.format && same && one.field == row.path && one.why == reason
                });
                is_named && before.definition == after.definition
            });
        }
        if !found {
            wrong.push(row.shown());
        }
    }
    assert!(
        wrong.is_empty(),
        "rows that are not reported:\n{}",
        wrong.join("\n")
    );
}

/// Returns the paths of all objects whose keys are fields, and of all scalars, in pointers.
fn places(value: &Value, at: &str, objects: &mut Vec<String>, scalars: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                places(value, &format!("{at}/{number}"), objects, scalars);
            }
        }
        Value::Object(map) => {
            if !samples::FREE.iter().any(|free| at.ends_with(free)) {
                objects.push(at.to_owned());
            }
            for (key, value) in map {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), objects, scalars);
            }
        }
        _ => scalars.push(at.to_owned()),
    }
}

fn reported(unused: &[Unused]) -> u64 {
    unused.iter().map(|one| one.times).sum()
}

// Guarantee: arch-19.
#[test]
fn an_unknown_field_is_reported_at_every_depth() {
    for system in samples::all() {
        let (before, unused) = outcome(&system).unwrap();
        let known = reported(&unused);
        for place in 0..system.documents.len() {
            let mut changed = system.clone();
            let (mut objects, mut scalars) = (Vec::new(), Vec::new());
            places(&changed.documents[place].1, "", &mut objects, &mut scalars);
            for object in &objects {
                let object = changed.documents[place].1.pointer_mut(object).unwrap();
                object["corsairUnknown"] = "x".into();
            }
            let (after, unused) = outcome(&changed).unwrap();
            let name = &changed.documents[place];
            assert_eq!(before.definition, after.definition, "{name:?}");
            assert_eq!(reported(&unused), known + objects.len() as u64, "{name:?}");
        }
    }
}

// Guarantee: arch-19.
#[test]
fn every_value_has_an_effect_or_is_reported() {
    let mut wrong = Vec::new();
    for system in samples::all() {
        let (before, unused) = outcome(&system).unwrap();
        let known = reported(&unused);
        for (place, (file, document)) in system.documents.iter().enumerate() {
            let (mut objects, mut scalars) = (Vec::new(), Vec::new());
            places(document, "", &mut objects, &mut scalars);
            for scalar in scalars {
                let value = document.pointer(&scalar).unwrap();
                let replaced = std::iter::once(Value::Null).chain(others(value));
                let has_effect = replaced.into_iter().any(|other| {
                    let mut changed = system.clone();
                    *changed.documents[place].1.pointer_mut(&scalar).unwrap() = other;
                    match outcome(&changed) {
                        Ok((after, unused)) => after != before || reported(&unused) < known,
                        Err(_) => true,
                    }
                });
                if !has_effect {
                    wrong.push(format!("{file}{scalar}: {value}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "silent values:\n{}", wrong.join("\n"));
}
