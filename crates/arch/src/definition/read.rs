//! Reads and checks a definition by its name.

use super::check::{self, CheckedDefinition, Problem};
use super::locate::{self, Location, Step};
use super::{BUILT_IN, Definition};
use crate::input_file::{MOST_BYTES, read_bytes};
use crate::nearest::{did_you_mean, nearest};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The reasons why a definition could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// Neither a file nor a built-in definition has that name.
    #[error(
        "there is no architecture '{name}': no {} and no built-in of that name{meant}", file.display()
    )]
    NotFound {
        /// The requested name.
        name: String,
        /// The file that does not exist.
        file: PathBuf,
        /// The nearest name, formatted as the end of a sentence.
        meant: String,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The text ends too early, is not valid JSON, or does not have the structure of a definition.
    #[error("{at}: {what}")]
    Broken {
        /// The position.
        at: Box<Location>,
        /// The fault and its remedy.
        what: String,
    },
    /// The text has the structure of a definition, but its content is not valid.
    #[error("{at}: {problem}")]
    Wrong {
        /// The position.
        at: Box<Location>,
        /// The fault.
        problem: Problem,
    },
}

impl DefinitionError {
    /// Removes the line, because lines of a generated definition are not lines of the user's file.
    pub(crate) fn without_line(self) -> DefinitionError {
        match self {
            DefinitionError::Wrong { mut at, problem } => {
                at.line = None;
                DefinitionError::Wrong { at, problem }
            }
            other => other,
        }
    }

    /// Returns the position of the fault, if it was found.
    pub fn place(&self) -> Option<&Location> {
        match self {
            DefinitionError::Broken { at, .. } | DefinitionError::Wrong { at, .. } => Some(at),
            DefinitionError::NotFound { .. } | DefinitionError::Unreadable { .. } => None,
        }
    }
}

/// Reads the definition of this name: `<directory>/<name>_arch.json` if there is such a file, else
/// the built-in of that name. A name that ends in `.json` is a path.
///
/// # Errors
/// See [`DefinitionError`].
pub fn read(name: &str, directory: &Path) -> Result<CheckedDefinition, DefinitionError> {
    let (text, file) = text_of(name, directory)?;
    read_text(&text, &file)
}

/// Returns the text of the definition with this name, and its source: a path or `built-in NAME`.
pub(crate) fn text_of(name: &str, directory: &Path) -> Result<(String, String), DefinitionError> {
    let file = if name.ends_with(".json") {
        PathBuf::from(name)
    } else {
        directory.join(format!("{name}_arch.json"))
    };
    match read_bytes(&file, MOST_BYTES) {
        Ok(bytes) => {
            let shown = file.display().to_string();
            let text = String::from_utf8(bytes).map_err(|error| {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
                broken(
                    &shown,
                    line,
                    "the text is not UTF-8; save the file as UTF-8",
                )
            })?;
            Ok((text, shown))
        }
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => {
            let built_in = BUILT_IN.iter().find(|(known, _)| *known == name);
            match built_in {
                Some((_, text)) => Ok(((*text).to_owned(), format!("built-in {name}"))),
                None => Err(DefinitionError::NotFound {
                    name: name.to_owned(),
                    meant: meant(name, directory),
                    file,
                }),
            }
        }
        Err(source) => Err(DefinitionError::Unreadable { file, source }),
    }
}

/// Suggests names of files in the directory and of built-in definitions, formatted as the end of a sentence.
fn meant(name: &str, directory: &Path) -> String {
    let mut names: Vec<String> = BUILT_IN
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    names.extend(["fsm", "migration"].map(str::to_owned));
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if let Some(name) = entry.file_name().to_str()
            && let Some(name) = name.strip_suffix("_arch.json")
        {
            names.push(name.to_owned());
        }
    }
    match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("; did you mean `corsair -a {near}`?"),
        None => format!("; expected one of {}", names.join(", ")),
    }
}

