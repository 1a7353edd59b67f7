//! Tests of the meaning of operators, rule by rule.

use super::blocks::{all, block, cells, list, sparse, tag, text};
use corsair_stream::Value::{self, Boolean, Float, Integer, Text, Unsigned};
use corsair_stream::block::Data;
use corsair_stream::expression::ExpressionError;
use corsair_stream::language::parse_expression;

/// The value of an expression over one row of a bit of everything.
fn value(expression: &str) -> Result<Option<Value>, ExpressionError> {
    let block = block(
        1,
        vec![
            ("host", tag(&["a"])),
            ("both", tag(&["tag"])),
            ("both", Data::Integer(cells(&[1]))),
            ("float", Data::Float(cells(&[2.5]))),
            ("integer", Data::Integer(cells(&[-7]))),
            ("whole", Data::Unsigned(cells(&[7]))),
            ("huge", Data::Unsigned(cells(&[u64::MAX]))),
            ("least", Data::Integer(cells(&[i64::MIN]))),
            ("zero", Data::Integer(cells(&[0]))),
            ("yes", Data::Boolean(cells(&[true]))),
            ("text", text(&["b"])),
            ("none", Data::Float(sparse(&[None]))),
            ("mixed", Data::Mixed(vec![Some(Integer(3))])),
        ],
    );
    let expression = parse_expression(expression).expect("it parses");
    let data = expression.values(&block, &all(&block))?;
    Ok(data.get(0))
}

fn gives(expression: &str, expected: impl Into<Option<Value>>) {
    assert_eq!(value(expression), Ok(expected.into()), "{expression}");
}

fn fails(expression: &str, expected: &str) {
    let error = value(expression).expect_err(expression);
    assert_eq!(error.to_string(), expected, "{expression}");
}

#[test]
fn integers_stay_integers() {
    gives("integer + 1", Integer(-6));
    gives("integer * -2", Integer(14));
    gives("10s / 1ms", Integer(10_000));
}

#[test]
fn division_of_integers_rounds_towards_zero() {
    gives("integer / 2", Integer(-3));
    gives("integer % 2", Integer(-1));
    gives("whole / unsigned(2)", Unsigned(3));
}

#[test]
fn a_float_makes_a_float() {
    gives("integer + float", Float(-4.5));
    gives("whole * 0.5", Float(3.5));
    gives("integer / 2.0", Float(-3.5));
    gives("mixed + 0.5", Float(3.5));
}

#[test]
fn floats_divide_by_zero() {
    gives("float / 0", Float(f64::INFINITY));
    gives("-float / 0.0", Float(f64::NEG_INFINITY));
    gives("float / 0 - float / 0 = 0", Boolean(false));
    gives("float / 0 - float / 0 != 0", Boolean(true));
}

#[test]
fn integers_with_unsigned_ones_make_integers() {
    gives("whole + 1", Integer(8));
    gives("whole - 8", Integer(-1));
    gives("integer * whole", Integer(-49));
    gives("-whole", Integer(-7));
}

#[test]
fn integers_do_not_overflow_silently() {
    for expression in [
        "least - 1",
        "least * -1",
        "least / -1",
        "-least",
        "huge + 1",
        "-huge",
    ] {
        fails(
            expression,
            &format!("the result does not fit into 64 bits in `{expression}`"),
        );
    }
    let expected = "the result does not fit into 64 bits in `whole - huge`";
    fails("whole - huge", expected);
    gives("least % -1", Integer(0));
}

#[test]
fn integers_do_not_divide_by_zero() {
    fails("1 / zero", "division by zero in `1 / zero`");
    fails(
        "2 * (integer % zero)",
        "division by zero in `integer % zero`",
    );
    fails("1 / 0", "division by zero in `1 / 0`");
}

#[test]
fn integers_and_unsigned_ones_compare_by_value() {
    gives("huge > integer", Boolean(true));
    gives("huge = -1", Boolean(false));
    gives("least < whole", Boolean(true));
    gives("whole = 7", Boolean(true));
    gives("18446744073709551615 = huge", Boolean(true));
    gives("-1 < whole", Boolean(true));
    gives("7 >= whole", Boolean(true));
}

#[test]
fn numbers_compare_with_floats() {
    gives("float > 2", Boolean(true));
    gives("3 > float", Boolean(true));
    gives("integer <= -7.0", Boolean(true));
    gives("huge > 1e30", Boolean(false));
}

