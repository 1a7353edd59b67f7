//! The scale of an architecture.

use crate::definition::CheckedDefinition;

/// The scale of an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The number of regions.
    pub regions: u32,
    /// The percentage of the definition's instances.
    pub percent: u32,
}

impl Default for Scale {
    /// Returns the default scale: one region, with the number of instances in the definition.
    fn default() -> Self {
        Scale {
            regions: 1,
            percent: 100,
        }
    }
}

/// The maximum number of instances.
const MAX_INSTANCES: u64 = 4_000_000;

/// The reasons why a scale is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// The number of regions is zero or too large.
    #[error("{regions} regions are not possible; give 1 to {most}")]
    Regions {
        /// The number of regions of the run.
        regions: u32,
        /// The maximum number of regions.
        most: u32,
    },
    /// A service is in too many regions.
    #[error(
        "service '{service}' would be in {} regions, {regions} for each of {scale}; the maximum is {most}",
        regions * scale
    )]
    ServiceRegions {
        /// The name of the service.
        service: String,
        /// The number of regions in the definition.
        regions: u32,
        /// The number of regions of the run.
        scale: u32,
        /// The maximum number of regions.
        most: u32,
    },
    /// The scale is so small that a service disappears.
    #[error(
        "{percent} % of the {count} instances of service '{service}' is less than one instance; give at least {} %",
        100u64.div_ceil(*count)
    )]
    Nothing {
        /// The name of the service.
        service: String,
        /// The number of instances in the definition.
        count: u64,
        /// The scale in percent.
        percent: u32,
    },
    /// There are too many instances.
    #[error("{0} instances are too many; at most {MAX_INSTANCES} are simulated")]
    TooMany(u64),
}

impl Scale {
    /// Returns the number of instances at this scale; at least zero.
    pub(super) fn count(self, count: i64) -> u32 {
        (count.max(0) as u64 * u64::from(self.percent) / 100).min(u32::MAX.into()) as u32
    }

    /// Checks that a definition can have this scale.
    pub(super) fn check(self, checked: &CheckedDefinition) -> Result<(), ScaleError> {
        let most = checked.places().regions().len() as u32;
        if !(1..=most).contains(&self.regions) {
            let regions = self.regions;
            return Err(ScaleError::Regions { regions, most });
        }
        let mut total = 0u64;
        for (service, _) in checked.services() {
            let regions = service.regions as u32;
            if regions * self.regions > most {
                return Err(ScaleError::ServiceRegions {
                    service: service.name.clone(),
                    regions,
                    scale: self.regions,
                    most,
                });
            }
            let count = self.count(service.count);
            if count == 0 && service.count > 0 && regions > 0 {
                return Err(ScaleError::Nothing {
                    service: service.name.clone(),
                    count: service.count as u64,
                    percent: self.percent,
                });
            }
            let most = service
                .autoscaler
                .map_or(0, |scaler| self.count(scaler.most));
            total += u64::from(regions * self.regions) * u64::from(count.max(most).max(1));
        }
        if total > MAX_INSTANCES {
            return Err(ScaleError::TooMany(total));
        }
        Ok(())
    }
}
