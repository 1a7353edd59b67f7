//! A grid of runs.

use crate::arguments::{Arguments, config, setup};
use crate::arguments::{Count, Seed};
use crate::error;
use crate::interrupt::watched;
use corsair::Config;
use corsair_arch::sweep::{OutputFormat, Sweep as Grid, SweepError, SweepFile, field, typed_field};
use corsair_arch::{DefinitionText, Measurement};
use pyo3::exceptions::{PyIndexError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The runs over a grid of field values of a definition.
#[pyclass(frozen, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Sweep {
    grid: Grid,
}

/// Returns the exception of an invalid sweep.
fn wrong(py: Python<'_>, error: &SweepError) -> PyErr {
    match error {
        SweepError::Setup(setup) => error::setup(py, setup),
        SweepError::Simulate(run) => error::simulate(run),
        SweepError::File { .. } => PyOSError::new_err(error.to_string()),
        other => error::value(other),
    }
}

#[pymethods]
impl Sweep {
    /// Creates a sweep from fields with their values. The values are a list of JSON texts, or one text in the syntax of
    /// the command line.
    #[new]
    fn new(
        py: Python<'_>,
        text: &str,
        file: &str,
        axes: Vec<(String, Option<Vec<String>>, Option<String>)>,
        arguments: &Bound<'_, PyDict>,
    ) -> PyResult<Sweep> {
        let arguments = Arguments(arguments);
        let axes = axes.into_iter().map(|(path, values, typed)| match typed {
            Some(typed) => typed_field(&path, &typed).map_err(|e| wrong(py, &e)),
            None => {
                let values = values.unwrap_or_default().into_iter();
                let values = values.map(|value| serde_json::from_str(&value));
                let values: Vec<_> = values
                    .collect::<Result<_, _>>()
                    .map_err(|what| PyValueError::new_err(format!("{path}: {what}")))?;
                Ok(field(&path, values))
            }
        });
        let fields = axes.collect::<PyResult<_>>()?;
        let (seeds, first) = (
            arguments.get::<Count>("seeds")?.0,
            arguments.get::<Seed>("seed")?.0,
        );
        let text = DefinitionText::new(text, file);
        let setup = setup(&arguments)?;
        let grid = Grid::new(
            text,
            setup,
            fields,
            seeds as usize,
            first,
            OutputFormat::Csv,
        );
        let grid = grid.map_err(|e| wrong(py, &e))?;
        grid.check().map_err(|e| wrong(py, &e))?;
        Ok(Sweep { grid })
    }

    fn __len__(&self) -> usize {
        self.grid.len()
    }

    /// A text that identifies the definition, load and duration of the sweep.
    #[getter]
    fn mark(&self) -> &str {
        &self.grid.grid().described().definition
    }

    /// The paths of the fields.
    #[getter]
    fn fields(&self) -> Vec<&str> {
        let fields = self.grid.grid().described().fields.iter();
        fields.map(|(path, _)| path.as_str()).collect()
    }

    /// The values of the fields of a run, as JSON, and its seed.
    fn run(&self, number: i64) -> PyResult<(Vec<String>, u64)> {
        let (settings, seed) = self.grid.run(self.number(number)?);
        let values = settings.iter().map(|setting| setting.value.to_string());
        Ok((values.collect(), seed))
    }

    /// Makes one run on one thread.
    fn measure(&self, py: Python<'_>, number: i64) -> PyResult<Vec<f64>> {
        let number = self.number(number)?;
        let config = Config::default();
        let work = || self.grid.measure(&config, number);
        let measured = watched(py, &config.cancel, None, || 0.0, work)?;
        let measured = measured.map_err(|e| wrong(py, &e))?;
        let measured = measured.ok_or_else(|| error::failed("the run was cancelled"))?;
        Ok(numbers(&measured))
    }

    /// Makes all runs, or only those that the file does not contain.
    fn measure_all(
        &self,
        py: Python<'_>,
        out: Option<PathBuf>,
        arguments: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<Vec<f64>>> {
        let arguments = Arguments(arguments);
        let config = config(&arguments)?;
        let mut grid = self.grid.clone();
        let (mut file, mut made) = match out {
            Some(out) => {
                grid = grid.formatted(OutputFormat::of(&out));
                let opened = SweepFile::open(&grid, &out);
                let (file, made) = opened.map_err(|e| wrong(py, &e))?;
                (Some(file), made)
            }
            None => (None, Vec::new()),
        };
        let (done, total) = (AtomicUsize::new(made.len()), self.grid.len() as f64);
        let progress = arguments.progress()?;
        let so_far = || done.load(Ordering::Relaxed) as f64 / total;
        let work = || {
            let set_done = |count| done.store(count, Ordering::Relaxed);
            grid.make(&config, file.as_mut(), &mut made, set_done)
        };
        watched(py, &config.cancel, progress.as_ref(), so_far, work)?.map_err(|e| wrong(py, &e))?;
        Ok(made.iter().map(numbers).collect())
    }

    /// The names of the measurements.
    #[staticmethod]
    fn names() -> [&'static str; Measurement::NAMES.len()] {
        Measurement::NAMES
    }
}

impl Sweep {
    fn number(&self, number: i64) -> PyResult<usize> {
        let number = usize::try_from(number)
            .ok()
            .filter(|&number| number < self.grid.len());
        number.ok_or_else(|| {
            PyIndexError::new_err(format!(
                "there are {} runs, numbered from 0",
                self.grid.len()
            ))
        })
    }
}

fn numbers(measured: &Measurement) -> Vec<f64> {
    measured.columns().iter().map(|(_, value)| *value).collect()
}
