//! Times in a form for human readers.

use super::ServiceTimes;
use crate::Metric;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Formats a duration with three digits and a suitable unit: `57.0ms`.
pub(crate) fn duration(nanos: u64) -> String {
    let (unit, name) = match nanos {
        0..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => (1e3, "µs"),
        1_000_000..1_000_000_000 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = nanos as f64 / unit;
    match value {
        ..9.995 => format!("{value:.2}{name}"),
        ..99.95 => format!("{value:.1}{name}"),
        _ => format!("{value:.0}{name}"),
    }
}

/// The percentiles in tables, with their names.
pub(crate) const PERCENTILES: [(f64, &str); 5] = [
    (0.5, "p50"),
    (0.9, "p90"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p99.9"),
];

/// Formats a table of all times, with a line for each measured service and metric. The table is
/// empty if nothing was measured.
pub fn percentile_table(times: &BTreeMap<String, ServiceTimes>) -> String {
    let mut rows = vec![
        ["service", "time", "count", "errors", "mean"]
            .into_iter()
            .chain(PERCENTILES.map(|(_, name)| name))
            .chain(["max"])
            .map(str::to_owned)
            .collect::<Vec<String>>(),
    ];
    for (service, times) in times {
        for metric in Metric::ALL {
            let Some(histogram) = times.histogram(metric) else {
                continue;
            };
            let at = |quantile| duration(histogram.at_most(quantile).unwrap_or(0));
            let mut row = vec![
                service.clone(),
                metric.name().to_owned(),
                histogram.len().to_string(),
                times.errors().to_string(),
                duration(histogram.mean().unwrap_or(0.0) as u64),
            ];
            row.extend(PERCENTILES.map(|(quantile, _)| at(quantile)));
            row.push(duration(histogram.greatest().unwrap_or(0)));
            rows.push(row);
        }
    }
    if rows.len() == 1 {
        return String::new();
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut table = String::new();
    for row in &rows {
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            // Names are aligned left and numbers right.
            let _ = match column {
                0 => write!(table, "{cell:<width$}"),
                1 => write!(table, "  {cell:<width$}"),
                _ => write!(table, "  {cell:>width$}"),
            };
        }
        table.truncate(table.trim_end().len());
        table.push('\n');
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits() {
        for (nanos, text) in [
            (0, "0ns"),
            (999, "999ns"),
            (1_000, "1.00µs"),
            (9_996, "10.0µs"),
            (57_003_000, "57.0ms"),
            (181_378_000, "181ms"),
            (3_000_000_000, "3.00s"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }

    #[test]
    fn a_table_has_a_line_for_what_was_measured() {
        assert_eq!(percentile_table(&BTreeMap::new()), "");
        let mut www = ServiceTimes::default();
        (1..=100).for_each(|n| www.sample(Metric::Response, n * 10));
        let table = percentile_table(&BTreeMap::from([("www".to_owned(), www)]));
        assert_eq!(
            table,
            "service  time      count  errors   mean    p50    p90    p95    p99   p99.9     max\n\
             www      response    100       0  505ns  500ns  900ns  950ns  990ns  1.00µs  1.00µs\n"
        );
    }
}
