//! The current time.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the nanoseconds since 1970, by the wall clock.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}
