//! The report of a gate as Markdown, and its reason in one line.

use super::{FieldChange, GateResult, Judged, ServiceChange, ServiceUse, Verdict};
use crate::capacity::Slo;
use crate::duration_text::TimeSpan;
use crate::experiment::Estimate;
use std::fmt::Write as _;
use std::time::Duration;

/// The contents of a report.
#[derive(Clone, Copy, Debug)]
pub struct GateReport<'a> {
    /// The result that the report describes.
    pub result: &'a GateResult,
    /// The name of the system before the change, if there is one.
    pub base: Option<&'a str>,
    /// The fields in which the two definitions differ.
    pub changes: &'a [FieldChange],
    /// Sentences about assumptions and about parts that were left out.
    pub notes: &'a [String],
    /// The paths of the two pictures, relative to the report: first the objectives, then the services.
    pub pictures: Option<[&'a str; 2]>,
    /// The command that made the report.
    pub command: &'a str,
}

/// The maximum number of rows of a table; further services or fields are only counted.
const MOST_ROWS: usize = 20;
/// A service that uses more than this part of its slots is named in the reason.
const BUSY: f64 = 0.7;
/// A service is named in the reason if it adds at least this part of an objective's limit.
const NAMED: f64 = 0.05;

/// Formats a value of an objective in a readable unit.
pub(crate) fn shown(slo: &Slo, value: f64) -> String {
    if value.is_nan() {
        return "no requests".to_owned();
    }
    match slo.is_time() {
        true => time(value),
        false => format!("{} %", digits(value * 100.0)),
    }
}

/// Formats a time in seconds, which may be negative.
pub(crate) fn time(seconds: f64) -> String {
    let (factor, unit) = match seconds.abs() {
        size if size >= 1.0 => (1.0, "s"),
        size if size >= 1e-3 => (1e3, "ms"),
        0.0 => (1.0, "s"),
        _ => (1e6, "us"),
    };
    format!("{} {unit}", digits(seconds * factor))
}

/// Formats a number with three significant digits.
fn digits(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let size = number.abs().log10().floor();
    let places = (2.0 - size).clamp(0.0, 9.0) as usize;
    let text = format!("{number:.places$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats an estimate with its interval.
fn interval(slo: &Slo, of: Estimate) -> String {
    let mean = shown(slo, of.mean);
    match of.within.filter(|_| !of.is_empty()) {
        Some(within) => format!("{mean} ± {}", shown(slo, within)),
        None => mean,
    }
}

fn limit(slo: &Slo) -> String {
    match slo.is_time() {
        true => TimeSpan(Duration::from_secs_f64(slo.most)).to_string(),
        false => shown(slo, slo.most),
    }
}

/// Returns the name of an objective without its limit.
fn name(slo: &Slo) -> String {
    let text = slo.to_string();
    text.split(" <").next().unwrap_or_default().to_owned()
}

/// Returns the word for a verdict.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "passes",
        Verdict::Missed => "fails",
        Verdict::Undecided(_) => "undecided",
    }
}

/// Returns the word for the verdict of an objective.
pub(crate) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::Missed => "missed",
        Verdict::Undecided(_) => "undecided",
    }
}

/// Returns the result in one line: the objective that decides, its value before and after, and the service that
/// adds most. `base` is the name of the system before the change.
pub fn reason(result: &GateResult, base: Option<&str>) -> String {
    let is_worst = |judged: &&Judged| match result.verdict {
        Verdict::Missed => judged.verdict == Verdict::Missed,
        Verdict::Undecided(_) => matches!(judged.verdict, Verdict::Undecided(_)),
        Verdict::Met => true,
    };
    let excess = |judged: &Judged| judged.value.mean / judged.slo.most.max(1e-12);
    let decides = result.objectives.iter().filter(is_worst);
    let decides = decides.max_by(|a, b| excess(a).total_cmp(&excess(b)));
    let Some(judged) = decides else {
        return word(result.verdict).to_owned();
    };
    let slo = &judged.slo;
    let relation = match judged.verdict {
        Verdict::Met => "within",
        Verdict::Missed => "above",
        Verdict::Undecided(_) => "too close to",
    };
    if judged.value.is_empty() {
        return format!(
            "{}: {} has no requests in any run; make runs longer (-d)",
            word(result.verdict),
            name(slo)
        );
    }
    let mut line = format!(
        "{}: {} is {}, {relation} {}",
        word(result.verdict),
        name(slo),
        interval(slo, judged.value),
        limit(slo)
    );
    if let Some(of) = judged.base {
        let _ = write!(
            line,
            " ({} has {})",
            base.unwrap_or("the base"),
            interval(slo, of)
        );
    }
    match judged.verdict {
        Verdict::Missed => line.push_str(&cause(result, judged)),
        Verdict::Undecided(more) => line.push_str(&match more {
            Some(more) => format!(
                "; about {more} more runs decide (--runs {})",
                more + result.runs as u64
            ),
            None => "; more than 100,000 further runs would be needed".to_owned(),
        }),
        Verdict::Met => {}
    }
    line
}

