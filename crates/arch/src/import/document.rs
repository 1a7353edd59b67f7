//! Files and directories as documents: YAML and JSON with bounds, and options of k6 scripts.

use super::{FORMATS, Format, ImportError, k6};
use crate::input_file::read_file_text;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A document and the format that reads it.
pub(super) struct Document {
    pub(super) format: &'static dyn Format,
    /// The file name, as the user gave it.
    pub(super) file: String,
    pub(super) value: Value,
}

/// The documents of all files, and the parts that were left out, one sentence each.
#[derive(Default)]
pub(super) struct Documents {
    pub(super) read: Vec<Document>,
    pub(super) left_out: Vec<String>,
    bytes: u64,
    nodes: usize,
}

/// The maximum number of files; the following constants bound the input over all files together.
const MOST_FILES: usize = 5_000;
const MOST_TOTAL_BYTES: u64 = 128 << 20;
const MOST_DOCUMENTS: usize = 20_000;
const MOST_VALUES: usize = 2_000_000;
const MOST_DIRECTORIES_DEEP: usize = 16;
const MOST_REMARKS: usize = 200;

impl Documents {
    /// Reads files, and directories with everything below them.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Documents, ImportError> {
        let mut documents = Documents::default();
        for path in paths {
            if path.is_dir() {
                let mut files = Vec::new();
                below(path, 0, &mut files)?;
                files.sort();
                for file in &files {
                    // A directory may contain any files; unreadable files are named and left out.
                    if let Err(error) = documents.file(file) {
                        match error {
                            ImportError::TooMuch(_) => return Err(error),
                            error => documents.leave_out(error.to_string()),
                        }
                    }
                }
            } else {
                let before = documents.read.len();
                documents.file(path)?;
                if documents.read.len() == before {
                    return Err(ImportError::Unknown(path.clone()));
                }
            }
        }
        match documents.read.is_empty() {
            true => Err(ImportError::Nothing),
            false => Ok(documents),
        }
    }

    fn leave_out(&mut self, what: String) {
        if self.left_out.len() < MOST_REMARKS {
            self.left_out.push(what);
        }
    }

    fn file(&mut self, file: &Path) -> Result<(), ImportError> {
        let text = read_file_text(file).map_err(|source| ImportError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
        self.bytes += text.len() as u64;
        if self.bytes > MOST_TOTAL_BYTES {
            return Err(too_much("128 MiB of text"));
        }
        let broken = |what: String| ImportError::Broken {
            file: file.to_owned(),
            what,
        };
        let shown = file.display().to_string();
        let is_script = file
            .extension()
            .is_some_and(|end| ["js", "mjs", "ts"].iter().any(|known| end == *known));
        let values = match is_script {
            true => k6::script(&text).map(|options| options.into_iter().collect()),
            false => parse(&text),
        };
        for value in values.map_err(broken)? {
            self.value(value, file, &shown)?;
        }
        Ok(())
    }

    /// Adds a document, or the items of a list.
    fn value(&mut self, value: Value, file: &Path, shown: &str) -> Result<(), ImportError> {
        let is_list = value.get("kind").and_then(Value::as_str);
        if is_list.is_some_and(|kind| kind.ends_with("List"))
            && let Value::Object(mut list) = value
        {
            let items = list.remove("items");
            let items = items.as_ref().and_then(Value::as_array);
            for item in items.into_iter().flatten() {
                self.value(item.clone(), file, shown)?;
            }
            return Ok(());
        }
        self.nodes += size(&value);
        if self.nodes > MOST_VALUES || self.read.len() >= MOST_DOCUMENTS {
            return Err(too_much("two million values, or 20,000 documents"));
        }
        let known = FORMATS.iter().find(|format| format.knows(&value));
        let Some(&format) = known else {
            if !value.is_null() {
                let kind = value.get("kind").and_then(Value::as_str);
                let kind: String = kind.unwrap_or("no kind").chars().take(60).collect();
                let kind = kind.escape_debug();
                self.leave_out(format!(
                    "{shown}: a document of {kind} is of no known format"
                ));
            }
            return Ok(());
        };
        let value = format.prepare(value, file);
        self.read.push(Document {
            format,
            file: shown.to_owned(),
            value,
        });
        Ok(())
    }
}

