//! Numbers of a model: times, amounts and capacities, each with its original Python type.
//!
//! SimPy adds and compares numbers with Python's operators, so an integer is still printed as an integer. This module
//! computes with 64-bit integers and floats itself, with the same results. For every other type, it calls Python's
//! operators.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};
use std::cmp::Ordering;

/// A number with its original Python type.
#[derive(Debug)]
pub enum Number {
    Int(i64),
    Float(f64),
    Other(Py<PyAny>),
}

impl Default for Number {
    fn default() -> Number {
        Number::Int(0)
    }
}

impl Number {
    pub fn of(given: &Bound<'_, PyAny>) -> Number {
        if let Ok(float) = given.cast_exact::<PyFloat>() {
            return Number::Float(float.value());
        }
        if let Ok(int) = given.cast_exact::<PyInt>()
            && let Ok(int) = int.extract()
        {
            return Number::Int(int);
        }
        Number::Other(given.clone().unbind())
    }

    pub fn to_python<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        match self {
            Number::Int(int) => PyInt::new(py, *int).into_any(),
            Number::Float(float) => PyFloat::new(py, *float).into_any(),
            Number::Other(other) => other.bind(py).clone(),
        }
    }

    pub fn clone_ref(&self, py: Python<'_>) -> Number {
        match self {
            Number::Int(int) => Number::Int(*int),
            Number::Float(float) => Number::Float(*float),
            Number::Other(other) => Number::Other(other.clone_ref(py)),
        }
    }

    pub fn plus(&self, py: Python<'_>, other: &Number) -> PyResult<Number> {
        match (self, other) {
            (Number::Float(a), Number::Float(b)) => return Ok(Number::Float(a + b)),
            (Number::Int(a), Number::Int(b)) => {
                if let Some(sum) = a.checked_add(*b) {
                    return Ok(Number::Int(sum));
                }
            }
            (Number::Int(a), Number::Float(b)) => return Ok(Number::Float(*a as f64 + b)),
            (Number::Float(a), Number::Int(b)) => return Ok(Number::Float(a + *b as f64)),
            _ => {}
        }
        Ok(Number::of(&self.to_python(py).add(other.to_python(py))?))
    }

    pub fn minus(&self, py: Python<'_>, other: &Number) -> PyResult<Number> {
        match (self, other) {
            (Number::Float(a), Number::Float(b)) => return Ok(Number::Float(a - b)),
            (Number::Int(a), Number::Int(b)) => {
                if let Some(difference) = a.checked_sub(*b) {
                    return Ok(Number::Int(difference));
                }
            }
            (Number::Int(a), Number::Float(b)) => return Ok(Number::Float(*a as f64 - b)),
            (Number::Float(a), Number::Int(b)) => return Ok(Number::Float(a - *b as f64)),
            _ => {}
        }
        Ok(Number::of(&self.to_python(py).sub(other.to_python(py))?))
    }

    /// Returns true if this number is smaller according to Python's `<`.
    pub fn is_less(&self, py: Python<'_>, other: &Number) -> PyResult<bool> {
        match (self, other) {
            (Number::Float(a), Number::Float(b)) => Ok(a < b),
            (Number::Int(a), Number::Int(b)) => Ok(a < b),
            _ if self.is_near() && other.is_near() => Ok(self.as_float() < other.as_float()),
            _ => self.to_python(py).lt(other.to_python(py)),
        }
    }

    /// Compares two times in the way in which Python compares the first elements of two tuples: first by equality, then
    /// by `<`.
    pub fn compare(&self, py: Python<'_>, other: &Number) -> PyResult<Ordering> {
        match (self, other) {
            (Number::Float(a), Number::Float(b)) => {
                Ok(a.partial_cmp(b).unwrap_or(Ordering::Greater))
            }
            (Number::Int(a), Number::Int(b)) => Ok(a.cmp(b)),
            _ if self.is_near() && other.is_near() => Ok(self
                .as_float()
                .partial_cmp(&other.as_float())
                .unwrap_or(Ordering::Greater)),
            _ => {
                let (a, b) = (self.to_python(py), other.to_python(py));
                if a.eq(&b)? {
                    return Ok(Ordering::Equal);
                }
                Ok(match a.lt(&b)? {
                    true => Ordering::Less,
                    false => Ordering::Greater,
                })
            }
        }
    }

    pub fn is_nan(&self) -> bool {
        matches!(self, Number::Float(float) if float.is_nan())
    }

    /// Returns true if a float can represent this value exactly.
    fn is_near(&self) -> bool {
        match self {
            Number::Int(int) => int.unsigned_abs() <= 1 << 53,
            Number::Float(_) => true,
            Number::Other(_) => false,
        }
    }

    fn as_float(&self) -> f64 {
        match self {
            Number::Int(int) => *int as f64,
            Number::Float(float) => *float,
            Number::Other(_) => f64::NAN,
        }
    }

    /// Returns the value as a float, for statistics.
    pub fn to_float(&self, py: Python<'_>) -> PyResult<f64> {
        match self {
            Number::Other(other) => other.bind(py).extract(),
            _ => Ok(self.as_float()),
        }
    }
}

/// Returns the capacity. Returns an error if it is not positive.
pub fn positive(capacity: Option<&Bound<'_, PyAny>>, default: Number) -> PyResult<Number> {
    let Some(given) = capacity else {
        return Ok(default);
    };
    let capacity = Number::of(given);
    match Number::Int(0).is_less(given.py(), &capacity)? {
        true => Ok(capacity),
        false => Err(PyValueError::new_err("\"capacity\" must be > 0.")),
    }
}