/// Returns the service that is most likely the cause of a missed objective.
fn cause(result: &GateResult, judged: &Judged) -> String {
    let is_time = judged.slo.is_time();
    let amount = |one: &ServiceChange| match is_time {
        true => one.increase(ServiceUse::seconds),
        false => one.increase(|used| used.failures),
    };
    let least = judged.slo.most * NAMED;
    let is_compared = result.services.iter().any(|one| one.base.is_some());
    let increased = || result.services.iter().filter(|one| amount(one) >= least);
    let by_amount = |a: &&ServiceChange, b: &&ServiceChange| amount(a).total_cmp(&amount(b));
    let Some(mut most) = increased().max_by(by_amount) else {
        return String::new();
    };
    // A service holds its slots for longer if its requests wait for a slower service: the slower service is the
    // cause.
    for _ in 0..result.services.len() {
        let called = increased()
            .filter(|one| is_time && one.name != most.name && most.calls.contains(&one.name));
        match called.max_by(by_amount) {
            Some(slower) => most = slower,
            None => break,
        }
    }
    let Some(now) = most.now else {
        return String::new();
    };
    let longer = if is_compared { " longer" } else { "" };
    let mut text = match is_time {
        true => format!(
            "; {} takes {}{longer} per request",
            most.name,
            time(amount(most))
        ),
        false => format!(
            "; {} fails, refuses or gives up {} times{} per request",
            most.name,
            digits(amount(most)),
            if is_compared { " more" } else { "" }
        ),
    };
    if let Some(used) = now.utilisation.filter(|used| *used > BUSY) {
        let _ = write!(text, ", its use is {:.0} %", used * 100.0);
    }
    text
}

