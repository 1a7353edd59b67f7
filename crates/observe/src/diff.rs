//! Finds the first difference between two recorded runs.
//!
//! A recorded run is an output file of an observer, or a directory of such files. Every event is a separate line in all
//! formats, so runs are compared line by line, and only one line of each run is in memory. Headers (flags, date) are
//! ignored, because they are not events.

mod events;

use events::{Events, time};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The reasons why runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A file or directory cannot be read.
    #[error("cannot read {}: {error}; give a file that a run has written, or its directory", .path.display())]
    Unreadable {
        /// The path of the unreadable file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// One of the two paths is a directory, and the other is a file.
    #[error("{} is a directory and {} is a file; give two files or two directories", .directory.display(), .file.display())]
    TwoKinds {
        /// The path that is a directory.
        directory: PathBuf,
        /// The path that is a file.
        file: PathBuf,
    },
    /// The directories have no files with equal names.
    #[error("{} and {} have no file in common; give directories that runs have written to", .a.display(), .b.display())]
    NothingInCommon {
        /// The first directory.
        a: PathBuf,
        /// The second directory.
        b: PathBuf,
    },
}

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Comparison {
    /// The number of compared files.
    pub files: usize,
    /// The number of equal events in these files.
    pub same: u64,
    /// The earliest event in which the runs differ.
    pub first: Option<Difference>,
    /// Paths of the files that only the first run has, relative to its directory.
    pub only_a: Vec<PathBuf>,
    /// Files that only the second run has.
    pub only_b: Vec<PathBuf>,
}

impl Comparison {
    /// Returns true if the recorded parts of the runs are the same.
    pub fn is_same(&self) -> bool {
        self.first.is_none() && self.only_a.is_empty() && self.only_b.is_empty()
    }
}

/// An event in which two runs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the file relative to the directories, or its name if files were compared.
    pub file: PathBuf,
    /// The number of the event, from 1.
    pub number: u64,
    /// The time in nanoseconds since 1970, if known.
    pub at: Option<i128>,
    /// The event of the first run; `None` if this run has ended.
    pub a: Option<String>,
    /// The event of the second run; `None` if this run has ended.
    pub b: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} of {}", self.number, self.file.display())?;
        let at = self
            .at
            .and_then(|at| jiff::Timestamp::from_nanosecond(at).ok());
        if let Some(at) = at {
            write!(f, ", at {at}")?;
        }
        let event = |event: &Option<String>| match event {
            Some(event) => event.clone(),
            None => "nothing: it has ended".to_owned(),
        };
        write!(f, "\n  A: {}\n  B: {}", event(&self.a), event(&self.b))
    }
}

/// Compares two runs: two files, or all files of two directories.
///
/// Takes time proportional to the size of the files. Only one event of each run is in memory.
///
/// # Errors
/// Returns a [`DiffError`] if a file cannot be read, or if the runs cannot be compared.
pub fn diff(a: &Path, b: &Path) -> Result<Comparison, DiffError> {
    let (a_files, b_files) = match (a.is_dir(), b.is_dir()) {
        (true, true) => (files(a)?, files(b)?),
        (false, false) => {
            let name = a.file_name().map_or_else(|| a.to_owned(), PathBuf::from);
            let mut comparison = Comparison::default();
            compare(a, b, &name, &mut comparison)?;
            return Ok(comparison);
        }
        (true, false) | (false, true) => {
            let (directory, file) = if a.is_dir() { (a, b) } else { (b, a) };
            if !file.exists() {
                let error = io::ErrorKind::NotFound.into();
                let path = file.to_owned();
                return Err(DiffError::Unreadable { path, error });
            }
            return Err(DiffError::TwoKinds {
                directory: directory.to_owned(),
                file: file.to_owned(),
            });
        }
    };
    let only = |these: &BTreeSet<PathBuf>, those: &BTreeSet<PathBuf>| {
        these.difference(those).cloned().collect::<Vec<_>>()
    };
    let mut comparison = Comparison {
        only_a: only(&a_files, &b_files),
        only_b: only(&b_files, &a_files),
        ..Comparison::default()
    };
    for name in a_files.intersection(&b_files) {
        compare(&a.join(name), &b.join(name), name, &mut comparison)?;
    }
    if comparison.files == 0 {
        return Err(DiffError::NothingInCommon {
            a: a.to_owned(),
            b: b.to_owned(),
        });
    }
    Ok(comparison)
}

