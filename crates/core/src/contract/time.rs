//! Points in time: nanoseconds since the start of a run, virtual or real.

use std::fmt;
use std::time::Duration;

/// A point in the time of a run, in nanoseconds since its start.
///
/// On the virtual executor this is virtual time; on the other executors it is the wall-clock time
/// since the start of the run. Arithmetic saturates at [`Time::MAX`], which means "never".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(pub(crate) u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Never: later than every event.
    pub const MAX: Time = Time(u64::MAX);

    /// Creates the point `nanos` nanoseconds after the start of the run.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Returns the nanoseconds since the start of the run.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time elapsed since the start of the run.
    #[inline]
    pub const fn elapsed(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns this time plus `by`, at most [`Time::MAX`].
    #[inline]
    pub const fn after(self, by: Duration) -> Time {
        Time(self.0.saturating_add(nanos(by)))
    }
}

/// Converts a duration to nanoseconds, at most `u64::MAX` (584 years).
#[inline]
pub(crate) const fn nanos(d: Duration) -> u64 {
    d.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(d.subsec_nanos() as u64)
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Time {
    /// Displays seconds with nine decimal places: `1.500000000s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::MAX {
            return f.write_str("never");
        }
        write!(
            f,
            "{}.{:09}s",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}
