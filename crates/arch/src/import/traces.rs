//! Combines traces with manifests: the structure is learned from the traces, and the replicas, limits and policies come
//! from the manifests.

use super::overlay::{Below, lay};
use super::{ImportOptions, Imported, LearnError};
use crate::learn::learn;

/// Replaces the structure and times of the import by the structure and times learned from traces.
pub(super) fn learn_from(
    imported: &mut Imported,
    options: &ImportOptions,
) -> Result<(), LearnError> {
    let learned = learn(&options.traces, &options.name)?;
    let below = Below {
        definition: learned.definition,
        name: "the traces",
        is_recorded: true,
        adds: false,
    };
    lay(imported, below);
    imported.assumed.extend(learned.remarks);
    imported.calls.clear();
    Ok(())
}
