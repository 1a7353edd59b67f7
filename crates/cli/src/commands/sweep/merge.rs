//! `corsair sweep merge`: merges the files of all shards into the file of the sweep.

use crate::console::Console;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair_arch::sweep::{FirstLine, Grid, LONGEST_FIRST_LINE, Shard};
use corsair_observe::Replacement;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// The maximum length of a line.
const LONGEST_LINE: usize = 1 << 20;

/// The flags of `corsair sweep merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// Files of all shards, in any order
    #[arg(value_name = "FILES", required = true)]
    files: Vec<PathBuf>,
    /// Output file with the complete sweep
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
}

/// The file of a shard, read up to its first run.
struct ShardFile<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    first: FirstLine,
}

/// Merges the shards.
///
/// # Errors
/// Returns the file and its fault; the merged file is then unchanged.
pub fn run(args: &MergeArgs) -> Result<()> {
    if let Ok(out) = args.out.canonicalize() {
        let same = |file: &&PathBuf| file.canonicalize().is_ok_and(|file| file == out);
        if let Some(file) = args.files.iter().find(same) {
            bail!(
                "--out: {} is one of the shards; name another file",
                file.display()
            );
        }
    }
    let parts: Result<Vec<ShardFile>> = args
        .files
        .iter()
        .map(|path| ShardFile::open(path))
        .collect();
    let mut parts = in_order(parts?)?;
    let grid = Grid::new(parts[0].first.sweep.clone())?;
    for part in &mut parts {
        part.check_columns(&grid)?;
    }
    let mut out = Replacement::begin(&args.out).context("--out")?;
    let shards = parts.len();
    let write = |out: &mut Replacement, text: &[u8]| {
        let written = out.writer().write_all(text);
        written.map_err(|error| anyhow!(out.failed(error)))
    };
    write(&mut out, grid.head(None).as_bytes())?;
    for number in 0..grid.runs() {
        let line = parts[number % shards].line(&grid, number)?;
        write(&mut out, line.as_bytes())?;
    }
    for part in &mut parts {
        part.check_end(&grid)?;
    }
    out.finish().context("--out")?;
    Console::new(true).line(format_args!(
        "corsair: {} runs of {shards} shards in {}",
        grid.runs(),
        args.out.display()
    ));
    Ok(())
}

/// Returns the parts in the order of their shards, if they are all shards of one sweep.
fn in_order(mut parts: Vec<ShardFile>) -> Result<Vec<ShardFile>> {
    parts.sort_by_key(|part| part.first.shard.number);
    let Some((first, others)) = parts.split_first() else {
        bail!("there is nothing to merge; name the files of all shards");
    };
    let of = first.first.shard.of;
    for part in others {
        let (a, b) = (first.path.display(), part.path.display());
        if part.first.corsair != first.first.corsair {
            bail!(
                "{a} was made by corsair {}, {b} by corsair {}; make all shards with one version",
                first.first.corsair,
                part.first.corsair
            );
        }
        if part.first.shard.of != of || part.first.sweep != first.first.sweep {
            bail!("{a} and {b} are shards of different sweeps");
        }
    }
    let same = |pair: &&[ShardFile]| pair[0].first.shard == pair[1].first.shard;
    if let Some(pair) = parts.windows(2).find(same) {
        let [a, b] = [pair[0].path.display(), pair[1].path.display()];
        bail!(
            "{a} and {b} are both shard {}; give each once",
            pair[0].first.shard
        );
    }
    if parts.len() < of {
        let missing = (1..=of)
            .filter(|&number| parts.iter().all(|part| part.first.shard.number != number))
            .map(|number| Shard { number, of }.to_string());
        let missing: Vec<String> = missing.collect();
        let more = match missing.len() {
            0..=5 => String::new(),
            all => format!(" and {} more", all - 5),
        };
        let named = missing[..missing.len().min(5)].join(", ");
        bail!("the shards {named}{more} are missing; give the files of all {of} shards");
    }
    Ok(parts)
}

impl<'a> ShardFile<'a> {
    fn open(path: &'a Path) -> Result<ShardFile<'a>> {
        let name = path.display();
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        let mut reader = BufReader::with_capacity(1 << 14, file);
        let line = line_of(&mut reader, LONGEST_FIRST_LINE)
            .with_context(|| format!("cannot read {name}"))?;
        let first = line.as_deref().and_then(FirstLine::read).with_context(|| {
            format!("{name} is not a shard of a sweep; make one with `corsair sweep --shard 1/8 …`")
        })?;
        Ok(ShardFile {
            path,
            reader,
            first,
        })
    }

    /// Reads the text before the first run.
    fn check_columns(&mut self, grid: &Grid) -> Result<()> {
        for wanted in grid.head(None).split_inclusive('\n') {
            if self.next_line()?.as_deref() != Some(wanted) {
                bail!(
                    "{} has no line with its columns; run its shard again",
                    self.path.display()
                );
            }
        }
        Ok(())
    }

    fn next_line(&mut self) -> Result<Option<String>> {
        let line = line_of(&mut self.reader, LONGEST_LINE);
        line.with_context(|| format!("cannot read {}", self.path.display()))
    }

    /// Returns the line of the run with this number, which must be the next one.
    fn line(&mut self, grid: &Grid, number: usize) -> Result<String> {
        let (path, shard) = (self.path.display(), self.first.shard);
        match self.next_line()? {
            Some(line) if line.starts_with(&grid.begin(number)) => Ok(line),
            Some(_) => bail!(
                "run {} in {path} does not belong to its shard; run the shard again",
                number / shard.of + 1
            ),
            None => bail!(
                "{path} has {} of the {} runs of shard {shard}; repeat the command that was stopped to complete it",
                number / shard.of,
                shard.runs(grid.runs())
            ),
        }
    }

    fn check_end(&mut self, grid: &Grid) -> Result<()> {
        let mut more = [0];
        let (path, shard) = (self.path.display(), self.first.shard);
        let read = self.reader.read(&mut more);
        if read.with_context(|| format!("cannot read {path}"))? > 0 {
            let runs = shard.runs(grid.runs());
            bail!("{path} has more than the {runs} runs of shard {shard}; run the shard again");
        }
        Ok(())
    }
}

/// Returns the next line including its line feed; `None` if no line ends within the limit of bytes.
fn line_of(reader: &mut impl BufRead, longest: usize) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    reader.take(longest as u64).read_until(b'\n', &mut line)?;
    let text = String::from_utf8(line).ok();
    Ok(text.filter(|line| line.ends_with('\n')))
}
