//! Converts configuration files written by spigo to flags.
//!
//! spigo writes all of its settings, and such a file overrides the command line.

use anyhow::{Result, bail};
use corsair_observe::{Places, REGIONS, ZONES};
use serde_json::{Map, Value};

/// Keys that only spigo's files have.
const MARKS: [&str; 5] = [
    "dunbar",
    "graphjsonfile",
    "graphmlfile",
    "keyvals",
    "runduration",
];

/// True if a file was written by spigo.
pub fn is_spigos(said: &Map<String, Value>) -> bool {
    MARKS.iter().any(|mark| said.contains_key(*mark))
}

/// Returns the flags that spigo's file sets, with their values as text.
///
/// # Errors
/// If the file requests a feature that does not exist here.
pub fn flags(said: &Map<String, Value>) -> Result<Vec<(&'static str, String)>> {
    let mut flags = Vec::new();
    for (key, value) in said {
        let wrong = |wanted: &str| format!("\"{key}\" is {value}; spigo writes {wanted} there");
        let (flag, text) = match key.as_str() {
            "arch" => ("arch", text(value)),
            "graphjsonfile" => ("graphjson", is_set(value)),
            "graphmlfile" => ("graphml", is_set(value)),
            "neo4jurl" => {
                flags.extend(
                    is_set(value)
                        .filter(|on| !on.is_empty())
                        .map(|on| ("neo4j", on)),
                );
                ("neo4jurl", text(value))
            }
            "runduration" => ("duration", value.as_u64().map(|nanos| format!("{nanos}ns"))),
            "population" => ("population", number(value)),
            "regions" => ("regions", number(value)),
            "stopstep" => ("stopstep", number(value)),
            "msglog" => ("msglog", switch(value)),
            "collect" => ("collect", switch(value)),
            "filter" => ("filter", switch(value)),
            "eurekapoll" => ("eurekapoll", text(value)),
            "keyvals" => ("kv", text(value)),
            "kafka" => ("kafka", names(value)),
            // spigo stores this setting, but does not use it.
            "dunbar" => continue,
            "regionnames" if names(value).is_some_and(|names| names == REGIONS.join(",")) => {
                continue;
            }
            "zonenames" if names(value).is_some_and(|names| names == ZONES.join(",")) => continue,
            "ipranges" if are_spigos(value) => continue,
            "regionnames" => ("region-names", names(value)),
            "zonenames" => ("zone-names", names(value)),
            "ipranges" => ("ip-ranges", ranges(value)),
            _ => bail!("\"{key}\" is not a key of spigo; remove it"),
        };
        match text {
            Some(text) if text.is_empty() => {}
            Some(text) => flags.push((flag, text)),
            None => bail!("{}", wrong("another kind of value")),
        }
    }
    Ok(flags)
}

/// Converts a value to text; an absent text is empty.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        other => other.as_str().map(str::to_owned),
    }
}

/// Converts a value to a switch. The switch is on if the value is a text that is not empty.
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

/// Converts a list of names to the form of a flag.
fn names(value: &Value) -> Option<String> {
    let Some(list) = value.as_array() else {
        return value.is_null().then(String::new);
    };
    let names: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    Some(names?.join(","))
}

/// Converts the address ranges of regions and their zones to the form of a flag.
fn ranges(value: &Value) -> Option<String> {
    let Some(list) = value.as_array() else {
        return value.is_null().then(String::new);
    };
    let regions: Option<Vec<String>> = list.iter().map(names).collect();
    Some(regions?.join(";"))
}

/// Returns true if these are the default ranges of regions and zones.
fn are_spigos(value: &Value) -> bool {
    let lists: Vec<Vec<String>> = serde_json::from_value(value.clone()).unwrap_or_default();
    let places = Places::new(&REGIONS.map(str::to_owned), &[], &lists);
    places.is_ok_and(|places| places == Places::default())
}
