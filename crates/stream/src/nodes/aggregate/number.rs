//! Numbers for aggregates; integers are compared and added exactly.

use crate::Value;
use std::cmp::Ordering;

/// Returns the middle value, or the mean of the two middle values.
pub(super) fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp);
    Some(match values.len() % 2 {
        1 => upper,
        _ => lower.map_or(upper, |lower| lower + (upper - lower) / 2.0),
    })
}

/// Returns the sample standard deviation; `None` for one value.
pub(super) fn stddev(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt())
}

/// A number without loss of precision.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Float(f64),
    Whole(i128),
    Natural(u64),
}

impl Number {
    pub(super) fn compare(&self, other: &Number) -> Ordering {
        match (self.whole(), other.whole()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.float().total_cmp(&other.float()),
        }
    }

    fn whole(&self) -> Option<i128> {
        match *self {
            Number::Float(_) => None,
            Number::Whole(value) => Some(value),
            Number::Natural(value) => Some(value.into()),
        }
    }

    pub(super) fn float(&self) -> f64 {
        match *self {
            Number::Float(value) => value,
            Number::Whole(value) => value as f64,
            Number::Natural(value) => value as f64,
        }
    }

    /// Returns this number if it compares as `wanted` with `known`; otherwise returns `known`.
    pub(super) fn of(self, known: Option<Number>, wanted: Ordering) -> Number {
        known
            .filter(|known| self.compare(known) != wanted)
            .unwrap_or(self)
    }

    /// Subtracts a number; `None` on overflow.
    pub(super) fn less(self, other: Number) -> Option<Value> {
        match (self, other) {
            (Number::Natural(a), Number::Natural(b)) => a.checked_sub(b).map(Value::Unsigned),
            _ => match (self.whole(), other.whole()) {
                (Some(a), Some(b)) => i64::try_from(a - b).ok().map(Value::Integer),
                _ => Some(Value::Float(self.float() - other.float())),
            },
        }
    }

    pub(super) fn value(&self) -> Value {
        match *self {
            Number::Float(value) => Value::Float(value),
            Number::Whole(value) => Value::Integer(value as i64),
            Number::Natural(value) => Value::Unsigned(value),
        }
    }
}

/// A sum that is exact if all numbers are whole.
#[derive(Default)]
pub(super) struct Sum {
    whole: i128,
    float: f64,
    pub(super) count: u64,
    floats: bool,
    integers: bool,
}

impl Sum {
    #[inline]
    pub(super) fn add(&mut self, number: Number) {
        self.count += 1;
        match number {
            Number::Float(value) => {
                self.float += value;
                self.floats = true;
            }
            Number::Whole(value) => {
                self.whole += value;
                self.integers = true;
            }
            Number::Natural(value) => self.whole += i128::from(value),
        }
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.float + self.whole as f64) / self.count as f64)
    }

    /// Returns the sum: `Some(None)` if there were no numbers, `None` if the sum is too large.
    pub(super) fn value(&self) -> Option<Option<Value>> {
        Some(Some(match self {
            Sum { count: 0, .. } => return Some(None),
            Sum { floats: true, .. } => Value::Float(self.float + self.whole as f64),
            Sum { integers: true, .. } => Value::Integer(i64::try_from(self.whole).ok()?),
            _ => Value::Unsigned(u64::try_from(self.whole).ok()?),
        }))
    }
}
