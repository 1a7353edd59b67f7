//! The effect of each field of each format, and the report of fields without effect.

use super::item::Log;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The documentation of all fields, whose table is also the program's.
const DOCUMENT: &str = include_str!("../../IMPORT.md");
/// The first columns of the table.
const HEADER: &str = "| format | kind | field |";

/// Returns the effect of each field of each format, as a table in Markdown.
pub fn field_table() -> &'static str {
    let start = DOCUMENT.find(HEADER).unwrap_or(DOCUMENT.len());
    &DOCUMENT[start..]
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    format: &'static str,
    /// The kinds of documents that have the field, separated by commas; `all` for every kind.
    kinds: &'static str,
    /// The keys of the field, separated by dots. Lists have no key of their own; `*` is any key. The entry also covers
    /// all fields below it.
    path: &'static str,
    /// The part of the definition that the field becomes, or the reason why it has no effect.
    effect: &'static str,
}

impl Field {
    /// Parses a row.
    fn of(row: &'static str) -> Option<Field> {
        let row = row.strip_prefix("| ")?.strip_suffix(" |")?;
        let cells: Vec<&str> = row.split(" | ").collect();
        let [format, kinds, path, effect] = cells[..] else {
            return None;
        };
        let path = path.strip_prefix('`')?.strip_suffix('`')?;
        Some(Field {
            format,
            kinds,
            path,
            effect,
        })
    }

    /// Returns the reason why the field has no effect; `None` if it has one.
    fn reason(&self) -> Option<&'static str> {
        self.effect.strip_prefix("reported: ")
    }
}

/// The rows of the table.
pub(super) static FIELDS: LazyLock<Vec<Field>> =
    LazyLock::new(|| field_table().lines().filter_map(Field::of).collect());

/// A field of the imported documents that had no effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Unused {
    /// The format: kubernetes, istio, envoy, compose or k6.
    pub format: &'static str,
    /// The kind of document, such as Deployment.
    pub kind: String,
    /// The field: its keys, separated by dots.
    pub field: String,
    /// The reason why it has no effect.
    pub why: String,
    /// The number of its values.
    pub times: u64,
    /// The first document that has it.
    pub first: String,
}

/// The maximum number of different fields that are reported separately.
const MOST_UNUSED: usize = 2_000;
/// The maximum length of a key in reports; longer keys are shortened.
const MOST_SHOWN: usize = 80;

/// The fields without effect of all documents.
#[derive(Debug, Default)]
pub(super) struct UnusedFields(BTreeMap<(&'static str, String, String), Unused>);

/// The document in which unused fields are searched.
pub(super) struct Looked<'a> {
    pub(super) format: &'static str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) fields: &'a [Field],
    pub(super) log: &'a Log,
}

impl UnusedFields {
    /// Adds the fields of a document that were not read.
    pub(super) fn add(&mut self, looked: &Looked, value: &Value) {
        let mut path = Vec::new();
        self.walk(looked, value, &mut path);
    }

    fn walk<'a>(&mut self, looked: &Looked, value: &'a Value, path: &mut Vec<&'a str>) {
        if looked.log.has(value) {
            return;
        }
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (key, value) in map {
                    path.push(key);
                    self.walk(looked, value, path);
                    path.pop();
                }
            }
            Value::Array(list) if !list.is_empty() => {
                list.iter().for_each(|value| self.walk(looked, value, path));
            }
            Value::Null => {}
            _ => self.leaf(looked, path),
        }
    }

    fn leaf(&mut self, looked: &Looked, path: &[&str]) {
        let (field, why) = match best(looked, path) {
            Some(field) => (
                field.path.to_owned(),
                field.reason().unwrap_or("this value changes nothing here"),
            ),
            None => (shown(path), "corsair does not know this field"),
        };
        let kind: String = looked.kind.chars().take(MOST_SHOWN).collect();
        let mut key = (looked.format, kind, field);
        if self.0.len() >= MOST_UNUSED && !self.0.contains_key(&key) {
            key = (looked.format, String::new(), "further fields".to_owned());
        }
        let unused = self.0.entry(key).or_insert_with_key(|key| Unused {
            format: key.0,
            kind: key.1.clone(),
            field: key.2.clone(),
            why: why.to_owned(),
            times: 0,
            first: looked.name.to_owned(),
        });
        unused.times += 1;
    }

    pub(super) fn into_sorted(self) -> Vec<Unused> {
        self.0.into_values().collect()
    }
}

