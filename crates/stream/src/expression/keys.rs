//! What an expression refers to, and how deep it is.

use super::Expression;
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Expression {
    /// How deep operators may be nested in a pipeline's expressions: evaluation recurses, and must
    /// not run out of stack.
    pub const MAX_DEPTH: usize = 500;

    /// The fields and tags that it refers to, each once, from left to right. O(size).
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

    /// How deep it is: 1 for a literal or a key. O(size), without recursion.
    pub fn depth(&self) -> usize {
        let mut deepest = 0;
        self.visit(|_, depth| deepest = deepest.max(depth));
        deepest
    }

    /// Whether it has a number that no text can stand for.
    pub(crate) fn has_infinite_literal(&self) -> bool {
        let mut found = false;
        self.visit(|part, _| {
            if let Expression::Literal(crate::Value::Float(number)) = part {
                found |= !number.is_finite();
            }
        });
        found
    }

    /// Every part with its depth, an operator before its operands, from left to right.
    fn visit<'a>(&'a self, mut each: impl FnMut(&'a Expression, usize)) {
        let mut pending = vec![(self, 1)];
        while let Some((part, depth)) = pending.pop() {
            each(part, depth);
            match part {
                Expression::Literal(_) | Expression::Duration(_) | Expression::Key(_) => {}
                Expression::Unary(_, operand) => pending.push((operand, depth + 1)),
                Expression::Binary(_, left, right) => {
                    pending.push((right, depth + 1));
                    pending.push((left, depth + 1));
                }
            }
        }
    }
}
