//! Values of fields, and timestamps.

use super::{only, value, wrong};
use corsair_stream::line::FieldValue;

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