/// Returns the most specific field of a format for a path.
fn best<'a>(looked: &Looked<'a>, path: &[&str]) -> Option<&'a Field> {
    let of_kind = looked.fields.iter().filter(|field| {
        let mut kinds = field.kinds.split(", ");
        field.format == looked.format && kinds.any(|known| known == looked.kind || known == "all")
    });
    // A Pod has the fields of a template of pods without the template.
    let of_pod = match (looked.kind, path) {
        ("Pod", ["spec", rest @ ..]) => [&["spec", "template", "spec"], rest].concat(),
        _ => Vec::new(),
    };
    let path = if of_pod.is_empty() { path } else { &of_pod };
    let matching = of_kind.filter_map(|field| Some((matched(field.path, path)?, field)));
    matching
        .max_by_key(|(length, _)| *length)
        .map(|(_, field)| field)
}

/// Returns the number of keys in a pattern that matches a path; `None` if it does not match.
fn matched(pattern: &str, path: &[&str]) -> Option<usize> {
    let mut length = 0;
    for (place, key) in pattern.split('.').enumerate() {
        let is_same = path
            .get(place)
            .is_some_and(|have| key == "*" || key == *have);
        if !is_same {
            return None;
        }
        length = 2 * (place + 1) - usize::from(key == "*");
    }
    Some(length)
}

/// Formats a path for a report, whose lines stay short whatever a document contains.
fn shown(path: &[&str]) -> String {
    let keys: Vec<String> = path
        .iter()
        .take(12)
        .map(|key| key.chars().take(MOST_SHOWN).collect::<String>())
        .map(|key| key.escape_debug().to_string())
        .collect();
    match keys.is_empty() {
        true => "the document".to_owned(),
        false => keys.join("."),
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::Item;
    use super::*;
    use serde_json::json;

    #[test]
    fn every_row_of_the_documentation_is_read() {
        let rows = field_table()
            .lines()
            .skip(2)
            .inspect(|row| assert!(Field::of(row).is_some(), "{row}"));
        assert_eq!(rows.count(), FIELDS.len());
        assert!(FIELDS.len() > 100, "{} rows", FIELDS.len());
        for field in FIELDS.iter() {
            let is_used = field.effect.starts_with("used: ");
            assert!(is_used || field.reason().is_some(), "{field:?}");
        }
    }

    #[test]
    fn what_is_not_read_is_named_by_the_longest_pattern() {
        let fields = [
            "| kubernetes | Deployment | `spec.replicas` | used: count |",
            "| kubernetes | all | `metadata` | reported: names |",
            "| kubernetes | all | `metadata.labels.*` | reported: labels |",
        ]
        .map(|row| Field::of(row).unwrap());
        let document = json!({"metadata": {"uid": 1, "labels": {"a": "b", "c": "d"}},
            "spec": {"replicas": 3, "paused": false, "list": [{"x": 1}, {"x": 2}], "none": null}});
        let log = Log::default();
        let item = Item::new(&document, &log);
        assert_eq!(item.count("spec.replicas"), Ok(Some(3)));
        let mut unused = UnusedFields::default();
        let looked = Looked {
            format: "kubernetes",
            kind: "Deployment",
            name: "web",
            fields: &fields,
            log: &log,
        };
        unused.add(&looked, &document);
        let shown: Vec<String> = unused
            .into_sorted()
            .iter()
            .map(|u| format!("{} {} {}", u.field, u.times, u.why))
            .collect();
        assert_eq!(
            shown,
            [
                "metadata 1 names",
                "metadata.labels.* 2 labels",
                "spec.list.x 2 corsair does not know this field",
                "spec.paused 1 corsair does not know this field",
            ]
        );
    }
}
