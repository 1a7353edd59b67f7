//! Properties that hold for every line, and for every sequence of bytes.

use corsair_stream::block::{Block, Builder, Column, Origin};
use corsair_stream::line::{self, FieldValue, Line, LineError, Precision};
use corsair_stream::{Kind, Value};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A point as others would write it: without this crate.
#[derive(Clone, Debug)]
struct Point {
    measurement: String,
    tags: BTreeMap<String, String>,
    fields: BTreeMap<String, Value>,
    time: Option<i64>,
}

/// Names full of what must be escaped.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,12}",
        r##"[a ,=\\"#'\t\rü😀]{0,12}[a,= ü]"##,
        "[^\n\\\\]{1,80}",
    ]
}

fn key() -> impl Strategy<Value = String> {
    let reserved = |key: &String| !matches!(&**key, "time" | "_field" | "_measurement");
    name().prop_filter("reserved", reserved)
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        r##"[a ,=\\"\n\r#]{0,20}"##.boxed(),
        any::<String>().boxed(),
        "[a-z ]{100,200}".boxed(),
    ];
    let float = prop_oneof![
        proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL | proptest::num::f64::ZERO,
        (any::<i32>(), 0..10).prop_map(|(digits, power)| f64::from(digits) / 10_f64.powi(power)),
    ];
    prop_oneof![
        float.prop_map(Value::Float),
        any::<i64>().prop_map(Value::Integer),
        any::<u64>().prop_map(Value::Unsigned),
        any::<bool>().prop_map(Value::Boolean),
        text.prop_map(|text| Value::Text(text.into())),
    ]
}

fn point() -> impl Strategy<Value = Point> {
    let measurement = name().prop_filter("comment or blank", |name| !name.starts_with(['#', '\t']));
    let fields = btree_map(key(), value(), 1..6);
    // Blanks before the first field are not part of its key, and those of names are spaces.
    let fields = fields.prop_filter("tab", |fields| {
        !fields.keys().any(|key| key.starts_with('\t'))
    });
    let time = proptest::option::of(any::<i64>());
    (measurement, btree_map(key(), name(), 0..6), fields, time).prop_map(|parts| Point {
        measurement: parts.0,
        tags: parts.1,
        fields: parts.2,
        time: parts.3,
    })
}

fn escaped(name: &str, characters: &str) -> String {
    let escape = |char: char| match characters.contains(char) {
        true => format!("\\{char}"),
        false => char.to_string(),
    };
    name.chars().map(escape).collect()
}

fn written(point: &Point) -> String {
    let mut line = escaped(&point.measurement, ", ");
    for (key, value) in &point.tags {
        line += &format!(",{}={}", escaped(key, ",= "), escaped(value, ",= "));
    }
    let field = |(key, value): (&String, &Value)| {
        let value = match value {
            Value::Float(value) => format!("{value:?}"),
            Value::Integer(value) => format!("{value}i"),
            Value::Unsigned(value) => format!("{value}u"),
            Value::Boolean(value) => value.to_string(),
            Value::Text(text) => format!("\"{}\"", escaped(text, "\"\\")),
        };
        format!("{}={value}", escaped(key, ",= "))
    };
    let fields: Vec<_> = point.fields.iter().map(field).collect();
    line += &format!(" {}", fields.join(","));
    if let Some(time) = point.time {
        line += &format!(" {time}");
    }
    line
}

/// Equal, and floats bit by bit.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (a, b) => a == b,
    }
}

fn owned(value: FieldValue<'_>) -> Value {
    match value {
        FieldValue::Float(value) => Value::Float(value),
        FieldValue::Integer(value) => Value::Integer(value),
        FieldValue::Unsigned(value) => Value::Unsigned(value),
        FieldValue::Boolean(value) => Value::Boolean(value),
        FieldValue::Text(text) => Value::Text(text.unescape().into()),
    }
}

