//! User-defined regions and zones.

use corsair_observe::{Places, PlacesError};
use serde::{Deserialize, Serialize};

/// Names and addresses of regions and zones. Default: spigo's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlacesDefinition {
    /// The names of regions, in the order in which runs use them. Default: spigo's six. Example: `["paris", "rome"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions: Vec<String>,
    /// The names of the zones of each region. Default: zoneA, zoneB and zoneC. Example: `["east", "west"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// The first two numbers of addresses, for each zone of each region, for example 10.1. Default: spigo's. Example:
    /// `[["10.1", "10.2"], ["10.3", "10.4"]]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<Vec<String>>,
}

impl PlacesDefinition {
    /// True if no names and addresses are set.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty() && self.zones.is_empty() && self.addresses.is_empty()
    }

    /// Returns these places; empty lists are replaced by those of `others`.
    #[must_use]
    pub fn or(&self, others: &PlacesDefinition) -> PlacesDefinition {
        fn first<T: Clone>(own: &[T], other: &[T]) -> Vec<T> {
            if own.is_empty() { other } else { own }.to_vec()
        }
        PlacesDefinition {
            regions: first(&self.regions, &others.regions),
            zones: first(&self.zones, &others.zones),
            addresses: first(&self.addresses, &others.addresses),
        }
    }

    /// Builds the regions and zones.
    ///
    /// # Errors
    /// See [`PlacesError`].
    pub fn places(&self) -> Result<Places, PlacesError> {
        Places::new(&self.regions, &self.zones, &self.addresses)
    }
}
