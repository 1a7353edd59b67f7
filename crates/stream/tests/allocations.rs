//! Tests of the allocations of reading lines and running tasks. This file is separate because counts are of the whole
//! process, so its tests run one after the other.
//!
//! `STREAM_SERIES=100000 cargo test -p corsair-stream --release --test allocations` looks at more series.

use corsair_stream::block::{Builder, Origin};
use corsair_stream::engine::{Engine, EngineOptions, TaskOptions, Write};
use corsair_stream::line::{self, FieldValue, Precision};
use corsair_testing::allocations::{Count, Counting};
use std::sync::{Arc, Mutex};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Locked by the test that counts allocations.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn text(lines: usize) -> String {
    let line = |number: usize| {
        format!(
            "cpu\\ 1,host=h{},region=eu\\,west user={}.{},ticks={number}i,ok=t,note=\"a \\\" b\" {}\n",
            number % 10,
            number % 100,
            number % 7,
            1_700_000_000_000_000_000 + number,
        )
    };
    (0..lines).map(line).collect()
}

/// Returns the number of allocations for reading every token of each line.
fn reading(text: &str) -> u64 {
    let count = Count::start();
    let mut read = 0;
    for line in line::parse(text.as_bytes()) {
        let line = line.unwrap();
        read += line.measurement().spelling().len();
        read += line
            .tags()
            .map(|(key, value)| key.spelling().len() + value.spelling().len())
            .sum::<usize>();
        for (key, value) in line.fields() {
            read += key.spelling().len();
            if let FieldValue::Text(text) = value {
                read += text.spelling().len();
            }
        }
    }
    let total = count.stop();
    assert!(read > 0);
    total.allocations
}

/// Returns the number of allocations for building blocks from the lines, without the blocks themselves.
fn building(builder: &mut Builder, text: &str, want: bool) -> u64 {
    let origin = Arc::new(Origin {
        database: "db".into(),
        policy: "".into(),
        measurement: "cpu 1".into(),
    });
    let count = Count::start();
    let wanted = |_: &str| want.then(|| origin.clone());
    let fed = builder.feed(
        text.as_bytes(),
        Precision::Nanoseconds,
        0,
        wanted,
        |error| panic!("{error}"),
    );
    let total = count.stop();
    assert_eq!(fed.accepted(), text.lines().count());
    builder.finish();
    total.allocations
}

/// Returns the least of several counts, because threads of the test harness sometimes allocate, too.
fn least(mut count: impl FnMut() -> u64) -> u64 {
    (0..10).map(|_| count()).min().unwrap()
}

#[test]
fn no_line_costs_an_allocation_once_buffers_have_grown() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let (few, many) = (text(100), text(3_200));
    // The list of a line's tags grows once, whatever the number of lines.
    let few_read = least(|| reading(&few));
    assert_eq!(few_read, least(|| reading(&many)));
    assert!(few_read <= 1, "{few_read}");

    let mut builder = Builder::new();
    // If no task takes the lines, only the measurement and its entry are allocated.
    let few_unwanted = least(|| building(&mut builder, &few, false));
    assert_eq!(few_unwanted, least(|| building(&mut builder, &many, false)));
    assert!(few_unwanted <= 4, "{few_unwanted}");
    // Columns grow by doubling: for 32 times as many rows, each of seven vectors grows five times more.
    let few_wanted = least(|| building(&mut builder, &few, true));
    let many_wanted = least(|| building(&mut builder, &many, true));
    assert!(
        many_wanted <= few_wanted + 5 * 7,
        "{few_wanted}, {many_wanted}"
    );
}

/// The bytes that a task allocates for one write with a point of each of a number of series.
async fn bytes_of(text: &str, series: usize) -> u64 {
    let engine = Engine::start(EngineOptions {
        task_memory: usize::MAX,
        ..EngineOptions::default()
    })
    .unwrap();
    engine.add("t", text, TaskOptions::default()).await.unwrap();
    let to = Write {
        database: "db".into(),
        policy: None,
        precision: Precision::Seconds,
    };
    let line = |at: usize, time: u8| format!("m,host=host{at:06},zone=z{} v={at} {time}\n", at % 3);
    let first: String = (0..series).map(|at| line(at, 1)).collect();
    let second: String = (0..series).map(|at| line(at, 12)).collect();
    let count = Count::start();
    for lines in [first, second] {
        engine.write(&to, lines.as_bytes()).await.unwrap();
    }
    engine.settle().await;
    let total = count.stop();
    engine.delete("t").await.unwrap();
    drop(engine.close().await);
    total.bytes
}

#[test]
fn memory_is_linear_in_the_number_of_series_for_every_node() {
    let _alone = ONE_AT_A_TIME.lock().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let series = std::env::var("STREAM_SERIES").map_or(4_000, |series| series.parse().unwrap());
    // Several nodes are in one task, because separate tasks would show the same.
    for nodes in [
        "where(v >= 0) | default().field('d', 1) | eval(v * 2, host + zone).as('w', 'x').keep()
            | alert().info(v >= 0).crit(v > 10).id('x') | http_out('seen')",
        "window(10s, every 10s) | percentile(v, 50) | http_out('p')",
        "window().period(10s).every(10s) | where(v >= 0) | mean(v)",
        "groupBy('host', 'zone') | sum(v) | derivative('sum') | stats(300d)",
        "join(other).as('a', 'b')",
        "union(other)",
    ] {
        let text = format!(
            "var other = stream | from('m') | groupBy('host')
             other | where(v < 0) | log()
             stream | from('m') | groupBy('host') | {nodes}"
        );
        let one = runtime.block_on(bytes_of(&text, series / 5));
        let five = runtime.block_on(bytes_of(&text, series));
        let grows = five as f64 / one as f64;
        assert!(
            grows < 7.5,
            "{nodes}: {one} bytes, and {five} for five times as many series"
        );
    }
}