#[track_caller]
fn assert_is(line: Line<'_>, point: &Point) {
    assert_eq!(line.measurement(), point.measurement.as_str());
    let tags: Vec<_> = line.tags().collect();
    assert_eq!(tags.len(), point.tags.len());
    for ((key, value), expected) in tags.into_iter().zip(&point.tags) {
        assert_eq!(
            (key.unescape(), value.unescape()),
            (expected.0.into(), expected.1.into())
        );
    }
    let fields: Vec<_> = line.fields().collect();
    assert_eq!(fields.len(), point.fields.len());
    for ((key, value), (expected_key, expected)) in fields.into_iter().zip(&point.fields) {
        assert_eq!(key, expected_key.as_str());
        let value = owned(value);
        assert!(same(&value, expected), "{value:?} for {expected:?}");
    }
    assert_eq!(line.time, point.time);
}

fn blocks(text: &[u8], mut bad: impl FnMut(LineError)) -> Vec<Block> {
    let mut builder = Builder::new();
    let wanted = |name: &str| {
        Some(Arc::new(Origin {
            database: "".into(),
            policy: "".into(),
            measurement: name.into(),
        }))
    };
    builder.feed(text, Precision::Nanoseconds, 0, wanted, &mut bad);
    builder.finish()
}

/// What a block says of a row.
fn row(block: &Block, row: usize) -> Point {
    let value = |column: &Column| {
        let value = column.data.get(row)?;
        Some((column.name.to_string(), value))
    };
    let word = |(name, value)| match value {
        Value::Text(word) => (name, word.to_string()),
        other => panic!("{other:?} is not a tag"),
    };
    Point {
        measurement: block.origin.measurement.to_string(),
        tags: block.tags().filter_map(value).map(word).collect(),
        fields: block.fields().filter_map(value).collect(),
        time: Some(block.times[row]),
    }
}

/// The points by measurement, each in order of lines.
fn rows(blocks: &[Block]) -> BTreeMap<String, Vec<Point>> {
    let mut rows = BTreeMap::<_, Vec<_>>::new();
    for block in blocks {
        for column in &block.columns {
            assert_eq!(column.data.rows(), block.rows());
        }
        let points = (0..block.rows()).map(|at| row(block, at));
        rows.entry(block.origin.measurement.to_string())
            .or_default()
            .extend(points);
    }
    rows
}

/// Lines by the rules alone: what is neither blank nor a comment, if no string has a newline.
fn countable(text: &[u8]) -> usize {
    let is_line = |line: &&[u8]| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let begin = line.iter().find(|byte| !matches!(byte, b' ' | b'\t'));
        begin.is_some_and(|&byte| byte != b'#')
    };
    text.split(|&byte| byte == b'\n').filter(is_line).count()
}

