//! Tests of evaluation over columns: the form of the results, and that they equal an evaluation row
//! by row.

use super::blocks::{all, block, cells, list, sparse, tag, values};
use super::random::{Typed, any_expression, any_rows, blocks};
use super::reference::{evaluate, same};
use corsair_stream::Value::{self, Boolean};
use corsair_stream::batch::Rows;
use corsair_stream::block::{Block, Cells, Data};
use corsair_stream::expression::{Expression, ExpressionError, key};
use proptest::prelude::*;

fn select(expression: &Expression, block: &Block, rows: &Rows) -> Rows {
    expression.select(block, rows).expect("there is a result")
}

fn numbers(count: i64) -> Block {
    let values: Vec<i64> = (0..count).collect();
    block(values.len(), vec![("n", Data::Integer(cells(&values)))])
}

#[test]
fn rows_that_follow_one_another_are_a_range() {
    let block = numbers(100);
    let middle = key("n").ge(10).and(key("n").lt(20));
    let rows = select(&middle, &block, &all(&block));
    assert!(matches!(rows, Rows::Range(10, 20)), "{rows:?}");
    let rows = select(&middle, &block, &Rows::Range(15, 100));
    assert!(matches!(rows, Rows::Range(15, 20)), "{rows:?}");
    let rows = select(&middle, &block, &list(&[3, 15, 16, 17, 99]));
    assert!(matches!(rows, Rows::Range(15, 18)), "{rows:?}");
}

#[test]
fn all_rows_of_a_list_are_the_same_list() {
    let block = numbers(10);
    let rows: std::sync::Arc<[u32]> = [1, 3, 9].into();
    let found = select(&key("n").gt(0), &block, &Rows::List(rows.clone()));
    assert!(matches!(found, Rows::List(found) if std::sync::Arc::ptr_eq(&found, &rows)));
}

#[test]
fn no_rows_are_an_empty_range() {
    let block = numbers(10);
    let rows = select(&key("n").gt(10), &block, &all(&block));
    assert!(matches!(rows, Rows::Range(0, 0)), "{rows:?}");
    let rows = select(&key("absent").gt(10), &block, &all(&block));
    assert!(rows.is_empty());
}

#[test]
fn a_condition_of_literals_only_is_decided_for_all_rows() {
    let block = numbers(10);
    let always = Expression::from(1).lt(2);
    assert_eq!(select(&always, &block, &Rows::Range(2, 5)).len(), 3);
    assert!(select(&!always, &block, &Rows::Range(2, 5)).is_empty());
}

