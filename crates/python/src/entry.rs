//! The results of an entry point.

use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array, UInt64Array};
use corsair_arch::EntryTotals;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The requests of an entry point, or of one kind of request. All response times are stored with three digits.
#[pyclass(frozen, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Entry {
    totals: EntryTotals,
}

/// The contents of a pickle: counts, times, ages and kinds.
type Parts = (
    (u64, u64, u64, u64, u64),
    Vec<(u64, u64)>,
    Vec<(u64, u64)>,
    BTreeMap<String, Py<PyAny>>,
);

impl Entry {
    pub fn new(totals: EntryTotals) -> Entry {
        Entry { totals }
    }
}

/// Iterates over the upper ends of the buckets, with the count of each bucket.
fn recorded(times: &corsair_observe::TimesHistogram) -> impl Iterator<Item = (u64, u64)> + '_ {
    times.iter().map(|(bounds, count)| (*bounds.end(), count))
}

#[pymethods]
impl Entry {
    /// The number of requests.
    #[getter]
    fn requests(&self) -> u64 {
        self.totals.requests
    }

    /// The number of requests to store a value (puts). These requests are not answered.
    #[getter]
    fn puts(&self) -> u64 {
        self.totals.puts
    }

    /// The number of requests that failed.
    #[getter]
    fn errors(&self) -> u64 {
        self.totals.errors
    }

    /// The number of requests for values that did not exist.
    #[getter]
    fn missing(&self) -> u64 {
        self.totals.missing
    }

    /// The number of requests that failed at once, because there was no instance to send them to. They are included in
    /// the errors.
    #[getter]
    fn unrouted(&self) -> u64 {
        self.totals.unrouted
    }

    /// The number of requests that were not answered by the end.
    #[getter]
    fn unanswered(&self) -> u64 {
        self.totals.unanswered()
    }

    /// The mean response time of answered requests in seconds.
    #[getter]
    fn mean(&self) -> f64 {
        self.totals.times.mean().unwrap_or(0.0) / 1e9
    }

    /// The requests by kind, each as an `Entry`.
    #[getter]
    fn kinds(&self) -> BTreeMap<String, Entry> {
        let kinds = self.totals.kinds.iter();
        kinds
            .map(|(kind, totals)| (kind.clone(), Entry::new(totals.clone())))
            .collect()
    }

    /// The response time in seconds that a fraction of the requests, from 0 to 1, does not exceed. Requests that were
    /// unanswered at the end count with their age.
    fn percentile(&self, part: f64) -> PyResult<f64> {
        Ok(self.percentile_of(part)?.time.as_secs_f64())
    }

    /// True if the actual percentile may be longer, because some requests were unanswered at the end.
    fn is_at_least(&self, part: f64) -> PyResult<bool> {
        Ok(self.percentile_of(part)?.is_lower_bound)
    }

    /// The response times that occurred, and their frequencies: columns seconds and count.
    fn histogram(&self) -> PyResult<Table> {
        let times = || recorded(&self.totals.times);
        let seconds: Float64Array = times().map(|(nanos, _)| Some(nanos as f64 / 1e9)).collect();
        let count: UInt64Array = times().map(|(_, count)| Some(count)).collect();
        Table::of(vec![
            ("seconds", Arc::new(seconds) as ArrayRef),
            ("count", Arc::new(count) as ArrayRef),
        ])
    }

    fn __repr__(&self) -> String {
        let at = |part| self.totals.percentile(part).time;
        format!(
            "Entry({} requests, {} failed, p50 {:?}, p99 {:?})",
            self.totals.requests,
            self.totals.errors,
            at(0.5),
            at(0.99)
        )
    }

    #[staticmethod]
    fn _restore(py: Python<'_>, parts: Parts) -> PyResult<Entry> {
        let ((requests, puts, errors, missing, unrouted), times, ages, kinds) = parts;
        let mut totals = EntryTotals {
            requests,
            puts,
            errors,
            missing,
            unrouted,
            ..EntryTotals::default()
        };
        for (value, count) in times {
            totals.times.record_n(value, count);
        }
        for (value, count) in ages {
            totals.ages.record_n(value, count);
        }
        for (kind, entry) in kinds {
            let entry = entry.bind(py).cast::<Entry>()?;
            totals.kinds.insert(kind, entry.get().totals.clone());
        }
        Ok(Entry::new(totals))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Parts,))> {
        let totals = &self.totals;
        let restore = py.get_type::<Entry>().getattr("_restore")?;
        let mut kinds = BTreeMap::new();
        for (kind, entry) in self.kinds() {
            kinds.insert(kind, Py::new(py, entry)?.into_any());
        }
        let counts = (
            totals.requests,
            totals.puts,
            totals.errors,
            totals.missing,
            totals.unrouted,
        );
        let (times, ages) = (
            recorded(&totals.times).collect(),
            recorded(&totals.ages).collect(),
        );
        Ok((restore, ((counts, times, ages, kinds),)))
    }
}

impl Entry {
    fn percentile_of(&self, part: f64) -> PyResult<corsair_arch::Percentile> {
        if (0.0..=1.0).contains(&part) {
            return Ok(self.totals.percentile(part));
        }
        Err(PyValueError::new_err(format!(
            "{part} is not a share of the requests; give 0 to 1, for example 0.99"
        )))
    }
}
