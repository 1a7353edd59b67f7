//! Networks that differ in how long messages travel.

use super::{Network, Route};
use crate::contract::{Addr, Distribution, DistributionError, Random};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why there is no such network.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A latency of zero.
    #[error("a latency of zero leaves virtual time no room; give at least 1ns")]
    NoLatency,
    /// A range that ends before it begins.
    #[error("latencies from {least:?} to {most:?}: the range ends before it begins")]
    Range {
        /// The lower end.
        least: Duration,
        /// The upper end.
        most: Duration,
    },
    /// A probability that is none.
    #[error("a probability is from 0 to 1, not {0}")]
    Probability(f64),
    /// A table that is not square, or empty.
    #[error(
        "a table of {rows} groups needs as many latencies in each row; row {row} has {columns}"
    )]
    Table {
        /// How many rows.
        rows: usize,
        /// The first that does not fit.
        row: usize,
        /// How many columns it has.
        columns: usize,
    },
    /// A speed that is none.
    #[error("a speed is a positive number of units a second, not {0}")]
    Speed(f64),
    /// A parameter of a distribution.
    #[error(transparent)]
    Distribution(#[from] DistributionError),
}

fn range(least: Duration, most: Duration) -> Result<(), NetworkError> {
    if least.is_zero() {
        return Err(NetworkError::NoLatency);
    }
    if most < least {
        return Err(NetworkError::Range { least, most });
    }
    Ok(())
}

/// Every message travels equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant(Duration);

impl Constant {
    /// So long.
    ///
    /// # Errors
    /// [`NetworkError::NoLatency`] if the latency is zero.
    pub fn new(latency: Duration) -> Result<Constant, NetworkError> {
        range(latency, latency)?;
        Ok(Constant(latency))
    }
}

impl Network for Constant {
    fn least(&self) -> Duration {
        self.0
    }

    fn most(&self) -> Duration {
        self.0
    }

    fn latency(&self, _: &Route, _: &mut Random) -> Duration {
        self.0
    }
}

/// Each message travels a time of its own, evenly between two bounds. (A time for each *pair* is what
/// [`Latency::between`](crate::Latency::between) gives.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    least: Duration,
    most: Duration,
}

impl Jitter {
    /// Between these.
    ///
    /// # Errors
    /// If the range is none, or begins at zero.
    pub fn new(least: Duration, most: Duration) -> Result<Jitter, NetworkError> {
        range(least, most)?;
        Ok(Jitter { least, most })
    }
}

impl Network for Jitter {
    fn least(&self) -> Duration {
        self.least
    }

    fn most(&self) -> Duration {
        self.most
    }

    fn latency(&self, _: &Route, random: &mut Random) -> Duration {
        let width = (self.most - self.least).as_nanos().min(u64::MAX.into());
        let more = (u128::from(random.bits()) * (width + 1)) >> 64;
        self.least + Duration::from_nanos(more as u64)
    }
}

/// Each message travels a time whose logarithm is normally distributed, within two bounds: the
/// latencies of real networks, with their long tail.
#[derive(Clone, Debug, PartialEq)]
pub struct LognormalLatency {
    least: Duration,
    most: Duration,
    distribution: Distribution,
}

impl LognormalLatency {
    /// With this median; `sigma` is the standard deviation of the logarithm. What is drawn below
    /// `least` or above `most` is that.
    ///
    /// # Errors
    /// If the range is none, or begins at zero, or there is no such distribution.
    pub fn new(
        median: Duration,
        sigma: f64,
        least: Duration,
        most: Duration,
    ) -> Result<LognormalLatency, NetworkError> {
        range(least, most)?;
        let distribution = Distribution::lognormal(median.as_secs_f64(), sigma)?;
        Ok(LognormalLatency {
            least,
            most,
            distribution,
        })
    }
}

impl Network for LognormalLatency {
    fn least(&self) -> Duration {
        self.least
    }

    fn most(&self) -> Duration {
        self.most
    }

