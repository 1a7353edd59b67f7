//! Measures how many rows per second the conditions of `where` filter.
//!
//! A block has 10,000 rows with a float, an integer and a tag with four possible words. Half of the
//! rows match, at random, so that a branch on them would be mispredicted. The selected rows are
//! checked first.

use corsair_stream::batch::Rows;
use corsair_stream::block::{Block, Cells, Column, Data, Origin, Words};
use corsair_stream::language::parse_expression;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// The number of rows in a block.
const ROWS: usize = 10_000;

/// The text of a condition, and a function that returns whether it holds for a value and a host.
type Condition = (&'static str, fn(u64, u64) -> bool);

const CONDITIONS: [Condition; 6] = [
    ("value > 10", |value, _| value > 10),
    ("value > 10 AND host = 'a'", |value, host| {
        value > 10 && host == 0
    }),
    ("host = 'a' OR host = 'c'", |_, host| host % 2 == 0),
    ("count * 2 > 21", |value, _| value * 2 > 21),
    ("value > 10 AND 100 / count > 5", |value, _| {
        value > 10 && 100 / value > 5
    }),
    ("host + '.x' = 'a.x'", |_, host| host == 0),
];

/// Returns a number that looks random (the finaliser of SplitMix64).
fn scattered(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Returns the value of a row, from 1 to 20, and the number of its host.
fn row(row: usize) -> (u64, u64) {
    let random = scattered(row as u64 + 1);
    (random % 20 + 1, (random >> 32) % 4)
}

fn block() -> Block {
    let rows: Vec<(u64, u64)> = (0..ROWS).map(row).collect();
    let column = |name: &str, data| Column {
        name: name.into(),
        data: Arc::new(data),
    };
    let words = ["a", "b", "c", "d"].map(Arc::from).to_vec();
    let codes = rows.iter().map(|(_, host)| *host as u32).collect();
    let floats = rows.iter().map(|(value, _)| *value as f64).collect();
    let integers = rows.iter().map(|(value, _)| *value as i64).collect();
    Block {
        origin: Arc::new(Origin {
            database: "db".into(),
            policy: "".into(),
            measurement: "m".into(),
        }),
        times: (0..ROWS as i64).collect(),
        columns: vec![
            column("host", Data::Tag(Words { codes, words })),
            column(
                "value",
                Data::Float(Cells {
                    values: floats,
                    present: None,
                }),
            ),
            column(
                "count",
                Data::Integer(Cells {
                    values: integers,
                    present: None,
                }),
            ),
        ],
    }
}

fn selecting(criterion: &mut Criterion) {
    let block = block();
    let all = Rows::Range(0, ROWS as u32);
    let every_other: Rows = Rows::List((0..ROWS as u32).step_by(2).collect());
    for (name, rows) in [("range", all), ("list", every_other)] {
        let mut group = criterion.benchmark_group(format!("select/{name}"));
        group.throughput(Throughput::Elements(rows.len() as u64));
        for (text, holds) in CONDITIONS {
            let condition = parse_expression(text).expect("it parses");
            let selected = condition.select(&block, &rows).expect("it has a result");
            let expected = rows.iter().filter(|&at| {
                let (value, host) = row(at);
                holds(value, host)
            });
            assert!(selected.iter().eq(expected), "{text} selects other rows");
            group.bench_function(BenchmarkId::from_parameter(text), |bencher| {
                bencher.iter(|| condition.select(black_box(&block), black_box(&rows)));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(20, Duration::from_secs(1));
    targets = selecting
}
criterion_main!(benches);
