//! Finds and checks definitions, which are texts, and lists the available names.

use crate::error;
use corsair_arch::{BUILT_IN, DefinitionText, read_text};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Returns the text of the architecture with this name, and its source.
#[pyfunction]
pub fn find(py: Python<'_>, name: &str, directory: PathBuf) -> PyResult<(String, String)> {
    let text = DefinitionText::find(name, &directory).map_err(|e| error::definition(py, &e))?;
    Ok((text.text().to_owned(), text.file().to_owned()))
}

/// Returns the text of a built-in architecture, and its name in errors.
#[pyfunction]
pub fn built_in_text(py: Python<'_>, name: &str) -> PyResult<(String, String)> {
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(((*text).to_owned(), format!("built-in {name}"))),
        None => {
            let names = built_ins();
            let meant = match corsair_arch::nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("expected one of {}", names.join(", ")),
            };
            let said = format!("there is no built-in architecture '{name}'; {meant}");
            Err(error::definition_text(py, &said))
        }
    }
}

/// The names of the built-in architectures.
#[pyfunction]
pub fn built_ins() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// Raises the error of an invalid definition.
#[pyfunction]
pub fn check(py: Python<'_>, text: &str, file: &str) -> PyResult<()> {
    read_text(text, file)
        .map(drop)
        .map_err(|e| error::definition(py, &e))
}

/// The JSON schema of definitions.
#[pyfunction]
pub fn schema_text() -> &'static str {
    corsair_arch::schema()
}

/// Returns the name most similar to the typed name, if there is a similar one.
#[pyfunction]
pub fn nearest_name(typed: &str, among: Vec<String>) -> Option<String> {
    let among = among.iter().map(String::as_str);
    corsair_arch::nearest(typed, among).map(str::to_owned)
}
