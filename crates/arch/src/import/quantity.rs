//! Numbers with units, in the formats of manifests.

use crate::duration_text::TimeSpan;
use std::time::Duration;

/// Parses a quantity in the format of Kubernetes: `200m`, `1.5`, `2k`.
pub(super) fn quantity(text: &str) -> Option<f64> {
    let units = [
        ("m", 1e-3),
        ("u", 1e-6),
        ("n", 1e-9),
        ("k", 1e3),
        ("M", 1e6),
    ];
    let known = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)));
    let (number, factor) = known.unwrap_or((text, 1.0));
    let number: f64 = number.trim().parse().ok()?;
    Some(number * factor).filter(|number| number.is_finite() && *number >= 0.0)
}

/// Parses a duration in the format of Go, Envoy and k6: `1.5s`, `1m30s`, `250ms`, or `0`.
pub(super) fn duration(text: &str) -> Option<TimeSpan> {
    if text == "0" {
        return Some(TimeSpan(Duration::ZERO));
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        assert_eq!(quantity("200m"), Some(0.2));
        assert_eq!(quantity("1.5"), Some(1.5));
        assert_eq!(quantity("2k"), Some(2000.0));
        assert_eq!(quantity("-1"), None);
        assert_eq!(quantity("many"), None);
        assert_eq!(duration("1m30s"), Some(TimeSpan(Duration::from_secs(90))));
        assert_eq!(duration("0"), Some(TimeSpan(Duration::ZERO)));
        assert_eq!(duration("soon"), None);
    }
}
