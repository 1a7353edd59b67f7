//! The number of instances of a service that a load needs.

use super::{CapacityError, Point, Search, Trial};
use crate::plan::Plan;
use crate::topology::Topology;
use corsair::Config;

/// The number of instances of a service that a load needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Sized {
    /// All simulated numbers of instances, in ascending order.
    pub points: Vec<(u32, Point)>,
    /// The smallest sufficient number; `None` if the maximum is not sufficient.
    pub instances: Option<u32>,
}

/// Finds the smallest number of instances of a service for the load of an architecture. `make`
/// returns the architecture with a given number of instances, up to `most`; `tried` is called with
/// each number.
///
/// # Errors
/// See [`CapacityError`].
pub fn instances(
    config: &Config,
    plan: &Plan,
    search: &Search,
    most: u32,
    make: impl Fn(u32) -> Result<Topology, String>,
    mut tried: impl FnMut(u32, &Point),
) -> Result<Sized, CapacityError> {
    let mut points: Vec<(u32, Point)> = Vec::new();
    let mut measure = |count: u32| -> Result<Option<bool>, CapacityError> {
        let mut topology = make(count).map_err(CapacityError::Instances)?;
        topology.victim = None;
        let trial = Trial {
            config,
            topology: &topology,
            plan,
            search,
        };
        let Some(point) = trial.point(None)? else {
            return Ok(None);
        };
        tried(count, &point);
        let holds = point.holds;
        points.push((count, point));
        Ok(Some(holds))
    };
    let (mut few, mut enough) = (0, None);
    let mut count = 1;
    while enough.is_none() {
        match measure(count)? {
            None => break,
            Some(true) => enough = Some(count),
            Some(false) if count >= most => break,
            Some(false) => {
                few = count;
                count = count.saturating_mul(2).min(most);
            }
        }
    }
    while let Some(high) = enough.filter(|&high| high - few > 1) {
        let middle = few + (high - few) / 2;
        match measure(middle)? {
            None => break,
            Some(true) => enough = Some(middle),
            Some(false) => few = middle,
        }
    }
    points.sort_by_key(|(count, _)| *count);
    Ok(Sized {
        points,
        instances: enough,
    })
}
