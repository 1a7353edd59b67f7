//! An expression over rows of a block.

use super::arithmetic::{arithmetic, minus};
use super::call::call;
use super::compare::compare;
use super::fault::Fault;
use super::select::marked;
use super::truth::Truth;
use super::vector::{Lane, Vector, spread};
use super::{Binary, Expression, ExpressionError, Pattern, Unary};
use crate::Value;
use crate::batch::Rows;
use crate::block::{Block, Data};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;

impl Expression {
    /// Returns the rows for which the expression, as a condition, is true. The result is a range if the rows
    /// are consecutive, and is not a copy if it contains all rows. O(rows × size).
    ///
    /// # Errors
    /// A row has no result, or its result is not a boolean.
    ///
    /// # Panics
    /// If a row does not exist in the block.
    pub fn select(&self, block: &Block, rows: &Rows) -> Result<Rows, ExpressionError> {
        Ok(match self.truth(block, rows)? {
            Truth::Constant(true) => rows.clone(),
            Truth::Constant(false) | Truth::Missing => Rows::Range(0, 0),
            truth => marked(rows, &truth.equals(true, rows.len())),
        })
    }

    /// Evaluates the condition for each of these rows.
    ///
    /// # Errors
    /// See [`Expression::select`].
    pub(crate) fn marks(&self, block: &Block, rows: &Rows) -> Result<Vec<bool>, ExpressionError> {
        let truth = self.truth(block, rows)?;
        Ok(truth.equals(true, rows.len()).into_owned())
    }

    /// Returns the rows for which the expression has a result, the number of rows without one, and the error of the
    /// last row without one. With `condition` a result must be a boolean.
    ///
    /// The function halves the rows until it finds the faulty ones. This takes O(rows) without faults, and O(log rows)
    /// more evaluations for each fault.
    pub(crate) fn sound(
        &self,
        block: &Block,
        rows: &Rows,
        condition: bool,
    ) -> (Rows, usize, Option<ExpressionError>) {
        let has_result = |rows: &Rows| match condition {
            true => self.truth(block, rows).map(drop),
            false => self.vector(block, rows).map(drop),
        };
        let (mut sound, mut faulty, mut why) = (Vec::with_capacity(rows.len()), 0, None);
        let mut open = vec![(0, rows.len())];
        while let Some((from, to)) = open.pop() {
            if from == to {
                continue;
            }
            let part = rows.slice(from, to);
            match has_result(&part) {
                Ok(()) => sound.extend(part.iter().map(|row| row as u32)),
                Err(error) if to - from == 1 => {
                    faulty += 1;
                    why = Some(error);
                }
                Err(_) => {
                    let middle = from + (to - from) / 2;
                    open.push((middle, to));
                    open.push((from, middle));
                }
            }
        }
        (Rows::from_iter(sound), faulty, why)
    }

    /// Evaluates the expression to a column of the block: a cell for every row, which is missing for rows that were not
    /// requested.
    ///
    /// This is for adding a column to the block. It needs O(block) memory even for few rows; [`Expression::values`]
    /// needs less. Strings, including those of tags, are [`Data::Text`]. After a division, floats may be infinite or
    /// NaN.
    ///
    /// # Errors
    /// If a row has no result.
    ///
    /// # Panics
    /// If a row does not exist in the block.
    pub fn column(&self, block: &Block, rows: &Rows) -> Result<Data, ExpressionError> {
        let values = self.values(block, rows)?;
        if rows.len() == block.rows() {
            return Ok(values);
        }
        Ok(spread(values, rows, block.rows()))
    }

    /// Evaluates the expression like [`Expression::column`], but returns only the cells of these rows, in their
    /// order. O(rows × size).
    ///
    /// # Errors
    /// If a row has no result.
    ///
    /// # Panics
    /// If a row does not exist in the block.
    pub fn values(&self, block: &Block, rows: &Rows) -> Result<Data, ExpressionError> {
        let vector = match rows.is_empty() {
            true => Vector::Missing,
            false => self.vector(block, rows)?,
        };
        Ok(vector.into_data(rows.len()))
    }