#[test]
fn strings_are_ordered_and_joined() {
    gives("host < text", Boolean(true));
    gives("'b' <= text", Boolean(true));
    gives("host + '-' + text", Text("a-b".into()));
    gives("'x' + host", Text("xa".into()));
    gives("host != text", Boolean(true));
}

#[test]
fn booleans_are_equal_or_not() {
    gives("yes = TRUE", Boolean(true));
    gives("FALSE != yes", Boolean(true));
    gives("(1 < 2) = (2 < 3)", Boolean(true));
    fails(
        "yes < TRUE",
        "boolean < boolean: there is no such operation, in `yes < TRUE`",
    );
}

#[test]
fn types_that_do_not_go_together_are_errors() {
    let cases = [
        (
            "host + 1",
            "string + integer: there is no such operation, in `host + 1`",
        ),
        (
            "1 = text",
            "integer = string: there is no such operation, in `1 = text`",
        ),
        (
            "text - text",
            "string - string: there is no such operation, in `text - text`",
        ),
        (
            "yes * 2.0",
            "boolean * float: there is no such operation, in `yes * 2.0`",
        ),
        (
            "mixed > 'a'",
            "integer > string: there is no such operation, in `mixed > 'a'`",
        ),
        ("-text", "- string: there is no such operation, in `-text`"),
        (
            "NOT float",
            "`float` is of type float, and a condition must be a boolean",
        ),
        (
            "yes AND huge + huge * 0.0",
            "`huge + huge * 0.0` is of type float, and a condition must be a boolean",
        ),
        (
            "mixed OR yes",
            "`mixed` is of type integer, and a condition must be a boolean",
        ),
    ];
    for (expression, expected) in cases {
        fails(expression, expected);
    }
}

#[test]
fn a_field_hides_a_tag_of_its_name() {
    gives("both", Integer(1));
}

#[test]
fn operations_on_nothing_give_nothing() {
    for expression in [
        "none",
        "absent",
        "none + 1",
        "absent > 1",
        "-none",
        "NOT (none = 1)",
        "none + 'a'",
        "absent AND yes",
        "none > 1 OR FALSE",
        "(absent = 1) = (absent = 1)",
    ] {
        gives(expression, None);
    }
}

#[test]
fn what_decides_needs_no_other_side() {
    gives("none > 1 AND FALSE", Boolean(false));
    gives("FALSE AND absent", Boolean(false));
    gives("none > 1 OR TRUE", Boolean(true));
    gives("yes OR none > 1", Boolean(true));
    gives("zero != 0 AND 1 / zero > 1", Boolean(false));
    gives("zero = 0 OR 'a' > 1", Boolean(true));
}

#[test]
fn only_rows_that_the_left_side_leaves_open_are_evaluated() {
    let numbers: Vec<i64> = (0..100).map(|row| row % 3).collect();
    let block = block(100, vec![("n", Data::Integer(cells(&numbers)))]);
    let expression = parse_expression("n != 0 AND 2 / n = 1").expect("it parses");
    let rows = expression
        .select(&block, &all(&block))
        .expect("no division by zero");
    let expected: Vec<usize> = (0..100).filter(|row| row % 3 == 2).collect();
    assert_eq!(rows.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn only_rows_that_are_asked_for_are_evaluated() {
    let block = block(3, vec![("n", Data::Integer(cells(&[1, 0, 4])))]);
    let expression = parse_expression("8 / n").expect("it parses");
    let column = expression
        .column(&block, &list(&[0, 2]))
        .expect("no division by zero");
    let found: Vec<_> = (0..3).map(|row| column.get(row)).collect();
    assert_eq!(found, [Some(Integer(8)), None, Some(Integer(2))]);
    let error = expression
        .column(&block, &list(&[1, 2]))
        .expect_err("there is a zero");
    assert!(matches!(error, ExpressionError::Zero { .. }), "{error}");
}

#[test]
fn no_rows_need_no_result() {
    let block = block(0, vec![]);
    let expression = parse_expression("1 / 0").expect("it parses");
    let column = expression
        .column(&block, &all(&block))
        .expect("nothing is divided");
    assert!(matches!(column, Data::Float(cells) if cells.values.is_empty()));
    let rows = expression
        .select(&block, &all(&block))
        .expect("nothing is divided");
    assert!(rows.is_empty());
}

#[test]
fn keys_are_named_once_from_left_to_right() {
    let expression = parse_expression("b > 1 AND a + b < c.d OR NOT a = 'a'").expect("it parses");
    let keys: Vec<&str> = expression.keys().into_iter().map(|key| &**key).collect();
    assert_eq!(keys, ["b", "a", "c.d"]);
}
