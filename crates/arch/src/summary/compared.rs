//! The comparison of two architectures as JSON.

use crate::experiment::{Compared, Estimate};
use serde::Serialize;

/// A quantity of both architectures; times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(
    missing_docs,
    reason = "`within` is half the width of a 95 % confidence interval; without requests there are no numbers"
)]
pub struct ComparedRow {
    pub name: &'static str,
    pub a: Option<f64>,
    pub a_within: Option<f64>,
    pub b: Option<f64>,
    pub b_within: Option<f64>,
    /// The second minus the first.
    pub difference: Option<f64>,
    pub difference_within: Option<f64>,
    /// True if the interval of the difference does not contain zero.
    pub is_clear: bool,
}

impl ComparedRow {
    /// Creates the row of a quantity.
    pub fn new(of: &Compared) -> ComparedRow {
        let [a, b] = of.of;
        let number = |of: Estimate| (!of.is_empty()).then_some(of.mean);
        ComparedRow {
            name: of.name,
            a: number(a),
            a_within: a.within,
            b: number(b),
            b_within: b.within,
            difference: number(of.difference),
            difference_within: of.difference.within,
            is_clear: of.difference.is_clear(),
        }
    }
}
