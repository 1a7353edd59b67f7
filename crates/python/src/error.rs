//! Converts errors of the libraries to Python exceptions.

use corsair::RunError;
use corsair_arch::{DefinitionError, LearnError, SetupError, SimulateError};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;
use std::fmt::Display;

pyo3::create_exception!(
    corsair,
    ArchitectureError,
    PyValueError,
    "A definition that makes no sense. `path` is where, as in `services.web.count`, `line` the line of the text \
     that was read, `file` what it was read from, and `nearest` the right name that is most like a wrong one; \
     each may be None."
);
pyo3::create_exception!(
    corsair,
    SimulationError,
    pyo3::exceptions::PyRuntimeError,
    "A run that failed."
);

/// Returns an error as a `ValueError` with the error's sentence.
pub fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string().trim_end().to_owned())
}

/// Returns the error of a run as a `SimulationError` with the error's sentence.
pub fn failed(error: impl Display) -> PyErr {
    SimulationError::new_err(error.to_string().trim_end().to_owned())
}

/// Returns the exception of an invalid definition.
pub fn definition(py: Python<'_>, error: &DefinitionError) -> PyErr {
    let said = said_in_python(&error.to_string());
    match error {
        DefinitionError::NotFound { .. } => with_nearest(py, ArchitectureError::new_err(said)),
        DefinitionError::Unreadable { source, .. } => match source.kind() {
            std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(said),
            _ => PyOSError::new_err(said),
        },
        _ => {
            let raised = with_nearest(py, ArchitectureError::new_err(said));
            if let Some(place) = error.place() {
                let value = raised.value(py);
                let set = value
                    .setattr("path", &place.path)
                    .and_then(|()| value.setattr("line", place.line))
                    .and_then(|()| value.setattr("file", &place.file));
                if let Err(error) = set {
                    return error;
                }
            }
            raised
        }
    }
}

/// Returns the exception of an invalid changed definition, or of an invalid field.
pub fn definition_text(py: Python<'_>, said: &str) -> PyErr {
    with_nearest(py, ArchitectureError::new_err(said_in_python(said)))
}

/// Replaces the command's advice about flags with advice for Python.
fn said_in_python(said: &str) -> String {
    said.replace("`corsair -a ", "`").trim_end().to_owned()
}

/// Adds the attributes of an exception, which include the suggested name if the sentence has `did you mean NAME?`.
fn with_nearest(py: Python<'_>, error: PyErr) -> PyErr {
    let said = error.value(py).to_string();
    let nearest = said
        .split_once("did you mean ")
        .and_then(|(_, rest)| rest.split_once('?'))
        .map(|(name, _)| name.trim_matches('`').to_owned());
    let value = error.value(py);
    let none: Option<&str> = None;
    let set = value
        .setattr("nearest", nearest)
        .and_then(|()| value.setattr("path", none))
        .and_then(|()| value.setattr("line", none))
        .and_then(|()| value.setattr("file", none));
    match set {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// Returns the exception for a definition that cannot be run.
pub fn setup(py: Python<'_>, error: &SetupError) -> PyErr {
    match error {
        SetupError::Definition(said) => definition_text(py, said),
        other => value(other),
    }
}

/// Returns the exception for an architecture that did not run.
pub fn simulate(error: &SimulateError) -> PyErr {
    match error {
        SimulateError::Run(run) => of_run(run),
        other => value(other),
    }
}

/// Returns the exception for a failed run.
pub fn of_run(error: &RunError) -> PyErr {
    match error {
        RunError::Config(config) => value(config),
        other => failed(other),
    }
}

/// Returns the exception for traces from which nothing could be learned.
pub fn learn(error: &LearnError) -> PyErr {
    match error {
        LearnError::Simulate(error) => simulate(error),
        other => value(other),
    }
}
