//! Tests of the text to which expressions are formatted.

use corsair_stream::Value;
use corsair_stream::expression::{Expression, key};
use corsair_stream::language::parse_expression;

fn parsed(text: &str) -> Expression {
    parse_expression(text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// The text is read as this expression.
fn reads(text: &str, expected: Expression) {
    assert_eq!(parsed(text), expected, "{text}");
}

/// The first is written as the second, which is read as the same.
fn writes(text: &str, expected: &str) {
    let expression = parsed(text);
    assert_eq!(expression.to_string(), expected);
    assert_eq!(parsed(expected), expression);
}

#[test]
fn operators_have_two_spellings() {
    let (a, b) = (|| key("a"), || key("b"));
    for text in ["a = 1", "a == 1"] {
        reads(text, a().eq(1));
    }
    for text in ["a != 1", "a <> 1"] {
        reads(text, a().ne(1));
    }
    for text in ["a AND b", "a and b", "a && b", "a&&b"] {
        reads(text, a().and(b()));
    }
    for text in ["a OR b", "a Or b", "a || b"] {
        reads(text, a().or(b()));
    }
    for text in ["NOT a", "not a", "!a"] {
        reads(text, !a());
    }
}

#[test]
fn operators_bind_as_in_algebra() {
    writes(
        "a OR b AND NOT c = d + e * -f",
        "a OR b AND NOT c = d + e * -f",
    );
    writes(
        "((a) OR (b AND (NOT (c = (d + (e * (-f)))))))",
        "a OR b AND NOT c = d + e * -f",
    );
    writes("(a OR b) AND c", "(a OR b) AND c");
    writes("(a + b) * c - d", "(a + b) * c - d");
}

#[test]
fn operators_of_one_level_group_to_the_left() {
    reads("a - b - c", key("a") - key("b") - key("c"));
    writes("a - (b - c)", "a - (b - c)");
    writes("a / (b * c)", "a / (b * c)");
    writes("(a AND b) AND c", "a AND b AND c");
    writes("a AND (b AND c)", "a AND (b AND c)");
}

#[test]
fn the_word_not_covers_a_comparison_and_the_sign_does_not() {
    reads("NOT a = b", !key("a").eq(key("b")));
    reads("!a = b", (!key("a")).eq(key("b")));
    writes("!a = b", "(NOT a) = b");
    writes("NOT NOT a", "NOT NOT a");
    writes("-(NOT a)", "-(NOT a)");
}

#[test]
fn a_minus_belongs_to_its_number() {
    reads("-5", Expression::from(-5));
    reads("-9223372036854775808", Expression::from(i64::MIN));
    reads("a - 5", key("a") - 5);
    reads("a - -5", key("a") - -5);
    reads("a -5", key("a") - 5);
    reads("-(5)", -Expression::from(5));
    writes("-(5)", "-(5)");
    writes("--a", "--a");
    reads("-10s", Expression::Duration(-10_000_000_000));
}

#[test]
fn numbers_have_types() {
    reads("10", Expression::from(10));
    reads("10.0", Expression::from(10.0));
    reads("1e3", Expression::from(1000.0));
    reads("2.5E-1", Expression::from(0.25));
    reads("9223372036854775808", Expression::from(1u64 << 63));
    reads("unsigned(5)", Expression::from(5u64));
    writes("1e300", "1e300");
    writes("1000000.0", "1000000.0");
}

#[test]
fn durations_have_units() {
    let units = [
        ("3ns", 3),
        ("3u", 3_000),
        ("3ms", 3_000_000),
        ("3s", 3_000_000_000),
        ("3m", 180_000_000_000),
        ("3h", 10_800_000_000_000),
        ("3d", 259_200_000_000_000),
        ("3w", 1_814_400_000_000_000),
    ];
    for (text, nanos) in units {
        reads(text, Expression::Duration(nanos));
        writes(text, text);
    }
    writes("60s", "1m");
    writes("90s", "90s");
    writes("0ms", "0s");
}

#[test]
fn quotes_tell_keys_from_strings() {
    reads("host = 'a'", key("host").eq("a"));
    reads("\"host\" = 'a'", key("host").eq("a"));
    reads(
        "'it\\'s' = \"a \\\"b\\\"\"",
        Expression::from("it's").eq(key("a \"b\"")),
    );
    reads("'C:\\dir \\\\ x'", Expression::from("C:\\dir \\ x"));
    reads("'a // b # c'", Expression::from("a // b # c"));
    writes("\"host\"", "host");
    writes("\"a b\"", "\"a b\"");
    writes("\"and\"", "\"and\"");
    writes("\"\"", "\"\"");
}

#[test]
fn keys_may_have_points() {
    reads(
        "m1.value > m2.value.x",
        key("m1.value").gt(key("m2.value.x")),
    );
    writes("\"m1.value\"", "m1.value");
    writes("\"m1.1\"", "\"m1.1\"");
    writes("\"or.b\"", "\"or.b\"");
    reads("größe > 1", key("größe").gt(1));
}

#[test]
fn truth_has_two_words() {
    for text in ["TRUE", "true", "True"] {
        reads(text, Expression::from(true));
    }
    reads("false", Expression::from(false));
}

#[test]
fn lambda_may_come_first() {
    reads("lambda: \"value\" > 10", key("value").gt(10));
    reads("\"lambda\" > 10", key("lambda").gt(10));
}

#[test]
fn comments_are_space() {
    reads("a // the first\n + # and\n b", key("a") + key("b"));
}

#[test]
fn rust_writes_what_the_language_reads() {
    let double = key("value") * 2;
    let text = "value * 2 % 7 >= -x / 3 + 0.5 AND (t < 10s OR NOT s != 'a') AND on = TRUE";
    let expected = (double % 7)
        .ge(-key("x") / 3 + 0.5)
        .and(
            key("t")
                .lt(std::time::Duration::from_secs(10))
                .or(!key("s").ne("a")),
        )
        .and(key("on").eq(true));
    reads(text, expected.clone());
    assert_eq!(expected.to_string(), text);
    reads(
        "a - 'x'",
        key("a") - Expression::from(Value::Text("x".into())),
    );
}
