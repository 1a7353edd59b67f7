//! The systems that a gate compares: definitions, or manifests that are imported.

use crate::definition::{Definition, DefinitionError, read_text};
use crate::import::{ImportError, ImportOptions, Imported, import};
use crate::input_file::read_file_text;
use crate::variant::DefinitionText;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A system before or after a change.
#[derive(Clone, Debug)]
pub struct GateSide {
    /// The definition of the system.
    pub definition: Definition,
    /// The text of the definition; paths in it are relative to the definition's file.
    pub text: DefinitionText,
    /// The objectives of the system's load tests, such as `p95 < 200ms`.
    pub objectives: Vec<String>,
    /// Sentences about assumptions and about parts that were left out, if manifests were imported.
    pub notes: Vec<String>,
    /// True if the system was imported from manifests.
    pub is_imported: bool,
}

/// The reasons why a system cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SideError {
    /// A definition is invalid.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// Manifests are invalid.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The files are a mixture of definitions and manifests.
    #[error(
        "{} is a definition; give one definition alone, or only manifests", .0.display()
    )]
    Mixed(PathBuf),
}

impl GateSide {
    /// Reads a definition by its name or file, or imports manifests: files, and directories of files. If
    /// `base` is a definition, manifests replace its fields; fields that no manifest states keep the values of `base`.
    ///
    /// # Errors
    /// See [`SideError`].
    pub fn read(
        files: &[PathBuf],
        directory: &Path,
        options: &ImportOptions,
        base: Option<(&GateSide, &str)>,
    ) -> Result<GateSide, SideError> {
        if let [only] = files
            && !is_manifest(only)
        {
            let text = DefinitionText::find(&only.to_string_lossy(), directory)?;
            let definition = read_text(text.text(), text.file())?.definition().clone();
            return Ok(GateSide {
                definition,
                text,
                objectives: Vec::new(),
                notes: Vec::new(),
                is_imported: false,
            });
        }
        if let Some(definition) = files.iter().find(|file| !is_manifest(file)) {
            return Err(SideError::Mixed(definition.clone()));
        }
        let mut imported = import(files, options)?;
        if let Some((base, name)) = base.filter(|(base, _)| !base.is_imported) {
            imported = imported.onto(&base.definition, name)?;
        }
        Ok(GateSide::imported(imported, base))
    }

    fn imported(imported: Imported, base: Option<(&GateSide, &str)>) -> GateSide {
        let Imported {
            definition,
            assumed,
            left_out,
            objectives,
            ..
        } = imported;
        let written = definition.to_text();
        let below = base.filter(|(base, _)| !base.is_imported);
        // The base's curves and recorded arrivals have paths relative to its file.
        let file = below.map_or("the imported definition", |(base, _)| base.text.file());
        GateSide {
            text: DefinitionText::new(written, file),
            definition,
            objectives,
            notes: assumed.into_iter().chain(left_out).collect(),
            is_imported: true,
        }
    }
}

/// True for directories and files that are imported; false for names and files of definitions.
fn is_manifest(file: &Path) -> bool {
    let end = file.extension().unwrap_or_default();
    if file.is_dir()
        || ["yaml", "yml", "js", "mjs", "ts"]
            .iter()
            .any(|known| end == *known)
    {
        return true;
    }
    if end != "json" {
        return false;
    }
    // Only definitions have a list of services. A file that cannot be read is refused later, as a definition.
    let value = read_file_text(file).ok();
    let value = value.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    value.is_some_and(|value| {
        value.get("arch").is_none() && !value.get("services").is_some_and(Value::is_array)
    })
}
