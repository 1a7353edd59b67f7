//! Measures reading lines of the line protocol, and converting them to blocks.
//!
//! There are 5,000 lines of each of three kinds: the output of a collector on one host (its cores in turn), the output
//! of a relay (any host), and lines that are as short as possible. `checked` finds all tokens and parses all numbers.
//! `tokens` also returns every key and value. `blocks` builds columns. `unwanted` measures points that no task selects.
//! The crate `influxdb-line-protocol` builds lists of tags and fields. The results of all contenders are compared
//! before anything is timed.

use corsair::Random;
use corsair_stream::block::{Block, Builder, Data, Origin};
use corsair_stream::line::{self, FieldValue, Precision};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

/// The number of lines in a text.
const LINES: usize = 5000;

/// Returns lines with three tags, four fields and a time: about 140 bytes each.
fn usual(host: impl Fn(&mut Random) -> u32) -> String {
    let mut text = String::new();
    let mut random = Random::new(7);
    for number in 0..LINES {
        let host = host(&mut random);
        let user = random.below(10_000);
        let steal = random.below(100);
        let switches = random.below(10_000_000);
        let idle = (random.bits() >> 11) as f64 / (1_u64 << 53) as f64 * 100.0;
        writeln!(
            text,
            "cpu,cpu=cpu{},host=server{host:03},region=eu-west-1 usage_user={}.{:02},usage_idle={idle},\
             switches={switches}i,steal={steal} {}",
            number % 16,
            user / 100,
            user % 100,
            1_700_000_000_000_000_000 + number * 1_000_003,
        )
        .expect("a string takes anything");
    }
    text
}

/// Returns lines with one field, a short name and a time.
fn shortest() -> String {
    let line = |number| format!("m1 value=17 {number:010}\n");
    (0..LINES).map(line).collect()
}

/// The number of lines, and a checksum of all values that were read.
type Sum = (usize, f64);

fn checked(text: &[u8]) -> usize {
    line::parse(text).filter(Result::is_ok).count()
}

fn tokens(text: &[u8]) -> Sum {
    let mut sum = (0, 0.0);
    for line in line::parse(text).flatten() {
        sum.0 += 1;
        for (key, value) in line.tags() {
            black_box((key, value));
        }
        for (key, value) in line.fields() {
            black_box(key);
            if let FieldValue::Float(value) = value {
                sum.1 += value;
            }
        }
        sum.1 += line.time.unwrap_or(0) as f64;
    }
    sum
}

fn theirs(text: &str) -> Sum {
    let mut sum = (0, 0.0);
    for line in influxdb_line_protocol::parse_lines(text).flatten() {
        sum.0 += 1;
        black_box(&line.series.tag_set);
        for (key, value) in &line.field_set {
            black_box(key);
            if let influxdb_line_protocol::FieldValue::F64(value) = value {
                sum.1 += value;
            }
        }
        sum.1 += line.timestamp.unwrap_or(0) as f64;
    }
    sum
}

/// Converts lines to blocks, and counts the lines that no task wants.
fn blocks(
    builder: &mut Builder,
    text: &[u8],
    origin: &Arc<Origin>,
    want: bool,
) -> (Vec<Block>, usize) {
    let wanted = |_: &str| want.then(|| origin.clone());
    let bad = |error| panic!("{error}");
    let fed = builder.feed(text, Precision::Nanoseconds, 0, wanted, bad);
    (builder.finish(), fed.unwanted)
}

/// Adds up the contents of the blocks, row by row.
fn sum(blocks: &[Block]) -> Sum {
    let mut sum = (0, 0.0);
    for block in blocks {
        for row in 0..block.rows() {
            sum.0 += 1;
            for field in block.fields() {
                if let Data::Float(cells) = &*field.data {
                    sum.1 += cells.get(row).copied().unwrap_or_default();
                }
            }
            sum.1 += block.times[row] as f64;
        }
    }
    sum
}

fn line(criterion: &mut Criterion) {
    let texts = [
        ("agent", usual(|_| 17)),
        ("relay", usual(|random| random.below(100))),
        ("shortest", shortest()),
    ];
    let origin = Arc::new(Origin {
        database: "telegraf".into(),
        policy: "autogen".into(),
        measurement: "cpu".into(),
    });
    for (name, text) in &texts {
        let bytes = text.as_bytes();
        let mut builder = Builder::new();
        let expected = theirs(text);
        assert_eq!(expected.0, LINES);
        assert_eq!(checked(bytes), LINES);
        assert_eq!(tokens(bytes), expected);
        let (made, unwanted) = blocks(&mut builder, bytes, &origin, true);
        assert_eq!((made.len(), unwanted), (1, 0));
        assert_eq!(sum(&made), expected);
        let (made, unwanted) = blocks(&mut builder, bytes, &origin, false);
        assert_eq!((made.len(), unwanted), (0, LINES));

        let mut group = criterion.benchmark_group(format!("line/{name}"));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function("checked", |bencher| {
            bencher.iter(|| checked(black_box(bytes)))
        });
        group.bench_function("tokens", |bencher| {
            bencher.iter(|| tokens(black_box(bytes)))
        });
        group.bench_function("blocks", |bencher| {
            bencher.iter(|| blocks(&mut builder, black_box(bytes), &origin, true));
        });
        group.bench_function("unwanted", |bencher| {
            bencher.iter(|| blocks(&mut builder, black_box(bytes), &origin, false));
        });
        group.bench_function("influxdb-line-protocol", |bencher| {
            bencher.iter(|| theirs(black_box(text)));
        });
        group.finish();
    }
}

criterion_group! {
    name = lines;
    config = corsair_benches::for_about!(20, Duration::from_secs(1));
    targets = line
}
criterion_main!(lines);
