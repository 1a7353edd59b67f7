//! Tables in CSV format.

use std::borrow::Cow;

/// Returns a CSV field, in quotes if necessary.
pub fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}
