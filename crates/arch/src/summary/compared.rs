//! Two architectures side by side, as JSON.

use crate::experiment::Compared;
use serde::Serialize;

/// One number of both architectures; times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(
    missing_docs,
    reason = "`within` is half the width of a 95 % confidence interval"
)]
pub struct ComparedRow {
    pub name: &'static str,
    pub a: f64,
    pub a_within: Option<f64>,
    pub b: f64,
    pub b_within: Option<f64>,
    /// The second less the first.
    pub difference: f64,
    pub difference_within: Option<f64>,
    /// Whether the interval of the difference leaves zero out.
    pub is_clear: bool,
}

impl ComparedRow {
    /// The row of a number.
    pub fn new(of: &Compared) -> ComparedRow {
        let [a, b] = of.of;
        ComparedRow {
            name: of.name,
            a: a.mean,
            a_within: a.within,
            b: b.mean,
            b_within: b.within,
            difference: of.difference.mean,
            difference_within: of.difference.within,
            is_clear: of.difference.is_clear(),
        }
    }
}
