//! Imports the manifests of a system as a definition.
//!
//! | module | what it does |
//! |---|---|
//! | [`document`] | reads files and directories, within bounds |
//! | [`kubernetes`], [`istio`], [`envoy`], [`compose`], [`k6`] | a format each: what it reads into a [`System`] |
//! | [`system`] | the contents that all formats share |
//! | [`calls`], [`build`] | who calls whom, and the definition that follows |
//! | [`overlay`], [`traces`] | another definition, such as a learned one, with the replicas, limits and policies of the manifests |
//!
//! A format reads through [`item::Item`], which records what was read. All other fields are reported; `IMPORT.md` has the
//! table of fields, which [`fields`] reads.

mod build;
mod calls;
mod compose;
mod document;
mod envoy;
mod fields;
mod istio;
mod item;
mod k6;
mod kubernetes;
mod overlay;
mod patch;
mod quantity;
mod role;
mod system;
mod traces;

#[cfg(feature = "compose")]
pub use compose::architecture::compose;
pub use fields::{Unused, field_table};
pub use patch::{ManifestPatch, PatchFormat, manifest_patch};

use crate::definition::{Definition, DefinitionError, read_text};
use crate::duration_text::TimeSpan;
use crate::learn::LearnError;
use crate::nearest::did_you_mean;
pub(crate) use document::Documents;
use fields::{Looked, UnusedFields};
use item::{Item, Log};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::System;

/// A format of manifests.
trait Format: Sync {
    /// Returns the name of the format in reports and documentation.
    fn name(&self) -> &'static str;
    /// True if a document has this format.
    fn knows(&self, document: &Value) -> bool;
    /// Returns the kind and the name of a document.
    fn title(&self, document: &Value) -> (String, String);
    /// Returns the document with its variables replaced. An error names the bound that is exceeded.
    fn prepare(&self, document: Value, _file: &Path) -> Result<Value, &'static str> {
        Ok(document)
    }
    /// Reads a document. An error is the end of a sentence about the document.
    fn read(&self, document: Item, file: &Path, system: &mut System) -> Result<(), String>;
}

/// All formats. A document is read by the first format that recognises it.
const FORMATS: &[&dyn Format] = &[
    &istio::Istio,
    &kubernetes::Kubernetes,
    &envoy::Envoy,
    &compose::Compose,
    &k6::K6,
];

/// Values that manifests do not contain.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportOptions {
    /// The name of the architecture.
    pub name: String,
    /// The processor time of a request at each service, exponentially distributed.
    pub work: Duration,
    /// Requests per second at each entry point for which the manifests contain no load.
    pub rate: f64,
    /// Traces of the same system, from which its structure and times are learned.
    pub traces: Vec<PathBuf>,
    /// Calls that no field of the manifests states: the caller and the called service of each.
    pub calls: Vec<(String, String)>,
}

impl Default for ImportOptions {
    /// Returns options with 2 ms of work, 50 requests per second and no traces.
    fn default() -> Self {
        ImportOptions {
            name: "imported".to_owned(),
            work: Duration::from_millis(2),
            rate: 50.0,
            traces: Vec::new(),
            calls: Vec::new(),
        }
    }
}

/// The result of an import.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The definition, which has been checked.
    pub definition: Definition,
    /// The number of documents that were read.
    pub documents: usize,
    /// The calls between services, each with the field that shows it.
    pub calls: Vec<ImportedCall>,
    /// Assumptions about what the manifests do not contain, one sentence each.
    pub assumed: Vec<String>,
    /// Documents and parts that were left out, one sentence each.
    pub left_out: Vec<String>,
    /// Every field that had no effect.
    pub unused: Vec<Unused>,
    /// The objectives that load tests state, such as `p95 < 200ms`.
    pub objectives: Vec<String>,
}

impl Imported {
    /// Combines the imported manifests with another definition of the same system, which remarks call `name`. The
    /// structure, times and load come from the other definition; replicas, limits and policies come from the manifests.
    /// Services that only the manifests have are added.
    ///
    /// # Errors
    /// If the result is not a valid definition.
    pub fn onto(mut self, base: &Definition, name: &str) -> Result<Imported, DefinitionError> {
        let below = overlay::Below {
            definition: base.clone(),
            name,
            is_recorded: base.args.contains(RECORDED),
            adds: true,
        };
        overlay::lay(&mut self, below);
        read_text(&self.definition.to_text(), name).map_err(DefinitionError::without_line)?;
        Ok(self)
    }
}

/// The mark, in a definition's `args`, of times that were learned from traces.
const RECORDED: &str = "--traces";

/// A call that was found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ImportedCall {
    /// The calling service.
    pub from: String,
    /// The called service.
    pub to: String,
    /// The field that shows the call, or the reason why it is assumed.
    pub because: String,
    /// True if no field shows the call.
    pub is_assumed: bool,
    /// True if the caller does not wait for an answer.
    pub is_sent: bool,
}

