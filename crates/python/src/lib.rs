//! The native part of the Python module `corsair`: what Python cannot do by itself.
//!
//! Whatever people meet is written in Python, in `python/corsair`; here are functions that take text and
//! numbers, release the interpreter while they work, and give text, numbers and tables. An error is an
//! exception with one sentence; a panic would be a fault of this crate, and is an exception as well.
#![forbid(unsafe_code)]

mod actors;
mod architecture;
mod arguments;
mod command;
mod entry;
mod error;
mod interrupt;
mod live;
mod recording;
mod run;
mod saved;
mod search;
mod spans;
mod sweep;
mod table;

use pyo3::prelude::*;

/// The native part of the module `corsair`.
#[pymodule]
mod _corsair {
    #[pymodule_export]
    use crate::actors::{Context, Simulation};
    #[pymodule_export]
    use crate::architecture::{built_in_text, built_ins, check, find, nearest_name, schema_text};
    #[pymodule_export]
    use crate::arguments::seconds;
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::entry::Entry;
    #[pymodule_export]
    use crate::error::{ArchitectureError, SimulationError};
    #[pymodule_export]
    use crate::live::Live;
    #[pymodule_export]
    use crate::run::{Ran, simulate};
    #[pymodule_export]
    use crate::saved::Saved;
    #[pymodule_export]
    use crate::search::{capacity, compare, instances, learn};
    #[pymodule_export]
    use crate::sweep::Sweep;
    #[pymodule_export]
    use crate::table::Table;
}
