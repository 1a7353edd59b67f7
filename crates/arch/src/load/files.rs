//! CSV files of rates and of recorded arrivals.

use super::{Arrival, Kinds, RequestKind};
use crate::duration_text::TimeSpan;
use crate::input_file::read_file_text;
use std::path::Path;

/// Files with more rows are refused.
const MOST_ROWS: usize = 10_000_000;

/// Reads the rows of a curve: seconds and requests per second.
pub(super) fn rates(file: &Path) -> Result<Vec<(f64, f64)>, String> {
    let table = Table::read(file)?;
    let (time, rate) = (table.column("time")?, table.column("rate")?);
    table.rows(|row| {
        let text = row.get(rate);
        let number = text.parse::<f64>().ok().filter(|rate| rate.is_finite());
        let number = number.ok_or_else(|| {
            format!(
                "'{}' is not a rate; expected requests per second",
                text.escape_debug()
            )
        })?;
        Ok((seconds(row.get(time))?, number))
    })
}

/// Reads recorded arrivals, in the order of time. Dates are relative to the first one.
pub(super) fn arrivals(file: &Path, kinds: &mut Kinds) -> Result<Vec<Arrival>, String> {
    let table = Table::read(file)?;
    let (time, kind) = (table.column("time")?, table.column("kind").ok());
    let mut rows = table.rows(|row| {
        let kind = match kind.map(|kind| row.get(kind)) {
            None | Some("") => None,
            Some(kind) => {
                let from = || Some(format!("{}:{}", file.display(), row.line));
                Some(kinds.named(kind, from)?)
            }
        };
        Ok((instant(row.get(time))?, kind))
    })?;
    rows.sort_by_key(|((_, nanos), _)| *nanos);
    let first = match rows.first() {
        Some(((true, nanos), _)) => *nanos,
        Some(_) => 0,
        None => {
            return Err(format!(
                "{} has no arrivals; give at least one",
                file.display()
            ));
        }
    };
    if rows.iter().any(|((is_date, _), _)| *is_date)
        && rows.iter().any(|((is_date, _), _)| !is_date)
    {
        return Err(format!(
            "{} has both dates and times; write one of them",
            file.display()
        ));
    }
    let arrival = |((_, nanos), kind): ((bool, i128), Option<RequestKind>)| Arrival {
        at: u64::try_from(nanos - first).unwrap_or(u64::MAX),
        kind,
    };
    Ok(rows.into_iter().map(arrival).collect())
}

/// Parses a time in seconds: `1.5`, or a number with a unit.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        Ok(number) => Err(format!("'{number}' is not a time; give 0 seconds or more")),
        Err(_) => {
            let span: TimeSpan = text.parse()?;
            Ok(span.nanos() as f64 / 1e9)
        }
    }
}

/// Parses a time: true for a date, and the nanoseconds since 1970 or since the start.
fn instant(text: &str) -> Result<(bool, i128), String> {
    if let Ok(date) = text.parse::<jiff::Timestamp>() {
        return Ok((true, date.as_nanosecond()));
    }
    let nanos = (seconds(text)? * 1e9).round();
    Ok((false, nanos as i128))
}

/// A CSV file with a header, whose fields are unquoted numbers and words.
struct Table<'a> {
    file: &'a Path,
    head: Vec<String>,
    text: String,
}

/// A row of the file.
struct Row<'a> {
    line: usize,
    fields: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn get(&self, column: usize) -> &'a str {
        self.fields.get(column).copied().unwrap_or_default()
    }
}

impl Table<'_> {
    fn read(file: &Path) -> Result<Table<'_>, String> {
        let text = read_file_text(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        let head = text.lines().next().unwrap_or_default();
        let head = head.split(',').map(|name| name.trim().to_lowercase());
        Ok(Table {
            file,
            head: head.collect(),
            text,
        })
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        let place = self.head.iter().position(|known| known == name);
        place.ok_or_else(|| {
            format!(
                "{}:1: there is no column '{name}'; name the columns in the first line",
                self.file.display()
            )
        })
    }

    fn rows<T>(
        &self,
        mut read: impl FnMut(&Row<'_>) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut rows = Vec::new();
        for (number, line) in (1..).zip(self.text.lines()).skip(1) {
            if line.trim().is_empty() {
                continue;
            }
            let row = Row {
                line: number,
                fields: line.split(',').map(str::trim).collect(),
            };
            let place = |what| format!("{}:{number}: {what}", self.file.display());
            rows.push(read(&row).map_err(place)?);
            if rows.len() > MOST_ROWS {
                return Err(place(format!("there are more than {MOST_ROWS} rows")));
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn arrivals_are_sorted_and_dates_count_from_the_first() {
        let times = file("kind,time\nread,2.5\n,1s\nwrite,250ms\n");
        let arrivals = arrivals(times.path(), &mut Kinds::new()).unwrap();
        let at: Vec<u64> = arrivals.iter().map(|arrival| arrival.at).collect();
        assert_eq!(at, [250_000_000, 1_000_000_000, 2_500_000_000]);
        assert_eq!(arrivals[0].kind, Some(RequestKind::WRITE));
        assert_eq!(arrivals[1].kind, None);
        let dates = file("time\n2024-05-01T12:00:01Z\n2024-05-01T12:00:00.5Z\n");
        let arrivals = super::arrivals(dates.path(), &mut Kinds::new()).unwrap();
        assert_eq!((arrivals[0].at, arrivals[1].at), (0, 500_000_000));
    }

    #[test]
    fn rows_that_make_no_sense_are_reported_with_their_line() {
        let said = |text: &str| {
            let file = file(text);
            let said = rates(file.path()).unwrap_err();
            said.replace(&file.path().display().to_string(), "x.csv")
        };
        assert_eq!(
            said("when,rate\n1,2\n"),
            "x.csv:1: there is no column 'time'; name the columns in the first line"
        );
        assert_eq!(
            said("time,rate\n1,2\n\n2,many\n"),
            "x.csv:4: 'many' is not a rate; expected requests per second"
        );
        assert_eq!(
            said("time,rate\nx,2\n"),
            "x.csv:2: 'x' is not a duration; expected a number with a unit, for example 250us or 2s"
        );
        let none = file("time\n");
        assert!(
            arrivals(none.path(), &mut Kinds::new())
                .unwrap_err()
                .ends_with("has no arrivals; give at least one")
        );
    }
}
