//! Tests of the syntax of lines, rule by rule.

mod faults;
mod names;
mod values;

use corsair_stream::line::{self, FieldValue, Line, LineError};

/// The only line of a text, which is good.
#[track_caller]
fn only(text: &str) -> Line<'_> {
    let lines: Vec<_> = line::parse(text.as_bytes()).collect();
    match &lines[..] {
        [Ok(line)] => *line,
        other => panic!("{text:?}: {other:?}"),
    }
}

/// The only line of a text, which is bad: what is wrong, and at which column.
#[track_caller]
fn wrong(text: &str) -> (&'static str, usize) {
    let error = error(text.as_bytes());
    assert_eq!(error.line, 1, "{text:?}");
    (error.code(), error.column)
}

#[track_caller]
fn error(text: &[u8]) -> LineError {
    let mut lines: Vec<_> = line::parse(text).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0).unwrap_err()
}

/// The points of a text: measurement, or the code of what is wrong and its line.
fn outline(text: &[u8]) -> Vec<Result<String, (&'static str, usize)>> {
    let point = |line: Line<'_>| line.measurement().to_string();
    line::parse(text)
        .map(|line| line.map(point).map_err(|error| (error.code(), error.line)))
        .collect()
}

fn tags(line: Line<'_>) -> Vec<(String, String)> {
    let text =
        |(key, value): (line::Escaped<'_>, line::Escaped<'_>)| (key.to_string(), value.to_string());
    line.tags().map(text).collect()
}

/// The value of the first field.
#[track_caller]
fn value(text: &str) -> FieldValue<'_> {
    only(text).fields().next().unwrap().1
}

#[test]
fn a_line_has_measurement_tags_fields_and_a_time() {
    let line = only("cpu,host=a,core=0 user=1.5,ticks=7i,ok=t 1700000000");
    assert_eq!(line.measurement(), "cpu");
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(tags(line), [pair("host", "a"), pair("core", "0")]);
    let fields: Vec<_> = line.fields().collect();
    assert_eq!(fields.len(), 3);
    assert_eq!(fields[0].0, "user");
    assert_eq!(fields[0].1, FieldValue::Float(1.5));
    assert_eq!(fields[1].1, FieldValue::Integer(7));
    assert_eq!(fields[2].1, FieldValue::Boolean(true));
    assert_eq!(line.time, Some(1_700_000_000));
    assert_eq!(
        line.as_str(),
        "cpu,host=a,core=0 user=1.5,ticks=7i,ok=t 1700000000"
    );
}

#[test]
fn tags_and_the_time_are_optional() {
    let line = only("m v=1");
    assert_eq!(line.tags().count(), 0);
    assert_eq!(line.time, None);
}

#[test]
fn spaces_and_tabs_between_the_parts_do_not_count() {
    let line = only(" \t m,a=b  \t v=1 \t 17  \t ");
    assert_eq!(line.measurement(), "m");
    assert_eq!(line.fields().next().unwrap().0, "v");
    assert_eq!(line.time, Some(17));
    assert_eq!(only("m v=1 ").time, None);
}

#[test]
fn blank_lines_and_comments_are_skipped() {
    let text = b"\n\r\n  \t\n \r\n# a comment, v=\"\n  # another\r\nm v=1\n#\n#x";
    assert_eq!(outline(text), [Ok("m".to_owned())]);
    assert_eq!(outline(b""), []);
    assert_eq!(outline(b"\n"), []);
    assert_eq!(outline(b" "), []);
    assert_eq!(outline(b"\r"), []);
    assert_eq!(outline(b"a#b v=1"), [Ok("a#b".to_owned())]);
}

#[test]
fn a_line_ends_with_newline_carriage_return_and_newline_or_the_text() {
    let text = b"a v=1\nb v=true\r\nc v=\"x\"\r\nd v=1 17\r\ne v=1 \r\nf v=1i\r";
    let names = ["a", "b", "c", "d", "e", "f"].map(|name| Ok(name.to_owned()));
    assert_eq!(outline(text), names);
    let times: Vec<_> = line::parse(text).map(|line| line.unwrap().time).collect();
    assert_eq!(times, [None, None, None, Some(17), None, None]);
    let lines: Vec<_> = line::parse(text)
        .map(|line| line.unwrap().as_str())
        .collect();
    assert_eq!(lines[3], "d v=1 17");
}

#[test]
fn a_newline_ends_a_line_also_behind_a_backslash() {
    let text = b"a\\\nb v=1\\\nc v=1";
    let expected = [
        Err(("missing_fields", 1)),
        Err(("bad_field_value", 2)),
        Ok("c".to_owned()),
    ];
    assert_eq!(outline(text), expected);
}

#[test]
fn lines_of_every_length_around_the_blocks_of_the_scanner_are_read() {
    for length in 1..300 {
        let name = "n".repeat(length);
        let text = format!("{name},{name}={name} {name}=\"{name}\",b=t 5\n{name} v=1");
        let lines: Vec<_> = line::parse(text.as_bytes()).map(Result::unwrap).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].measurement(), name.as_str());
        assert_eq!(tags(lines[0]), [(name.clone(), name.clone())]);
        assert_eq!(lines[0].fields().count(), 2);
        assert_eq!(lines[0].time, Some(5));
        assert_eq!(lines[1].measurement(), name.as_str());
    }
}
