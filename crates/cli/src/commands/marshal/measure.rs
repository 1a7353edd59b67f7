//! The costs of strategies: time, throughput, allocations.
//!
//! The subjects are run alternately, each with a short burst of runs, until the time limit. The median time of a run is
//! reported. If the machine is slower for some time, all subjects are slower, so ratios within one table are more
//! reliable than the times themselves. Allocations are counted in separate runs.

use corsair_serial::{Batch, Format, MarshalError, Strategy};
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// The number of warm-up runs, in which buffers grow and pools start. These runs are not measured.
const WARM_UP: usize = 20;

/// The number of runs of one subject before the next subject has its turn.
const BURST: usize = 8;

/// The number of runs over which allocations are averaged.
const COUNTED: u64 = 20;

/// The reasons why nothing can be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// The values cannot be marshalled.
    #[error(transparent)]
    Marshal(#[from] MarshalError),
    /// The documents of a strategy differ from the expected documents.
    #[error(
        "{strategy} with {workers} workers gave another document for value {index} than the serial loop; this is a fault of corsair, please report it"
    )]
    Differs {
        /// Name of the strategy.
        strategy: String,
        /// The number of workers.
        workers: usize,
        /// Index of the first document that differs.
        index: usize,
    },
}

/// A run, which marshals all values and returns the number of bytes.
type Run<'a> = Box<dyn FnMut() -> Result<usize, MarshalError> + 'a>;

/// The subject of a measurement: values that are marshalled in one particular way.
pub struct Subject<'a> {
    name: String,
    workers: usize,
    values: usize,
    run: Run<'a>,
}

impl<'a> Subject<'a> {
    /// Creates a subject from a strategy that keeps its batch between runs. Its first documents are compared with
    /// `expected` here, outside the timing.
    ///
    /// # Errors
    /// If the values cannot be marshalled, or the documents differ from the expected ones.
    pub fn verified<S: Strategy, F: Format, T: Serialize + Sync>(
        strategy: &'a S,
        format: &'a F,
        values: &'a [T],
        expected: &Batch<F>,
    ) -> Result<Subject<'a>, MeasureError> {
        let mut batch = strategy.marshal(format, values)?;
        if let Some(index) =
            (0..batch.len().max(expected.len())).find(|&i| batch.get(i) != expected.get(i))
        {
            return Err(MeasureError::Differs {
                strategy: strategy.name().to_owned(),
                workers: strategy.workers(),
                index,
            });
        }
        Ok(Subject::new(
            strategy.name(),
            strategy.workers(),
            values.len(),
            move || {
                strategy.marshal_into(format, values, &mut batch)?;
                Ok(batch.size())
            },
        ))
    }

    /// Creates a subject that marshals `values` values and returns the number of bytes.
    pub fn new(
        name: &str,
        workers: usize,
        values: usize,
        run: impl FnMut() -> Result<usize, MarshalError> + 'a,
    ) -> Subject<'a> {
        Subject {
            name: name.to_owned(),
            workers,
            values,
            run: Box::new(run),
        }
    }
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject")
            .field("name", &self.name)
            .field("workers", &self.workers)
            .field("values", &self.values)
            .finish_non_exhaustive()
    }
}

/// The allocations of some runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocated {
    /// The number of allocated blocks.
    pub allocations: u64,
    /// The number of allocated bytes.
    pub bytes: u64,
}

/// The costs of a subject.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// Name of the strategy.
    pub strategy: String,
    /// The number of workers of the subject.
    pub workers: usize,
    /// The number of values per run.
    pub values: usize,
    /// The bytes of all documents of a run, without terminators.
    pub size: usize,
    /// Median time of a run.
    pub run: Duration,
    /// Allocations per run, on average.
    pub allocations: u64,
    /// Allocated bytes per run, on average.
    pub allocated: u64,
}

impl Measurement {
    /// Returns the nanoseconds per value; zero if there are no values.
    pub fn ns_per_value(&self) -> f64 {
        match self.values {
            0 => 0.0,
            values => self.run.as_secs_f64() * 1e9 / values as f64,
        }
    }

    /// Returns the throughput in millions of bytes per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.size as f64 / self.run.as_secs_f64().max(1e-9) / 1e6
    }
}

