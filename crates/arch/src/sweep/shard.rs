//! A shard of a sweep, which one of many jobs executes, and the first line of the shard's file.

use super::parameters::{OutputFormat, SweepParameters};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The maximum number of shards.
const MOST: usize = 100_000;
/// The version of the first line of a shard's file.
const VERSION: u32 = 1;
/// The maximum length of a first line.
pub const LONGEST_FIRST_LINE: usize = 1 << 24;

/// A shard: every `of`-th run of a sweep, beginning with run `number`, counted from 1. Neighbouring runs take similar
/// times, so all shards take similar times, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// The number of the shard, from 1.
    pub number: usize,
    /// The number of shards.
    pub of: usize,
}

impl Shard {
    /// The complete sweep.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    fn is_possible(self) -> bool {
        (1..=MOST).contains(&self.of) && (1..=self.of).contains(&self.number)
    }

    /// Returns how many runs of a sweep belong to this shard.
    pub fn runs(self, total: usize) -> usize {
        (total + self.of - self.number) / self.of
    }

    /// Converts the index of a run in this shard to its index in the sweep, both from 0.
    pub fn run(self, index: usize) -> usize {
        self.number - 1 + index * self.of
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/');
        let shard = numbers.and_then(|(number, of)| {
            let shard = Shard {
                number: number.parse().ok()?,
                of: of.parse().ok()?,
            };
            shard.is_possible().then_some(shard)
        });
        shard.ok_or_else(|| {
            format!(
                "'{text}' is not a shard; write 1/8 for the first of eight, up to 8/8 (at most {MOST})"
            )
        })
    }
}

/// The first line of a shard's file, which identifies the sweep and the shard.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirstLine {
    corsair_sweep: u32,
    /// The name and version of the program that has made the runs.
    pub corsair: String,
    /// The shard to which the file belongs.
    pub shard: Shard,
    /// The parameters of the sweep.
    pub sweep: SweepParameters,
}

impl FirstLine {
    /// Creates the first line of a shard's file.
    pub fn new(shard: Shard, sweep: SweepParameters) -> FirstLine {
        FirstLine {
            corsair_sweep: VERSION,
            corsair: env!("CARGO_PKG_VERSION").to_owned(),
            shard,
            sweep,
        }
    }

    /// Returns the first line, which is a comment in CSV.
    pub fn text(&self) -> String {
        let json = serde_json::json!(self);
        match self.sweep.format {
            OutputFormat::Csv => format!("# {json}\n"),
            OutputFormat::Json => format!("{json}\n"),
        }
    }

    /// Parses a first line; `None` if the line is something else.
    pub fn read(line: &str) -> Option<FirstLine> {
        let json = line.strip_prefix("# ").unwrap_or(line);
        let read: FirstLine = serde_json::from_str(json).ok()?;
        let whole = read.corsair_sweep == VERSION && read.shard.is_possible();
        (whole && read.text() == line).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_of_one_shard() {
        for total in [0, 1, 7, 24, 25] {
            for of in [1, 2, 3, 8, 30] {
                let mut runs: Vec<usize> = (1..=of)
                    .map(|number| Shard { number, of })
                    .flat_map(|shard| (0..shard.runs(total)).map(move |index| shard.run(index)))
                    .collect();
                runs.sort_unstable();
                assert_eq!(
                    runs,
                    Vec::from_iter(0..total),
                    "{total} runs of {of} shards"
                );
            }
        }
    }

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!("2/8".parse(), Ok(Shard { number: 2, of: 8 }));
        for text in [
            "", "1", "0/8", "9/8", "1/0", "-1/8", "1/8/2", "1/100001", "a/b",
        ] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
