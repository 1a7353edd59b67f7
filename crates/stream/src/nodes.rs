//! The kinds of nodes, one file each.
//!
//! To add one, write its file and add a line to the list below; `ARCHITECTURE.md` has the recipe.

macro_rules! kinds {
    ($($(#[$feature:meta])? $module:ident),* $(,)?) => {
        $($(#[$feature])? pub(crate) mod $module;)*

        /// All kinds of nodes, in the order in which they are listed to users.
        pub(crate) static KINDS: &[&Kind] = &[$($(#[$feature])? &$module::KIND),*];
    };
}

kinds! {
    from, filter, group_by, window, barrier, aggregate, top, holt_winters, eval, default, delete, derivative, running, state, change_detect, sample,
    shift, flatten, combine, stats, deadman, union, join, alert, log, http_out, http_post,
    influxdb_out, #[cfg(feature = "kafka")] kafka_out,
}

/// Windows with Kapacitor's semantics: `window` without a period in its parentheses.
pub(crate) mod buffer;

mod moments;

/// The types of the nodes' properties, which a pipeline contains.
pub(crate) mod definitions {
    pub use super::aggregate::{Aggregate, Aggregation};
    pub use super::alert::{AddedColumn, Alert, AlertService};
    pub use super::barrier::Barrier;
    pub use super::buffer::Buffer;
    pub use super::change_detect::ChangeDetect;
    pub use super::combine::Combine;
    pub use super::default::Default;
    pub use super::delete::Delete;
    pub use super::derivative::Derivative;
    pub use super::eval::{Eval, Keep};
    pub use super::filter::Where;
    pub use super::flatten::Flatten;
    pub use super::group_by::GroupBy;
    pub use super::holt_winters::HoltWinters;
    pub use super::http_out::HttpOut;
    pub use super::http_post::HttpPost;
    pub use super::influxdb_out::InfluxdbOut;
    pub use super::join::{Fill, Join};
    #[cfg(feature = "kafka")]
    pub use super::kafka_out::KafkaOut;
    pub use super::log::Log;
    pub use super::running::{Running, RunningFunction};
    pub use super::sample::Sample;
    pub use super::shift::Shift;
    pub use super::state::TrackState;
    pub use super::stats::Stats;
    pub use super::top::Top;
    pub use super::union::Union;
    pub use super::window::Window;
    pub use crate::node::post_to::PostTo;
}

use crate::node::Kind;

/// Returns the kind with this name.
pub(crate) fn named(name: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|kind| kind.names.contains(&name))
        .copied()
}

/// Returns the names of all kinds.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().flat_map(|kind| kind.names.iter().copied())
}