/// Reads a definition from its text. `file` is the name used in errors.
///
/// # Errors
/// See [`DefinitionError`].
///
/// # Examples
/// ```
/// let text = r#"{
///   "arch": "shop",
///   "services": [
///     {"name": "db", "package": "store"},
///     {"name": "web", "package": "karyon", "dependencies": ["bd"]},
///     {"name": "www", "package": "denominator", "dependencies": ["web"]}
///   ]
/// }"#;
/// let error = corsair_arch::read_text(text, "shop.json").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "shop.json:5: service 'web' depends on 'bd', which is not a service; did you mean db?"
/// );
/// assert!(corsair_arch::read_text(&text.replace("bd", "db"), "shop.json").is_ok());
/// ```
pub fn read_text(text: &str, file: &str) -> Result<CheckedDefinition, DefinitionError> {
    // Some editors begin a file with a byte-order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let definition: Definition = serde_json::from_str(text).map_err(|error| {
        let line = error.line().max(1);
        if error.is_eof() {
            return broken(file, line, "the text is incomplete; the file is cut off");
        }
        let said = error.to_string();
        let end = said.rfind(" at line ").unwrap_or(said.len());
        if error.classify() == serde_json::error::Category::Syntax {
            return broken(
                file,
                line,
                &format!("this is not valid JSON: {}", &said[..end]),
            );
        }
        let said = &said[..end];
        DefinitionError::Broken {
            at: Box::new(Location {
                file: file.to_owned(),
                line: Some(line),
                path: locate::path_at(text, line, error.column()),
            }),
            what: format!("this is not a definition: {said}{}", meant_of(said)),
        }
    })?;
    let place = |way: &[Step<'_>]| {
        Box::new(Location {
            file: file.to_owned(),
            line: locate::line(text, way),
            path: locate::path(text, way),
        })
    };
    if let Some((way, key, what)) = unknown_key(text) {
        let mut at = place(&way);
        if !at.path.is_empty() {
            at.path.push('.');
        }
        at.path.push_str(&key);
        return Err(DefinitionError::Broken { at, what });
    }
    let base = Path::new(file).parent().unwrap_or(Path::new("."));
    check::check(definition, base).map_err(|(problem, way)| DefinitionError::Wrong {
        at: place(&way),
        problem,
    })
}

/// Suggests the remedy of an error of serde, formatted as the end of a sentence: to add the field, or the nearest of the
/// names that serde expected.
fn meant_of(said: &str) -> String {
    if said.starts_with("missing field ") {
        return "; add it".to_owned();
    }
    let mut names = said.split('`').skip(1).step_by(2);
    match names.next() {
        Some(typed) if said.starts_with("unknown ") => did_you_mean(typed, names),
        _ => String::new(),
    }
}

fn broken(file: &str, line: usize, what: &str) -> DefinitionError {
    DefinitionError::Broken {
        at: Box::new(Location {
            file: file.to_owned(),
            line: Some(line),
            path: String::new(),
        }),
        what: what.to_owned(),
    }
}

const KEYS: [&str; 13] = [
    "arch",
    "version",
    "description",
    "args",
    "date",
    "victim",
    "places",
    "network",
    "machines",
    "load",
    "faults",
    "links",
    "services",
];

const SERVICE_KEYS: [&str; 25] = [
    "name",
    "machine",
    "instance",
    "container",
    "process",
    "package",
    "regions",
    "count",
    "dependencies",
    "latency",
    "service_time",
    "concurrency",
    "error_rate",
    "queue",
    "processors",
    "time_slice",
    "rate_limit",
    "endpoints",
    "calls",
    "autoscaler",
    "health_check",
    "faults",
    "useCustomGuesstimate",
    "guesstimateType",
    "guesstimateValue",
];

/// Finds the first unknown key. Keys that begin with `x-` belong to other tools and are ignored.
fn unknown_key(text: &str) -> Option<(Vec<Step<'static>>, String, String)> {
    type Keys<'a> = BTreeMap<String, &'a RawValue>;
    let unknown = |keys: &Keys<'_>, known: &[&'static str]| {
        let mut keys = keys.keys();
        keys.find(|key| !known.contains(&key.as_str()) && !key.starts_with("x-"))
            .map(|key| {
                let shown = key.escape_debug();
                let what = match did_you_mean(key, known.iter().copied()) {
                    meant if meant.is_empty() => format!(
                        "there is no key \"{shown}\"; expected one of {}, or for a note a key that begins with x-",
                        known.join(", ")
                    ),
                    meant => format!("there is no key \"{shown}\"{meant}"),
                };
                (key.clone(), what)
            })
    };
    let mut keys: Keys<'_> = serde_json::from_str(text).ok()?;
    // For editors: the address of the schema.
    keys.remove("$schema");
    if let Some((key, what)) = unknown(&keys, &KEYS) {
        return Some((Vec::new(), key, what));
    }
    let services: Vec<&RawValue> = serde_json::from_str(keys.get("services")?.get()).ok()?;
    services.iter().enumerate().find_map(|(index, service)| {
        let keys: Keys<'_> = serde_json::from_str(service.get()).ok()?;
        let (key, what) = unknown(&keys, &SERVICE_KEYS)?;
        Some((vec![Step::Key("services"), Step::Index(index)], key, what))
    })
}
