//! Writes histograms as CSV, with a line for each range that contains values.

use crate::times::{ServiceTimes, TimesHistogram, suffix};
use crate::{FileError, Metric, ObserveError, Settings, WrittenFile};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes `csv_metrics/<arch>_<service>_<resp|serv|net|rt>.csv` for each service and metric with measurements.
pub(crate) fn write(
    settings: &Settings,
    times: &BTreeMap<String, ServiceTimes>,
) -> Result<Vec<WrittenFile>, ObserveError> {
    let mut files = Vec::new();
    for (service, times) in times {
        for metric in Metric::ALL {
            let Some(histogram) = times.histogram(metric) else {
                continue;
            };
            let name = format!(
                "{}_{}_{}.csv",
                settings.arch,
                file_name(service),
                suffix(metric)
            );
            let mut file = settings.begin("csv_metrics", &name)?;
            let path = file.path().to_owned();
            lines(&mut file, histogram).map_err(|error| FileError::Write {
                path: path.clone(),
                error,
            })?;
            file.finish()?;
            files.push(WrittenFile {
                path,
                count: histogram.len(),
                unit: "values",
            });
        }
    }
    Ok(files)
}

/// Converts a service's name to a part of a file name, without path separators.
fn file_name(service: &str) -> String {
    service.replace(['/', '\\', '\0'], "-")
}

fn lines(out: &mut impl Write, histogram: &TimesHistogram) -> io::Result<()> {
    writeln!(out, "from_ns,to_ns,count,up_to_here,percent")?;
    let mut sum = 0;
    for (bounds, count) in histogram.iter() {
        sum += count;
        writeln!(
            out,
            "{},{},{count},{sum},{:.4}",
            bounds.start(),
            bounds.end(),
            sum as f64 * 100.0 / histogram.len() as f64,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn a_file_has_a_line_for_each_range_of_values() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings {
            out: directory.path().to_owned(),
            ..Settings::new("netflixoss", Clock::Wall)
        };
        let mut www = ServiceTimes::default();
        for nanos in [5, 5, 7, 57_003_000] {
            www.sample(Metric::Response, nanos);
        }
        let times = BTreeMap::from([("a/www".to_owned(), www)]);
        let files = write(&settings, &times).unwrap();
        let path = directory
            .path()
            .join("csv_metrics/netflixoss_a-www_resp.csv");
        assert_eq!((files.len(), &files[0].path, files[0].count), (1, &path, 4));
        let text = "from_ns,to_ns,count,up_to_here,percent\n\
                    5,5,2,2,50.0000\n7,7,1,3,75.0000\n56983552,57016319,1,4,100.0000\n";
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
