//! `corsair sweep`: runs over a grid of fields of a definition, a line for each.
//!
//! Lines are written in the order of the grid, however many runs are made at once; so a sweep that
//! was stopped goes on after the last whole line of its file.

use crate::console::Console;
use crate::interrupt;
use crate::variants::{self, RunArgs};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use corsair_arch::{DefinitionText, Measured, Setting, in_parallel, measure};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Larger grids are refused.
const MOST_RUNS: usize = 1_000_000;

/// The flags of `corsair sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The architecture: a name or a file
    #[arg(long, short, value_name = "NAME")]
    arch: String,
    /// A field and its values: services.web.count=1,2,4 or =1..8 or =10..100..10; several times for
    /// a grid
    #[arg(long = "set", value_name = "FIELD=VALUES", required = true)]
    set: Vec<String>,
    /// From how many seeds each is run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: usize,
    #[command(flatten)]
    run: RunArgs,
    /// The file; what it has already is not run again
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// What the file's lines are; by its ending if left out
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Csv,
    Json,
}

/// The runs of a sweep.
struct Grid {
    /// Each field with its values.
    axes: Vec<(String, Vec<Setting>)>,
    seeds: usize,
    first_seed: u64,
    /// Tells sweeps of other definitions, loads and times apart.
    mark: String,
    format: Format,
}

/// Makes the runs that are missing.
///
/// # Errors
/// What is wrong with the flags, the definition or the file.
pub fn run(args: &SweepArgs) -> Result<()> {
    let text = args.run.find(&args.arch)?;
    let grid = Grid::new(args, &text)?;
    // Whatever is wrong with a point of the grid is told before the first run.
    for point in 0..grid.points() {
        args.run.topology(&text, &grid.settings(point), None)?;
    }
    let (config, plan) = (args.run.config(), args.run.plan()?);
    let mut file = open(&args.out)?;
    let done = grid.resume(&mut file, &args.out)?;
    let total = grid.points() * grid.seeds;
    interrupt::on_ctrl_c(config.cut.clone());
    let console = Console::new(true);
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left")?;
    let bar = ProgressBar::new(total as u64).with_style(style);
    bar.set_position(done as u64);
    console.set_bar(Some(bar.clone()));
    let workers = config.workers.get();
    let mut next = done;
    let mut is_cut = false;
    while next < total && !is_cut {
        let count = (4 * workers).min(total - next);
        let results = in_parallel(workers, count, |number| {
            let (point, seed) = grid.run(next + number);
            let settings = grid.settings(point);
            let topology = args.run.topology(&text, &settings, None)?;
            let measured = measure(&config, &topology, &plan, seed);
            bar.inc(1);
            measured.map_err(|error| anyhow!("{error}"))
        });
        let mut lines = String::new();
        for (number, result) in (next..).zip(results) {
            let Some(measured) = result? else {
                is_cut = true;
                break;
            };
            grid.line(number, &measured, &mut lines);
            next = number + 1;
        }
        let written = file.write_all(lines.as_bytes()).and_then(|()| file.flush());
        written.with_context(|| format!("cannot write {}", args.out.display()))?;
    }
    bar.finish_and_clear();
    console.set_bar(None);
    let path = args.out.display();
    if is_cut {
        console.line(format_args!(
            "corsair: stopped after {next} of {total} runs; the same command goes on with {path}"
        ));
    } else {
        console.line(format_args!(
            "corsair: {total} runs in {path}, {done} of them before"
        ));
    }
    Ok(())
}

fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let opened = options.open(path);
    opened.with_context(|| format!("--out: cannot open {}", path.display()))
}

impl Grid {
    fn new(args: &SweepArgs, text: &DefinitionText) -> Result<Grid> {
        let mut axes: Vec<(String, Vec<Setting>)> = Vec::new();
        let mut runs = args.seeds;
        for set in &args.set {
            let (path, values) = variants::split(set).map_err(|what| anyhow!("--set: {what}"))?;
            if axes.iter().any(|(known, _)| known == path) {
                bail!("--set: {path} is set twice; give all of its values at once");
            }
            let values = values_of(values).map_err(|what| anyhow!("--set: {path}: {what}"))?;
            let settings: Vec<Setting> = values
                .iter()
                .map(|value| Setting {
                    path: path.to_owned(),
                    value: Setting::value(value),
                })
                .collect();
            runs = runs.saturating_mul(settings.len());
            axes.push((path.to_owned(), settings));
        }
        if !(1..=MOST_RUNS).contains(&runs) {
            bail!("{runs} runs are not possible; give 1 to {MOST_RUNS}");
        }
        let is_json = |ending: &str| ["json", "jsonl", "ndjson"].contains(&ending);
        let ending = args.out.extension().and_then(|ending| ending.to_str());
        let by_name = if ending.is_some_and(is_json) {
            Format::Json
        } else {
            Format::Csv
        };
        Ok(Grid {
            axes,
            seeds: args.seeds,
            first_seed: args.run.seed,
            mark: mark(&format!("{} {}", text.text(), args.run.described())),
            format: args.format.unwrap_or(by_name),
        })
    }

    fn points(&self) -> usize {
        self.axes.iter().map(|(_, values)| values.len()).product()
    }

    /// The point of the grid and the seed of a run.
    fn run(&self, number: usize) -> (usize, u64) {
        let seed = self.first_seed.wrapping_add((number % self.seeds) as u64);
        (number / self.seeds, seed)
    }

    /// The fields of a point; the last changes fastest.
    fn settings(&self, point: usize) -> Vec<Setting> {
        let mut left = point;
        let mut settings: Vec<Setting> = Vec::with_capacity(self.axes.len());
        for (_, values) in self.axes.iter().rev() {
            settings.push(values[left % values.len()].clone());
            left /= values.len();
        }
        settings.reverse();
        settings
    }

