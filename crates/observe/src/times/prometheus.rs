//! Times in Prometheus's text format, version 0.0.4.

use super::ServiceTimes;
use super::table::PERCENTILES;
use crate::Metric;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Formats all times as text. `seconds` is the current time of the run.
pub(crate) fn text(arch: &str, seconds: f64, times: &BTreeMap<String, ServiceTimes>) -> String {
    let mut out = String::new();
    let arch = escaped(arch);
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "# HELP corsair_run_seconds How far the run has come.\n\
         # TYPE corsair_run_seconds gauge\n\
         corsair_run_seconds{{arch=\"{arch}\"}} {seconds}\n\
         # HELP corsair_time_seconds Response, service and network times, and round trips.\n\
         # TYPE corsair_time_seconds summary\n"
    );
    for (service, times) in times {
        let service = escaped(service);
        for metric in Metric::ALL {
            let Some(histogram) = times.histogram(metric) else {
                continue;
            };
            let labels = format!(
                "arch=\"{arch}\",service=\"{service}\",metric=\"{}\"",
                metric.name()
            );
            for (quantile, _) in PERCENTILES {
                let value = histogram.at_most(quantile).unwrap_or(0) as f64 / 1e9;
                let _ = writeln!(
                    out,
                    "corsair_time_seconds{{{labels},quantile=\"{quantile}\"}} {value}"
                );
            }
            let _ = write!(
                out,
                "corsair_time_seconds_sum{{{labels}}} {}\ncorsair_time_seconds_count{{{labels}}} {}\n",
                times.sum(metric) as f64 / 1e9,
                histogram.len()
            );
        }
    }
    out.push_str(
        "# HELP corsair_errors_total Requests that failed.\n# TYPE corsair_errors_total counter\n",
    );
    for (service, times) in times {
        let service = escaped(service);
        let _ = writeln!(
            out,
            "corsair_errors_total{{arch=\"{arch}\",service=\"{service}\"}} {}",
            times.errors()
        );
    }
    out
}

/// Escapes backslashes, quotes and line feeds in a label's value.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_has_quantiles_sums_counts_and_errors() {
        let mut www = ServiceTimes::default();
        for nanos in [1_000_000_000, 3_000_000_000] {
            www.sample(Metric::Response, nanos);
        }
        www.error();
        let text = text("te\"st", 2.5, &BTreeMap::from([("www".to_owned(), www)]));
        for line in [
            "corsair_run_seconds{arch=\"te\\\"st\"} 2.5\n",
            "corsair_time_seconds{arch=\"te\\\"st\",service=\"www\",metric=\"response\",quantile=\"0.5\"} 1.000",
            "corsair_time_seconds_sum{arch=\"te\\\"st\",service=\"www\",metric=\"response\"} 4\n",
            "corsair_time_seconds_count{arch=\"te\\\"st\",service=\"www\",metric=\"response\"} 2\n",
            "corsair_errors_total{arch=\"te\\\"st\",service=\"www\"} 1\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
