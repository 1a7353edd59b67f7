//! What is a line, rule by rule.

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
fn a_time_may_be_negative_and_begin_with_zeros() {
    assert_eq!(only("m v=1 -17").time, Some(-17));
    assert_eq!(only("m1 value=17 0000000017").time, Some(17));
    assert_eq!(only("m v=1 9223372036854775807").time, Some(i64::MAX));
    assert_eq!(only("m v=1 -9223372036854775808").time, Some(i64::MIN));
    assert_eq!(only("m v=1 00000000000000000000000000001").time, Some(1));
}

#[test]
fn what_is_no_time_is_refused() {
    for text in [
        "noon",
        "-",
        "+1",
        "1.0",
        "1e3",
        "12345678x",
        "1=2",
        "1,2",
        "\"1\"",
        "1\\",
        "--1",
    ] {
        assert_eq!(
            wrong(&format!("m v=1 {text}")),
            ("bad_timestamp", 7),
            "{text}"
        );
    }
    for text in [
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        &"9".repeat(500),
    ] {
        let expected = ("timestamp_out_of_range", 7);
        assert_eq!(wrong(&format!("m v=1 {text}")), expected, "{text}");
    }
    assert_eq!(wrong("m v=1 17 18"), ("text_after_timestamp", 10));
    assert_eq!(wrong("m v=1 17 \r18"), ("text_after_timestamp", 10));
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
fn a_float_is_written_with_or_without_point_sign_and_exponent() {
    for (text, expected) in [
        ("1", 1.0),
        ("0", 0.0),
        ("17", 17.0),
        ("-1", -1.0),
        ("1.5", 1.5),
        ("5.", 5.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("0012.50", 12.5),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("-1.5e-3", -0.0015),
        ("1e-999", 0.0),
        ("9007199254740993", 9_007_199_254_740_992.0),
        (
            "0.1234567890123456789012345678901234567890",
            0.123_456_789_012_345_68,
        ),
        ("1.7976931348623157e308", f64::MAX),
        ("5e-324", 5e-324),
    ] {
        let line = format!("m v={text},w=1");
        assert_eq!(value(&line), FieldValue::Float(expected), "{text}");
    }
    let FieldValue::Float(zero) = value("m v=-0") else {
        panic!("no float");
    };
    assert!(zero.is_sign_negative());
}

#[test]
fn an_integer_ends_with_i_and_an_unsigned_one_with_u() {
    for (text, expected) in [
        ("0i", FieldValue::Integer(0)),
        ("-0i", FieldValue::Integer(0)),
        ("9223372036854775807i", FieldValue::Integer(i64::MAX)),
        ("-9223372036854775808i", FieldValue::Integer(i64::MIN)),
        ("00000000000000000000000012i", FieldValue::Integer(12)),
        ("0u", FieldValue::Unsigned(0)),
        ("12345678u", FieldValue::Unsigned(12_345_678)),
        ("18446744073709551615u", FieldValue::Unsigned(u64::MAX)),
    ] {
        assert_eq!(value(&format!("m v={text}")), expected, "{text}");
    }
}

#[test]
fn a_boolean_has_ten_spellings() {
    for (texts, expected) in [
        (["t", "T", "true", "True", "TRUE"], true),
        (["f", "F", "false", "False", "FALSE"], false),
    ] {
        for text in texts {
            assert_eq!(
                value(&format!("m v={text} 1")),
                FieldValue::Boolean(expected)
            );
        }
    }
}

#[test]
fn what_is_no_value_is_refused_where_it_begins() {
    for text in [
        "yes",
        "tr",
        "tRUE",
        "truer",
        "falsehood",
        "abc",
        "-",
        ".",
        "-.",
        "1.2.3",
        "1e",
        "1e+",
        "e5",
        "--1",
        "+1",
        "1i2",
        "i",
        "-i",
        "u",
        "-1u",
        "1.0i",
        "1e3i",
        "1ii",
        "1ui",
        "0x10",
        "1_000",
        "1f",
        "'a'",
        "1\"",
        "tr\"ue",
        "1=2",
        "a\\ b",
        "12345678901234567890a",
        "1234567:",
        "1234567/",
        "1234567:i",
        "1234567/i",
        "1234567:u",
        "12345678901234567:i",
    ] {
        assert_eq!(
            wrong(&format!("m v={text}")),
            ("bad_field_value", 5),
            "{text}"
        );
        assert_eq!(
            wrong(&format!("m v={text},w=1 1")),
            ("bad_field_value", 5),
            "{text}"
        );
    }
}

#[test]
fn numbers_are_finite() {
    for text in [
        "NaN",
        "nan",
        "-nan",
        "inf",
        "-Inf",
        "+Inf",
        "infinity",
        "-Infinity",
    ] {
        assert_eq!(wrong(&format!("m v={text}")), ("not_finite", 5), "{text}");
    }
}

#[test]
fn numbers_fit_into_64_bits() {
    for (text, code) in [
        ("1e309", "float_out_of_range"),
        ("-1e999999999999", "float_out_of_range"),
        (&"9".repeat(400), "float_out_of_range"),
        ("9223372036854775808i", "integer_out_of_range"),
        ("-9223372036854775809i", "integer_out_of_range"),
        ("99999999999999999999i", "integer_out_of_range"),
        (&format!("{}i", "9".repeat(400)), "integer_out_of_range"),
        ("18446744073709551616u", "unsigned_out_of_range"),
        ("99999999999999999999u", "unsigned_out_of_range"),
    ] {
        assert_eq!(wrong(&format!("m v={text}")), (code, 5), "{text}");
    }
}

#[test]
fn a_string_has_escaped_quotes_and_backslashes_and_any_other_character() {
    for (text, expected) in [
        (r#""""#, ""),
        (r#""a, b = c # d""#, "a, b = c # d"),
        (r#""say \"hi\"""#, r#"say "hi""#),
        (r#""c:\\dir\\""#, r"c:\dir\"),
        (r#""c:\dir\ \,""#, r"c:\dir\ \,"),
        (r#""\\\"""#, r#"\""#),
        ("\"one\ntwo\r\n\r\nthree\"", "one\ntwo\r\n\r\nthree"),
        ("\"naïve 😀\"", "naïve 😀"),
    ] {
        let line = format!("m v={text},w=2i 5");
        let line = only(&line);
        let fields: Vec<_> = line.fields().collect();
        let FieldValue::Text(read) = fields[0].1 else {
            panic!("{text}: no string");
        };
        assert_eq!(read, expected, "{text}");
        assert_eq!(fields[1].1, FieldValue::Integer(2));
        assert_eq!(line.time, Some(5));
    }
}

#[test]
fn after_a_string_comes_a_comma_a_space_or_the_end() {
    assert_eq!(wrong(r#"m v="a"b"#), ("text_after_string", 8));
    assert_eq!(wrong(r#"m v="a"" 1"#), ("text_after_string", 8));
    assert_eq!(wrong(r#"m v="a\\"b" 1"#), ("text_after_string", 10));
    assert_eq!(wrong("m v=\"a\"\r1"), ("text_after_string", 8));
    assert_eq!(only("m v=\"a\"\r\n").fields().count(), 1);
}

#[test]
fn a_string_without_end_is_at_fault_where_it_begins() {
    assert_eq!(wrong(r#"m v="abc"#), ("unterminated_string", 5));
    assert_eq!(wrong(r#"m v=""#), ("unterminated_string", 5));
    assert_eq!(wrong(r#"m v="abc\""#), ("unterminated_string", 5));
    assert_eq!(wrong(r#"m v="abc\"#), ("unterminated_string", 5));
}

#[test]
fn in_names_a_backslash_escapes_comma_equals_sign_and_space() {
    let line = only(r#"m\ 1\,x,tag\ a\,b\=c=va\ l\,u\=e field\ \,\=="x" 1"#);
    assert_eq!(line.measurement(), "m 1,x");
    assert_eq!(
        tags(line),
        [("tag a,b=c".to_owned(), "va l,u=e".to_owned())]
    );
    assert_eq!(line.fields().next().unwrap().0, "field ,=");
}

#[test]
fn a_backslash_before_anything_else_is_itself() {
    let line = only(r#"m\=\n\,a,\"k\a="v\t\\n w\"\\,=1"#);
    assert_eq!(line.measurement(), r"m\=\n,a");
    assert_eq!(
        tags(line),
        [(r#"\"k\a"#.to_owned(), r#""v\t\\n"#.to_owned())]
    );
    assert_eq!(line.fields().next().unwrap().0, r#"w\"\,"#);
}

#[test]
fn an_equals_sign_and_quotes_in_a_measurement_are_themselves() {
    assert_eq!(only(r#"a="b" v=1"#).measurement(), r#"a="b""#);
}

#[test]
fn the_measurement_is_not_optional() {
    assert_eq!(wrong(",a=b v=1"), ("missing_measurement", 1));
    assert_eq!(wrong("  ,a=b v=1"), ("missing_measurement", 3));
}

#[test]
fn tags_have_a_key_and_a_value() {
    assert_eq!(wrong("m, v=1"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,=b v=1"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,,a=b v=1"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,a=b, v=1"), ("missing_tag_key", 7));
    assert_eq!(wrong("m,"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,\r\n"), ("missing_tag_key", 3));
    assert_eq!(wrong("m,a v=1"), ("missing_tag_value", 4));
    assert_eq!(wrong("m,a,b=1 v=1"), ("missing_tag_value", 4));
    assert_eq!(wrong("m,a"), ("missing_tag_value", 4));
    assert_eq!(wrong("m,a= v=1"), ("missing_tag_value", 5));
    assert_eq!(wrong("m,a=,b=1 v=1"), ("missing_tag_value", 5));
    assert_eq!(wrong("m,a="), ("missing_tag_value", 5));
    assert_eq!(wrong("m,a=b=c v=1"), ("unescaped_equals", 6));
    assert_eq!(wrong("m,a== v=1"), ("unescaped_equals", 5));
}

#[test]
fn a_key_of_a_tag_is_there_once() {
    assert_eq!(wrong("m,a=1,a=2 v=1"), ("duplicate_tag", 7));
    assert_eq!(wrong("m,b=1,a=2,c=3,a=2 v=1"), ("duplicate_tag", 15));
    assert_eq!(wrong(r"m,b\ c=1,b=2,b\ c=2 v=1"), ("duplicate_tag", 14));
    assert_eq!(tags(only("m,ab=1,ba=2,a=3,b=4,aa=5,bb=6 v=1")).len(), 6);
}

#[test]
fn a_tag_that_is_there_twice_is_found_among_many() {
    let tag = |number: usize| format!(",tag{:04}=x", number * 7919 % 1000);
    let many: String = (0..1000).map(tag).collect();
    assert_eq!(only(&format!("m{many} v=1")).tags().count(), 1000);
    let twice = format!("m{many},tag0500=y,tag0400=y v=1");
    assert_eq!(wrong(&twice), ("duplicate_tag", 2 + many.len() + 1));
}

#[test]
fn fields_have_a_key_and_a_value() {
    assert_eq!(wrong("m =1"), ("missing_field_key", 3));
    assert_eq!(wrong("m ,a=1"), ("missing_field_key", 3));
    assert_eq!(wrong("m a=1,,b=1"), ("missing_field_key", 7));
    assert_eq!(wrong("m a=1, b=1"), ("missing_field_key", 7));
    assert_eq!(wrong("m a=1,"), ("missing_field_key", 7));
    assert_eq!(wrong("m a=1,\r\n"), ("missing_field_key", 7));
    assert_eq!(wrong("m a"), ("missing_field_value", 4));
    assert_eq!(wrong("m a,b=1"), ("missing_field_value", 4));
    assert_eq!(wrong("m a 1"), ("missing_field_value", 4));
    assert_eq!(wrong("m a="), ("missing_field_value", 5));
    assert_eq!(wrong("m a=\r\n"), ("missing_field_value", 5));
    assert_eq!(wrong("m a= 1"), ("missing_field_value", 5));
    assert_eq!(wrong("m a=,b=1"), ("missing_field_value", 5));
    assert_eq!(wrong("m a=1,b"), ("missing_field_value", 8));
}

#[test]
fn fields_are_not_optional() {
    assert_eq!(wrong("m"), ("missing_fields", 2));
    assert_eq!(wrong("m\r\n"), ("missing_fields", 3));
    assert_eq!(wrong("m "), ("missing_fields", 3));
    assert_eq!(wrong("m  \t\r\n"), ("missing_fields", 6));
    assert_eq!(wrong("m,a=b"), ("missing_fields", 6));
    assert_eq!(wrong("m,a=b "), ("missing_fields", 7));
    assert_eq!(wrong(r"m\ v=1"), ("missing_fields", 7));
}

#[test]
fn reserved_keys_are_refused() {
    assert_eq!(wrong("m,time=1 v=1"), ("reserved_key", 3));
    assert_eq!(wrong("m,_field=1 v=1"), ("reserved_key", 3));
    assert_eq!(wrong("m,_measurement=1 v=1"), ("reserved_key", 3));
    assert_eq!(wrong("m v=1,time=1"), ("reserved_key", 7));
    assert_eq!(
        only("time,times=1 _field=1,_measurement=2")
            .fields()
            .count(),
        2
    );
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
fn after_a_bad_line_the_next_one_is_read() {
    let text = b"a v=1\nb v=x\nc v=2\n,\n\nd\nf v=1";
    let expected = [
        Ok("a".to_owned()),
        Err(("bad_field_value", 2)),
        Ok("c".to_owned()),
        Err(("missing_measurement", 4)),
        Err(("missing_fields", 6)),
        Ok("f".to_owned()),
    ];
    assert_eq!(outline(text), expected);
}

#[test]
fn the_line_after_a_string_without_end_is_read_again() {
    let expected = [
        Err(("unterminated_string", 1)),
        Ok("b".to_owned()),
        Err(("missing_fields", 3)),
    ];
    assert_eq!(outline(b"a v=\"x\nb v=1\nc"), expected);
}

#[test]
fn a_newline_before_the_fault_belongs_to_the_bad_line_and_one_behind_it_ends_it() {
    // The string that begins in the first line ends in the third; the fault is right behind it.
    let swallowed = b"a v=\"x\nb v=1\nc v=\"y\"\nd v=1";
    assert_eq!(
        outline(swallowed),
        [Err(("text_after_string", 3)), Ok("d".to_owned())]
    );
    // The fault is before the string, so that its newline ends the line.
    let within = b"a u=x,v=\"1\n2\" 5\nd v=1";
    let expected = [
        Err(("bad_field_value", 1)),
        Err(("missing_field_value", 2)),
        Ok("d".to_owned()),
    ];
    assert_eq!(outline(within), expected);
}

#[test]
fn broken_utf_8_makes_its_own_line_bad_and_no_other() {
    let text = b"a v=1\nb\xff v=1\nc,t=\xc3\x28 v=1\nd v=\"\xe9\n\"\ne v=\"\xf0\x9f\x98\x80\"\nf v=1 1\xff";
    let expected = [
        Ok("a".to_owned()),
        Err(("invalid_utf8", 2)),
        Err(("invalid_utf8", 3)),
        Err(("invalid_utf8", 4)),
        Err(("missing_fields", 5)),
        Ok("e".to_owned()),
        Err(("invalid_utf8", 7)),
    ];
    assert_eq!(outline(text), expected);
    let error = error(b"caf\xc3\xa9,x=\xe9 v=1");
    assert_eq!((error.code(), error.column), ("invalid_utf8", 8));
    assert_eq!(&*error.excerpt, "\\xe9 v=1");
    assert_eq!(
        outline(b"# caf\xe9\na v=1\n \xff\n"),
        [Ok("a".to_owned()), Err(("invalid_utf8", 3))]
    );
    assert_eq!(
        outline(b"a v=1\n\xff"),
        [Ok("a".to_owned()), Err(("invalid_utf8", 2))]
    );
    assert_eq!(outline(b"a v=1 \xff"), [Err(("invalid_utf8", 1))]);
    assert_eq!(outline(b"a v=x,\xff"), [Err(("invalid_utf8", 1))]);
}

#[test]
fn an_error_says_where_in_characters_what_and_what_to_write_instead() {
    let error = error("# café\n\nhöhe,ort=München wert=1,zahl=1x7 12".as_bytes());
    assert_eq!((error.line, error.column), (3, 30));
    assert_eq!(&*error.excerpt, "1x7 12");
    assert_eq!(
        error.to_string(),
        "line 3, column 30: not the value of a field: write a number such as 1.5, an integer such as \
         15i or 15u, true, false, or a string in double quotes; at: 1x7 12"
    );
}

#[test]
fn an_error_behind_a_newline_in_a_string_is_in_the_line_where_it_stands() {
    let error = error(b"m a=\"1\n2\n3\",b=x");
    assert_eq!((error.line, error.column), (3, 6));
}

#[test]
fn an_error_at_the_end_of_a_line_says_so() {
    let error = error(b"m");
    assert!(
        error.to_string().ends_with("; at the end of the line"),
        "{error}"
    );
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

/// These are done at once, or not within anybody's patience.
#[test]
fn no_text_takes_more_than_linear_time() {
    const LARGE: usize = 1_920_000;
    let count = |text: String| {
        let (good, bad): (Vec<_>, Vec<_>) = line::parse(text.as_bytes()).partition(Result::is_ok);
        (good.len(), bad.len())
    };
    let many = |piece: &str| piece.repeat(LARGE / piece.len());
    assert_eq!(count(many("m v=x\n")), (0, LARGE / 6));
    assert_eq!(count(many("m v=\"\n")).1, 0);
    assert_eq!(count(many("m v=\"x\n,\"\n")), (LARGE / 10, 0));
    assert_eq!(count(many("m v=\"\\\"\n")), (0, LARGE / 16));
    assert_eq!(count(many("m v=\"a\" \"\n")), (0, LARGE / 10));
    assert_eq!(count(many("m v=\"\n\"x\n")), (0, LARGE / 9));
    assert_eq!(count(format!("m v=\"{}", many("x\nm v=1\n"))).1, LARGE / 8);
    assert_eq!(count(format!("m v={}", many("1"))), (0, 1));
    assert_eq!(count(format!("m v={}i", many("0"))), (1, 0));
    assert_eq!(count(format!("m v=0.{}", many("0"))), (1, 0));
    assert_eq!(count(many("m")), (0, 1));
    assert_eq!(count(many(" ")), (0, 0));
    assert_eq!(count(many("\\")), (0, 1));
    assert_eq!(count(many("#\n")), (0, 0));
    assert_eq!(count(format!("m{} v=1", many(",a=b"))), (0, 1));
    let number = |place: usize| place * 7919 % 100_000;
    let tags: String = (0..100_000)
        .map(|place| format!(",t{:06}=b", number(place)))
        .collect();
    assert_eq!(count(format!("m{tags} v=1")), (1, 0));
    assert_eq!(count(format!("m v=1{}", tags.replace('b', "1"))), (1, 0));
    let broken = [
        b"m v=\xff\n".repeat(LARGE / 7),
        b"m v=\"\xff\n".repeat(LARGE / 8),
    ];
    assert_eq!(
        line::parse(&broken[0]).filter(Result::is_err).count(),
        LARGE / 7
    );
    assert_eq!(
        line::parse(&broken[1]).filter(Result::is_err).count(),
        LARGE / 8
    );
}