/// Measures all subjects in turns, for about `time` each.
///
/// `count` must call its argument once, and return the allocations of all threads during the call.
///
/// # Errors
///
/// The first failure of a run.
pub fn measure(
    subjects: &mut [Subject<'_>],
    time: Duration,
    count: &dyn Fn(&mut dyn FnMut()) -> Allocated,
) -> Result<Vec<Measurement>, MarshalError> {
    let mut samples = vec![Vec::new(); subjects.len()];
    for subject in &mut *subjects {
        for _ in 0..WARM_UP {
            (subject.run)()?;
        }
    }
    let until = Instant::now() + time * u32::try_from(subjects.len()).unwrap_or(u32::MAX);
    loop {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            for _ in 0..BURST {
                let start = Instant::now();
                (subject.run)()?;
                samples.push(start.elapsed());
            }
        }
        if Instant::now() >= until {
            break;
        }
    }
    subjects
        .iter_mut()
        .zip(samples)
        .map(|(subject, mut samples)| {
            samples.sort_unstable();
            let size = (subject.run)()?;
            let mut outcome = Ok(0);
            let counted = count(&mut || {
                for _ in 0..COUNTED {
                    if outcome.is_ok() {
                        outcome = (subject.run)();
                    }
                }
            });
            outcome?;
            Ok(Measurement {
                strategy: subject.name.clone(),
                workers: subject.workers,
                values: subject.values,
                size,
                run: samples[samples.len() / 2],
                allocations: counted.allocations.div_ceil(COUNTED),
                allocated: counted.bytes.div_ceil(COUNTED),
            })
        })
        .collect()
}

/// Formats measurements as text, one per line. The last column compares each measurement with the first one.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a>(pub &'a [Measurement]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<20} {:>7} {:>12} {:>9} {:>8} {:>12} {:>10} {:>8}",
            "strategy", "workers", "ns/run", "ns/value", "MB/s", "bytes/run", "allocs/run", "speed"
        )?;
        for each in self.0 {
            let speed = self.0[0].run.as_secs_f64() / each.run.as_secs_f64().max(1e-9);
            writeln!(
                f,
                "{:<20} {:>7} {:>12} {:>9.1} {:>8.0} {:>12} {:>10} {:>7.2}x",
                each.strategy,
                each.workers,
                each.run.as_nanos(),
                each.ns_per_value(),
                each.megabytes_per_second(),
                each.allocated,
                each.allocations,
                speed
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use corsair_serial::{Json, Serial};

    #[test]
    fn a_subject_with_other_documents_than_expected_is_refused() {
        let expected = Serial.marshal(&Json, &[1, 2, 4]).unwrap();
        let error = Subject::verified(&Serial, &Json, &[1, 2, 3], &expected).unwrap_err();
        assert!(matches!(error, MeasureError::Differs { index: 2, .. }));
        let error = Subject::verified(&Serial, &Json, &[1, 2], &expected).unwrap_err();
        assert!(matches!(error, MeasureError::Differs { index: 2, .. }));
    }

    #[test]
    fn counts_are_per_run_and_rounded_up() {
        let mut subjects = [Subject::new("one", 1, 4, || Ok(40))];
        let count = |run: &mut dyn FnMut()| {
            run();
            Allocated {
                allocations: COUNTED + 1,
                bytes: COUNTED * 100,
            }
        };
        let measured = measure(&mut subjects, Duration::ZERO, &count).unwrap();
        assert_eq!((measured[0].allocations, measured[0].allocated), (2, 100));
        assert_eq!((measured[0].values, measured[0].size), (4, 40));
    }

    #[test]
    fn a_run_that_fails_ends_the_measurement() {
        let mut runs = 0;
        let mut subjects = [Subject::new("fails late", 1, 1, || {
            runs += 1;
            match runs {
                25 => Err(MarshalError::InsideRuntime),
                _ => Ok(1),
            }
        })];
        let count = |run: &mut dyn FnMut()| {
            run();
            Allocated::default()
        };
        assert!(measure(&mut subjects, Duration::ZERO, &count).is_err());
    }

    #[test]
    fn the_table_has_a_line_per_measurement_and_compares_with_the_first() {
        let one = Measurement {
            strategy: "serial".to_owned(),
            workers: 1,
            values: 1000,
            size: 1_000_000,
            run: Duration::from_millis(1),
            allocations: 0,
            allocated: 0,
        };
        let two = Measurement {
            strategy: "chunked".to_owned(),
            workers: 2,
            run: Duration::from_micros(500),
            allocations: 1,
            allocated: 48,
            ..one.clone()
        };
        let table = Table(&[one, two]).to_string();
        let lines: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(
            lines[1],
            [
                "serial", "1", "1000000", "1000.0", "1000", "0", "0", "1.00x"
            ]
        );
        assert_eq!(
            lines[2],
            [
                "chunked", "2", "500000", "500.0", "2000", "48", "1", "2.00x"
            ]
        );
    }
}
