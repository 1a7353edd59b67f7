//! Random numbers and confidence intervals from the Rust libraries, for `corsair.sim`.

use crate::error;
use corsair::{Estimate, Random};
use corsair_arch::{Distribution, Sampler};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A stream of random times of one distribution.
#[pyclass(module = "corsair._corsair")]
#[derive(Debug)]
pub struct Draws {
    sampler: Sampler,
    random: Random,
}

#[pymethods]
impl Draws {
    /// Creates the stream of a distribution, given as JSON, and a seed. Both together determine the stream.
    #[new]
    fn new(distribution: &str, seed: u64) -> PyResult<Draws> {
        let parsed: Distribution = serde_json::from_str(distribution).map_err(error::value)?;
        parsed.check().map_err(error::value)?;
        let stream = distribution.bytes().fold(seed, |stream, byte| {
            Random::new(stream.wrapping_add(u64::from(byte))).bits()
        });
        Ok(Draws {
            sampler: parsed.sampler(),
            random: Random::new(stream),
        })
    }

    /// The next time, in seconds.
    fn draw(&mut self) -> f64 {
        let random = &mut self.random;
        self.sampler.sample(|| random.bits()) as f64 / 1e9
    }
}

/// Returns the mean of independent observations, and half the width of its confidence interval.
#[pyfunction]
pub fn estimate(values: Vec<f64>, confidence: f64) -> PyResult<(f64, f64)> {
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(PyValueError::new_err(format!(
            "{confidence} is not a confidence; give a number between 0 and 1, such as 0.95"
        )));
    }
    let estimate = Estimate::of(values);
    Ok((estimate.mean(), estimate.half_width(confidence)))
}