    /// Evaluates at least one row. Right sides and parentheses recurse; left sides are a loop, because a
    /// chain of operators may be long.
    pub(super) fn vector<'a>(
        &'a self,
        block: &'a Block,
        rows: &'a Rows,
    ) -> Result<Vector<'a>, ExpressionError> {
        let mut chain = Vec::new();
        let mut first = self;
        while let Expression::Binary(operator, left, right) = first {
            chain.push((first, *operator, left, right));
            first = left;
        }
        let mut value = first.operand(block, rows)?;
        while let Some((whole, operator, left, right)) = chain.pop() {
            value = match operator {
                Binary::And | Binary::Or => {
                    let left = left.condition(value)?;
                    connect(operator == Binary::Or, left, right, block, rows)?.into_vector()
                }
                _ => {
                    let right = right.vector(block, rows)?;
                    whole.operation(operator, &value, &right)?
                }
            };
        }
        Ok(value)
    }

    /// Evaluates an expression other than a binary operation.
    fn operand<'a>(
        &'a self,
        block: &'a Block,
        rows: &'a Rows,
    ) -> Result<Vector<'a>, ExpressionError> {
        match self {
            Expression::Literal(value) => Ok(Vector::Constant(value.clone())),
            Expression::Duration(nanos) => Ok(Vector::Constant(Value::Integer(*nanos))),
            Expression::Key(name) => Ok(match block.column(name) {
                Some(column) => Vector::read(&column.data, rows),
                None if &**name == "time" => Vector::times(&block.times, rows),
                None => Vector::Missing,
            }),
            Expression::Match(operand, pattern, holds) => {
                let operand = operand.vector(block, rows)?;
                self.matches(&operand, pattern, *holds, rows.len())
            }
            Expression::Call(function, arguments) => call(self, *function, arguments, block, rows),
            Expression::Unary(Unary::Not, operand) => {
                Ok(operand.truth(block, rows)?.not().into_vector())
            }
            Expression::Unary(Unary::Minus, operand) => {
                minus(operand.vector(block, rows)?).map_err(|fault| self.error(fault))
            }
            Expression::Binary(..) => unreachable!("`{self}` has two operands"),
        }
    }

    /// Evaluates `=~` or `!~`.
    fn matches(
        &self,
        operand: &Vector<'_>,
        pattern: &Pattern,
        holds: bool,
        rows: usize,
    ) -> Result<Vector<'static>, ExpressionError> {
        if let Vector::Missing = operand {
            return Ok(Vector::Missing);
        }
        // Each distinct word is matched only once.
        let mut known: FxHashMap<Arc<str>, bool> = FxHashMap::default();
        let cell = |at| match operand.get(at) {
            None => Ok(None),
            Some(Value::Text(text)) => {
                let found = match known.get(&text) {
                    Some(found) => *found,
                    None => {
                        let found = pattern.is_match(&text);
                        known.insert(text, found);
                        found
                    }
                };
                Ok(Some(Value::Boolean(found == holds)))
            }
            Some(other) => Err(self.error(Fault::Type(other.kind()))),
        };
        let cells = (0..rows).map(cell).collect::<Result<_, _>>()?;
        Ok(Vector::Mixed(Cow::Owned(cells)))
    }

    /// Evaluates a calculation or a comparison.
    fn operation(
        &self,
        operator: Binary,
        left: &Vector<'_>,
        right: &Vector<'_>,
    ) -> Result<Vector<'static>, ExpressionError> {
        match operator.is_comparison() {
            true => compare(operator, left, right),
            false => arithmetic(operator, left, right),
        }
        .map_err(|fault| self.error(fault))
    }

    fn truth<'a>(&'a self, block: &'a Block, rows: &'a Rows) -> Result<Truth<'a>, ExpressionError> {
        match rows.is_empty() {
            true => Ok(Truth::Missing),
            false => self.condition(self.vector(block, rows)?),
        }
    }

    /// Converts a value to a condition.
    fn condition<'a>(&self, value: Vector<'a>) -> Result<Truth<'a>, ExpressionError> {
        Truth::of(value).map_err(|kind| ExpressionError::Condition {
            kind,
            expression: self.to_string(),
        })
    }

    /// True for a comparison without further operations. Such a comparison is so cheap that comparing unneeded rows
    /// costs less than gathering the needed ones.
    fn is_plain_comparison(&self) -> bool {
        match self {
            Expression::Binary(operator, left, right) => {
                operator.is_comparison() && left.is_leaf() && right.is_leaf()
            }
            _ => false,
        }
    }

    fn is_leaf(&self) -> bool {
        matches!(
            self,
            Expression::Literal(_) | Expression::Duration(_) | Expression::Key(_)
        )
    }

    fn error(&self, fault: Fault) -> ExpressionError {
        let operator = match self {
            Expression::Unary(operator, _) => operator.symbol(),
            Expression::Binary(operator, ..) => operator.symbol(),
            Expression::Match(_, _, true) => "=~",
            Expression::Match(_, _, false) => "!~",
            Expression::Literal(_)
            | Expression::Duration(_)
            | Expression::Key(_)
            | Expression::Call(..) => "",
        };
        let expression = self.to_string();
        match fault {
            Fault::Types(left, right) => ExpressionError::Types {
                operator,
                left,
                right,
                expression,
            },
            Fault::Type(operand) => ExpressionError::Type {
                operator,
                operand,
                expression,
            },
            Fault::Zero => ExpressionError::Zero { expression },
            Fault::Overflow => ExpressionError::Overflow { expression },
            Fault::Length => ExpressionError::Length { expression },
        }
    }
}

