//! The playground in a browser. A web worker of the page calls these functions to run a definition, to search for its
//! capacity, to compare definitions, and to control a live session.
//!
//! Everything runs on the caller's thread, with the same results as the command `corsair`. Every function takes and
//! returns text; an error is one sentence. `ci/playground.sh` builds the page.

mod answers;
mod link;
mod player;

pub use player::Player;

use wasm_bindgen::prelude::wasm_bindgen;

/// Returns the names of the built-in architectures, as a JSON list.
#[wasm_bindgen]
pub fn examples() -> String {
    let names: Vec<&str> = corsair_arch::BUILT_IN
        .iter()
        .map(|(name, _)| *name)
        .collect();
    serde_json::json!(names).to_string()
}

/// Returns the definition of a built-in architecture.
///
/// # Errors
/// If there is no architecture with this name.
#[wasm_bindgen]
pub fn example(name: &str) -> Result<String, String> {
    let found = corsair_arch::BUILT_IN
        .iter()
        .find(|(known, _)| *known == name);
    found
        .map(|(_, text)| (*text).to_owned())
        .ok_or_else(|| format!("there is no built-in architecture '{name}'"))
}

/// Returns the JSON schema of definitions.
#[wasm_bindgen]
pub fn schema() -> String {
    corsair_arch::schema().to_owned()
}

/// Checks a definition.
///
/// # Errors
/// Returns a sentence with the fault of the definition and its position.
#[wasm_bindgen]
pub fn check(definition: &str) -> Result<(), String> {
    answers::topology(definition).map(drop)
}

/// Runs a definition as `corsair -a` does, and returns the digest and the measurements of the entry points as JSON.
///
/// # Errors
/// If the definition or the duration is invalid.
#[wasm_bindgen]
pub fn run(definition: &str, seed: u64, seconds: f64) -> Result<String, String> {
    answers::run(definition, seed, seconds)
}

/// Returns the highest load at which the 99th percentile of response times stays below a limit in milliseconds, as
/// `corsair capacity --format json` prints it.
///
/// # Errors
/// If the definition or a number is invalid.
#[wasm_bindgen]
pub fn capacity(definition: &str, seed: u64, seconds: f64, limit: f64) -> Result<String, String> {
    answers::capacity(definition, seed, seconds, limit)
}

/// Compares a definition with the same definition after changes, as `corsair compare --format json` prints it. Each
/// line of `settings` is a change, `FIELD=VALUE`.
///
/// # Errors
/// If the definition, a setting or a number is invalid.
#[wasm_bindgen]
pub fn compare(
    definition: &str,
    settings: &str,
    seed: u64,
    seconds: f64,
    seeds: usize,
) -> Result<String, String> {
    answers::compare(definition, settings, seed, seconds, seeds)
}
