//! The file of a sweep.

use super::{OutputFormat, Sweep, SweepError};
use crate::experiment::Measurement;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file with a line for each completed run.
#[derive(Debug)]
pub struct SweepFile {
    file: File,
    path: PathBuf,
    done: usize,
}

impl SweepFile {
    /// Opens or creates the file of a sweep, and reads its runs. An incomplete last line is removed.
    ///
    /// # Errors
    /// If the file cannot be opened, or belongs to another sweep.
    pub fn open(sweep: &Sweep, path: &Path) -> Result<(SweepFile, Vec<Measurement>), SweepError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let failed = |verb| {
            move |source| SweepError::File {
                verb,
                file: path.to_owned(),
                source,
            }
        };
        let mut file = options.open(path).map_err(failed("open"))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed("read"))?;
        let head = sweep.head();
        let (end, made) = sweep
            .made(&text, &head)
            .ok_or_else(|| SweepError::OtherFile(path.to_owned()))?;
        let ready = (|| {
            file.set_len(end as u64)?;
            file.seek(SeekFrom::End(0))?;
            if end == 0 {
                file.write_all(head.as_bytes())?;
            }
            Ok(())
        })();
        ready.map_err(failed("write"))?;
        let file = SweepFile {
            file,
            path: path.to_owned(),
            done: made.len(),
        };
        Ok((file, made))
    }

    /// Adds the next runs.
    ///
    /// # Errors
    /// [`SweepError::File`].
    pub fn add(&mut self, sweep: &Sweep, measured: &[Measurement]) -> Result<(), SweepError> {
        let mut lines = String::new();
        for (number, measured) in (self.done..).zip(measured) {
            sweep.grid.line(sweep.in_grid(number), measured, &mut lines);
        }
        let written = self.file.write_all(lines.as_bytes());
        written
            .and_then(|()| self.file.flush())
            .map_err(|source| SweepError::File {
                verb: "write",
                file: self.path.clone(),
                source,
            })?;
        self.done += measured.len();
        Ok(())
    }
}

impl Sweep {
    /// Returns the length of the complete lines, and their measurements; `None` if the file belongs to another sweep.
    fn made(&self, text: &str, head: &str) -> Option<(usize, Vec<Measurement>)> {
        let format = self.grid.described().format;
        let Some(lines) = text.strip_prefix(head) else {
            return head.starts_with(text).then(|| (0, Vec::new()));
        };
        let (mut end, mut runs) = (head.len(), Vec::new());
        let lines = lines.split_inclusive('\n');
        for line in lines.filter(|line| line.ends_with('\n')) {
            if runs.len() >= self.len() {
                return None;
            }
            let numbers = line.strip_prefix(&self.grid.begin(self.in_grid(runs.len())))?;
            runs.push(measured(numbers.trim_end(), format)?);
            end += line.len();
        }
        Some((end, runs))
    }
}

/// Parses the measurements at the end of a line.
fn measured(text: &str, format: OutputFormat) -> Option<Measurement> {
    let mut values = [0.0; Measurement::NAMES.len()];
    let mut parts = match format {
        OutputFormat::Csv => text,
        OutputFormat::Json => text.strip_suffix('}')?,
    }
    .split(',');
    for (value, name) in values.iter_mut().zip(Measurement::NAMES) {
        let part = parts.next()?;
        let number = match format {
            OutputFormat::Csv => part,
            OutputFormat::Json => {
                let part = part.strip_prefix('"')?.strip_prefix(name)?;
                part.strip_prefix("\":")?
            }
        };
        *value = match number {
            // A run without requests has no times.
            "" | "null" => f64::NAN,
            number => number.parse().ok()?,
        };
    }
    let [requests, throughput, errors, mean, p50, p90, p95, p99, p999] = values;
    parts.next().is_none().then_some(Measurement {
        requests: requests as u64,
        throughput,
        errors,
        mean,
        p50,
        p90,
        p95,
        p99,
        p999,
    })
}
