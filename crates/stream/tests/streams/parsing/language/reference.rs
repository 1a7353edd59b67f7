//! Expressions evaluated for one row: the rules, as plainly as can be, and slow.

use corsair_stream::Value::{self, Boolean, Float, Integer, Text, Unsigned};
use corsair_stream::block::Block;
use corsair_stream::expression::{Binary, Expression, ExpressionError, Unary};
use std::cmp::Ordering;

/// The value of one row.
pub fn evaluate(
    expression: &Expression,
    block: &Block,
    row: usize,
) -> Result<Option<Value>, ExpressionError> {
    match expression {
        Expression::Literal(value) => Ok(Some(value.clone())),
        Expression::Duration(nanos) => Ok(Some(Integer(*nanos))),
        Expression::Match(..) | Expression::Call(..) => {
            unreachable!("they are not among the random ones")
        }
        Expression::Key(name) => {
            let mut named = block.columns.iter().filter(|column| column.name == *name);
            let field = named.clone().find(|column| !column.is_tag());
            let column = field.or_else(|| named.next());
            Ok(column.and_then(|column| column.data.get(row)))
        }
        Expression::Unary(Unary::Not, operand) => {
            Ok(condition(operand, block, row)?.map(|one| Boolean(!one)))
        }
        Expression::Unary(Unary::Minus, operand) => match evaluate(operand, block, row)? {
            None => Ok(None),
            Some(Float(number)) => Ok(Some(Float(-number))),
            Some(Integer(number)) => whole(-i128::from(number), expression).map(Some),
            Some(Unsigned(number)) => whole(-i128::from(number), expression).map(Some),
            Some(other) => Err(ExpressionError::Type {
                operator: "-",
                operand: other.kind(),
                expression: expression.to_string(),
            }),
        },
        Expression::Binary(operator @ (Binary::And | Binary::Or), left, right) => {
            let decides = *operator == Binary::Or;
            let left = condition(left, block, row)?;
            if left == Some(decides) {
                return Ok(Some(Boolean(decides)));
            }
            let right = condition(right, block, row)?;
            Ok(match (left, right) {
                (_, Some(right)) if right == decides => Some(Boolean(decides)),
                (Some(_), Some(_)) => Some(Boolean(!decides)),
                _ => None,
            })
        }
        Expression::Binary(operator, left, right) => {
            let left = evaluate(left, block, row)?;
            let right = evaluate(right, block, row)?;
            match (left, right) {
                (Some(left), Some(right)) => {
                    operation(*operator, &left, &right, expression).map(Some)
                }
                _ => Ok(None),
            }
        }
    }
}

fn condition(
    expression: &Expression,
    block: &Block,
    row: usize,
) -> Result<Option<bool>, ExpressionError> {
    match evaluate(expression, block, row)? {
        None => Ok(None),
        Some(Boolean(one)) => Ok(Some(one)),
        Some(other) => Err(ExpressionError::Condition {
            kind: other.kind(),
            expression: expression.to_string(),
        }),
    }
}

fn operation(
    operator: Binary,
    left: &Value,
    right: &Value,
    expression: &Expression,
) -> Result<Value, ExpressionError> {
    let order = match (left, right) {
        (Text(left), Text(right)) if operator == Binary::Add => {
            return Ok(Text(format!("{left}{right}").into()));
        }
        (Text(left), Text(right)) => Some(left.as_bytes().cmp(right.as_bytes())),
        (Boolean(left), Boolean(right)) => Some(left.cmp(right)),
        _ => match (exact(left), exact(right)) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => float(left)
                .zip(float(right))
                .and_then(|(a, b)| a.partial_cmp(&b)),
        },
    };
    let ordered = |holds: fn(Ordering) -> bool| Ok(Boolean(order.is_some_and(holds)));
    let numbers = float(left).is_some() && float(right).is_some();
    let texts = matches!((left, right), (Text(_), Text(_)));
    let booleans = matches!((left, right), (Boolean(_), Boolean(_)));
    match operator {
        Binary::Equal if numbers || texts || booleans => ordered(Ordering::is_eq),
        Binary::NotEqual if numbers || texts || booleans => {
            Ok(Boolean(!order.is_some_and(Ordering::is_eq)))
        }
        Binary::Less if numbers || texts => ordered(Ordering::is_lt),
        Binary::LessOrEqual if numbers || texts => ordered(Ordering::is_le),
        Binary::Greater if numbers || texts => ordered(Ordering::is_gt),
        Binary::GreaterOrEqual if numbers || texts => ordered(Ordering::is_ge),
        Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder
            if numbers =>
        {
            calculate(operator, left, right, expression)
        }
        _ => Err(ExpressionError::Types {
            operator: operator.symbol(),
            left: left.kind(),
            right: right.kind(),
            expression: expression.to_string(),
        }),
    }
}

fn calculate(
    operator: Binary,
    left: &Value,
    right: &Value,
    expression: &Expression,
) -> Result<Value, ExpressionError> {
    let (Some(a), Some(b)) = (exact(left), exact(right)) else {
        let (a, b) = float(left).zip(float(right)).expect("both are numbers");
        return Ok(Float(match operator {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => a / b,
            _ => a % b,
        }));
    };
    let divides = matches!(operator, Binary::Divide | Binary::Remainder);
    if divides && b == 0 {
        let expression = expression.to_string();
        return Err(ExpressionError::Zero { expression });
    }
    let result = match operator {
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        Binary::Divide => a.checked_div(b),
        _ => a.checked_rem(b),
    };
    let overflow = || ExpressionError::Overflow {
        expression: expression.to_string(),
    };
    let result = result.ok_or_else(overflow)?;
    match (left, right) {
        (Unsigned(_), Unsigned(_)) => u64::try_from(result).map(Unsigned).map_err(|_| overflow()),
        _ => whole(result, expression),
    }
}

fn whole(result: i128, expression: &Expression) -> Result<Value, ExpressionError> {
    i64::try_from(result)
        .map(Integer)
        .map_err(|_| ExpressionError::Overflow {
            expression: expression.to_string(),
        })
}

fn exact(value: &Value) -> Option<i128> {
    match value {
        Integer(number) => Some(i128::from(*number)),
        Unsigned(number) => Some(i128::from(*number)),
        _ => None,
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Float(number) => Some(*number),
        Integer(number) => Some(*number as f64),
        Unsigned(number) => Some(*number as f64),
        _ => None,
    }
}

/// Equal, or not a number on both sides.
pub fn same(found: &[Option<Value>], expected: &[Option<Value>]) -> bool {
    let equal = |(a, b): (&Option<Value>, &Option<Value>)| match (a, b) {
        (Some(Float(a)), Some(Float(b))) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    };
    found.len() == expected.len() && found.iter().zip(expected).all(equal)
}