/// Evaluates `OR` if the deciding value is true, and `AND` if it is false. The right side is evaluated only for rows
/// that the left side does not decide.
fn connect<'a>(
    decides: bool,
    left: Truth<'a>,
    right: &'a Expression,
    block: &'a Block,
    rows: &'a Rows,
) -> Result<Truth<'a>, ExpressionError> {
    let count = rows.len();
    let open = match &left {
        Truth::Constant(one) if *one == decides => return Ok(left),
        Truth::Constant(_) => return right.truth(block, rows),
        Truth::Missing => return Ok(left.combine(decides, right.truth(block, rows)?, count)),
        Truth::Each(_) => left.equals(decides, count),
    };
    let decided = open.iter().filter(|decided| **decided).count();
    if decided == count {
        drop(open);
        return Ok(left);
    }
    if decided == 0 {
        drop(open);
        return Ok(left.combine(decides, right.truth(block, rows)?, count));
    }
    // An error here may come from a row that should not have been evaluated.
    if decided < count / 8 * 7
        && right.is_plain_comparison()
        && let Ok(right) = right.truth(block, rows)
    {
        drop(open);
        return Ok(left.combine(decides, right, count));
    }
    let open: Vec<bool> = open.iter().map(|decided| !decided).collect();
    let subset = marked(rows, &open);
    let some = right.truth(block, &subset)?;
    let right = scatter(some, &open);
    Ok(left.combine(decides, right, count))
}

/// Expands the truth values of the open rows to all rows; the other rows have no value.
fn scatter(some: Truth<'_>, open: &[bool]) -> Truth<'static> {
    let lane = match some {
        Truth::Missing => return Truth::Missing,
        Truth::Constant(one) => Lane {
            values: Cow::Owned(vec![one; open.len()]),
            present: Some(Cow::Owned(open.to_vec())),
        },
        Truth::Each(some) => {
            let mut present = vec![false; open.len()];
            let mut values = vec![false; open.len()];
            let places = open.iter().enumerate().filter(|(_, open)| **open);
            for (next, (at, _)) in places.enumerate() {
                if let Some(one) = some.get(next) {
                    present[at] = true;
                    values[at] = one;
                }
            }
            Lane {
                values: Cow::Owned(values),
                present: Some(Cow::Owned(present)),
            }
        }
    };
    Truth::Each(lane)
}

impl Binary {
    fn is_comparison(self) -> bool {
        self.is_equality()
            || matches!(
                self,
                Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual
            )
    }
}