    fn latency(&self, _: &Route, random: &mut Random) -> Duration {
        crate::contract::seconds(self.distribution.draw(random.bits()))
    }
}

/// Which group an actor belongs to.
type GroupOf = Arc<dyn Fn(Addr) -> usize + Send + Sync>;

/// Actors belong to groups (racks, zones, regions), and a table says how long messages travel between
/// them.
///
/// ```
/// use corsair::network::Table;
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// // Within Europe, across, within America. Addresses below 1,000 are in Europe.
/// let table = Table::new(
///     vec![vec![ms(5), ms(45)], vec![ms(45), ms(8)]],
///     |who| usize::from(who.as_u32() >= 1000),
/// )?;
/// # Ok::<(), corsair::network::NetworkError>(())
/// ```
#[derive(Clone)]
pub struct Table {
    rows: Vec<Vec<Duration>>,
    group: GroupOf,
    least: Duration,
    most: Duration,
}

impl Table {
    /// `rows[from][to]` is the latency from one group to another. `group` says where an actor belongs;
    /// what is beyond the table belongs to its last group. It must say the same of an address each
    /// time.
    ///
    /// # Errors
    /// If the table is not square, is empty, or has a latency of zero.
    pub fn new(
        rows: Vec<Vec<Duration>>,
        group: impl Fn(Addr) -> usize + Send + Sync + 'static,
    ) -> Result<Table, NetworkError> {
        let wrong = rows.iter().position(|row| row.len() != rows.len());
        if let Some(row) = wrong.or(rows.is_empty().then_some(0)) {
            return Err(NetworkError::Table {
                rows: rows.len(),
                row,
                columns: rows.get(row).map_or(0, Vec::len),
            });
        }
        let all = || rows.iter().flatten().copied();
        let (least, most) = (
            all().min().unwrap_or_default(),
            all().max().unwrap_or_default(),
        );
        range(least, most)?;
        Ok(Table {
            rows,
            group: Arc::new(group),
            least,
            most,
        })
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl Network for Table {
    fn least(&self) -> Duration {
        self.least
    }

    fn most(&self) -> Duration {
        self.most
    }

    fn latency(&self, way: &Route, _: &mut Random) -> Duration {
        let [from, to] = [way.from, way.to].map(|who| (self.group)(who).min(self.rows.len() - 1));
        self.rows[from][to]
    }
}

/// Where an actor is.
type Position = Arc<dyn Fn(Addr) -> (f64, f64) + Send + Sync>;

/// Actors have places on a plane, and messages travel with one speed.
#[derive(Clone)]
pub struct Plane {
    position: Position,
    speed: f64,
    least: Duration,
    most: Duration,
}

impl Plane {
    /// `position` says where an actor is, the same each time; `speed` is in units a second; no message
    /// takes less than `least` or more than `most`.
    ///
    /// # Errors
    /// If the speed is not positive, or the range is none or begins at zero.
    pub fn new(
        position: impl Fn(Addr) -> (f64, f64) + Send + Sync + 'static,
        speed: f64,
        least: Duration,
        most: Duration,
    ) -> Result<Plane, NetworkError> {
        range(least, most)?;
        if !(speed.is_finite() && speed > 0.0) {
            return Err(NetworkError::Speed(speed));
        }
        Ok(Plane {
            position: Arc::new(position),
            speed,
            least,
            most,
        })
    }
}

impl fmt::Debug for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plane")
            .field("speed", &self.speed)
            .finish_non_exhaustive()
    }
}

impl Network for Plane {
    fn least(&self) -> Duration {
        self.least
    }

    fn most(&self) -> Duration {
        self.most
    }

    fn latency(&self, way: &Route, _: &mut Random) -> Duration {
        let [(x, y), (u, v)] = [way.from, way.to].map(|who| (self.position)(who));
        let distance = libm::sqrt((x - u) * (x - u) + (y - v) * (y - v));
        crate::contract::seconds(distance / self.speed)
    }
}
