//! The systems that a gate compares: definitions, or manifests that are imported.

use crate::definition::{Definition, DefinitionError, read_text};
use crate::import::{Documents, ImportError, ImportOptions, Imported, import_documents};
use crate::variant::DefinitionText;
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
        let mut documents = Documents::default();
        for file in files {
            let definition = match is_manifest(file) {
                true if file.is_dir() => documents.add_directory(file).map(|()| None),
                true => documents.add(file),
                false => Ok(Some(String::new())),
            };
            let text = match definition {
                Ok(None) => continue,
                Ok(Some(text)) => text,
                // The faults of a definition are shown with their places.
                Err(ImportError::Broken { .. }) if ends_in_json(file) => String::new(),
                Err(error) => return Err(error.into()),
            };
            return match files.len() {
                1 => GateSide::defined(file, text, directory),
                _ => Err(SideError::Mixed(file.clone())),
            };
        }
        let mut imported = import_documents(documents, options)?;
        if let Some((base, name)) = base.filter(|(base, _)| !base.is_imported) {
            imported = imported.onto(&base.definition, name)?;
        }
        Ok(GateSide::imported(imported, base))
    }

    /// Reads a definition, whose text may be known.
    fn defined(file: &Path, text: String, directory: &Path) -> Result<GateSide, SideError> {
        let name = file.to_string_lossy();
        let text = match text.is_empty() {
            true => DefinitionText::find(&name, directory)?,
            false => DefinitionText::new(text, name),
        };
        let definition = read_text(text.text(), text.file())?.written().clone();
        Ok(GateSide {
            definition,
            text,
            objectives: Vec::new(),
            notes: Vec::new(),
            is_imported: false,
        })
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

/// True for directories and files that may have manifests; false for names of definitions.
fn is_manifest(file: &Path) -> bool {
    let end = file.extension().unwrap_or_default();
    let ends = ["yaml", "yml", "js", "mjs", "ts", "json"];
    file.is_dir() || ends.iter().any(|known| end == *known)
}

fn ends_in_json(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "json")
}