/// The directories that observers write to.
const WRITTEN: [&str; 4] = ["json", "gml", "json_metrics", "csv_metrics"];

/// Returns the files below a directory that observers may have written, by their relative paths.
fn files(directory: &Path) -> Result<BTreeSet<PathBuf>, DiffError> {
    let mut all = BTreeSet::new();
    let below = WRITTEN.iter().map(PathBuf::from).chain([PathBuf::new()]);
    for below in below.filter(|below| directory.join(below).is_dir()) {
        let unreadable = |error| DiffError::Unreadable {
            path: directory.join(&below),
            error,
        };
        for entry in std::fs::read_dir(directory.join(&below)).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type().map_err(unreadable)?;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.is_file() && !hidden {
                all.insert(below.join(entry.file_name()));
            }
        }
    }
    Ok(all)
}

/// Compares two files and adds the result.
fn compare(a: &Path, b: &Path, name: &Path, to: &mut Comparison) -> Result<(), DiffError> {
    let (mut a, mut b) = (Events::open(a)?, Events::open(b)?);
    to.files += 1;
    loop {
        let (more_a, more_b) = (a.advance()?, b.advance()?);
        if !more_a && !more_b {
            return Ok(());
        }
        if more_a && more_b && a.event() == b.event() {
            to.same += 1;
            continue;
        }
        let text_a = more_a.then(|| a.text());
        let text_b = more_b.then(|| b.text());
        let times = [&text_a, &text_b].map(|text| text.as_deref().and_then(time));
        let (text_a, text_b) = match (text_a, text_b) {
            (Some(a), Some(b)) => {
                let (a, b) = excerpts(&a, &b);
                (Some(a), Some(b))
            }
            (a, b) => (a.map(|a| excerpts(&a, "").0), b.map(|b| excerpts(&b, "").0)),
        };
        let found = Difference {
            file: name.to_owned(),
            number: a.number.max(b.number),
            at: times.into_iter().flatten().min(),
            a: text_a,
            b: text_b,
        };
        // The file with the earliest differing event is reported. Events without a time come last.
        let key = |difference: &Difference| difference.at.unwrap_or(i128::MAX);
        if to
            .first
            .as_ref()
            .is_none_or(|first| key(&found) < key(first))
        {
            to.first = Some(found);
        }
        return Ok(());
    }
}

/// The length in bytes beyond which events are shortened.
const LONG: usize = 800;

/// The number of characters of a long event that are shown before the first difference, and after it.
const BEFORE: usize = 160;
const AFTER: usize = 320;

