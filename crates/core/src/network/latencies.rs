//! Networks that differ in their latencies.

use super::{Network, Route};
use crate::contract::{Addr, Distribution, DistributionError, Random};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An error in the parameters of a network.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A latency of zero.
    #[error("a latency of zero is invalid; give at least 1ns")]
    NoLatency,
    /// A range whose upper end is below its lower end.
    #[error("latencies from {least:?} to {most:?}: the range ends before it begins")]
    Range {
        /// The lower end.
        least: Duration,
        /// The upper end of the range.
        most: Duration,
    },
    /// A number that is not a probability.
    #[error("a probability is from 0 to 1, not {0}")]
    Probability(f64),
    /// A table that is not square, or empty.
    #[error(
        "a table of {rows} groups needs as many latencies in each row; row {row} has {columns}"
    )]
    Table {
        /// The number of rows.
        rows: usize,
        /// The index of the first row of the wrong length.
        row: usize,
        /// The number of columns of that row.
        columns: usize,
    },
    /// A speed that is not positive.
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

/// A network in which all messages have the same latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant(Duration);

impl Constant {
    /// Creates a network with this latency.
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

/// A network in which each message has its own latency, uniformly distributed between two bounds.
/// ([`Latency::between`](crate::Latency::between) draws a latency for each *pair* of actors instead.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    least: Duration,
    most: Duration,
}

impl Jitter {
    /// Creates a network with latencies from `least` to `most`.
    ///
    /// # Errors
    /// If the range is empty, or starts at zero.
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

/// A network in which each message has its own lognormal latency within two bounds. Latencies of real networks have
/// such a long tail.
#[derive(Clone, Debug, PartialEq)]
pub struct LognormalLatency {
    least: Duration,
    most: Duration,
    distribution: Distribution,
}

impl LognormalLatency {
    /// Creates a network with this median; `sigma` is the standard deviation of the logarithm. Latencies
    /// outside `least` and `most` are clamped.
    ///
    /// # Errors
    /// If the range is empty or starts at zero, or the parameters do not describe a distribution.
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

/// Returns the group of an actor.
type GroupOf = Arc<dyn Fn(Addr) -> usize + Send + Sync>;

/// A table of latencies between groups of actors, such as racks, zones or regions.
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
    /// Creates a table in which `rows[from][to]` is the latency from one group to another. `group` must always return
    /// the same group for an actor; numbers beyond the table mean the last group.
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

    fn latency(&self, route: &Route, _: &mut Random) -> Duration {
        let [from, to] =
            [route.from, route.to].map(|who| (self.group)(who).min(self.rows.len() - 1));
        self.rows[from][to]
    }
}

/// Returns the position of an actor.
type Position = Arc<dyn Fn(Addr) -> (f64, f64) + Send + Sync>;

/// A network in which actors have positions on a plane, and messages travel at a constant speed.
#[derive(Clone)]
pub struct Plane {
    position: Position,
    speed: f64,
    least: Duration,
    most: Duration,
}

impl Plane {
    /// Creates a network in which `position` returns the position of an actor, and must always return the same one.
    /// `speed` is in units of length per second. Latencies are clamped to `least` and `most`.
    ///
    /// # Errors
    /// If the speed is not positive, or the range is empty or starts at zero.
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

    fn latency(&self, route: &Route, _: &mut Random) -> Duration {
        let [(x, y), (u, v)] = [route.from, route.to].map(|who| (self.position)(who));
        let distance = libm::sqrt((x - u) * (x - u) + (y - v) * (y - v));
        crate::contract::seconds(distance / self.speed)
    }
}
