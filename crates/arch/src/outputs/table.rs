//! The results of a completed run over time, from the table of `--timeline`.

use super::{OutputError, Point};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The largest table that is read, in bytes.
const MOST_BYTES: u64 = 256 << 20;

/// The header of a table.
const HEAD: &str = "seconds,service,region,zone,requests,errors,p50_seconds,p90_seconds,p95_seconds,p99_seconds,queue,longest_queue,utilisation";

/// The time series by group: the complete architecture, services, and services in their zones.
#[derive(Debug, Default)]
pub struct TimelineTable {
    /// The names of the groups.
    pub groups: Vec<String>,
    points: Vec<Vec<Point>>,
    /// The services and their zones, as `region.zone`.
    pub places: Vec<(String, String)>,
}

/// A line of the table with its service and zone.
struct Row {
    service: String,
    zone: String,
    point: Point,
}

/// Adds up points of the same time. Percentiles cannot be added, so they are only present if a single point has
/// requests.
fn sum(points: &[&Point], from: f64, to: f64) -> Point {
    let busy: Vec<&&Point> = points.iter().filter(|point| point.rate > 0.0).collect();
    let only = match busy[..] {
        [only] => Some(*only),
        _ => None,
    };
    let used: Vec<f64> = points
        .iter()
        .filter_map(|point| point.utilisation)
        .collect();
    Point {
        from,
        to,
        rate: points.iter().map(|point| point.rate).sum(),
        errors: points.iter().map(|point| point.errors).sum(),
        p50: only.and_then(|point| point.p50),
        p99: only.and_then(|point| point.p99),
        p999: None,
        queue: points.iter().map(|point| point.queue).max().unwrap_or(0),
        utilisation: (!used.is_empty()).then(|| used.iter().sum::<f64>() / used.len() as f64),
    }
}

impl TimelineTable {
    /// Finds the only table of a timeline in a directory, if there is one.
    ///
    /// # Errors
    /// If a file cannot be read, is broken, or there are several tables.
    pub fn find(directory: &Path) -> Result<Option<TimelineTable>, OutputError> {
        let entries = std::fs::read_dir(directory).into_iter().flatten();
        let files = entries.flatten().map(|entry| entry.path());
        let is_table = |path: &PathBuf| {
            path.extension().is_some_and(|end| end == "csv") && path.is_file() && begins(path)
        };
        let mut tables: Vec<PathBuf> = files.filter(is_table).collect();
        tables.sort();
        match tables.as_slice() {
            [] => Ok(None),
            [only] => TimelineTable::read(only).map(Some),
            several => {
                let names = several.iter().map(|path| path.display().to_string());
                Err(OutputError::Several {
                    path: directory.to_owned(),
                    what: "tables of results over time",
                    names: names.collect::<Vec<_>>().join(", "),
                })
            }
        }
    }

