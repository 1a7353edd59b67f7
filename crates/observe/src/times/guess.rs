//! Histograms for Guesstimate (getguesstimate.com), in spigo's format.

use crate::times::{ServiceTimes, TimesHistogram, suffix};
use crate::{Metric, ObserveError, Settings, WrittenFile};
use serde::Serialize;
use std::collections::BTreeMap;

/// The maximum number of values that represent a distribution, as in spigo.
const VALUES: u64 = 1000;

#[derive(Serialize)]
struct File<'a> {
    space: Space<'a>,
}

#[derive(Serialize)]
struct Space<'a> {
    name: &'a str,
    description: &'static str,
    is_private: &'static str,
    graph: Graph<'a>,
}

#[derive(Serialize)]
struct Graph<'a> {
    metrics: Vec<Cell>,
    guesstimates: Vec<Guesstimate<'a>>,
}

/// A cell of the sheet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Cell {
    id: String,
    readable_id: String,
    name: String,
    location: Location,
}

#[derive(Serialize)]
struct Location {
    row: usize,
    column: usize,
}

/// The contents of a cell: values in nanoseconds, or an expression.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Guesstimate<'a> {
    metric: String,
    input: Option<&'static str>,
    expression: &'a str,
    guesstimate_type: &'a str,
    data: Option<Vec<u64>>,
}

/// The number of rows of the sheet. The cell after the last row is in the next column.
const ROWS: usize = 26;

/// Returns the name of the cell with this index, counted from 0: AA, BA, … ZA, AB, … ZZ, AAA.
fn id(place: usize) -> String {
    let letter = |number: usize| char::from(b'A' + (number % 26) as u8);
    let (row, column) = (place % ROWS, place / ROWS);
    let further = (column >= 26).then(|| letter(column / 26 - 1));
    [Some(letter(row)), further, Some(letter(column))]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns values at regular distances in the sorted list of all measured values.
fn values(histogram: &TimesHistogram) -> Vec<u64> {
    let count = histogram.len().min(VALUES);
    let quantile = |index: u64| (index as f64 + 0.5) / count as f64;
    (0..count)
        .filter_map(|index| histogram.at_most(quantile(index)))
        .collect()
}

/// Writes `json_metrics/<arch>.guess`, unless nothing was measured.
pub(crate) fn write(
    settings: &Settings,
    times: &BTreeMap<String, ServiceTimes>,
) -> Result<Option<WrittenFile>, ObserveError> {
    let measured = times.iter().flat_map(|(service, times)| {
        Metric::ALL.into_iter().filter_map(move |metric| {
            let histogram = times.histogram(metric)?;
            Some((service, suffix(metric), histogram))
        })
    });
    let (mut metrics, mut guesstimates) = (Vec::new(), Vec::new());
    for (place, (service, suffix, histogram)) in measured.enumerate() {
        let id = id(place);
        metrics.push(Cell {
            id: id.clone(),
            readable_id: id.clone(),
            name: format!("{}.{service}_{suffix}", settings.arch),
            location: Location {
                row: place % ROWS + 1,
                column: place / ROWS + 1,
            },
        });
        let guess = settings.guesses.get(service);
        guesstimates.push(Guesstimate {
            metric: id,
            input: None,
            expression: guess.map_or("", |guess| &guess.expression),
            guesstimate_type: guess.map_or("DATA", |guess| &guess.kind),
            data: guess.is_none().then(|| values(histogram)),
        });
    }
    if metrics.is_empty() {
        return Ok(None);
    }
    let count = metrics.len() as u64;
    let space = Space {
        name: &settings.arch,
        description: "Times measured by corsair, in nanoseconds",
        is_private: "true",
        graph: Graph {
            metrics,
            guesstimates,
        },
    };
    let mut file = settings.begin("json_metrics", &format!("{}.guess", settings.arch))?;
    let path = file.path().to_owned();
    serde_json::to_writer(&mut file, &File { space }).map_err(|error| file.failed(error.into()))?;
    file.finish()?;
    Ok(Some(WrittenFile {
        path,
        count,
        unit: "distributions",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Guess};

    #[test]
    fn cells_are_named_row_first() {
        let names = [0, 1, 25, 26, 26 * 26 - 1, 26 * 26].map(id);
        assert_eq!(names, ["AA", "BA", "ZA", "AB", "ZZ", "AAA"]);
    }

    #[test]
    fn a_file_has_the_shape_that_guesstimate_reads() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings {
            out: directory.path().to_owned(),
            ..Settings::new("netflixoss", Clock::Wall)
        };
        let mut www = ServiceTimes::default();
        for nanos in [30, 10, 20] {
            www.sample(Metric::Response, nanos);
        }
        let times = BTreeMap::from([("www".to_owned(), www)]);
        let file = write(&settings, &times).unwrap().unwrap();
        assert_eq!(
            std::fs::read_to_string(file.path).unwrap(),
            r#"{"space":{"name":"netflixoss","description":"Times measured by corsair, in nanoseconds","is_private":"true","graph":{"metrics":[{"id":"AA","readableId":"AA","name":"netflixoss.www_resp","location":{"row":1,"column":1}}],"guesstimates":[{"metric":"AA","input":null,"expression":"","guesstimateType":"DATA","data":[10,20,30]}]}}}"#
        );
    }

    #[test]
    fn what_stands_for_the_times_of_a_service_is_written_instead_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let guess = Guess {
            kind: "NORMAL".to_owned(),
            expression: "[100,200]".to_owned(),
        };
        let settings = Settings {
            out: directory.path().to_owned(),
            guesses: BTreeMap::from([("db".to_owned(), guess)]),
            ..Settings::new("netflixoss", Clock::Wall)
        };
        let mut measured = ServiceTimes::default();
        measured.sample(Metric::Response, 7);
        let services = ["db", "dbproxy"].map(|name| (name.to_owned(), measured.clone()));
        let file = write(&settings, &BTreeMap::from(services))
            .unwrap()
            .unwrap();
        let text = std::fs::read_to_string(file.path).unwrap();
        for cell in [
            r#"{"metric":"AA","input":null,"expression":"[100,200]","guesstimateType":"NORMAL","data":null}"#,
            r#"{"metric":"BA","input":null,"expression":"","guesstimateType":"DATA","data":[7]}"#,
        ] {
            assert!(text.contains(cell), "{cell} is not in\n{text}");
        }
    }

    #[test]
    fn many_values_are_represented_by_a_thousand() {
        let mut times = ServiceTimes::default();
        (1..=100_000).for_each(|nanos| times.sample(Metric::Network, nanos));
        let values = values(times.histogram(Metric::Network).unwrap());
        assert_eq!(values.len(), 1_000);
        assert!(values[499].abs_diff(50_000) < 150, "{}", values[499]);
    }
}