/// Pieces of lines in any order: nearly lines, mostly.
fn nearly_lines(with_quotes: bool) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => proptest::sample::select(vec![
            "m", ",", "=", " ", "\n", "\r\n", "\\", "t=a", "f=1", "f=1i", "f=t", " 17", "#", "é", "1e5",
            "m,t=a f=1 17\n", "m f=1,g=2i\n", "time", "m f=\\", "-", ".", "99999999999999999999",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        2 => proptest::sample::select(vec!["\"", "f=\"", "\"\n", "\\\"", "f=\"a b\"", "f=\"\n\","])
            .prop_map(move |piece| if with_quotes { piece.into() } else { vec![] }),
        1 => vec(any::<u8>().prop_filter("quote", |byte| *byte != b'"'), 0..4),
    ];
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_written_is_read(points in vec(point(), 1..8)) {
        let lines: Vec<_> = points.iter().map(written).collect();
        for end in ["\n", "\r\n", "\n\n# comment\n"] {
            let text = lines.join(end);
            let read: Vec<_> = line::parse(text.as_bytes()).collect();
            prop_assert_eq!(read.len(), points.len());
            for (line, point) in read.into_iter().zip(&points) {
                assert_is(line.unwrap(), point);
            }
        }
    }

    #[test]
    fn blocks_have_each_value_of_each_line_and_no_other(points in vec(point(), 1..20), same_name: bool) {
        let mut points = points;
        for (time, point) in points.iter_mut().enumerate() {
            point.time = Some(time as i64);
            if same_name {
                point.measurement = "m".to_owned();
            }
        }
        let lines: Vec<_> = points.iter().map(written).collect();
        let blocks = blocks(lines.join("\n").as_bytes(), |error| panic!("{error}"));
        let rows = rows(&blocks);
        let mut expected = BTreeMap::<_, Vec<_>>::new();
        for point in points {
            expected.entry(point.measurement.clone()).or_default().push(point);
        }
        prop_assert_eq!(format!("{rows:?}"), format!("{expected:?}"));
    }

    #[test]
    fn rows_written_as_lines_are_the_same_rows(points in vec(point(), 1..20)) {
        let lines: Vec<_> = points.iter().map(written).collect();
        let first = blocks(lines.join("\n").as_bytes(), |error| panic!("{error}"));
        let text: String = first.iter().map(Block::to_lines).collect();
        let again = blocks(text.as_bytes(), |error| panic!("{error}"));
        prop_assert_eq!(format!("{:?}", rows(&first)), format!("{:?}", rows(&again)));
    }

    #[test]
    fn a_block_of_one_type_is_typed(points in vec(point(), 1..20)) {
        let lines: Vec<_> = points.iter().map(written).collect();
        for block in blocks(lines.join("\n").as_bytes(), |error| panic!("{error}")) {
            for column in block.fields() {
                let kinds = (0..block.rows()).filter_map(|row| column.data.get(row));
                let mut kinds: Vec<Kind> = kinds.map(|value| value.kind()).collect();
                kinds.dedup();
                let mixed = matches!(*column.data, corsair_stream::block::Data::Mixed(_));
                prop_assert_eq!(mixed, kinds.len() > 1);
            }
        }
    }

    #[test]
    fn any_bytes_are_lines_good_or_bad(text in vec(any::<u8>(), 0..300)) {
        for line in line::parse(&text).flatten() {
            prop_assert!(line.fields().count() > 0);
            line.tags().count();
        }
    }

    #[test]
    fn every_line_is_good_or_bad_if_no_string_has_a_newline(text in nearly_lines(false)) {
        prop_assert_eq!(line::parse(&text).count(), countable(&text));
    }

    #[test]
    fn lines_begin_and_end_where_the_text_has_newlines(text in nearly_lines(true)) {
        // Good lines are pieces of the text; each bad one is at a place of its own, behind them.
        let mut line_before = 0;
        for line in line::parse(&text) {
            match line {
                Ok(line) => {
                    let again: Vec<_> = line::parse(line.as_str().as_bytes()).collect();
                    prop_assert_eq!(again.len(), 1);
                    prop_assert_eq!(again[0].as_ref().unwrap().as_str(), line.as_str());
                }
                Err(error) => {
                    prop_assert!(error.line > line_before, "{:?}", error);
                    line_before = error.line;
                    let at = text.split(|&byte| byte == b'\n').nth(error.line - 1).unwrap();
                    prop_assert!(error.column <= at.len() + 1, "{:?}", error);
                    prop_assert!(error.excerpt.chars().count() <= 40);
                }
            }
        }
    }

    #[test]
    fn the_builder_takes_the_lines_that_the_parser_does(text in nearly_lines(true)) {
        let (good, bad): (Vec<_>, Vec<_>) = line::parse(&text).partition(Result::is_ok);
        let mut errors = Vec::new();
        let blocks = blocks(&text, |error| errors.push(error));
        prop_assert_eq!(blocks.iter().map(Block::rows).sum::<usize>(), good.len());
        let bad: Vec<_> = bad.into_iter().map(Result::unwrap_err).collect();
        prop_assert_eq!(errors, bad);
    }

    #[test]
    fn a_text_cut_anywhere_has_the_same_lines_before(points in vec(point(), 1..6), part in 0.0..1.0) {
        let lines: Vec<_> = points.iter().map(written).collect();
        let text = lines.join("\n");
        let cut = (text.len() as f64 * part) as usize;
        let whole = line::parse(text.as_bytes()).map(|line| line.unwrap().as_str().len());
        let ends = whole.scan(0, |end, length| {
            *end += length + 1;
            Some(*end)
        });
        let before = ends.take_while(|end| *end <= cut).count();
        let read: Vec<_> = line::parse(&text.as_bytes()[..cut]).collect();
        prop_assert!(read.len() >= before);
        for (line, point) in read.into_iter().zip(&points).take(before) {
            assert_is(line.unwrap(), point);
        }
    }
}
