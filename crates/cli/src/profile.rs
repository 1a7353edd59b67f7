//! CPU profiles for `go tool pprof`.

mod format;

use anyhow::{Context, Result, anyhow};
use corsair_observe::Replacement;
use format::{Function, Location, Sample, ValueType};
use pprof::{ProfilerGuard, ProfilerGuardBuilder, Report, Symbol};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// The number of samples per second of CPU time. The period is 8 ms, which is a multiple of the
/// ticks of common kernels (4 ms or 1 ms).
const SAMPLES_PER_SECOND: i32 = 125;

/// The CPU time between two samples, in nanoseconds.
const PERIOD: u64 = 1_000_000_000 / SAMPLES_PER_SECOND as u64;

/// A profile that is being recorded.
pub struct Profile {
    file: Replacement,
    guard: ProfilerGuard<'static>,
}

impl Profile {
    /// Starts to take samples, which are written to `path` at the end.
    ///
    /// # Errors
    /// If the file cannot be written, or the system has no timer.
    pub fn begin(path: &Path) -> Result<Profile> {
        let file = Replacement::begin(path).context("-cpuprofile")?;
        let guard = ProfilerGuardBuilder::default()
            .frequency(SAMPLES_PER_SECOND)
            // Unwinding is not safe while the unwinder runs, or while the allocator holds a lock.
            .blocklist(&["libc", "libgcc", "pthread", "vdso"])
            .build()
            .map_err(|error| anyhow!("-cpuprofile: cannot take samples: {error}"))?;
        Ok(Profile { file, guard })
    }

    /// Ends the profile and writes the file, a protocol buffer in the format of pprof.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end(mut self) -> Result<()> {
        let report = self.guard.report().build();
        let report =
            report.map_err(|error| anyhow!("-cpuprofile: cannot read the samples: {error}"))?;
        self.file
            .writer()
            .write_all(&encoded(&report).encode())
            .map_err(|error| self.file.failed(error))?;
        Ok(self.file.finish()?)
    }
}

/// Returns the samples of a report in the format of pprof.
fn encoded(report: &Report) -> format::Profile {
    let mut tables = Tables::default();
    tables.string("");
    let samples_in_numbers = ValueType {
        kind: tables.string("samples"),
        unit: tables.string("count"),
    };
    let cpu_time = ValueType {
        kind: tables.string("cpu"),
        unit: tables.string("nanoseconds"),
    };
    let thread = tables.string("thread");
    let mut samples: Vec<Sample> = report
        .data
        .iter()
        .map(|(stack, &count)| {
            let symbols = stack.frames.iter().flatten();
            let count = u64::try_from(count).unwrap_or(0);
            Sample {
                locations: symbols.map(|symbol| tables.location(symbol)).collect(),
                values: [count, count.saturating_mul(PERIOD)],
                thread: (thread, tables.string(&stack.thread_name_or_id())),
            }
        })
        .collect();
    // The samples come from a hash map, so they are sorted.
    samples.sort_by_key(|sample| std::cmp::Reverse(sample.values));
    let timing = &report.timing;
    let began = timing.start_time.duration_since(UNIX_EPOCH);
    format::Profile {
        sample_types: [samples_in_numbers, cpu_time],
        samples,
        locations: tables.locations,
        functions: tables.functions,
        strings: tables.strings,
        began: nanoseconds(began.unwrap_or_default()),
        duration: nanoseconds(timing.duration),
        period_type: cpu_time,
        period: PERIOD,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The tables to which samples refer by number.
#[derive(Default)]
struct Tables {
    strings: Vec<String>,
    string_numbers: HashMap<String, u64>,
    functions: Vec<Function>,
    function_numbers: HashMap<u64, u64>,
    locations: Vec<Location>,
    location_numbers: HashMap<(u64, u32), u64>,
}

impl Tables {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.string_numbers.get(text) {
            return number;
        }
        let number = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.string_numbers.insert(text.to_owned(), number);
        number
    }

    /// Returns the number of a line in a function.
    fn location(&mut self, symbol: &Symbol) -> u64 {
        let function = self.function(symbol);
        let next = self.locations.len() as u64 + 1;
        let number = *self
            .location_numbers
            .entry((function, symbol.lineno()))
            .or_insert(next);
        if number == next {
            self.locations.push(Location {
                number,
                function,
                line: u64::from(symbol.lineno()),
            });
        }
        number
    }

    fn function(&mut self, symbol: &Symbol) -> u64 {
        let system_name = self.string(&symbol.sys_name());
        let next = self.functions.len() as u64 + 1;
        let number = *self.function_numbers.entry(system_name).or_insert(next);
        if number == next {
            let function = Function {
                number,
                name: self.string(&symbol.name()),
                system_name,
                file: self.string(&symbol.filename()),
            };
            self.functions.push(function);
        }
        number
    }
}
