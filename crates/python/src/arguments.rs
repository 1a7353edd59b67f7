//! Conversion of Python arguments to types of the libraries.

use corsair::Config;
use corsair_arch::{Scale, Setup};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use std::num::NonZeroUsize;
use std::time::Duration;

/// The longest time of a run in seconds. The limit is the range of 64 bits of nanoseconds.
const LONGEST: f64 = 18_446_744_073.0;

/// A span of time: a number of seconds, text with its unit, or a `timedelta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl<'a, 'py> FromPyObject<'a, 'py> for Span {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Span> {
        let wrong = |what: String| Err(PyValueError::new_err(what));
        if let Ok(text) = given.cast::<PyString>() {
            let text = text.to_cow()?;
            return match corsair_arch::duration(&text) {
                Ok(time) if time.as_secs_f64() < LONGEST => Ok(Span(time)),
                Ok(_) => wrong(too_long(&text)),
                Err(what) => wrong(what),
            };
        }
        if is_number(&given) {
            return Span::of_number(&given);
        }
        // `total_seconds` must return a number. Otherwise an object that returns itself would cause endless recursion.
        if let Ok(seconds) = given.call_method0("total_seconds")
            && is_number(&seconds)
        {
            return Span::of_number(&seconds);
        }
        Err(PyTypeError::new_err(format!(
            "a time is a number of seconds, text as '250ms', or a timedelta, not {}",
            given.get_type().name()?
        )))
    }
}

impl Span {
    /// Converts a number of seconds to a time span.
    fn of_number(given: &Bound<'_, PyAny>) -> PyResult<Span> {
        let wrong = |what: String| Err(PyValueError::new_err(what));
        let seconds = match given.extract::<f64>() {
            Ok(seconds) => seconds,
            Err(_) => return wrong(too_long(&given.repr()?.to_string())),
        };
        if seconds.is_nan() || seconds < 0.0 {
            return wrong(format!(
                "{seconds} is not a duration; give 0 seconds or more"
            ));
        }
        if seconds >= LONGEST {
            return wrong(too_long(&format!("{seconds} s")));
        }
        Ok(Span(Duration::from_secs_f64(seconds)))
    }
}

/// Returns true if the value is a Python number or a scalar of another library, but not a truth value.
fn is_number(given: &Bound<'_, PyAny>) -> bool {
    if given.cast::<PyFloat>().is_ok() || given.cast::<PyInt>().is_ok() {
        return given.cast::<PyBool>().is_err();
    }
    if let Ok(dtype) = given.getattr("dtype") {
        let is_scalar = given
            .getattr("shape")
            .is_ok_and(|shape| shape.len().is_ok_and(|len| len == 0));
        let kind = dtype
            .getattr("kind")
            .and_then(|kind| kind.extract::<String>());
        return is_scalar && kind.is_ok_and(|kind| matches!(kind.as_str(), "i" | "u" | "f"));
    }
    given.hasattr("__float__").unwrap_or(false)
}

/// Returns a time in seconds.
#[pyfunction]
pub fn seconds(time: Span) -> f64 {
    time.0.as_secs_f64()
}

fn too_long(text: &str) -> String {
    format!("{text} is too long; time in a run ends after 584 years")
}

/// A seed: a whole number of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct Seed(pub u64);

impl<'a, 'py> FromPyObject<'a, 'py> for Seed {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Seed> {
        whole(given, "a seed", 0, u64::MAX).map(Seed)
    }
}

/// A number of worker threads.
#[derive(Clone, Copy, Debug)]
pub struct Workers(pub NonZeroUsize);

impl<'a, 'py> FromPyObject<'a, 'py> for Workers {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Workers> {
        let count = whole(given, "workers", 1, 1024)?;
        Ok(Workers(
            NonZeroUsize::new(count as usize).unwrap_or(NonZeroUsize::MIN),
        ))
    }
}

/// A number of items, from 0 to 2³² − 1.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u32);

impl<'a, 'py> FromPyObject<'a, 'py> for Count {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Count> {
        whole(given, "this", 0, u32::MAX.into()).map(|count| Count(count as u32))
    }
}

/// Checks that a whole number is in a range.
fn whole(given: Borrowed<'_, '_, PyAny>, what: &str, least: u64, most: u64) -> PyResult<u64> {
    if given.cast::<PyBool>().is_err()
        && let Ok(number) = given.extract::<u64>()
        && (least..=most).contains(&number)
    {
        return Ok(number);
    }
    let said = format!(
        "{what} is a whole number from {least} to {most}, not {}",
        given.repr()?
    );
    Err(match given.cast::<PyInt>() {
        Ok(_) => PyValueError::new_err(said),
        Err(_) => PyTypeError::new_err(said),
    })
}

/// Arguments by name, as passed by the Python part of the module.
#[derive(Debug)]
pub struct Arguments<'a, 'py>(pub &'a Bound<'py, PyDict>);

impl<'py> Arguments<'_, 'py> {
    /// Reads an argument. Errors contain its name.
    pub fn get<T>(&self, name: &str) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        let value = self.value(name)?;
        value
            .extract()
            .map_err(|error| named(self.0.py(), name, &error))
    }

    /// Reads an argument that may be None.
    pub fn maybe<T>(&self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
    {
        if self.value(name)?.is_none() {
            return Ok(None);
        }
        self.get(name).map(Some)
    }

    /// Returns the progress callback, if there is one.
    pub fn progress(&self) -> PyResult<Option<Bound<'py, PyAny>>> {
        let progress = self.value("progress")?;
        Ok((!progress.is_none()).then_some(progress))
    }

    /// Reads a number in a range.
    pub fn number(&self, name: &str, least: f64, most: f64) -> PyResult<f64> {
        let number: f64 = self.get(name)?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        Err(PyValueError::new_err(format!(
            "{name}: {number} is not between {least} and {most}"
        )))
    }

    fn value(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let value = self.0.get_item(name)?;
        value.ok_or_else(|| PyTypeError::new_err(format!("the argument {name} is missing")))
    }
}

/// Returns the error with the name of the argument before its sentence.
fn named(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    let said = format!("{name}: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(said)
    } else {
        PyValueError::new_err(said)
    }
}

/// Reads the configuration of a run: its seed and workers.
pub fn config(arguments: &Arguments<'_, '_>) -> PyResult<Config> {
    let mut config = Config {
        seed: arguments.get::<Seed>("seed")?.0,
        ..Config::default()
    };
    if let Some(Workers(workers)) = arguments.maybe("workers")? {
        config.workers = workers;
    }
    Ok(config)
}

/// Reads the scale of an architecture.
pub fn scale(arguments: &Arguments<'_, '_>) -> PyResult<Scale> {
    Ok(Scale {
        regions: arguments.get::<Count>("regions")?.0,
        percent: arguments.get::<Count>("population")?.0,
    })
}

/// Reads the options for the runs of a sweep or a comparison.
pub fn setup(arguments: &Arguments<'_, '_>) -> PyResult<Setup> {
    Ok(Setup {
        scale: scale(arguments)?,
        duration: arguments.get::<Span>("duration")?.0,
        warm_up: arguments.maybe::<Span>("warm_up")?.map(|span| span.0),
        load: arguments.maybe("load")?,
        // As in the command, built-in architectures get their illustrative sizes.
        sized: true,
    })
}
