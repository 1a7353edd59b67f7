//! The runs of a sweep, and their lines in its file.

use super::parameters::{OutputFormat, SweepParameters};
use super::shard::{FirstLine, Shard};
use super::values::values_of;
use super::{MOST_RUNS, SweepError};
use crate::csv::quoted;
use crate::experiment::Measurement;
use crate::variant::Setting;
use std::fmt::Write as _;

/// Parses a field with several values: `1,2,4`, `1..8` or `10..100..10`.
///
/// # Errors
/// [`SweepError::Values`].
pub fn typed_field(path: &str, values: &str) -> Result<(String, Vec<String>), SweepError> {
    let values = values_of(values).map_err(|what| SweepError::Values {
        path: path.to_owned(),
        what,
    })?;
    Ok((path.to_owned(), values))
}

/// Returns a field with these values in text form.
pub fn field(
    path: &str,
    values: impl IntoIterator<Item = serde_json::Value>,
) -> (String, Vec<String>) {
    let typed = |value: serde_json::Value| {
        let setting = Setting {
            path: path.to_owned(),
            value,
        };
        // A text that would be parsed as another type of value gets quotes.
        let typed = setting.typed();
        match Setting::value(&typed) == setting.value {
            true => typed,
            false => setting.value.to_string(),
        }
    };
    (path.to_owned(), values.into_iter().map(typed).collect())
}

/// The runs of a sweep.
#[derive(Clone, Debug)]
pub struct Grid {
    described: SweepParameters,
    axes: Vec<Vec<Setting>>,
}

impl Grid {
    /// Creates the grid of these parameters.
    ///
    /// # Errors
    /// [`SweepError::Twice`] or [`SweepError::Runs`].
    pub fn new(described: SweepParameters) -> Result<Grid, SweepError> {
        let mut runs = described.seeds;
        let mut axes: Vec<Vec<Setting>> = Vec::new();
        for (number, (path, values)) in described.fields.iter().enumerate() {
            let mut before = described.fields[..number].iter();
            if before.any(|(known, _)| known == path) {
                return Err(SweepError::Twice(path.clone()));
            }
            runs = runs.saturating_mul(values.len());
            let setting = |value: &String| Setting {
                path: path.clone(),
                value: Setting::value(value),
            };
            axes.push(values.iter().map(setting).collect());
        }
        if !(1..=MOST_RUNS).contains(&runs) {
            return Err(SweepError::Runs(runs));
        }
        Ok(Grid { described, axes })
    }

    /// Returns the parameters on which the lines depend.
    pub fn described(&self) -> &SweepParameters {
        &self.described
    }

    /// Returns the grid with lines in this format.
    pub(super) fn formatted(mut self, format: OutputFormat) -> Grid {
        self.described.format = format;
        self
    }

    /// Returns the number of points of the grid.
    pub fn points(&self) -> usize {
        self.axes.iter().map(Vec::len).product()
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.points() * self.described.seeds
    }

    /// Returns the point of the grid and the seed of a run.
    pub fn run(&self, number: usize) -> (usize, u64) {
        let seeds = self.described.seeds;
        let seed = self.described.first_seed;
        (number / seeds, seed.wrapping_add((number % seeds) as u64))
    }

    /// Returns the fields of a point; the last field changes fastest.
    pub fn settings(&self, point: usize) -> Vec<Setting> {
        let mut left = point;
        let mut settings: Vec<Setting> = Vec::with_capacity(self.axes.len());
        for values in self.axes.iter().rev() {
            settings.push(values[left % values.len()].clone());
            left /= values.len();
        }
        settings.reverse();
        settings
    }

    /// Returns the start of a file, before the first run; for a shard, including its identity.
    pub fn head(&self, shard: Option<Shard>) -> String {
        let mut head = match shard {
            Some(shard) => FirstLine::new(shard, self.described.clone()).text(),
            None => String::new(),
        };
        if self.described.format == OutputFormat::Csv {
            head.push_str("definition");
            for (path, _) in &self.described.fields {
                let _ = write!(head, ",{}", quoted(path));
            }
            head.push_str(",seed");
            for name in Measurement::NAMES {
                let _ = write!(head, ",{name}");
            }
            head.push('\n');
        }
        head
    }

    /// Returns the start of a run's line.
    pub fn begin(&self, number: usize) -> String {
        let (point, seed) = self.run(number);
        let settings = self.settings(point);
        let definition = &self.described.definition;
        let mut line = String::new();
        match self.described.format {
            OutputFormat::Csv => {
                line.push_str(definition);
                for setting in &settings {
                    let _ = write!(line, ",{}", quoted(&setting.typed()));
                }
                let _ = write!(line, ",{seed},");
            }
            OutputFormat::Json => {
                let _ = write!(line, "{{\"definition\":\"{definition}\"");
                for setting in &settings {
                    let path = serde_json::Value::from(setting.path.as_str());
                    let _ = write!(line, ",{path}:{}", setting.value);
                }
                let _ = write!(line, ",\"seed\":{seed},");
            }
        }
        line
    }

    /// Adds the line of a run.
    pub fn line(&self, number: usize, measured: &Measurement, out: &mut String) {
        let format = self.described.format;
        out.push_str(&self.begin(number));
        let columns = measured.columns().map(|(name, value)| match format {
            OutputFormat::Csv if value.is_nan() => String::new(),
            OutputFormat::Json if value.is_nan() => format!("\"{name}\":null"),
            OutputFormat::Csv => format!("{value}"),
            OutputFormat::Json => format!("\"{name}\":{value}"),
        });
        out.push_str(&columns.join(","));
        out.push_str(match format {
            OutputFormat::Csv => "\n",
            OutputFormat::Json => "}\n",
        });
    }
}