#[test]
fn a_condition_must_be_a_boolean() {
    let block = numbers(10);
    let error = (key("n") + 1)
        .select(&block, &all(&block))
        .expect_err("it is a number");
    let expected = "`n + 1` is of type integer, and a condition must be a boolean";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn tags_become_strings() {
    let block = block(4, vec![("host", tag(&["a", "", "b", "a"]))]);
    let column = key("host").column(&block, &all(&block)).expect("a column");
    let Data::Text(Cells { values, present }) = column else {
        panic!("{column:?}");
    };
    assert_eq!(values, ["a".into(), "".into(), "b".into(), "a".into()]);
    assert_eq!(present, Some(vec![true, false, true, true]));
}

#[test]
fn every_comparison_of_a_tag_with_a_string_holds_per_word() {
    let hosts = ["b", "a", "", "c", "b", "c", "a", ""];
    let block = block(8, vec![("host", tag(&hosts))]);
    type Holds = fn(&str) -> bool;
    let cases: [(&str, Expression, Holds); 6] = [
        ("=", key("host").eq("b"), |host| host == "b"),
        ("!=", key("host").ne("b"), |host| host != "b"),
        ("<", key("host").lt("b"), |host| host < "b"),
        ("<=", key("host").le("b"), |host| host <= "b"),
        (">", key("host").gt("b"), |host| host > "b"),
        ("mirrored", Expression::from("b").le(key("host")), |host| {
            host >= "b"
        }),
    ];
    for (name, expression, holds) in cases {
        let expected: Vec<usize> = (0..8)
            .filter(|row| !hosts[*row].is_empty() && holds(hosts[*row]))
            .collect();
        let rows = select(&expression, &block, &all(&block));
        assert_eq!(rows.iter().collect::<Vec<_>>(), expected, "{name}");
        // Fewer rows than words: no word is looked at in vain.
        let rows = select(&expression, &block, &list(&[3]));
        assert_eq!(!rows.is_empty(), expected.contains(&3), "{name}");
    }
}

#[test]
fn a_string_that_no_row_has_is_different_from_all() {
    let block = block(3, vec![("host", tag(&["a", "", "a"]))]);
    assert!(select(&key("host").eq("x"), &block, &all(&block)).is_empty());
    let rows = select(&key("host").ne("x"), &block, &all(&block));
    assert_eq!(rows.iter().collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn cells_of_one_type_are_no_longer_mixed() {
    let cells = vec![Some(Value::Integer(1)), None, Some(Value::Float(0.5))];
    let block = block(3, vec![("m", Data::Mixed(cells))]);
    let column = (key("m") * 2.0)
        .values(&block, &all(&block))
        .expect("numbers");
    assert!(
        matches!(column, Data::Float(ref cells) if *cells == sparse(&[Some(2.0), None, Some(1.0)]))
    );
    let column = (key("m") * 2)
        .values(&block, &all(&block))
        .expect("numbers");
    assert!(matches!(column, Data::Mixed(_)), "{column:?}");
}

/// Evaluates row by row: returns the value of each row, or all errors.
fn expected(
    expression: &Expression,
    block: &Block,
    rows: &Rows,
) -> Result<Vec<Option<Value>>, Vec<ExpressionError>> {
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    for row in rows.iter() {
        match evaluate(expression, block, row) {
            Ok(value) => found.push(value),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(found)
    } else {
        Err(errors)
    }
}

fn agree(expression: &Expression, block: &Block, rows: &Rows) -> Result<(), TestCaseError> {
    let expected = expected(expression, block, rows);
    let column = expression.values(block, rows);
    let (data, expected) = match (column, expected) {
        (Ok(data), Ok(expected)) => (data, expected),
        (Err(error), Err(errors)) => {
            prop_assert!(errors.contains(&error), "{error}, not {errors:?}");
            return Ok(());
        }
        (found, expected) => {
            return Err(TestCaseError::fail(format!("{found:?}, not {expected:?}")));
        }
    };
    prop_assert!(!matches!(data, Data::Tag(_)));
    prop_assert!(
        same(&values(&data, rows.len()), &expected),
        "{data:?}, not {expected:?}"
    );

    let column = expression
        .column(block, rows)
        .expect("the same without values");
    let mut spread = vec![None; block.rows()];
    for (row, value) in rows.iter().zip(&expected) {
        spread[row] = value.clone();
    }
    prop_assert!(
        same(&values(&column, block.rows()), &spread),
        "{column:?}, not {spread:?}"
    );

    let other = expected
        .iter()
        .flatten()
        .find(|value| !matches!(value, Boolean(_)));
    match (expression.select(block, rows), other) {
        (Err(ExpressionError::Condition { .. }), Some(_)) => {}
        (Ok(selected), None) => {
            let is_true = |(_, value): &(usize, &Option<Value>)| **value == Some(Boolean(true));
            let chosen = rows.iter().zip(&expected).filter(is_true);
            let chosen: Vec<usize> = chosen.map(|(row, _)| row).collect();
            let contiguous = chosen.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            prop_assert_eq!(selected.iter().collect::<Vec<_>>(), chosen);
            let is_range = matches!(selected, Rows::Range(..));
            prop_assert!(is_range || !contiguous || selected.len() == rows.len());
        }
        (found, _) => return Err(TestCaseError::fail(format!("{found:?} of {expected:?}"))),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn columns_are_what_row_by_row_gives(
        (block, rows) in blocks().prop_flat_map(|block| {
            let rows = any_rows(block.rows());
            (Just(block), rows)
        }),
        expression in any_expression(Typed::Mostly),
    ) {
        agree(&expression, &block, &rows)?;
    }
}