fn too_much(what: &'static str) -> ImportError {
    ImportError::TooMuch(what)
}

/// Returns the number of values in a document.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Collects the files below a directory that may be manifests.
fn below(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), ImportError> {
    let unreadable = |source| ImportError::Unreadable {
        file: directory.to_owned(),
        source,
    };
    if depth > MOST_DIRECTORIES_DEEP {
        return Err(too_much("16 directories, one inside the other"));
    }
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        // Symbolic links are not followed, because they may form a cycle.
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() && !is_hidden {
            below(&path, depth + 1, files)?;
        }
        let end = path.extension().unwrap_or_default();
        let is_manifest = ["yaml", "yml", "json", "js"].iter().any(|e| end == *e);
        if kind.is_file() && is_manifest && !is_hidden {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            return Err(too_much("5,000 files"));
        }
    }
    Ok(())
}

/// Parses the documents of a text.
pub(super) fn parse(text: &str) -> Result<Vec<Value>, String> {
    if text.trim_start().starts_with('{')
        && let Ok(value) = serde_json::from_str(text)
    {
        return Ok(vec![value]);
    }
    if text.contains("{{") && text.contains("}}") && text.contains(".Values") {
        return Err("is a template of Helm; give what `helm template` prints instead".to_owned());
    }
    yaml(text)
}

#[cfg(feature = "compose")]
fn yaml(text: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 1_000_000,
            max_nodes: 1_000_000,
            max_depth: 64,
            max_documents: 10_000,
            max_aliases: 20_000,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 200_000,
            max_replay_stack_depth: 32,
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let what = error.to_string();
        let what: String = what
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(300)
            .collect();
        format!("is not valid YAML: {what}")
    })
}

#[cfg(not(feature = "compose"))]
fn yaml(_text: &str) -> Result<Vec<Value>, String> {
    Err(
        "is not JSON, and this corsair was built without YAML; build it with --features compose"
            .to_owned(),
    )
}

/// Returns the variables of a `.env` file in the same directory as a file; none if there is no such
/// file.
pub(super) fn variables(file: &Path) -> BTreeMap<String, String> {
    let beside = file.with_file_name(".env");
    let text = read_file_text(&beside).unwrap_or_default();
    let mut variables = BTreeMap::new();
    for line in text.lines().take(10_000) {
        let line = line.trim();
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        if !line.starts_with('#') {
            let value = value.trim().trim_matches(['"', '\'']);
            let value = interpolate(value, &variables);
            variables.insert(name.trim().to_owned(), value);
        }
    }
    variables
}

/// The maximum length of a text after interpolation.
const MOST_INTERPOLATED: usize = 64 << 10;

/// Replaces `$NAME`, `${NAME}` and `${NAME:-default}` in a text like docker-compose.
pub(super) fn interpolate(text: &str, variables: &BTreeMap<String, String>) -> String {
    if !text.contains('$') {
        return text.to_owned();
    }
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        if made.len() > MOST_INTERPOLATED {
            return made;
        }
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            made.push('$');
            rest = after;
        } else if let Some(inner) = rest.strip_prefix('{') {
            let (name, after) = inner.split_once('}').unwrap_or((inner, ""));
            rest = after;
            let end = name.find([':', '-', '?', '+']).unwrap_or(name.len());
            let default = name[end..].trim_start_matches(':').strip_prefix('-');
            let value = variables
                .get(&name[..end])
                .filter(|value| !value.is_empty());
            made.push_str(value.map_or(default.unwrap_or_default(), String::as_str));
        } else {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
            made.push_str(variables.get(&rest[..end]).map_or("", String::as_str));
            rest = &rest[end..];
        }
    }
    made.push_str(rest);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_as_compose_does() {
        let variables = BTreeMap::from([("HOST".to_owned(), "cart".to_owned())]);
        for (text, made) in [
            ("http://${HOST}:80", "http://cart:80"),
            ("$HOST/$NONE/", "cart//"),
            ("${NONE:-web}-${NONE-x}-${HOST:?none}", "web-x-cart"),
            ("$$HOST ${HOST", "$HOST cart"),
            ("plain", "plain"),
        ] {
            assert_eq!(interpolate(text, &variables), made, "{text}");
        }
    }
}
