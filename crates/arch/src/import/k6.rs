//! Scenarios of k6 as load: the `options` of a script, or the same options as JSON.

mod literal;

use super::item::Item;
use super::quantity::duration;
use super::system::{Scenario, System, definition_name};
use super::{Format, seconds, shortened};
use crate::definition::{EntryLoad, Rate, RatePoint};
use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

pub(super) struct K6;

/// The wait of a user between two requests, which scripts do not contain as data.
const THINK: Duration = Duration::from_secs(1);

impl Format for K6 {
    fn name(&self) -> &'static str {
        "k6"
    }

    fn knows(&self, document: &Value) -> bool {
        let has = |key: &str| document.get(key).is_some();
        let is_other =
            has("apiVersion") || has("services") || has("arch") || has("static_resources");
        !is_other
            && (document.get("scenarios").is_some_and(Value::is_object)
                || has("stages")
                || has("vus"))
    }

    fn title(&self, _document: &Value) -> (String, String) {
        ("options".to_owned(), "load".to_owned())
    }

    fn read(&self, document: Item, _file: &Path, system: &mut System) -> Result<(), String> {
        for (name, scenario) in document.entries("scenarios") {
            let load =
                load(scenario).map_err(|what| format!("scenario '{}': {what}", shortened(name)))?;
            add(name, load, system);
        }
        if document.at("scenarios").is_none() {
            add("users", closed(document)?, system);
        }
        for (metric, kind) in [("http_req_duration", ""), ("http_req_failed", "errors")] {
            for threshold in document.list(&format!("thresholds.{metric}")) {
                let item = threshold.at("threshold").unwrap_or(threshold);
                let text = item.peek().unwrap_or_default();
                if let Some(objective) = objective(&text, kind) {
                    item.note();
                    system.objectives.push(objective);
                }
            }
        }
        Ok(())
    }
}

/// Returns the options of a script, and the fields that are not literals; `None` if it has no options.
pub(super) fn script(text: &str) -> Result<Option<(Value, Vec<String>)>, String> {
    literal::options(text)
}

fn add(name: &str, load: EntryLoad, system: &mut System) {
    let name = definition_name(name);
    if load.users.is_some() {
        system.assumed.push(format!(
            "users of scenario '{name}' wait {} between two requests; think in the definition sets it",
            TimeSpan(THINK)
        ));
    }
    system.scenarios.push(Scenario { name, load });
}

fn load(scenario: Item) -> Result<EntryLoad, String> {
    let executor = scenario.text("executor").unwrap_or_default();
    let time = |path| scenario.parsed(path, "a duration such as 30s", duration);
    let unit = || -> Result<f64, String> {
        let unit = time("timeUnit")?;
        Ok(unit.map_or(1.0, |unit| unit.0.as_secs_f64()).max(1e-6))
    };
    let start = || -> Result<f64, String> {
        let start = time("startTime")?;
        Ok(start.map_or(0.0, |start| start.0.as_secs_f64()))
    };
    match executor.as_str() {
        "constant-arrival-rate" => {
            let rate = scenario
                .number("rate")?
                .ok_or("rate is missing; give iterations for each timeUnit")?;
            let (unit, start) = (unit()?, start()?);
            let end = time("duration")?.map(|length| start + length.0.as_secs_f64());
            let mut points = vec![(start, rate / unit, false)];
            points.extend(end.map(|end| (end, 0.0, false)));
            profile(points)
        }
        "ramping-arrival-rate" => {
            let (unit, start) = (unit()?, start()?);
            let first = scenario.number("startRate")?.unwrap_or(0.0);
            let mut points = vec![(start, first / unit, false)];
            let mut at = start;
            for (length, target) in stages(scenario)? {
                at += length;
                points.push((at, target / unit, length > 0.0));
            }
            points.push((at, 0.0, false));
            profile(points)
        }
        "constant-vus"
        | "ramping-vus"
        | "per-vu-iterations"
        | "shared-iterations"
        | "externally-controlled" => closed(scenario),
        other => Err(format!(
            "executor is '{}'; there are constant-arrival-rate, ramping-arrival-rate, constant-vus, ramping-vus, per-vu-iterations, shared-iterations and externally-controlled",
            shortened(other)
        )),
    }
}

fn stages(scenario: Item) -> Result<Vec<(f64, f64)>, String> {
    let stages = scenario.list("stages").into_iter();
    let stages = stages.map(|stage| {
        let length = stage.parsed("duration", "a duration such as 30s", duration)?;
        let target = stage.number("target")?.unwrap_or(0.0);
        Ok((length.map_or(0.0, |length| length.0.as_secs_f64()), target))
    });
    stages.take(10_000).collect()
}

/// Creates a profile of rates. If several points have the same time, the last one counts.
fn profile(points: Vec<(f64, f64, bool)>) -> Result<EntryLoad, String> {
    let mut made: Vec<RatePoint> = Vec::new();
    for (at, rate, ramp) in points {
        if !(0.0..=1e6).contains(&rate) {
            return Err(format!(
                "a rate of {rate} is not possible; give 0 to 1000000 a second"
            ));
        }
        let at = seconds(at).ok_or("it lasts longer than a year")?;
        match made.last_mut().filter(|last| last.at == at) {
            // The rate drops at the end of a ramp, so the ramp ends a nanosecond earlier.
            Some(last) if last.ramp => {
                last.at = TimeSpan(at.0.saturating_sub(Duration::from_micros(1)));
                made.push(RatePoint { at, rate, ramp });
            }
            Some(last) => *last = RatePoint { at, rate, ramp },
            None => made.push(RatePoint { at, rate, ramp }),
        }
    }
    Ok(EntryLoad {
        rate: Some(Rate::Profile(made)),
        ..EntryLoad::default()
    })
}

/// Creates a closed loop with the maximum number of users.
fn closed(of: Item) -> Result<EntryLoad, String> {
    let mut users = Vec::new();
    for path in ["vus", "startVUs", "maxVUs"] {
        users.extend(of.marked_count(path)?);
    }
    for stage in of.list("stages") {
        users.extend(stage.marked_count("target")?);
    }
    let most = users.into_iter().max_by_key(|(users, _)| *users);
    if let Some((_, mark)) = most {
        of.note_mark(mark);
    }
    Ok(EntryLoad {
        users: Some(most.map_or(1, |(users, _)| users).max(1)),
        think: Some(Distribution::Exponential(TimeSpan(THINK))),
        ..EntryLoad::default()
    })
}

/// Converts a threshold such as `p(95)<200` or `rate<0.01` to an objective.
fn objective(threshold: &str, kind: &str) -> Option<String> {
    let (left, right) = threshold.split_once('<')?;
    let most: f64 = right.trim_start_matches('=').trim().parse().ok()?;
    let left = left.trim();
    let is_slo = |said: String| {
        said.parse::<crate::capacity::Slo>()
            .ok()
            .map(|slo| slo.to_string())
    };
    if kind == "errors" {
        return is_slo(format!("errors < {most}")).filter(|_| left == "rate");
    }
    let measure = match left {
        "avg" => "mean".to_owned(),
        "med" => "p50".to_owned(),
        _ => format!(
            "p{}",
            left.strip_prefix("p(")?
                .strip_suffix(')')?
                .parse::<f64>()
                .ok()?
        ),
    };
    let most = seconds(most / 1e3)?;
    is_slo(format!("{measure} < {most}"))
}
