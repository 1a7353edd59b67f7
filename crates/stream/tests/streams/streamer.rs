//! Kapacitor's own tests of streams: its recordings through its tasks, as they are written, show what they
//! show there. `streamer.json` has them, and tasks with nodes that are not here.

use crate::http::Service;
use corsair_stream::engine::TaskOptions;
use corsair_stream::line::Precision;
use corsair_stream::replay::{Pace, replay_recording};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Tests {
    recordings: BTreeMap<String, Recording>,
    /// The expected results of the task's `http_out` after a recording.
    shown: Vec<Shown>,
    refused: Vec<Refused>,
}

#[derive(Deserialize)]
struct Recording {
    database: String,
    policy: String,
    /// Lines whose times are seconds; the first one is at 1971-01-01.
    lines: Vec<String>,
}

#[derive(Deserialize)]
struct Shown {
    name: String,
    recording: String,
    task: String,
    series: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct Series {
    name: String,
    #[serde(default)]
    tags: BTreeMap<String, String>,
    columns: Vec<String>,
    values: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
struct Refused {
    name: String,
    task: String,
    missing: String,
}

const SECONDS_TO_1971: i64 = 365 * 24 * 3600;

fn tests() -> Tests {
    serde_json::from_str(include_str!("streamer.json")).unwrap()
}

impl Recording {
    /// Returns the recording in the format of kapacitor.
    fn text(&self) -> String {
        let seconds = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap();
        let shift = SECONDS_TO_1971 - seconds(&self.lines[0]);
        let line = |line: &String| {
            let (point, _) = line.rsplit_once(' ').unwrap();
            let time = seconds(line) + shift;
            format!("{}\n{}\n{point} {time}\n", self.database, self.policy)
        };
        self.lines.iter().map(line).collect()
    }
}

impl Shown {
    /// Returns the results, by name and tags.
    async fn run(&self, recording: &Recording) -> Result<Vec<Series>, String> {
        let service = Service::new();
        let engine = &service.engine;
        let added = engine.add("t", &self.task, TaskOptions::default()).await;
        added.map_err(|error| error.to_string())?;
        let text = recording.text();
        let replayed =
            replay_recording(engine, Precision::Seconds, text.as_bytes(), Pace::Fast).await;
        let replayed = replayed.map_err(|error| error.to_string())?;
        assert_eq!(replayed.rejected, 0, "{}", self.name);
        engine.drain().await;
        // A task that shows the recording in several places shows the one that is named after it, too.
        let mut shown = engine.endpoints("t").map_err(|error| error.to_string())?;
        shown.retain(|(endpoint, _)| **endpoint == *self.recording || shown_once(&self.task));
        let (_, latest) = shown.first().ok_or("no endpoint")?;
        #[derive(Deserialize)]
        struct Answer {
            series: Vec<Series>,
        }
        let answer: Answer = serde_json::from_slice(&latest.json()).unwrap();
        Ok(answer.series)
    }
}

fn shown_once(task: &str) -> bool {
    task.matches("httpOut").count() == 1
}

/// True if both are equal, in any order; floats may differ in their last digits.
fn same(expected: &[Series], found: &[Series]) -> bool {
    let value = |expected: &Value, found: &Value| match (expected.as_f64(), found.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(1.0),
        _ => expected == found,
    };
    let row = |a: &Vec<Value>, b: &Vec<Value>| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| value(a, b))
    };
    let series = |a: &Series, b: &Series| {
        (&a.name, &a.tags, &a.columns) == (&b.name, &b.tags, &b.columns)
            && a.values.len() == b.values.len()
            && a.values.iter().zip(&b.values).all(|(a, b)| row(a, b))
    };
    expected.len() == found.len()
        && expected
            .iter()
            .all(|expected| found.iter().any(|found| series(expected, found)))
}

// Guarantee: stream-4.
#[tokio::test]
async fn recordings_through_tasks_of_kapacitors_tests_show_what_they_show_there() {
    let Tests {
        recordings, shown, ..
    } = tests();
    assert!(shown.len() >= 84, "{} of kapacitor's tests", shown.len());
    let mut wrong = Vec::new();
    for test in &shown {
        match test.run(&recordings[&test.recording]).await {
            Ok(found) if same(&test.series, &found) => {}
            found => wrong.push(format!("{}: {found:#?}, not {:#?}", test.name, test.series)),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        shown.len(),
        wrong.join("\n")
    );
}

// Guarantee: stream-4.
#[tokio::test]
async fn a_task_of_kapacitors_tests_with_something_that_is_not_here_is_told_what() {
    let refused = tests().refused;
    assert!(!refused.is_empty());
    for Refused {
        name,
        task,
        missing,
    } in refused
    {
        let error = Service::new()
            .engine
            .add("t", &task, TaskOptions::default())
            .await;
        let error = error.expect_err(&name).to_string();
        let expected = format!("`{missing}` of kapacitor is not here: ");
        assert!(error.starts_with(&expected), "{name}: {error}");
    }
}
