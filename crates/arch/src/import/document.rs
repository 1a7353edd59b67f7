//! Files and directories as documents: YAML and JSON with bounds, and options of k6 scripts.

use super::{FORMATS, Format, ImportError, k6, shortened};
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
pub(crate) struct Documents {
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
                documents.add_directory(path)?;
            } else if documents.add(path)?.is_some() {
                return Err(ImportError::IsDefinition(path.clone()));
            }
        }
        Ok(documents)
    }

    /// Adds the documents of all files below a directory. Files that cannot be read are named and left out.
    pub(crate) fn add_directory(&mut self, path: &Path) -> Result<(), ImportError> {
        let mut files = Vec::new();
        below(path, 0, &mut files)?;
        files.sort();
        for file in &files {
            match self.file(file) {
                Ok(None) => {}
                Ok(Some(_)) => self.leave_out(format!("{} is a definition", file.display())),
                Err(error @ ImportError::TooMuch(_)) => return Err(error),
                Err(error) => self.leave_out(error.to_string()),
            }
        }
        Ok(())
    }

    /// Adds the documents of a file. If the file is a definition, returns its text instead.
    pub(crate) fn add(&mut self, path: &Path) -> Result<Option<String>, ImportError> {
        let before = self.read.len();
        let definition = self.file(path)?;
        match definition.is_none() && self.read.len() == before {
            true => Err(ImportError::Unknown(path.to_owned())),
            false => Ok(definition),
        }
    }

    fn leave_out(&mut self, what: String) {
        if self.left_out.len() < MOST_REMARKS {
            self.left_out.push(what);
        }
    }

    /// Reads the text of a file.
    pub(super) fn text(file: &Path) -> Result<String, ImportError> {
        read_file_text(file).map_err(|source| ImportError::Unreadable {
            file: file.to_owned(),
            source,
        })
    }

    fn file(&mut self, file: &Path) -> Result<Option<String>, ImportError> {
        let text = Documents::text(file)?;
        self.bytes += text.len() as u64;
        if self.bytes > MOST_TOTAL_BYTES {
            return Err(too_much("128 MiB of text"));
        }
        let broken = |what: String| ImportError::Broken {
            file: file.to_owned(),
            what,
        };
        let shown = file.display().to_string();
        let ends_in = |ends: &[&str]| {
            let end = file.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| ends.contains(&end))
        };
        let is_script = ends_in(&["js", "mjs", "ts"]);
        let values = match is_script {
            true => k6::script(&text).map(|options| {
                let (options, left_out) = options.unzip();
                for field in left_out.into_iter().flatten() {
                    let field = shortened(&field);
                    self.leave_out(format!(
                        "{shown}: '{field}' of the options is not a literal"
                    ));
                }
                options.into_iter().collect()
            }),
            false => parse(&text, ends_in(&["json"])),
        };
        let values = values.map_err(broken)?;
        if let [only] = values.as_slice()
            && is_definition(only)
        {
            return Ok(Some(text));
        }
        for value in values {
            self.value(value, file, &shown)?;
        }
        Ok(None)
    }

    /// Adds a document, or the items of a list.
    fn value(&mut self, value: Value, file: &Path, shown: &str) -> Result<(), ImportError> {
        let kind = value.get("kind").and_then(Value::as_str);
        let is_list =
            kind.is_some_and(|kind| kind.ends_with("List")) && value.get("items").is_some();
        let value = match value {
            Value::Object(mut list) if is_list => {
                if let Some(Value::Array(items)) = list.remove("items") {
                    for item in items {
                        self.value(item, file, shown)?;
                    }
                }
                if list.keys().all(|key| key == "kind" || key == "apiVersion") {
                    return Ok(());
                }
                list.insert("kind".to_owned(), LIST.into());
                Value::Object(list)
            }
            value => value,
        };
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
        let value = format.prepare(value, file).map_err(too_much)?;
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

/// True for definitions, which have a list of services; manifests have none.
fn is_definition(value: &Value) -> bool {
    let is_list = value.get("services").is_some_and(Value::is_array);
    is_list || value.get("arch").is_some() && value.get("apiVersion").is_none()
}

/// Returns the documents of a text in YAML or JSON.
pub(super) fn parse(text: &str, is_json: bool) -> Result<Vec<Value>, String> {
    if is_json || text.trim_start().starts_with('{') {
        if values_in(text) > MOST_VALUES {
            return Err("has more than two million values; give a part of it".to_owned());
        }
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        match values.collect::<Result<_, _>>() {
            Ok(values) => return Ok(values),
            Err(error) if is_json => return Err(format!("is not valid JSON: {error}")),
            Err(_) => {}
        }
    }
    if text.contains("{{") && text.contains("}}") && text.contains(".Values") {
        return Err("is a template of Helm; give what `helm template` prints instead".to_owned());
    }
    yaml(text)
}

/// Returns the maximum number of values that a text in JSON can have, without parsing it.
fn values_in(text: &str) -> usize {
    let (mut count, mut is_text, mut is_escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b',' | b'[' | b'{' if !is_text => count += 1,
            _ => {}
        }
    }
    count
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

/// The kind of the fields around the documents of a list.
pub(super) const LIST: &str = "List";

/// The maximum number of bytes of all texts of a document with variables, after their replacement.
pub(super) const MOST_REPLACED: usize = 16 << 20;

/// Variables, and the number of bytes that may still be produced by replacing them.
pub(super) struct Variables {
    values: BTreeMap<String, String>,
    left: usize,
}

impl Variables {
    pub(super) fn get(&self, name: &str) -> Option<&String> {
        self.values.get(name)
    }

    /// Replaces `$NAME`, `${NAME}` and `${NAME:-default}` in a text like docker-compose. An error names the bound
    /// that is exceeded.
    pub(super) fn interpolate(&mut self, text: String) -> Result<String, &'static str> {
        if !text.contains('$') {
            return Ok(text);
        }
        let made = interpolate(&text, &self.values);
        self.left = self.left.saturating_sub(made.len());
        match self.left {
            0 => Err("16 MiB of texts with variables"),
            _ => Ok(made),
        }
    }
}

/// Returns the variables of a `.env` file in the same directory as a file; none if there is no such
/// file.
pub(super) fn variables(file: &Path) -> Variables {
    let beside = file.with_file_name(".env");
    let text = read_file_text(&beside).unwrap_or_default();
    let mut variables = Variables {
        values: BTreeMap::new(),
        left: MOST_REPLACED,
    };
    for line in text.lines().take(10_000) {
        let line = line.trim();
        let Some((name, value)) = line.split_once('=') else {
            continue;
        };
        if !line.starts_with('#') {
            let value = value.trim().trim_matches(['"', '\'']);
            let Ok(value) = variables.interpolate(value.to_owned()) else {
                break;
            };
            variables.values.insert(name.trim().to_owned(), value);
        }
    }
    variables
}

/// The maximum length of a text after interpolation.
const MOST_INTERPOLATED: usize = 64 << 10;

fn interpolate(text: &str, variables: &BTreeMap<String, String>) -> String {
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
