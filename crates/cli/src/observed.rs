//! What observing a run needs of the environment, and how its outcome is told; the same for pirates and
//! for services.

use crate::console::complain;
use anyhow::{Result, anyhow};
use corsair_observe::{Neo4j, ObserveError, Observed};

/// The database of `-n`.
///
/// # Errors
/// If the environment does not say where it is.
pub fn neo4j() -> Result<Neo4j> {
    Neo4j::from_environment().ok_or_else(|| {
        anyhow!(
            "-n: the environment says no NEO4JURL; set it, as in NEO4JURL=http://localhost:7474"
        )
    })
}

/// The flag of the other system that an error is about, if it is about one.
pub fn flag_of(error: &ObserveError) -> Option<&'static str> {
    let (ObserveError::Address { what, .. }
    | ObserveError::Unreachable { what, .. }
    | ObserveError::Refused { what, .. }
    | ObserveError::LeftOut { what, .. }) = error
    else {
        return None;
    };
    match what.to_lowercase() {
        what if what.contains("kafka") => Some("-k"),
        what if what.contains("neo4j") => Some("-n"),
        what if what.contains("zipkin") => Some("--zipkin"),
        what if what.contains("otlp") => Some("--otlp"),
        _ => None,
    }
}

/// Warns of what other systems did not take, and lists the files.
pub fn tell(observed: &Observed) -> Vec<String> {
    for loss in &observed.losses {
        complain(format!(
            "{}: {} of {} {} were lost: {}",
            loss.system, loss.lost, loss.of, loss.unit, loss.reason
        ));
    }
    let line = |file: &corsair_observe::WrittenFile| {
        format!("{} ({} {})", file.path.display(), file.count, file.unit)
    };
    observed.files.iter().map(line).collect()
}
