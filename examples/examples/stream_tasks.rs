//! Tasks over a stream of points. One task is written as text and one in Rust; one write feeds both.
//!
//! `cargo run --example stream_tasks`
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair_stream::engine::{Engine, EngineOptions, TaskOptions, Write};
use corsair_stream::expression::key;
use corsair_stream::line::Precision;
use corsair_stream::pipeline::Pipeline;
use std::time::Duration;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::start(EngineOptions::default())?;
    let text = "stream | from().measurement('cpu') | where(value > 10 AND host = 'a')
                       | window(10s, every 10s) | count(value) | http_out('counts')";
    engine.add("counts", text, TaskOptions::default()).await?;

    let ten = Duration::from_secs(10);
    let pipeline = Pipeline::build(|stream| {
        stream
            .from()
            .measurement("cpu")
            .filter(key("value").gt(10.0))
            .group_by(["host"])
            .window(ten, ten)
            .mean("value")
            .http_out("means");
    })?;
    engine
        .add_pipeline("means", pipeline, TaskOptions::default())
        .await?;

    let to = Write {
        database: "metrics".into(),
        policy: None,
        precision: Precision::Seconds,
    };
    let lines = "cpu,host=a value=11 1\ncpu,host=b value=40 2\ncpu,host=a value=9 3\n\
                 cpu,host=a value=33 4\ncpu,host=a value=\n";
    let written = engine.write(&to, lines.as_bytes()).await?;
    println!("{} lines accepted", written.accepted);
    for bad in &written.errors {
        println!("line {}: {}", bad.line, bad.message);
    }

    // When this returns, the tasks have processed every accepted point.
    engine.drain().await;
    for (task, endpoint) in [("counts", "counts"), ("means", "means")] {
        if let Some(latest) = engine.endpoint(task, endpoint)? {
            println!("{}", String::from_utf8(latest.json())?);
        }
    }
    for edge in engine.status("counts")?.edges {
        println!(
            "{} -> {}: {} points",
            edge.from, edge.to, edge.statistics.received
        );
    }
    if let Some(report) = engine.close().await {
        report?;
    }
    Ok(())
}