    /// The first line of the file, if it has one.
    fn head(&self) -> String {
        match self.format {
            Format::Json => String::new(),
            Format::Csv => {
                let mut head = String::from("definition");
                for (path, _) in &self.axes {
                    let _ = write!(head, ",{}", quoted(path));
                }
                let zero = Measured {
                    requests: 0,
                    throughput: 0.0,
                    errors: 0.0,
                    mean: 0.0,
                    p50: 0.0,
                    p90: 0.0,
                    p99: 0.0,
                    p999: 0.0,
                };
                head.push_str(",seed");
                for (name, _) in zero.columns() {
                    let _ = write!(head, ",{name}");
                }
                head.push('\n');
                head
            }
        }
    }

    /// What the line of a run begins with.
    fn begin(&self, number: usize) -> String {
        let (point, seed) = self.run(number);
        let settings = self.settings(point);
        let mut line = String::new();
        match self.format {
            Format::Csv => {
                line.push_str(&self.mark);
                for setting in &settings {
                    let _ = write!(line, ",{}", quoted(&setting.typed()));
                }
                let _ = write!(line, ",{seed},");
            }
            Format::Json => {
                let _ = write!(line, "{{\"definition\":\"{}\"", self.mark);
                for setting in &settings {
                    let path = serde_json::Value::from(setting.path.as_str());
                    let _ = write!(line, ",{path}:{}", setting.value);
                }
                let _ = write!(line, ",\"seed\":{seed},");
            }
        }
        line
    }

    fn line(&self, number: usize, measured: &Measured, out: &mut String) {
        out.push_str(&self.begin(number));
        let columns = measured.columns().map(|(name, value)| match self.format {
            Format::Csv => format!("{value}"),
            Format::Json => format!("\"{name}\":{value}"),
        });
        out.push_str(&columns.join(","));
        out.push_str(if self.format == Format::Json {
            "}\n"
        } else {
            "\n"
        });
    }

    /// How many runs a file has already. It is cut after the last whole line of these, or begun.
    fn resume(&self, file: &mut File, path: &Path) -> Result<usize> {
        let mut text = String::new();
        let read = file.read_to_string(&mut text);
        read.with_context(|| format!("--out: cannot read {}", path.display()))?;
        let head = self.head();
        let other = || {
            anyhow!(
                "--out: {} is not of this sweep; name another file, or delete it",
                path.display()
            )
        };
        let mut end = 0;
        let mut runs = 0;
        let begun = text.strip_prefix(head.as_str());
        if begun.is_none() && !head.starts_with(text.as_str()) {
            return Err(other());
        }
        if let Some(lines) = begun {
            end = head.len();
            for line in lines
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'))
            {
                if runs >= self.points() * self.seeds || !line.starts_with(&self.begin(runs)) {
                    return Err(other());
                }
                end += line.len();
                runs += 1;
            }
        }
        let ready = (|| {
            file.set_len(end as u64)?;
            file.seek(SeekFrom::End(0))?;
            if end == 0 {
                file.write_all(head.as_bytes())?;
            }
            Ok(())
        })();
        ready
            .map_err(|error: std::io::Error| anyhow!("cannot write {}: {error}", path.display()))?;
        Ok(runs)
    }
}

/// Eight digits that are others for other texts (FNV-1a).
fn mark(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{:08x}", (hash >> 32) as u32 ^ hash as u32)
}

/// A field of a CSV file.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// The values of `1,2,4`, `1..8` or `10..100..10`; commas within brackets belong to a value.
fn values_of(text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = vec![String::new()];
    let (mut depth, mut in_text) = (0i32, false);
    for c in text.chars() {
        match c {
            '"' => in_text = !in_text,
            '[' | '{' if !in_text => depth += 1,
            ']' | '}' if !in_text => depth -= 1,
            _ => {}
        }
        match values.last_mut() {
            Some(last) if c != ',' || depth > 0 || in_text => last.push(c),
            _ => values.push(String::new()),
        }
    }
    let mut all = Vec::new();
    for value in values {
        let value = value.trim();
        if value.is_empty() {
            return Err("a value is missing; write them as 1,2,4".to_owned());
        }
        match range(value)? {
            Some(numbers) => all.extend(numbers.map(|number| number.to_string())),
            None => all.push(value.to_owned()),
        }
    }
    Ok(all)
}

/// The numbers of `1..8` or `10..100..10`, both ends among them; none if it is no range.
fn range(text: &str) -> Result<Option<impl Iterator<Item = i64> + use<>>, String> {
    let parts: Vec<Option<i64>> = text.split("..").map(|part| part.parse().ok()).collect();
    let (from, to, step) = match *parts {
        [Some(from), Some(to)] => (from, to, 1),
        [Some(from), Some(to), Some(step)] => (from, to, step),
        _ => return Ok(None),
    };
    if from > to || step < 1 || (to - from) / step >= MOST_RUNS as i64 {
        return Err(format!(
            "'{text}' is no range; write it as 1..8 or 10..100..10"
        ));
    }
    Ok(Some((from..=to).step_by(step as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_ranges_and_json() {
        let values = |text: &str| values_of(text).unwrap();
        assert_eq!(values("1,2,4"), ["1", "2", "4"]);
        assert_eq!(values("1..3,9"), ["1", "2", "3", "9"]);
        assert_eq!(values("10..30..10"), ["10", "20", "30"]);
        assert_eq!(
            values(r#"2ms,{"uniform":["1ms","2ms"]},"a,b""#),
            ["2ms", r#"{"uniform":["1ms","2ms"]}"#, r#""a,b""#]
        );
        assert!(values_of("1,,2").is_err() && values_of("3..1").is_err() && values_of("").is_err());
    }
}
