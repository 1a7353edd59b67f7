//! Fuzzes the parser with arbitrary bytes. The parser and the builder must agree on what a line is,
//! errors must be in the order of lines, and writing and reading rows must give equal blocks.
//!
//! From `crates/stream`: `cargo +nightly fuzz run line -- -dict=fuzz/line.dict -max_len=2000`
#![no_main]

use corsair_stream::block::{Block, Builder, Origin};
use corsair_stream::line::{self, LineError, Precision};
use libfuzzer_sys::fuzz_target;
use std::sync::Arc;

fn blocks(text: &[u8], precision: Precision, bad: &mut Vec<LineError>) -> Vec<Block> {
    let mut builder = Builder::new();
    let wanted = |name: &str| {
        Some(Arc::new(Origin {
            database: "".into(),
            policy: "".into(),
            measurement: name.into(),
        }))
    };
    let fed = builder.feed(text, precision, 0, wanted, |error| bad.push(error));
    let blocks = builder.finish();
    let rows: usize = blocks.iter().map(Block::rows).sum();
    assert_eq!((fed.stored, fed.unwanted, fed.bad), (rows, 0, bad.len()));
    for block in &blocks {
        for column in &block.columns {
            assert_eq!(column.data.rows(), block.rows());
        }
    }
    blocks
}

/// Returns all rows as lines, blocks of a measurement one after the other.
fn lines(blocks: &[Block]) -> Vec<String> {
    let mut lines: Vec<_> = blocks.iter().map(Block::to_lines).collect();
    lines.sort();
    lines
}

fuzz_target!(|text: &[u8]| {
    let mut parsed = Vec::new();
    let mut good = 0;
    for line in line::parse(text) {
        match line {
            Ok(line) => {
                good += 1;
                assert!(line.fields().count() > 0);
                for (key, value) in line.tags() {
                    assert!(!key.unescape().is_empty() && !value.unescape().is_empty());
                }
            }
            Err(error) => parsed.push(error),
        }
    }
    assert!(parsed.is_sorted_by(|a, b| a.line < b.line));
    assert!(parsed.iter().all(|error| error.excerpt.chars().count() <= 40));

    let mut bad = Vec::new();
    let first = blocks(text, Precision::Nanoseconds, &mut bad);
    assert_eq!(bad, parsed);
    assert_eq!(first.iter().map(Block::rows).sum::<usize>(), good);

    let written: String = first.iter().map(Block::to_lines).collect();
    let mut none = Vec::new();
    let second = blocks(written.as_bytes(), Precision::Nanoseconds, &mut none);
    assert_eq!(none, []);
    assert_eq!(lines(&first).concat().len(), lines(&second).concat().len());
    assert_eq!(lines(&first), lines(&second));

    blocks(text, Precision::Hours, &mut Vec::new());
});
