//! The same lines by the crate `influxdb-line-protocol`, where the two should agree. Where they
//! differ on purpose is said in the documentation of [`corsair_stream::line`], and held here.

use corsair_stream::line::{self, FieldValue};
use influxdb_line_protocol::{FieldValue as Theirs, ParsedLine, parse_lines};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

/// Names that both read alike: without backslashes, tabs and a zero byte, escaped as they must be.
fn name() -> impl Strategy<Value = String> {
    let plain = prop_oneof!["[a-zA-Z0-9_.:/-]{1,12}", "[aé ,=\"'#]{1,6}"];
    plain.prop_map(|name| {
        let escape = |char| match char {
            ',' | ' ' | '=' => format!("\\{char}"),
            char => char.to_string(),
        };
        name.chars().map(escape).collect()
    })
}

fn measurement() -> impl Strategy<Value = String> {
    name().prop_map(|name| format!("m{}", name.replace("\\=", "=")))
}

fn key() -> impl Strategy<Value = String> {
    let reserved = |key: &String| !matches!(&**key, "time" | "_field" | "_measurement");
    name().prop_filter("reserved", reserved)
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::num::f64::NORMAL.prop_map(|value| format!("{value:.6}")),
        any::<f32>()
            .prop_filter("finite", |value| value.is_finite())
            .prop_map(|value| format!("{value}")),
        (any::<i32>(), 0_u32..1000).prop_map(|(whole, rest)| format!("{whole}.{rest}")),
        any::<u32>().prop_map(|value| value.to_string()),
        any::<i64>().prop_map(|value| format!("{value}i")),
        any::<u64>().prop_map(|value| format!("{value}u")),
        proptest::sample::select(vec![
            "t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE"
        ])
        .prop_map(str::to_owned),
        r##"([a ,=#é\n]|\\"|\\\\|\\n){0,20}"##.prop_map(|text| format!("\"{text}\"")),
    ]
}

fn line() -> impl Strategy<Value = String> {
    let tags = btree_map(key(), name(), 0..5);
    let fields = btree_map(key(), value(), 1..5);
    let time = proptest::option::of(any::<i64>());
    (measurement(), tags, fields, time).prop_map(|(measurement, tags, fields, time)| {
        let tags: String = tags
            .iter()
            .map(|(key, value)| format!(",{key}={value}"))
            .collect();
        let fields: Vec<_> = fields
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let time = time.map_or(String::new(), |time| format!(" {time}"));
        format!("{measurement}{tags} {}{time}", fields.join(","))
    })
}

fn assert_same(ours: line::Line<'_>, theirs: &ParsedLine<'_>) {
    assert_eq!(ours.measurement(), theirs.series.measurement.as_str());
    let tags: Vec<_> = ours.tags().collect();
    let their_tags = theirs.series.tag_set.as_deref().unwrap_or_default();
    assert_eq!(tags.len(), their_tags.len());
    for ((key, value), (their_key, their_value)) in tags.iter().zip(their_tags) {
        assert_eq!(*key, their_key.as_str());
        assert_eq!(*value, their_value.as_str());
    }
    let fields: Vec<_> = ours.fields().collect();
    assert_eq!(fields.len(), theirs.field_set.len());
    for ((key, value), (their_key, their_value)) in fields.iter().zip(&theirs.field_set) {
        assert_eq!(*key, their_key.as_str());
        match (value, their_value) {
            (FieldValue::Float(ours), Theirs::F64(theirs)) => {
                assert_eq!(ours.to_bits(), theirs.to_bits())
            }
            (FieldValue::Integer(ours), Theirs::I64(theirs)) => assert_eq!(ours, theirs),
            (FieldValue::Unsigned(ours), Theirs::U64(theirs)) => assert_eq!(ours, theirs),
            (FieldValue::Boolean(ours), Theirs::Boolean(theirs)) => assert_eq!(ours, theirs),
            (FieldValue::Text(ours), Theirs::String(theirs)) => assert_eq!(*ours, theirs.as_str()),
            (ours, theirs) => panic!("{ours:?} and {theirs:?}"),
        }
    }
    assert_eq!(ours.time, theirs.timestamp);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn both_read_the_same_lines(lines in vec(line(), 1..5)) {
        let text = lines.join("\n");
        let ours: Vec<_> = line::parse(text.as_bytes()).collect();
        let theirs: Vec<_> = parse_lines(&text).collect();
        prop_assert_eq!(ours.len(), lines.len());
        prop_assert_eq!(theirs.len(), lines.len());
        for (ours, theirs) in ours.into_iter().zip(theirs) {
            assert_same(ours.unwrap(), &theirs.unwrap());
        }
    }
}

/// The only line: whether we take it, and whether they do.
fn taken(text: &str) -> (bool, bool) {
    let ours: Vec<_> = line::parse(text.as_bytes()).collect();
    let theirs: Vec<_> = parse_lines(text).collect();
    assert_eq!((ours.len(), theirs.len()), (1, 1), "{text:?}");
    (ours[0].is_ok(), theirs[0].is_ok())
}

#[test]
fn both_refuse_what_is_no_line() {
    for text in [
        "m",
        "m,",
        "m,a v=1",
        "m,a= v=1",
        "m v",
        "m v=",
        "m v=abc",
        "m v=1x",
        "m v=1 x",
        "m v=1 1 1",
        "m v=\"a",
        "m v=9223372036854775808i",
        "m v=18446744073709551616u",
        "m v=1 9223372036854775808",
        "m v=-1u",
        ",a=b v=1",
        "m v=NaN",
        "m =1",
    ] {
        assert_eq!(taken(text), (false, false), "{text}");
    }
}

#[test]
fn they_differ_where_the_documentation_says_so() {
    // Ours, theirs.
    for (text, expected) in [
        ("m,a=b=c v=1", (false, true)),
        ("m,a=1,a=2 v=1", (false, true)),
        ("m,time=1 v=1", (false, true)),
        ("m v=1,time=1", (false, true)),
        ("m a,b=1", (false, true)),
        ("m v=1e999", (false, true)),
        ("m v=.5", (true, false)),
        ("m v=5.", (true, false)),
        ("m v=1\r", (true, false)),
        ("a\tb v=1", (true, false)),
        ("m\0 v=1", (true, false)),
    ] {
        assert_eq!(taken(text), expected, "{text:?}");
    }
    let two = r"a\\b v=1";
    assert_eq!(
        line::parse(two.as_bytes())
            .next()
            .unwrap()
            .unwrap()
            .measurement(),
        r"a\\b"
    );
    assert_eq!(
        parse_lines(two).next().unwrap().unwrap().series.measurement,
        r"a\b"
    );
}
