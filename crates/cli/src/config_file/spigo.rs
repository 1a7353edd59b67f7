//! Configuration files that spigo has written: its keys, as flags.
//!
//! spigo writes all of its settings, and what such a file says wins over the command line.

use anyhow::{Result, bail};
use corsair_arch::{REGIONS, ZONES};
use serde_json::{Map, Value};

/// Keys that only spigo's files have.
const MARKS: [&str; 5] = [
    "dunbar",
    "graphjsonfile",
    "graphmlfile",
    "keyvals",
    "runduration",
];

/// Whether a file is spigo's.
pub fn is_spigos(said: &Map<String, Value>) -> bool {
    MARKS.iter().any(|mark| said.contains_key(*mark))
}

/// The flags that a file of spigo's sets, with their values as text.
///
/// # Errors
/// What the file asks for that cannot be had.
pub fn flags(said: &Map<String, Value>) -> Result<Vec<(&'static str, String)>> {
    let mut flags = Vec::new();
    for (key, value) in said {
        let wrong = |wanted: &str| format!("\"{key}\" is {value}; spigo writes {wanted} there");
        let (flag, text) = match key.as_str() {
            "arch" => ("arch", text(value)),
            "graphjsonfile" => ("graphjson", is_set(value)),
            "graphmlfile" => ("graphml", is_set(value)),
            "neo4jurl" => ("neo4j", is_set(value)),
            "runduration" => ("duration", value.as_u64().map(|nanos| format!("{nanos}ns"))),
            "population" => ("population", number(value)),
            "regions" => ("regions", number(value)),
            "stopstep" => ("stopstep", number(value)),
            "msglog" => ("msglog", switch(value)),
            "collect" => ("collect", switch(value)),
            "filter" => ("filter", switch(value)),
            "eurekapoll" => ("eurekapoll", text(value)),
            "keyvals" => ("kv", text(value)),
            "kafka" => ("kafka", brokers(value)),
            // spigo keeps it, and nothing depends on it.
            "dunbar" => continue,
            "regionnames" if starts(value, &REGIONS) => continue,
            "zonenames" if starts(value, &ZONES) => continue,
            "ipranges" => continue,
            "regionnames" | "zonenames" => bail!(
                "\"{key}\" is {value}; regions and zones have names of their own only in spigo: leave it out"
            ),
            _ => bail!("\"{key}\" is none of spigo's keys; remove it"),
        };
        match text {
            Some(text) if text.is_empty() => {}
            Some(text) => flags.push((flag, text)),
            None => bail!("{}", wrong("another kind of value")),
        }
    }
    Ok(flags)
}

/// Text; empty where there is none.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        other => other.as_str().map(str::to_owned),
    }
}

/// A switch that is on where there is a text.
fn is_set(value: &Value) -> Option<String> {
    text(value).map(|text| {
        if text.is_empty() {
            text
        } else {
            "true".to_owned()
        }
    })
}

fn switch(value: &Value) -> Option<String> {
    value.as_bool().map(|on| on.to_string())
}

fn number(value: &Value) -> Option<String> {
    value.as_u64().map(|number| number.to_string())
}

/// A list of brokers, as `-k` takes it.
fn brokers(value: &Value) -> Option<String> {
    let Some(list) = value.as_array() else {
        return value.is_null().then(String::new);
    };
    let brokers: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    Some(brokers?.join(","))
}

/// Whether a list is the beginning of ours.
fn starts(value: &Value, ours: &[&str]) -> bool {
    let Some(list) = value.as_array() else {
        return value.is_null();
    };
    list.len() <= ours.len() && list.iter().zip(ours).all(|(theirs, ours)| theirs == ours)
}
