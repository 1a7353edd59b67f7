//! Checks of the properties of nodes.

use super::error::{MAX_WINDOWS, MIN_INTERVAL, Rule};
use axum::http::Uri;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use std::time::Duration;

/// Checks a URL to which a node posts.
pub(crate) fn posted_to(url: &Arc<str>) -> Result<(), Rule> {
    let good = url.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    });
    good.then_some(()).ok_or_else(|| Rule::Url(url.clone()))
}

/// Refuses names that are empty or given twice.
pub(crate) fn distinct<'a>(names: impl IntoIterator<Item = &'a Arc<str>>) -> Result<(), Rule> {
    let mut seen = FxHashSet::default();
    for name in names {
        if name.is_empty() {
            return Err(Rule::EmptyName);
        }
        if !seen.insert(name) {
            return Err(Rule::DuplicateName(name.clone()));
        }
    }
    Ok(())
}

/// Refuses durations beyond 64 bits of nanoseconds.
pub(crate) fn fits(property: &'static str, duration: Duration) -> Result<(), Rule> {
    match i64::try_from(duration.as_nanos()) {
        Ok(_) => Ok(()),
        Err(_) => Err(Rule::TooLong { property, duration }),
    }
}

/// Refuses a duration that is zero or too long.
pub(crate) fn positive(property: &'static str, duration: Duration) -> Result<(), Rule> {
    match duration.is_zero() {
        true => Err(Rule::NotPositive { property }),
        false => fits(property, duration),
    }
}

/// Refuses an interval of a clock that is too short or too long.
pub(crate) fn clock_interval(property: &'static str, duration: Duration) -> Result<(), Rule> {
    positive(property, duration)?;
    match duration < MIN_INTERVAL {
        true => Err(Rule::TooShort { property, duration }),
        false => Ok(()),
    }
}

/// Refuses a window if too many of its windows would overlap. `every` is not zero.
pub(crate) fn overlap(period: Duration, every: Duration) -> Result<(), Rule> {
    match period.as_nanos().div_ceil(every.as_nanos()) {
        windows if windows > MAX_WINDOWS => Err(Rule::Overlap { windows }),
        _ => Ok(()),
    }
}
