//! Flags stored in files.
//!
//! A configuration file is one JSON object whose keys are the long names of flags and whose
//! values are strings, numbers or booleans:
//!
//! ```json
//! {
//!   "arch": "fsm",
//!   "population": 1000,
//!   "duration": 10,
//!   "graphjson": true
//! }
//! ```
//!
//! Files that spigo has written can be read, too: the module [`spigo`] converts them.
//!
//! `-config NAME` reads `json/NAME_conf.json` in the directory of `--out`, or else `json_arch/NAME_conf.json`. If NAME
//! contains a slash or ends in `.json`, it is a path. `-saveconfig` writes `json/<arch>_conf.json`, `-saveconfig NAME`
//! writes `json/NAME_conf.json`.

mod spigo;

use crate::flags::values::Values;
use crate::flags::{FLAGS, Flag, named, nearest};
use anyhow::{Context, Result, anyhow, bail};
use corsair_arch::input_file::read_file_text;
use corsair_observe::Replacement;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Adds the contents of the file that `-config` names, if it is given.
///
/// # Errors
/// If the file does not exist, or contains invalid flags.
pub fn read(values: &mut Values) -> Result<()> {
    let Some(name) = values.given("config") else {
        return Ok(());
    };
    let (path, text) = find(name, Path::new(values.text("out")))?;
    let said: Map<String, Value> = serde_json::from_str(&text).map_err(|error| {
        anyhow!(
            "-config: {} is not a JSON object of flags: {error}; write a new one with -saveconfig",
            path.display()
        )
    })?;
    if spigo::is_spigos(&said) {
        let flags = spigo::flags(&said);
        for (name, text) in flags.with_context(|| format!("-config: {}", path.display()))? {
            if let Some(flag) = named(name) {
                values.set_from_file(flag, text, &path);
            }
        }
        return Ok(());
    }
    add(values, said, &path, "-config")
}

/// Adds the flags of a file that the command line does not set. `asked` is the flag that names the file.
///
/// # Errors
/// If the file contains invalid flags.
pub fn add(values: &mut Values, said: Map<String, Value>, path: &Path, asked: &str) -> Result<()> {
    for (key, value) in said {
        let Some(flag) = named(&key).filter(|flag| !KEPT_OUT.contains(&flag.name)) else {
            let near = nearest(
                &key,
                FLAGS
                    .iter()
                    .map(|flag| flag.name)
                    .filter(|name| !KEPT_OUT.contains(name)),
            );
            let meant = near
                .map(|near| format!("; did you mean \"{near}\"?"))
                .unwrap_or_default();
            bail!(
                "{asked}: {} has \"{key}\", which is not a flag that a file can set{meant}",
                path.display()
            );
        };
        let text = match value {
            Value::String(text) => text,
            Value::Bool(on) => on.to_string(),
            Value::Number(number) => number.to_string(),
            other => bail!(
                "{asked}: \"{key}\" in {} is {other}; write a string, a number, true or false",
                path.display()
            ),
        };
        values.add_from_file(flag, text, path);
    }
    Ok(())
}

/// Flags about configurations and sessions, which are not saved in a configuration.
const KEPT_OUT: [&str; 5] = ["config", "saveconfig", "ui", "open", "replay"];

/// Returns the path and the text of the file with this name.
fn find(name: &str, out: &Path) -> Result<(PathBuf, String)> {
    let file = format!("{name}_conf.json");
    let places = if name.contains('/') || name.ends_with(".json") {
        vec![PathBuf::from(name)]
    } else {
        vec![
            out.join("json").join(&file),
            out.join("json_arch").join(&file),
        ]
    };
    for path in &places {
        match read_file_text(path) {
            Ok(text) => return Ok((path.clone(), text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => bail!("-config: cannot read {}: {error}", path.display()),
        }
    }
    let places: Vec<String> = places
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    bail!(
        "-config: there is no {}; write one with -saveconfig",
        places.join(" and no ")
    )
}

/// Returns the flags that `keep` selects and that differ from their defaults, in the form of a configuration file.
pub fn as_json(values: &Values, arch: &str, keep: impl Fn(&Flag) -> bool) -> Map<String, Value> {
    let mut flags = Map::new();
    flags.insert("arch".to_owned(), arch.into());
    for (flag, text) in values.differing().filter(|(flag, _)| keep(flag)) {
        let value = match text.parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) if text == "true" => true.into(),
            Err(_) => text.into(),
        };
        flags.insert(flag.name.to_owned(), value);
    }
    flags
}

/// Writes the flags to the file that `-saveconfig` names, if it was given. Returns the path.
///
/// # Errors
/// If the file cannot be written.
pub fn save(values: &Values, arch: &str) -> Result<Option<PathBuf>> {
    let name = match values.switch("saveconfig") {
        Ok(false) => return Ok(None),
        Ok(true) => arch,
        Err(_) => values.text("saveconfig"),
    };
    if name.contains('/') {
        bail!("-saveconfig: '{name}' is a path; give a name, and the directory with --out");
    }
    let path = Path::new(values.text("out"))
        .join("json")
        .join(format!("{name}_conf.json"));
    let flags = as_json(values, arch, |flag| !KEPT_OUT.contains(&flag.name));
    let mut file = Replacement::begin(&path).context("-saveconfig")?;
    serde_json::to_writer_pretty(file.writer(), &flags)
        .map_err(|error| file.failed(error.into()))?;
    writeln!(file.writer()).map_err(|error| file.failed(error))?;
    file.finish()?;
    Ok(Some(path))
}
