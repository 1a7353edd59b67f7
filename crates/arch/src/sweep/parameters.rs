//! The description of a sweep.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format of a sweep's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputFormat {
    /// CSV, with a header.
    Csv,
    /// JSON objects, one per line.
    Json,
}

impl OutputFormat {
    /// Returns the format for the extension of a file name.
    pub fn of(path: &Path) -> OutputFormat {
        let is_json = |ending: &str| ["json", "jsonl", "ndjson"].contains(&ending);
        let ending = path.extension().and_then(|ending| ending.to_str());
        if ending.is_some_and(is_json) {
            OutputFormat::Json
        } else {
            OutputFormat::Csv
        }
    }
}

/// All parameters on which the lines of a sweep depend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepParameters {
    /// A checksum that distinguishes definitions, loads and times.
    pub definition: String,
    /// Each field with its values in text form.
    pub fields: Vec<(String, Vec<String>)>,
    /// The number of seeds for each point.
    pub seeds: usize,
    /// The first seed.
    pub first_seed: u64,
    /// The format of the file.
    pub format: OutputFormat,
}
