//! Durations in definitions: text with a unit, such as `2ms`.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Parses a duration with its unit: `250us`, `1.5ms`, `1m30s`, `2h`.
///
/// # Errors
/// A sentence that describes the fault, with an example.
pub fn duration(text: &str) -> Result<Duration, String> {
    let parsed = jiff::fmt::friendly::SpanParser::new().parse_unsigned_duration(text);
    parsed.map_err(|_| match text.parse::<f64>() {
        Ok(number) if number >= 0.0 => format!("'{text}' has no unit; write {text}ms or {text}s"),
        Ok(_) => format!("'{text}' is negative; a time is 0s or more"),
        Err(_) => format!(
            "'{text}' is not a duration; expected a number with a unit, for example 250us or 2s"
        ),
    })
}

/// A duration, which definitions write as text with its unit: `250us`, `1.5ms`, `2s`, `1m30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(pub Duration);

impl TimeSpan {
    /// Returns the duration in nanoseconds.
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

impl FromStr for TimeSpan {
    type Err = String;

    fn from_str(text: &str) -> Result<TimeSpan, String> {
        let duration = duration(text)?;
        if duration > Duration::from_secs(366 * 24 * 3600) {
            return Err(format!("'{text}' is longer than a year"));
        }
        Ok(TimeSpan(duration))
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos();
        match nanos {
            0 => f.write_str("0s"),
            _ if nanos.is_multiple_of(1_000_000_000) => write!(f, "{}s", nanos / 1_000_000_000),
            _ if nanos.is_multiple_of(1_000_000) => write!(f, "{}ms", nanos / 1_000_000),
            _ if nanos.is_multiple_of(1_000) => write!(f, "{}us", nanos / 1_000),
            _ => write!(f, "{nanos}ns"),
        }
    }
}

impl<'de> Deserialize<'de> for TimeSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TimeSpan, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = TimeSpan;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time with its unit, such as \"2ms\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TimeSpan, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for TimeSpan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for TimeSpan {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeSpan".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A time with its unit: 250us, 1.5ms, 2s, 1m30s.",
            "pattern": "^[0-9]"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_and_write_with_their_unit() {
        for text in ["0s", "250us", "2ms", "90s", "17ns"] {
            let span: TimeSpan = text.parse().unwrap();
            assert_eq!(span.to_string(), text);
        }
        assert_eq!("1.5ms".parse::<TimeSpan>().unwrap().nanos(), 1_500_000);
    }

    #[test]
    fn what_is_no_time_is_refused_with_an_example() {
        let refused = |text: &str| text.parse::<TimeSpan>().unwrap_err();
        assert_eq!(refused("5"), "'5' has no unit; write 5ms or 5s");
        assert_eq!(refused("-5"), "'-5' is negative; a time is 0s or more");
        assert_eq!(
            refused("soon"),
            "'soon' is not a duration; expected a number with a unit, for example 250us or 2s"
        );
        assert_eq!(refused("9000h"), "'9000h' is longer than a year");
    }
}
