//! Parses and formats durations, sizes and counts.

use std::fmt;
use std::time::Duration;

/// Parses a duration with its unit: `10us`, `1.5ms`, `1m30s`, `2h`.
///
/// # Errors
/// Returns a sentence with the fault and an example.
pub fn duration(text: &str) -> Result<Duration, String> {
    fits(corsair_arch::duration(text)?, text)
}

/// Parses a number of seconds, as in spigo, or a duration with a unit.
///
/// # Errors
/// Returns a sentence with the fault and an example.
pub fn seconds(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return fits(Duration::from_secs(seconds), text);
    }
    match text.parse::<f64>() {
        Ok(number) if number < 0.0 => Err(format!("'{text}' is negative; give 0 seconds or more")),
        Ok(number) if number.is_finite() && number < LONGEST.as_secs_f64() => {
            Ok(Duration::from_secs_f64(number))
        }
        Ok(_) => Err(too_long(text)),
        Err(_) if text.starts_with(|c: char| c.is_ascii_digit()) => duration(text),
        Err(_) => Err(format!(
            "'{text}' is not a duration; expected seconds, for example 10, or a number with a unit, for example 500ms"
        )),
    }
}

/// The longest time of a run, in 64 bits of nanoseconds.
const LONGEST: Duration = Duration::from_nanos(u64::MAX);

fn fits(duration: Duration, text: &str) -> Result<Duration, String> {
    if duration > LONGEST {
        Err(too_long(text))
    } else {
        Ok(duration)
    }
}

fn too_long(text: &str) -> String {
    format!(
        "'{text}' is too long; time in a run ends after 584 years, which are {} seconds",
        LONGEST.as_secs()
    )
}

/// Parses a whole number from `least` to `most`.
///
/// # Errors
/// Returns a sentence with the fault and the valid range.
pub fn whole(text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse::<i128>() {
        Ok(number) if number >= least.into() && number <= most.into() => Ok(number as u64),
        Ok(number) if number < least.into() => {
            Err(format!("{text} is too small; give {least} or more"))
        }
        Ok(_) => Err(format!("{text} is too large; give {most} or less")),
        Err(_) => Err(format!("'{text}' is not a whole number")),
    }
}

/// A duration in Go's format: `0s`, `6.8ms`, `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoDuration(pub Duration);

impl GoDuration {
    /// Rounds a measured time to three digits.
    pub fn rounded(duration: Duration) -> GoDuration {
        let nanos = duration.as_nanos().min(u64::MAX.into()) as u64;
        let digits = nanos.checked_ilog10().map_or(1, |log| log + 1);
        // Times of a minute or more are rounded to seconds.
        let grain = if nanos >= 60_000_000_000 {
            1_000_000_000
        } else {
            10u64.pow(digits.saturating_sub(3))
        };
        GoDuration(Duration::from_nanos(
            nanos.saturating_add(grain / 2) / grain * grain,
        ))
    }
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        match nanos {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{nanos}ns"),
            1_000..1_000_000 => write!(
                f,
                "{}µs",
                Decimal {
                    of: nanos,
                    per: 1_000
                }
            ),
            1_000_000..1_000_000_000 => write!(
                f,
                "{}ms",
                Decimal {
                    of: nanos,
                    per: 1_000_000
                }
            ),
            _ => {
                let (hours, minutes) = (self.0.as_secs() / 3600, self.0.as_secs() / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if hours > 0 || minutes > 0 {
                    write!(f, "{minutes}m")?;
                }
                write!(
                    f,
                    "{}s",
                    Decimal {
                        of: nanos % 60_000_000_000,
                        per: 1_000_000_000
                    }
                )
            }
        }
    }
}

/// Formats `of / per` with as many decimals as needed; `per` is a power of ten.
struct Decimal {
    of: u128,
    per: u128,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of / self.per)?;
        let fraction = self.of % self.per;
        if fraction == 0 {
            return Ok(());
        }
        let width = self.per.ilog10() as usize;
        write!(
            f,
            ".{}",
            format!("{fraction:0width$}").trim_end_matches('0')
        )
    }
}

/// Returns the plural ending for this count.
pub fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Formats a number of bytes in the largest unit in which it is at least one: `24.1 MB`.
pub fn bytes(bytes: u64) -> String {
    scaled(bytes as f64, &["B", "kB", "MB", "GB", "TB"])
}

/// Formats a rate in the largest unit in which it is at least one: `73.5 million/s`.
pub fn rate(per_second: f64) -> String {
    scaled(per_second, &["/s", "thousand/s", "million/s", "billion/s"])
}

fn scaled(mut number: f64, units: &[&str]) -> String {
    let mut unit = 0;
    while number >= 999.5 && unit + 1 < units.len() {
        number /= 1000.0;
        unit += 1;
    }
    let decimals = if unit == 0 || number >= 99.95 { 0 } else { 1 };
    let space = if units[unit].starts_with('/') {
        ""
    } else {
        " "
    };
    format!("{number:.decimals$}{space}{}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_as_in_go() {
        for (nanos, text) in [
            (0, "0s"),
            (7, "7ns"),
            (1_500, "1.5µs"),
            (6_800_000, "6.8ms"),
            (1_048_576, "1.048576ms"),
            (1_000_000_000, "1s"),
            (10_020_000_000, "10.02s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
        ] {
            assert_eq!(GoDuration(Duration::from_nanos(nanos)).to_string(), text);
        }
    }

    #[test]
    fn measured_times_have_three_digits() {
        for (nanos, text) in [
            (6_812_345, "6.81ms"),
            (999_999, "1ms"),
            (12, "12ns"),
            (59_994_000_000, "60s"),
            (61_400_000_000, "1m1s"),
        ] {
            let rounded = GoDuration::rounded(Duration::from_nanos(nanos)).to_string();
            assert_eq!(rounded.replace("1m0s", "60s"), text);
        }
    }

    #[test]
    fn durations_need_a_unit_and_may_have_a_fraction() {
        assert_eq!(duration("10us"), Ok(Duration::from_micros(10)));
        assert_eq!(duration("10µs"), Ok(Duration::from_micros(10)));
        assert_eq!(duration("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert!(duration("10").unwrap_err().contains("10ms or 10s"));
        for wrong in ["", "-1s", "ms", "1 fortnight", "1e30s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_are_spigos_and_units_are_welcome() {
        assert_eq!(seconds("10"), Ok(Duration::from_secs(10)));
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["-1", "1e30", "abc", "", "NaN", "inf", "99999999999999"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn whole_numbers_have_bounds() {
        assert_eq!(whole("2", 2, 9), Ok(2));
        assert!(whole("1", 2, 9).unwrap_err().contains("2 or more"));
        assert!(whole("10", 2, 9).unwrap_err().contains("9 or less"));
        assert!(whole("-5", 2, 9).unwrap_err().contains("too small"));
        assert!(whole("1.5", 2, 9).is_err());
    }

    #[test]
    fn sizes_and_rates_have_units() {
        assert_eq!(bytes(24_100_000), "24.1 MB");
        assert_eq!(bytes(512), "512 B");
        assert_eq!(rate(73_500_000.0), "73.5 million/s");
        assert_eq!(rate(12.0), "12/s");
    }
}
