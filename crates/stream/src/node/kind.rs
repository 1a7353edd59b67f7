//! A kind of node in the language: its names and its parser.

use super::definition::AnyDefinition;
use crate::language::{Call, Parsed, Program};

/// A kind of node in the language.
pub(crate) struct Kind {
    /// The names in texts; the first one is canonical.
    pub(crate) names: &'static [&'static str],
    /// The properties that may follow the node after a `.`.
    pub(crate) properties: &'static [&'static str],
    /// Parses the node's arguments and properties, after its name.
    pub(crate) parse: for<'t> fn(&mut Program<'t>, &mut Call<'t>) -> Parsed<AnyDefinition>,
}
