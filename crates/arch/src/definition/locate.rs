//! Finds the positions of fields in the text of a definition.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

/// The source of a definition, a line in it, and the path to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file, or for example `built-in netflixoss`.
    pub file: String,
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The path to the field: keys joined by dots, as in `services.web.count`. Entries of lists are given by their
    /// names or their indices from 0. The empty path is the complete document.
    pub path: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// A step of a path in a JSON document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// Returns the line, from 1, of the value at this path, or of the deepest existing part of the path. O(length
/// of the text).
pub(super) fn line(text: &str, way: &[Step<'_>]) -> Option<usize> {
    let mut here: &RawValue = serde_json::from_str(text).ok()?;
    for step in way {
        let next = match *step {
            Step::Key(key) => serde_json::from_str::<HashMap<String, &RawValue>>(here.get())
                .ok()
                .and_then(|map| map.get(key).copied()),
            Step::Index(index) => serde_json::from_str::<Vec<&RawValue>>(here.get())
                .ok()
                .and_then(|list| list.get(index).copied()),
        };
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    // Raw values borrow from the text that they were read from.
    let offset = (here.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some(1 + text.get(..offset)?.matches('\n').count())
}

/// Formats a path as text; entries of lists are shown by their names if they have names.
pub(super) fn path(text: &str, way: &[Step<'_>]) -> String {
    let whole = serde_json::from_str::<Value>(text).unwrap_or_default();
    let mut here = Some(&whole);
    let mut parts = Vec::with_capacity(way.len());
    for step in way {
        match *step {
            Step::Key(key) => {
                here = here.and_then(|value| value.get(key));
                parts.push(key.to_owned());
            }
            Step::Index(index) => {
                here = here.and_then(|value| value.get(index));
                let name = here.and_then(|value| value.get("name")?.as_str());
                parts.push(name.map_or_else(|| index.to_string(), str::to_owned));
            }
        }
    }
    parts.join(".")
}

/// Returns the path of the value that a parser was reading when it stopped at a line and a column, both from
/// 1.
pub(super) fn path_at(text: &str, line: usize, column: usize) -> String {
    enum Level {
        Object(Option<String>),
        List(usize),
    }
    let begins: usize = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum();
    let end = (begins + column).min(text.len());
    let bytes = &text.as_bytes()[..end];
    let mut levels: Vec<Level> = Vec::new();
    let mut at = 0;
    let mut awaits_key = false;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let from = at - 1;
                while bytes.get(at).is_some_and(|&byte| byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                if let (true, Some(Level::Object(key))) = (awaits_key, levels.last_mut()) {
                    *key = text
                        .get(from..at)
                        .and_then(|key| serde_json::from_str(key).ok());
                    awaits_key = false;
                }
            }
            b'{' => {
                levels.push(Level::Object(None));
                awaits_key = true;
            }
            b'[' => levels.push(Level::List(0)),
            b'}' | b']' => {
                levels.pop();
                awaits_key = false;
            }
            // A parser may have stopped at the comma after the value.
            b',' if at < end => match levels.last_mut() {
                Some(Level::List(index)) => *index += 1,
                _ => awaits_key = true,
            },
            _ => {}
        }
    }
    let way: Vec<Step<'_>> = levels
        .iter()
        .filter_map(|level| match level {
            Level::Object(key) => key.as_deref().map(Step::Key),
            Level::List(index) => Some(Step::Index(*index)),
        })
        .collect();
    path(text, &way)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_nested_parts_are_found_and_of_missing_ones_those_around() {
        let text = "{\n \"a\": [\n  {\"b\": 1},\n  {\n\"b\":\n2}]}";
        let line = |way: &[Step<'_>]| line(text, way);
        assert_eq!(line(&[]), Some(1));
        assert_eq!(line(&[Step::Key("a"), Step::Index(0)]), Some(3));
        let second = [Step::Key("a"), Step::Index(1), Step::Key("b")];
        assert_eq!(line(&second), Some(6));
        let missing = [Step::Key("a"), Step::Index(1), Step::Key("c")];
        assert_eq!(line(&missing), Some(4));
    }

    #[test]
    fn paths_name_entries_of_lists_where_they_have_names() {
        let text = r#"{"services": [{"name": "web", "faults": [{"at": "1s"}]}, {"count": 2}]}"#;
        let path = |way: &[Step<'_>]| path(text, way);
        let services = Step::Key("services");
        let web = [
            services,
            Step::Index(0),
            Step::Key("faults"),
            Step::Index(0),
        ];
        assert_eq!(path(&web), "services.web.faults.0");
        assert_eq!(
            path(&[services, Step::Index(1), Step::Key("count")]),
            "services.1.count"
        );
        assert_eq!(path(&[]), "");
    }

    #[test]
    fn the_path_of_a_line_and_a_column_is_that_of_the_value_there() {
        #[derive(Debug, serde::Deserialize)]
        #[allow(dead_code, reason = "only errors matter")]
        struct Document {
            list: Vec<Entry>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[allow(dead_code, reason = "only errors matter")]
        struct Entry {
            name: String,
            count: u32,
        }
        for (text, expected) in [
            (r#"{"list": [{"name": "a", "count": "x"}]}"#, "list.a.count"),
            (
                r#"{"list": [{"name": "a", "count": -1, "b": 2}]}"#,
                "list.a.count",
            ),
            (
                "{\"list\": [\n{\"count\": 1,\n\"name\": 7}]}",
                "list.0.name",
            ),
            (
                r#"{"list": [{"name": "a", "count": 1}, {"name": "b,]}"}]}"#,
                "list.b,]}",
            ),
            (r#"{"list": [{"name": "a", "cuont": 1}]}"#, "list.a.cuont"),
            (r#"{"list": 3}"#, "list"),
            (r#"{"lost": 3}"#, ""),
        ] {
            let error = serde_json::from_str::<Document>(text).unwrap_err();
            let path = path_at(text, error.line(), error.column());
            assert_eq!(path, expected, "{text}: {error}");
        }
    }
}
