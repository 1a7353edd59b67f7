//! The native part of the Python module `corsair`: the parts that need Rust.
//!
//! The public interface is written in Python, in `python/corsair`. The functions here take text and numbers, release
//! the interpreter while they work, and return text, numbers and tables. An error is an exception with one sentence. A
//! panic, which would be a fault of this crate, becomes an exception too.

mod actors;
mod architecture;
mod arguments;
mod checkpointing;
mod command;
mod draws;
mod entry;
mod error;
mod interrupt;
mod live;
mod recording;
mod run;
mod saved;
mod search;
mod sim;
mod spans;
mod sweep;
mod table;

use pyo3::prelude::*;

/// The native part of the module `corsair`.
#[pymodule(gil_used = true)] // `sim::held` relies on it
mod _corsair {
    /// The version of the package.
    #[allow(non_upper_case_globals)] // Python's name
    #[pymodule_export]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_export]
    use crate::actors::{Context, Simulation};
    #[pymodule_export]
    use crate::architecture::{built_in_text, built_ins, check, find, nearest_name, schema_text};
    #[pymodule_export]
    use crate::arguments::seconds;
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::draws::{Draws, estimate};
    #[pymodule_export]
    use crate::entry::Entry;
    #[pymodule_export]
    use crate::error::{ArchitectureError, SimulationError};
    #[pymodule_export]
    use crate::live::Live;
    #[pymodule_export]
    use crate::run::{RunResults, simulate};
    #[pymodule_export]
    use crate::saved::SavedCheckpoint;
    #[pymodule_export]
    use crate::search::{capacity, compare, instances, learn};
    #[pymodule_export]
    use crate::sim::{
        AllOf, AnyOf, BaseResource, Condition, ConditionValue, Container, ContainerGet,
        ContainerPut, Environment, Event, FilterStore, FilterStoreGet, Get, Initialize,
        Interruption, PreemptiveResource, PriorityRequest, PriorityResource, PriorityStore,
        Process, Put, Release, Request, Resource, Store, StoreGet, StorePut, Timeout,
    };
    #[pymodule_export]
    use crate::sweep::Sweep;
    #[pymodule_export]
    use crate::table::Table;
}