impl GateReport<'_> {
    /// Returns the report as Markdown for a pull request.
    pub fn markdown(&self) -> String {
        let result = self.result;
        let mut text = format!("## corsair gate: {}\n\n", word(result.verdict));
        let _ = writeln!(text, "**{}**\n", escaped(&reason(result, self.base)));
        self.objectives(&mut text);
        self.fields(&mut text);
        self.services(&mut text);
        if !self.notes.is_empty() {
            text.push_str("<details><summary>Assumed and left out</summary>\n\n");
            for note in self.notes {
                let _ = writeln!(text, "- {}", escaped(note));
            }
            text.push_str("\n</details>\n\n");
        }
        let _ = writeln!(
            text,
            "`{}`: {} runs of {} of each system, after a warm-up; all intervals hold together with 95 %.",
            self.command.replace('`', "'"),
            result.runs,
            time(result.measured.as_secs_f64())
        );
        text
    }

    /// Returns the objectives and changed fields as lines for a terminal.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for judged in &self.result.objectives {
            let slo = &judged.slo;
            let _ = write!(
                text,
                "  {:<28} {:<9} {}",
                slo.to_string(),
                verdict_word(judged.verdict),
                interval(slo, judged.value)
            );
            if let (Some(base), Some(difference)) = (judged.base, judged.difference) {
                let _ = write!(
                    text,
                    " (before {}, change {})",
                    interval(slo, base),
                    interval(slo, difference)
                );
            }
            text.push('\n');
        }
        for change in self.changes.iter().take(MOST_ROWS) {
            let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
            let (before, after) = (side(&change.before), side(&change.after));
            let _ = writeln!(text, "  changed  {}: {before} -> {after}", change.path);
        }
        let _ = writeln!(
            text,
            "corsair: {} runs of {} of each system; all intervals hold together with 95 %",
            self.result.runs,
            time(self.result.measured.as_secs_f64())
        );
        text
    }

    fn objectives(&self, text: &mut String) {
        text.push_str("| objective | before | after | change | |\n|---|---:|---:|---:|---|\n");
        for judged in &self.result.objectives {
            let slo = &judged.slo;
            let cell = |of: Option<Estimate>| of.map_or(String::new(), |of| interval(slo, of));
            let verdict = match judged.verdict {
                Verdict::Missed => "**missed**".to_owned(),
                Verdict::Undecided(Some(more)) => format!("undecided: {more} more runs"),
                verdict => verdict_word(verdict).to_owned(),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {verdict} |",
                escaped(&slo.to_string()),
                cell(judged.base),
                cell(Some(judged.value)),
                cell(judged.difference)
            );
        }
        if let Some([picture, _]) = self.pictures {
            let _ = write!(text, "\n![Objectives with their intervals]({picture})\n");
        }
        text.push('\n');
    }

    fn fields(&self, text: &mut String) {
        if self.base.is_none() {
            return;
        }
        text.push_str("### What changed\n\n");
        if self.changes.is_empty() {
            text.push_str("No field that the simulation knows.\n\n");
            return;
        }
        text.push_str("| field | before | after |\n|---|---|---|\n");
        for change in self.changes.iter().take(MOST_ROWS) {
            let cell = |side: &Option<String>| side.as_deref().map_or(String::new(), escaped);
            let _ = writeln!(
                text,
                "| `{}` | {} | {} |",
                change.path.replace(['`', '|', '\n'], "_"),
                cell(&change.before),
                cell(&change.after)
            );
        }
        if let Some(more) = self.changes.len().checked_sub(MOST_ROWS).filter(|n| *n > 0) {
            let _ = writeln!(text, "| {more} further fields | | |");
        }
        text.push('\n');
    }

    fn services(&self, text: &mut String) {
        text.push_str("### Time of a request from outside, by service\n\n");
        let is_compared = self.base.is_some();
        text.push_str(match is_compared {
            true => "| service | change | queue | work | network | use |\n|---|---:|---:|---:|---:|---:|\n",
            false => "| service | queue | work | network | use |\n|---|---:|---:|---:|---:|\n",
        });
        let mut rows: Vec<&ServiceChange> = self.result.services.iter().collect();
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)));
        for row in rows.iter().take(MOST_ROWS) {
            let _ = write!(text, "| {} |", escaped(&row.name));
            if is_compared {
                let _ = write!(text, " {} |", time(row.increase(ServiceUse::seconds)));
            }
            let now = row.now.unwrap_or_default();
            let used = now.utilisation.map(|part| format!("{:.0} %", part * 100.0));
            let _ = writeln!(
                text,
                " {} | {} | {} | {} |",
                time(now.queue),
                time(now.work),
                time(now.network),
                used.unwrap_or_default()
            );
        }
        if let Some([_, picture]) = self.pictures {
            let _ = write!(text, "\n![Time by service]({picture})\n");
        }
        text.push('\n');
    }
}

/// Returns the larger of a service's times before and after the change.
pub(crate) fn size(row: &ServiceChange) -> f64 {
    let sides = [&row.now, &row.base].into_iter().flatten();
    sides.map(ServiceUse::seconds).fold(0.0, f64::max)
}

/// Escapes a text for a cell of a table, because names of services come from files.
fn escaped(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '<' | '>' | '`' | '*' | '_' | '[' | ']' | '\\' | '@' => made.extend(['\\', c]),
            c if c.is_control() => made.push(' '),
            c => made.push(c),
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(time(0.0), "0 s");
        assert_eq!(time(0.012_345), "12.3 ms");
        assert_eq!(time(-1.5), "-1.5 s");
        assert_eq!(time(0.000_7), "700 us");
        let errors: Slo = "errors < 1%".parse().unwrap();
        assert_eq!(shown(&errors, 0.000_123_4), "0.0123 %");
        assert_eq!(shown(&errors, f64::NAN), "no requests");
        assert_eq!(limit(&"p99 < 100ms".parse().unwrap()), "100ms");
    }

    #[test]
    fn names_from_files_stay_text() {
        assert_eq!(escaped("a|b<script>\n"), "a\\|b\\<script\\> ");
    }
}