    /// Reads the table of a timeline from a file.
    ///
    /// # Errors
    /// See [`OutputError`].
    pub fn read(path: &Path) -> Result<TimelineTable, OutputError> {
        let unreadable = |error| OutputError::Unreadable {
            path: path.to_owned(),
            error,
        };
        let size = std::fs::metadata(path).map_err(unreadable)?.len();
        if size > MOST_BYTES {
            return Err(OutputError::TooLarge {
                path: path.to_owned(),
                most: MOST_BYTES,
            });
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        TimelineTable::parse(&text).map_err(|line| OutputError::Table {
            path: path.to_owned(),
            line,
        })
    }

    /// Parses a table; the error is the number of the first invalid line.
    fn parse(text: &str) -> Result<TimelineTable, usize> {
        if !text.starts_with(HEAD) {
            return Err(1);
        }
        let mut rows = Vec::new();
        let mut starts: Vec<f64> = Vec::new();
        for (number, line) in (1..).zip(text.lines()).skip(1) {
            let row = row(line).ok_or::<usize>(number)?;
            starts.push(row.point.from);
            rows.push(row);
        }
        starts.sort_by(f64::total_cmp);
        starts.dedup();
        let width = starts.windows(2).map(|pair| pair[1] - pair[0]);
        let width = width.fold(f64::INFINITY, f64::min);
        let width = if width.is_finite() { width } else { 1.0 };
        for row in &mut rows {
            let point = &mut row.point;
            point.to = point.from + width;
            (point.rate, point.errors) = (point.rate / width, point.errors / width);
        }
        let mut by_service: BTreeMap<&str, Vec<&Point>> = BTreeMap::new();
        let mut by_zone: BTreeMap<(&str, &str), Vec<&Point>> = BTreeMap::new();
        for row in &rows {
            by_service.entry(&row.service).or_default().push(&row.point);
            by_zone
                .entry((&row.service, &row.zone))
                .or_default()
                .push(&row.point);
        }
        let over_time = |points: &[&Point]| -> Vec<Point> {
            let mut times: BTreeMap<u64, Vec<&Point>> = BTreeMap::new();
            for point in points {
                // Times are not negative, so their bits sort like the times.
                times.entry(point.from.to_bits()).or_default().push(point);
            }
            let times = times.into_values();
            times
                .map(|points| sum(&points, points[0].from, points[0].to))
                .collect()
        };
        // Entry points are outside all regions. Without entry points all services count.
        let is_entry = |row: &&Row| row.zone.starts_with("*.") && row.point.rate > 0.0;
        let has_entries = rows.iter().any(|row| is_entry(&row));
        let counted = rows
            .iter()
            .filter(|row| !has_entries || row.zone.starts_with("*."));
        let all: Vec<&Point> = counted.map(|row| &row.point).collect();
        let mut timeline = TimelineTable {
            groups: vec!["all".to_owned()],
            points: vec![over_time(&all)],
            places: Vec::new(),
        };
        for (service, points) in &by_service {
            timeline.groups.push((*service).to_owned());
            timeline.points.push(over_time(points));
        }
        for ((service, zone), points) in &by_zone {
            timeline.groups.push(format!("{service} {zone}"));
            timeline.points.push(over_time(points));
            timeline
                .places
                .push(((*service).to_owned(), (*zone).to_owned()));
        }
        Ok(timeline)
    }

    /// Returns the measurements of the group with this number.
    pub fn of(&self, group: usize) -> Option<Vec<Point>> {
        self.points.get(group).cloned()
    }

    /// Returns the measurements of a group at a time in seconds. With `None` for the time, the result has the mean
    /// rates and the longest queue.
    pub fn at(&self, group: &str, time: Option<f64>) -> Option<Point> {
        let group = self.groups.iter().position(|name| name == group)?;
        let points = &self.points[group];
        let Some(time) = time else {
            let mean =
                |of: fn(&Point) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
            return Some(Point {
                rate: mean(|point| point.rate),
                errors: mean(|point| point.errors),
                queue: points.iter().map(|point| point.queue).max()?,
                ..*points.first()?
            });
        };
        let place = points
            .partition_point(|point| point.from <= time)
            .checked_sub(1)?;
        points
            .get(place)
            .filter(|point| time <= point.to + 1e-9)
            .copied()
    }

    /// Returns the end of the last interval, in seconds.
    pub fn end(&self) -> f64 {
        let last = self.points.iter().filter_map(|all| all.last());
        last.map(|point| point.to).fold(0.0, f64::max)
    }
}

/// True if a file begins with the header of such a table.
fn begins(path: &Path) -> bool {
    use std::io::Read;
    let mut head = vec![0; HEAD.len()];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == HEAD.as_bytes()
}

/// Parses a line of the table. The rates of the result are still counts.
fn row(line: &str) -> Option<Row> {
    let fields = fields(line);
    let [
        seconds,
        service,
        region,
        zone,
        requests,
        errors,
        p50,
        _,
        _,
        p99,
        _,
        longest,
        used,
    ] = fields.as_slice()
    else {
        return None;
    };
    let number = |text: &str| {
        text.parse::<f64>()
            .ok()
            .filter(|n| n.is_finite() && *n >= 0.0)
    };
    let maybe = |text: &str| match text {
        "" => Some(None),
        text => number(text).map(Some),
    };
    Some(Row {
        service: service.clone(),
        // A dot separates region and zone, so dots in their names are replaced.
        zone: format!("{}.{}", region.replace('.', "·"), zone.replace('.', "·")),
        point: Point {
            from: number(seconds)?,
            to: 0.0,
            rate: number(requests)?,
            errors: number(errors)?,
            p50: maybe(p50)?,
            p99: maybe(p99)?,
            p999: None,
            queue: number(longest)? as u64,
            utilisation: maybe(used)?,
        },
    })
}

/// Returns the fields of a line, without their quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut in_quotes = false;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let last = fields.len() - 1;
        match c {
            '"' if in_quotes && rest.peek() == Some(&'"') => {
                rest.next();
                fields[last].push('"');
            }
            '"' => in_quotes = !in_quotes,
            ',' if !in_quotes => fields.push(String::new()),
            c => fields[last].push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_add_up_to_services_and_services_to_all() {
        let text = format!(
            "{HEAD}\n\
             0,db,us-east-1,zoneA,10,1,0.002,0.003,0.0035,0.004,1.5,3,0.5\n\
             0.5,db,us-east-1,zoneA,20,0,0.002,0.003,0.0035,0.004,0,0,0.25\n\
             0,db,us-east-1,zoneB,30,0,0.001,0.003,0.005,0.009,0,7,0.1\n\
             0.5,db,us-east-1,zoneB,0,0,,,,,0,0,0.0\n\
             0,\"a \"\"b\"\", c\",*,*,4,0,0.01,0.01,0.01,0.01,0,0,\n"
        );
        let timeline = TimelineTable::parse(&text).unwrap();
        assert_eq!(
            timeline.groups,
            [
                "all",
                "a \"b\", c",
                "db",
                "a \"b\", c *.*",
                "db us-east-1.zoneA",
                "db us-east-1.zoneB"
            ]
        );
        let db = timeline.of(2).unwrap();
        assert_eq!(db.len(), 2);
        assert_eq!(
            (db[0].from, db[0].to, db[0].rate, db[0].errors),
            (0.0, 0.5, 80.0, 2.0)
        );
        assert_eq!((db[0].queue, db[0].p99, db[1].p99), (7, None, Some(0.004)));
        assert!((db[0].utilisation.unwrap() - 0.3).abs() < 1e-9);
        // A service outside all regions is an entry point.
        assert_eq!(timeline.of(0).unwrap()[0].rate, 8.0);
        let first = timeline.at("db us-east-1.zoneA", Some(0.2)).unwrap();
        assert_eq!((first.rate, first.queue, timeline.end()), (20.0, 3, 1.0));
        assert_eq!(timeline.at("db us-east-1.zoneA", None).unwrap().rate, 30.0);
        assert_eq!(timeline.at("db us-east-1.zoneA", Some(9.0)), None);
        assert_eq!(timeline.of(6), None);
    }

    #[test]
    fn a_line_that_is_none_is_reported_by_its_number() {
        for wrong in [
            "x,db,a,b,1,0,,,,,0,0,",
            "0,db,a,b,1,0,,,,,0,0",
            "0,db,a,b,-1,0,,,,,0,0,",
        ] {
            let text = format!("{HEAD}\n0,db,a,b,1,0,,,,,0,0,\n{wrong}\n");
            assert_eq!(TimelineTable::parse(&text).unwrap_err(), 3, "{wrong}");
        }
        let empty = TimelineTable::parse(HEAD).unwrap();
        assert_eq!(empty.of(0), Some(Vec::new()));
    }
}