/// The reasons why an import failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", file.display())]
    Unreadable {
        /// The path of the unreadable file.
        file: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is invalid.
    #[error("{} {what}", file.display())]
    Broken {
        /// The path of the invalid file.
        file: PathBuf,
        /// The fault and its remedy.
        what: String,
    },
    /// A file has no document of a known format.
    #[error(
        "{} has no document of a known format; give manifests of Kubernetes, Istio or Envoy, docker-compose files, or scripts of k6", .0.display()
    )]
    Unknown(PathBuf),
    /// A file is a definition.
    #[error("{} is a definition, not a manifest; run it with corsair -a {}", .0.display(), .0.display())]
    IsDefinition(PathBuf),
    /// No file has a known document.
    #[error(
        "the files have no document of a known format; give manifests of Kubernetes, Istio or Envoy, docker-compose files, or scripts of k6"
    )]
    Nothing,
    /// The files exceed a limit on their size or number.
    #[error("the files have more than {0}; give a part of them")]
    TooMuch(&'static str),
    /// A document has a wrong value.
    #[error("{file}: {kind} '{name}': {what}")]
    Wrong {
        /// The name of the file that contains the document.
        file: String,
        /// The kind of document.
        kind: String,
        /// The name of the document.
        name: String,
        /// The wrong value, and what is expected.
        what: String,
    },
    /// A call that the user states does not name two services of the system.
    #[error("--call: {0}")]
    Call(String),
    /// The documents describe no service.
    #[error(
        "the files describe no service; give Deployments or StatefulSets, or the services of a docker-compose file"
    )]
    NoServices,
    /// The traces cannot be learned from.
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// The definition is refused.
    #[error("what was imported cannot be used: {0}")]
    Definition(#[from] DefinitionError),
}

/// The maximum number of workloads, over all files.
const MOST_WORKLOADS: usize = 5_000;
/// The maximum number of scenarios, over all files.
const MOST_SCENARIOS: usize = 200;

/// Reads manifests and combines them into one definition.
///
/// # Errors
/// See [`ImportError`].
pub fn import(files: &[PathBuf], options: &ImportOptions) -> Result<Imported, ImportError> {
    import_documents(Documents::read(files)?, options)
}

/// Combines documents that were read into one definition.
pub(crate) fn import_documents(
    documents: Documents,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    if documents.read.is_empty() {
        return Err(ImportError::Nothing);
    }
    let values = || documents.read.iter().map(|document| &document.value);
    let mut system = System::default();
    system.repeated = kubernetes::repeated_names(values());
    for document in &documents.read {
        let (kind, name) = document.format.title(&document.value);
        let namespace = kubernetes::namespace(&document.value);
        namespace.clone_into(&mut system.namespace);
        let log = system.log.clone();
        let item = Item::new(&document.value, &log);
        let read = document
            .format
            .read(item, Path::new(&document.file), &mut system);
        read.map_err(|what| ImportError::Wrong {
            file: document.file.clone(),
            kind: shortened(&kind),
            name: shortened(&name),
            what,
        })?;
        if system.workloads.len() > MOST_WORKLOADS {
            return Err(ImportError::TooMuch("5,000 workloads"));
        }
        if system.scenarios.len() > MOST_SCENARIOS {
            return Err(ImportError::TooMuch("200 scenarios"));
        }
    }
    state_calls(&mut system, &options.calls)?;
    let log = system.log.clone();
    let mut imported = build::build(system, options)?;
    imported.documents = documents.read.len();
    imported.unused = without_effect(&documents, &log);
    imported.left_out.extend(documents.left_out);
    if !options.traces.is_empty() {
        traces::learn_from(&mut imported, options)?;
    }
    // Checks that the written definition can be read again and run.
    let written = imported.definition.to_text();
    read_text(&written, "the imported definition").map_err(DefinitionError::without_line)?;
    Ok(imported)
}

/// Adds calls that the user states, from a workload to a workload or a host.
fn state_calls(system: &mut System, calls: &[(String, String)]) -> Result<(), ImportError> {
    system.namespace.clear();
    for (from, to) in calls {
        let workloads = || system.workloads.iter().map(|one| one.name.as_str());
        let hosts = || workloads().chain(system.hosts.keys().map(String::as_str));
        let unknown = match workloads().any(|name| name == from) {
            false => Some((from, did_you_mean(from, workloads()))),
            true if hosts().any(|name| name == to) => None,
            true => Some((to, did_you_mean(to, hosts()))),
        };
        if let Some((name, meant)) = unknown {
            let name = shortened(name);
            return Err(ImportError::Call(format!(
                "'{name}' is not a service of the manifests{meant}"
            )));
        }
        let link = system::Link {
            host: to.clone(),
            place: "--call",
        };
        system.workload(from).links.push(link);
    }
    Ok(())
}

/// Returns the fields of all documents that had no effect.
fn without_effect(documents: &Documents, log: &Log) -> Vec<Unused> {
    let mut unused = UnusedFields::default();
    for document in &documents.read {
        let (kind, name) = document.format.title(&document.value);
        let looked = Looked {
            format: document.format.name(),
            kind: &kind,
            name: &name,
            fields: &fields::FIELDS,
            log,
        };
        unused.add(&looked, &document.value);
    }
    unused.into_sorted()
}

/// Shortens a text of a document for a message.
fn shortened(text: &str) -> String {
    let text: String = text.chars().take(60).collect();
    text.escape_debug().to_string()
}

/// Converts seconds to a time, if definitions can have it.
fn seconds(seconds: f64) -> Option<TimeSpan> {
    let is_time = (0.0..=366.0 * 24.0 * 3600.0).contains(&seconds);
    is_time.then(|| TimeSpan(Duration::from_secs_f64(seconds)))
}

#[cfg(all(test, feature = "compose"))]
mod tests;