/// Formats two events; long ones start shortly before the first difference.
fn excerpts(a: &str, b: &str) -> (String, String) {
    let alike = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let excerpt = |text: &str| {
        if text.len() <= LONG {
            return text.to_owned();
        }
        let from = text.floor_char_boundary(alike.saturating_sub(BEFORE));
        let to = text.ceil_char_boundary((alike + AFTER).min(text.len()));
        let before = if from > 0 { "…" } else { "" };
        let after = if to < text.len() { "…" } else { "" };
        format!("{before}{}{after}", &text[from..to])
    };
    (excerpt(a), excerpt(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, second: u32) -> String {
        format!(r#"{{"node":"{name}","package":"x","timestamp":"1970-01-01T00:00:0{second}Z"}}"#)
    }

    fn graph(args: &str, events: &[String]) -> String {
        format!(
            "{{\n  \"arch\":\"test\",\n  \"args\":\"{args}\",\n  \"graph\":[\n    {}\n  ]\n}}\n",
            events.join(",\n    ")
        )
    }

    fn write(directory: &Path, name: &str, text: &str) {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    // Guarantee: observe-12.
    #[test]
    fn the_first_event_in_time_of_all_files_is_named() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (a.path(), b.path());
        let same = node("one", 1);
        write(
            a,
            "json/test.json",
            &graph("-s 1", &[same.clone(), node("two", 5)]),
        );
        write(b, "json/test.json", &graph("-s 2", &[same, node("TWO", 6)]));
        let span = |id, micros| format!(r#"{{"id":"{id}","timestamp":{micros}}}"#);
        let flow = |last| format!("[\n{}\n,{}\n]\n", span("1", 1), span(last, 2_000_000));
        write(a, "json_metrics/test_flow.json", &flow("2"));
        write(b, "json_metrics/test_flow.json", &flow("3"));
        write(a, "csv_metrics/a.csv", "x,y\n1,2\n");
        let found = diff(a, b).unwrap();
        assert_eq!((found.files, found.same), (2, 2));
        assert_eq!(found.only_a, [Path::new("csv_metrics/a.csv")]);
        let first = found.first.unwrap();
        assert_eq!(first.file, Path::new("json_metrics/test_flow.json"));
        assert_eq!((first.number, first.at), (2, Some(2_000_000_000)));
        let text = first.to_string();
        assert!(
            text.starts_with("event 2 of json_metrics/test_flow.json, at 1970-01-01T00:00:02Z\n  A: {\"id\":\"2\"")
                && text.contains("\n  B: {\"id\":\"3\""),
            "{text}"
        );
    }

    #[test]
    fn runs_that_differ_in_their_flags_alone_are_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(
            directory.path(),
            "a.json",
            &graph("-cpus 1", &[node("one", 1)]),
        );
        write(
            directory.path(),
            "b.json",
            &graph("-cpus 4", &[node("one", 1)]),
        );
        let found = diff(&at("a.json"), &at("b.json")).unwrap();
        assert!(found.is_same() && found.same == 1, "{found:?}");
    }

    #[test]
    fn a_run_that_ends_earlier_differs_there() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(directory.path(), "a.json", &graph("", &[node("one", 1)]));
        write(
            directory.path(),
            "b.json",
            &graph("", &[node("one", 1), node("two", 2)]),
        );
        let first = diff(&at("a.json"), &at("b.json")).unwrap().first.unwrap();
        assert_eq!((first.number, &first.a), (2, &None));
        assert!(first.to_string().contains("A: nothing: it has ended"));
    }

    #[test]
    fn of_a_long_event_the_part_that_differs_is_reported() {
        let long = |middle: &str| format!("{}{middle}{}", "é".repeat(5_000), "x".repeat(5_000));
        let (a, b) = excerpts(&long("one"), &long("two"));
        assert!(a.contains("éonex"), "{a}");
        assert!(
            b.contains("étwox") && b.starts_with('…') && b.ends_with('…'),
            "{b}"
        );
        assert!(a.len() < LONG && b.len() < LONG);
        assert_eq!(excerpts("short", "texts"), ("short".into(), "texts".into()));
    }

    #[test]
    fn what_cannot_be_compared_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        write(directory.path(), "x/a.json", "");
        write(directory.path(), "y/b.json", "");
        for (a, b, told) in [
            ("x", "y/b.json", "give two files or two directories"),
            ("x", "nowhere", "cannot read"),
            ("nowhere", "x/a.json", "cannot read"),
            ("x", "y", "no file in common"),
        ] {
            let said = diff(&at(a), &at(b)).unwrap_err().to_string();
            assert!(said.contains(told), "{said}");
        }
    }
}
