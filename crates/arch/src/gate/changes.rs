//! The fields in which two definitions differ.

use crate::definition::Definition;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A field with different values in two definitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldChange {
    /// The path of the field, as in [`Setting`](crate::Setting).
    pub path: String,
    /// The value before the change; `None` if the field is new.
    pub before: Option<String>,
    /// The value after the change; `None` if the field was removed.
    pub after: Option<String>,
}

/// Fields that do not change a run.
const IGNORED: [&str; 5] = ["arch", "version", "description", "args", "date"];
/// Fields of services that do not change a run.
const IGNORED_OF_SERVICES: [&str; 3] = ["container", "process", "instance"];
/// The maximum number of listed differences.
const MOST: usize = 500;
/// The maximum length of a shown value, in characters; longer values are shortened.
const MOST_SHOWN: usize = 80;

/// Lists the fields in which a definition differs from its earlier version, in the order of their paths.
pub fn changes(before: &Definition, after: &Definition) -> Vec<FieldChange> {
    let [before, after] = [before, after].map(|definition| {
        // Plain data with string keys can always be written.
        let mut value = serde_json::to_value(definition).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            IGNORED.iter().for_each(|field| drop(fields.remove(*field)));
            let services = fields.get_mut("services").and_then(Value::as_array_mut);
            for service in services.into_iter().flatten() {
                if let Value::Object(service) = service {
                    service.retain(|field, value| match field.as_str() {
                        // In spigo's files the machine of a service is only a name.
                        "machine" => value
                            .as_str()
                            .is_some_and(|name| definition.machines.contains_key(name)),
                        field => !IGNORED_OF_SERVICES.contains(&field),
                    });
                }
            }
        }
        value
    });
    let mut found = Vec::new();
    walk("", Some(&before), Some(&after), &mut found);
    found
}

fn walk(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<FieldChange>) {
    if before == after || found.len() >= MOST {
        return;
    }
    if let (Some(before), Some(after)) = (before, after)
        && let (Some(old), Some(new)) = (members(before), members(after))
    {
        let names: BTreeSet<&str> = old.iter().chain(&new).map(|(name, _)| *name).collect();
        let find = |list: &[(&str, &'_ Value)], name: &str| -> Option<Value> {
            let known = list.iter().find(|(known, _)| *known == name);
            known.map(|(_, value)| (*value).clone())
        };
        for name in names {
            let path = match path {
                "" => name.to_owned(),
                path => format!("{path}.{name}"),
            };
            walk(
                &path,
                find(&old, name).as_ref(),
                find(&new, name).as_ref(),
                found,
            );
        }
        return;
    }
    found.push(FieldChange {
        path: path.to_owned(),
        before: before.map(shown),
        after: after.map(shown),
    });
}

/// Returns the entries of an object, or of a list whose entries have different names.
fn members(value: &Value) -> Option<Vec<(&str, &Value)>> {
    match value {
        Value::Object(fields) => Some(fields.iter().map(|(k, v)| (k.as_str(), v)).collect()),
        Value::Array(list) => {
            let named = list
                .iter()
                .map(|entry| Some((entry.get("name")?.as_str()?, entry)));
            let named: Option<Vec<(&str, &Value)>> = named.collect();
            let named = named.filter(|named| !named.is_empty())?;
            let names: BTreeSet<&str> = named.iter().map(|(name, _)| *name).collect();
            (names.len() == named.len()).then_some(named)
        }
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(services: &str) -> Definition {
        let text = format!(r#"{{"arch": "x", "services": [{services}]}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_machine_is_compared_if_the_definition_has_it() {
        let on = |machine: &str, machines: &str| {
            let text = format!(
                r#"{{"arch": "x", "machines": {machines},
                "services": [{{"name": "a", "package": "service", "machine": "{machine}"}}]}}"#
            );
            crate::read_text(&text, "x").unwrap().written().clone()
        };
        assert_eq!(changes(&on("one", "{}"), &on("two", "{}")), []);
        let before = on("one", r#"{"one": {"processors": 2}}"#);
        let paths = |after: &Definition| -> Vec<String> {
            let found = changes(&before, after);
            found.into_iter().map(|one| one.path).collect()
        };
        let faster = on("one", r#"{"one": {"processors": 4}}"#);
        assert_eq!(paths(&faster), ["machines.one.processors"]);
        let moved = on("two", r#"{"two": {"processors": 2}}"#);
        assert_eq!(
            paths(&moved),
            ["machines.one", "machines.two", "services.a.machine"]
        );
    }

    #[test]
    fn services_are_compared_by_their_names() {
        let before = definition(
            r#"{"name": "a", "package": "service", "count": 2},
               {"name": "old", "package": "service"},
               {"name": "b", "package": "service", "calls": {"a": {"timeout": "1s"}}}"#,
        );
        let after = definition(
            r#"{"name": "b", "package": "service", "calls": {"a": {"timeout": "2s", "bulkhead": 3}}},
               {"name": "a", "package": "service", "count": 3},
               {"name": "new", "package": "service"}"#,
        );
        let found = changes(&before, &after);
        let shown: Vec<String> = (found.iter())
            .map(|one| {
                let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
                let short = |text: String| text.chars().take(20).collect::<String>();
                format!(
                    "{} {} {}",
                    one.path,
                    short(side(&one.before)),
                    short(side(&one.after))
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "services.a.count 2 3",
                "services.b.calls.a.bulkhead - 3",
                "services.b.calls.a.timeout 1s 2s",
                r#"services.new - {"count":0,"dependen"#,
                r#"services.old {"count":0,"dependen -"#,
            ]
        );
        assert!(changes(&before, &before).is_empty());
    }
}
