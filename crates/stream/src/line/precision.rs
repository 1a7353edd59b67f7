//! The unit of timestamps.

use std::fmt;
use std::str::FromStr;

/// The unit in which the timestamps of a write are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// `n`, `ns`
    #[default]
    Nanoseconds,
    /// `u`, `us`, `µ`, `µs`
    Microseconds,
    /// `ms`
    Milliseconds,
    /// `s`
    Seconds,
    /// `m`
    Minutes,
    /// `h`
    Hours,
}

/// A word that is not a [`Precision`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a precision of timestamps; expected n, u, ms, s, m or h")]
pub struct PrecisionError(pub String);

impl Precision {
    /// Returns the number of nanoseconds of one unit.
    pub const fn unit(self) -> i64 {
        match self {
            Precision::Nanoseconds => 1,
            Precision::Microseconds => 1_000,
            Precision::Milliseconds => 1_000_000,
            Precision::Seconds => 1_000_000_000,
            Precision::Minutes => 60 * 1_000_000_000,
            Precision::Hours => 3_600 * 1_000_000_000,
        }
    }

    /// Returns the precision whose [unit](Precision::unit) has this many nanoseconds.
    pub fn from_unit(nanoseconds: i64) -> Option<Precision> {
        let all = [
            Precision::Nanoseconds,
            Precision::Microseconds,
            Precision::Milliseconds,
            Precision::Seconds,
            Precision::Minutes,
            Precision::Hours,
        ];
        all.into_iter()
            .find(|precision| precision.unit() == nanoseconds)
    }

    /// Converts a timestamp of this unit to nanoseconds; `None` if it exceeds 64 bits.
    #[inline]
    pub const fn nanoseconds(self, time: i64) -> Option<i64> {
        time.checked_mul(self.unit())
    }
}

impl FromStr for Precision {
    type Err = PrecisionError;

    fn from_str(word: &str) -> Result<Precision, PrecisionError> {
        // The micro sign and the Greek letter look the same.
        Ok(match word {
            "n" | "ns" => Precision::Nanoseconds,
            "u" | "us" | "µ" | "µs" | "μ" | "μs" => Precision::Microseconds,
            "ms" => Precision::Milliseconds,
            "s" => Precision::Seconds,
            "m" => Precision::Minutes,
            "h" => Precision::Hours,
            _ => return Err(PrecisionError(word.chars().take(40).collect())),
        })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::Nanoseconds => "n",
            Precision::Microseconds => "u",
            Precision::Milliseconds => "ms",
            Precision::Seconds => "s",
            Precision::Minutes => "m",
            Precision::Hours => "h",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_read_as_it_is_written() {
        for precision in [
            Precision::Nanoseconds,
            Precision::Microseconds,
            Precision::Milliseconds,
            Precision::Seconds,
            Precision::Minutes,
            Precision::Hours,
        ] {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
        for micro in ["u", "us", "µ", "\u{b5}s", "\u{3bc}", "\u{3bc}s"] {
            assert_eq!(micro.parse(), Ok(Precision::Microseconds), "{micro}");
        }
        assert_eq!("ns".parse(), Ok(Precision::Nanoseconds));
    }

    #[test]
    fn a_word_that_is_no_precision_is_answered_with_those_there_are() {
        let error = "days".parse::<Precision>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`days` is not a precision of timestamps; expected n, u, ms, s, m or h"
        );
        assert!("".parse::<Precision>().is_err());
        assert!("N".parse::<Precision>().is_err());
    }

    #[test]
    fn times_become_nanoseconds_unless_they_do_not_fit() {
        assert_eq!(Precision::Hours.nanoseconds(-2), Some(-7_200_000_000_000));
        assert_eq!(Precision::Nanoseconds.nanoseconds(i64::MIN), Some(i64::MIN));
        let last = i64::MAX / 1_000_000_000;
        assert!(Precision::Seconds.nanoseconds(last).is_some());
        assert_eq!(Precision::Seconds.nanoseconds(last + 1), None);
        assert_eq!(Precision::Seconds.nanoseconds(-last - 1), None);
    }
}
