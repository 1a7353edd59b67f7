//! Makes `schema.json` from the types of definitions, and compares the two.
//!
//! The comment of a field ends with its default and an example: ``Default: `"10s"`. Example: `"1s"`.`` A default that is not a
//! value is prose: `Default: no limit.`

use super::{Definition, schema};
use serde_json::{Map, Value};

/// Returns the schema, with defaults and examples under the keywords that editors use for completion.
fn made() -> Value {
    let mut made = serde_json::to_value(schemars::schema_for!(Definition)).unwrap();
    annotate(&mut made);
    made
}

fn annotate(schema: &mut Value) {
    match schema {
        Value::Object(schema) => {
            let of_variant = schema.get("description").cloned();
            if let Some(Value::Object(fields)) = schema.get_mut("properties") {
                for (name, field) in fields {
                    annotate_field(name, field.as_object_mut().unwrap(), of_variant.as_ref());
                }
            }
            schema.values_mut().for_each(annotate);
        }
        Value::Array(list) => list.iter_mut().for_each(annotate),
        _ => {}
    }
}

/// Adds a default and an example to a field. The field of an enum variant has the comment of the variant.
fn annotate_field(name: &str, field: &mut Map<String, Value>, of_variant: Option<&Value>) {
    let own = field.get("description").cloned();
    let Some(Value::String(text)) = own.clone().or_else(|| of_variant.cloned()) else {
        return;
    };
    if let Some(mut example) = value_after(&text, "Example:") {
        if own.is_none() {
            example = example[name].take();
        }
        field.insert("examples".to_owned(), Value::Array(vec![example]));
    }
    if let Some(default) = value_after(&text, "Default:") {
        field.insert("default".to_owned(), default);
    }
    field.insert("description".to_owned(), Value::String(text));
}

/// Returns the JSON value between backticks that follows a word.
fn value_after(text: &str, word: &str) -> Option<Value> {
    let (_, after) = text.split_once(word)?;
    let (value, _) = after.trim_start().strip_prefix('`')?.split_once('`')?;
    Some(serde_json::from_str(value).unwrap_or_else(|error| panic!("{text}: {error}")))
}

/// Returns each field of a schema, with its path and whether it is required.
fn fields(path: &str, schema: &Value, found: &mut Vec<(String, Value, bool)>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    let required = object.get("required").and_then(Value::as_array);
    for (key, below) in object {
        match below {
            Value::Object(all) if key == "properties" => {
                for (name, field) in all {
                    let path = format!("{path}.{name}");
                    let is_required =
                        required.is_some_and(|names| names.contains(&Value::from(name.as_str())));
                    fields(&path, field, found);
                    found.push((path, field.clone(), is_required));
                }
            }
            Value::Object(all) if key == "$defs" => {
                all.iter()
                    .for_each(|(name, each)| fields(name, each, found));
            }
            Value::Array(all) if key == "anyOf" || key == "oneOf" => {
                all.iter().for_each(|each| fields(path, each, found));
            }
            _ => {}
        }
    }
}

#[test]
fn the_schema_is_that_of_the_types() {
    let made = serde_json::to_string_pretty(&made()).unwrap();
    if std::env::var_os("CORSAIR_WRITE_SCHEMA").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/definition/schema.json");
        std::fs::write(file, format!("{made}\n")).unwrap();
        return;
    }
    assert_eq!(
        schema(),
        made,
        "write it again: CORSAIR_WRITE_SCHEMA=1 cargo test -p corsair-arch --features schema schema"
    );
}

#[test]
fn every_field_has_a_description_an_example_and_a_default() {
    let mut all = Vec::new();
    fields("", &made(), &mut all);
    assert!(all.len() > 150, "{}", all.len());
    for (path, field, is_required) in all {
        let about = field["description"].as_str().unwrap_or_default();
        assert!(!about.is_empty(), "{path} has no description");
        assert!(field["examples"].is_array(), "{path} has no example");
        let has_default = about.contains("Default:");
        assert_eq!(has_default, !is_required, "{path}: its default: {about}");
    }
}

// An editor shows the descriptions, and the book makes a page of them.
#[test]
fn descriptions_are_for_readers_of_json() {
    for line in schema()
        .lines()
        .filter(|line| line.contains("\"description\":"))
    {
        let is_rust = ["```", "[`", "::"].iter().any(|mark| line.contains(mark));
        assert!(!is_rust, "{line}");
    }
}

#[test]
fn every_number_has_a_unit() {
    const UNITS: &[&str] = &[
        "number",
        "fraction",
        "factor",
        "probability",
        "per second",
        "multiple",
        "utilisation",
        "exponent",
        "shape",
        "deviation of the logarithm",
        "priority",
    ];
    let mut all = Vec::new();
    fields("", &made(), &mut all);
    for (path, field, _) in all {
        let kind = field["type"].to_string();
        if kind.contains("number") || kind.contains("integer") {
            let about = field["description"].as_str().unwrap_or_default();
            let has_unit = UNITS.iter().any(|unit| about.contains(unit));
            assert!(has_unit, "{path} has no unit: {about}");
        }
    }
}
