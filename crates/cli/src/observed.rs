//! Messages about the output of a run.

use crate::console::complain;
use crate::options::{Options, WorkloadOptions};
use corsair_observe::{ObserveError, OutputSummary};

/// Adds the flag that requested an output to the error about this output, if the flag is known. Returns all other errors
/// unchanged.
pub fn with_flag(options: &Options, error: anyhow::Error) -> anyhow::Error {
    let Some(about) = error.downcast_ref::<ObserveError>() else {
        return error;
    };
    let collect = matches!(&options.what, WorkloadOptions::Services(services) if services.collect);
    let files = [
        ("-j", options.graph_json),
        ("-g", options.graph_ml),
        ("-c", collect),
    ];
    let asked: Vec<_> = files.iter().filter(|(_, asked)| *asked).collect();
    let flag = match (about, asked.as_slice()) {
        (ObserveError::File(_), [(flag, _)]) => Some(*flag),
        (ObserveError::Messages(_), _) => Some("-m"),
        (ObserveError::Metrics { .. }, _) => Some("--metrics"),
        (about, _) => flag_of(about),
    };
    match flag {
        Some(flag) => error.context(flag),
        None => error,
    }
}

/// Returns the flag that configures the external system to which an error refers; `None` if the
/// error refers to none.
fn flag_of(error: &ObserveError) -> Option<&'static str> {
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

/// Warns about data that other systems did not receive, and lists the files.
pub fn report_losses(observed: &OutputSummary) -> Vec<String> {
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
