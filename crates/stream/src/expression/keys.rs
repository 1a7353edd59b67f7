//! The keys of an expression, and its depth.

use super::{Expression, Level, Unary};
use crate::Value;
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Expression {
    /// The maximum nesting of parentheses, `NOT` and signs. Their evaluation is recursive, and an actor's thread has a
    /// small stack.
    pub const MAX_DEPTH: usize = 25;

    /// The maximum length of a chain of operators, as in `a OR b OR c`, including the operators around it.
    pub const MAX_CHAIN: usize = 500;

    /// Returns the fields and tags of the expression, each once, from left to right. O(size).
    pub fn keys(&self) -> Vec<&Arc<str>> {
        let mut seen = FxHashSet::default();
        let mut keys = Vec::new();
        self.visit(|part, _| {
            if let Expression::Key(key) = part
                && seen.insert(key)
            {
                keys.push(key);
            }
        });
        keys
    }

    /// True if the expression exceeds [`Expression::MAX_DEPTH`] or [`Expression::MAX_CHAIN`]. O(size), without
    /// recursion.
    pub fn is_too_deep(&self) -> bool {
        let mut found = false;
        self.visit(|_, place| {
            found |= place.above > Expression::MAX_CHAIN || place.nesting > Expression::MAX_DEPTH;
        });
        found
    }

    /// True if the expression contains a number that has no text form.
    pub(crate) fn has_infinite_literal(&self) -> bool {
        let mut found = false;
        self.visit(|part, _| {
            if let Expression::Literal(Value::Float(number)) = part {
                found |= !number.is_finite();
            }
        });
        found
    }

    /// True if the expression contains a function that remembers points.
    pub(crate) fn remembers(&self) -> bool {
        let mut found = false;
        self.visit(|part, _| {
            found |= matches!(part, Expression::Call(function, _) if function.remembers());
        });
        found
    }

    /// Calls `each` with every part and its depth, operators before operands, from left to right.
    fn visit<'a>(&'a self, mut each: impl FnMut(&'a Expression, Depth)) {
        let mut pending = vec![(self, Depth::default())];
        while let Some((part, place)) = pending.pop() {
            each(part, place);
            match part {
                Expression::Literal(_) | Expression::Duration(_) | Expression::Key(_) => {}
                Expression::Unary(operator, operand) => {
                    let number = *operator == Unary::Minus && operand.is_number();
                    let nesting = 1 + usize::from(number) + operand.parentheses(operator.level());
                    pending.push((operand, place.below(nesting)));
                }
                Expression::Binary(operator, left, right) => {
                    pending.push((right, place.below(1)));
                    let nesting = left.parentheses(operator.operands().0);
                    pending.push((left, place.below(nesting)));
                }
                Expression::Match(operand, ..) => pending.push((operand, place.below(2))),
                Expression::Call(_, arguments) => {
                    let arguments = arguments.iter().rev();
                    pending.extend(arguments.map(|argument| (argument, place.below(2))));
                }
            }
        }
    }

    /// Returns the number of pairs of parentheses that the expression needs at a position with this level.
    fn parentheses(&self, least: Level) -> usize {
        usize::from(self.level() < least)
    }
}

/// The depth of a part of an expression.
#[derive(Clone, Copy, Debug, Default)]
struct Depth {
    /// The number of operators above the part.
    above: usize,
    /// The number of operators above the part that use stack. A chain of left sides without parentheses uses none.
    nesting: usize,
}

impl Depth {
    fn below(self, nesting: usize) -> Depth {
        Depth {
            above: self.above + 1,
            nesting: self.nesting + nesting,
        }
    }
}
