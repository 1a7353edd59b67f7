//! Expressions as text that parses back.

use super::{Binary, Expression, Function, Unary};
use crate::Value;
use std::fmt;

/// The precedence of a part; a part with a lower precedence than its position requires is put in parentheses.
/// The levels are those of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Or,
    And,
    Not,
    Compare,
    Add,
    Multiply,
    Minus,
    Primary,
}

impl Binary {
    pub(crate) fn level(self) -> Level {
        match self {
            Binary::Or => Level::Or,
            Binary::And => Level::And,
            Binary::Add | Binary::Subtract => Level::Add,
            Binary::Multiply | Binary::Divide | Binary::Remainder => Level::Multiply,
            Binary::Equal
            | Binary::NotEqual
            | Binary::Less
            | Binary::LessOrEqual
            | Binary::Greater
            | Binary::GreaterOrEqual => Level::Compare,
        }
    }

    /// Returns the lowest levels of the operands. All operators are left-associative, except comparisons, which cannot
    /// be chained.
    pub(crate) fn operands(self) -> (Level, Level) {
        match self.level() {
            Level::Or => (Level::Or, Level::And),
            Level::And => (Level::And, Level::Not),
            Level::Add => (Level::Add, Level::Multiply),
            Level::Multiply => (Level::Multiply, Level::Minus),
            Level::Not | Level::Compare | Level::Minus | Level::Primary => (Level::Add, Level::Add),
        }
    }
}

impl Unary {
    pub(super) fn level(self) -> Level {
        match self {
            Unary::Not => Level::Not,
            Unary::Minus => Level::Minus,
        }
    }
}

impl Expression {
    pub(super) fn level(&self) -> Level {
        match self {
            Expression::Binary(operator, ..) => operator.level(),
            Expression::Unary(operator, _) => operator.level(),
            Expression::Match(..) => Level::Compare,
            Expression::Literal(_)
            | Expression::Duration(_)
            | Expression::Key(_)
            | Expression::Call(..) => Level::Primary,
        }
    }

    /// True if the expression is a number. A minus directly before a number belongs to it, except in parentheses.
    pub(super) fn is_number(&self) -> bool {
        match self {
            Expression::Duration(_) => true,
            Expression::Literal(value) => !matches!(value, Value::Text(_) | Value::Boolean(_)),
            _ => false,
        }
    }

    fn write(&self, least: Level, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.level() < least {
            f.write_str("(")?;
            self.write(Level::Or, f)?;
            return f.write_str(")");
        }
        match self {
            Expression::Literal(value) => write_literal(value, f),
            Expression::Duration(nanos) => write_duration(i128::from(*nanos), f),
            Expression::Key(name) => write_key(name, f),
            Expression::Unary(Unary::Not, operand) => {
                f.write_str("NOT ")?;
                operand.write(Level::Not, f)
            }
            Expression::Unary(Unary::Minus, operand) if operand.is_number() => {
                write!(f, "-({operand})")
            }
            Expression::Unary(Unary::Minus, operand) => {
                f.write_str("-")?;
                operand.write(Level::Minus, f)
            }
            Expression::Match(operand, pattern, holds) => {
                operand.write(Level::Add, f)?;
                write!(f, " {} {pattern}", if *holds { "=~" } else { "!~" })
            }
            Expression::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                for (at, argument) in arguments.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    match (function, at, argument) {
                        (Function::RegexReplace, 0, Expression::Match(_, pattern, _)) => {
                            write!(f, "{pattern}")?;
                        }
                        _ => argument.write(Level::Or, f)?,
                    }
                }
                f.write_str(")")
            }
            Expression::Binary(operator, left, right) => {
                let (of_left, of_right) = operator.operands();
                left.write(of_left, f)?;
                write!(f, " {} ", operator.symbol())?;
                right.write(of_right, f)
            }
        }
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(Level::Or, f)
    }
}

fn write_literal(value: &Value, f: &mut impl fmt::Write) -> fmt::Result {
    match value {
        // The debug form always has a decimal point or an exponent, so it is parsed as a float.
        Value::Float(number) => write!(f, "{number:?}"),
        Value::Integer(number) => write!(f, "{number}"),
        Value::Unsigned(number) if i64::try_from(*number).is_err() => write!(f, "{number}"),
        Value::Unsigned(number) => write!(f, "unsigned({number})"),
        Value::Text(text) => write_quoted(text, '\'', f),
        Value::Boolean(true) => f.write_str("TRUE"),
        Value::Boolean(false) => f.write_str("FALSE"),
    }
}

/// Writes a quoted text with the quote and the backslash escaped.
pub(crate) fn write_quoted(text: &str, quote: char, f: &mut impl fmt::Write) -> fmt::Result {
    f.write_char(quote)?;
    for c in text.chars() {
        if c == quote || c == '\\' {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char(quote)
}

/// Writes a key, without quotes if possible.
pub(crate) fn write_key(name: &str, f: &mut impl fmt::Write) -> fmt::Result {
    let word = |part: &str| part.starts_with(is_word_start) && part.chars().all(is_word_part);
    let first = name.split('.').next().unwrap_or_default();
    if name.split('.').all(word) && !is_reserved(first) {
        f.write_str(name)
    } else {
        write_quoted(name, '"', f)
    }
}

/// True if a bare word may begin with this character.
pub(crate) fn is_word_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// True if the character may stand inside a bare word.
pub(crate) fn is_word_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// True if the word is not a key unless it is quoted.
pub(crate) fn is_reserved(word: &str) -> bool {
    ["AND", "OR", "NOT", "TRUE", "FALSE", "lambda", "unsigned"]
        .iter()
        .any(|reserved| word.eq_ignore_ascii_case(reserved))
}

/// The units of durations with their nanoseconds, the longest first.
pub(crate) const UNITS: [(&str, u64); 8] = [
    ("w", 604_800_000_000_000),
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("u", 1_000),
    ("ns", 1),
];

/// Writes a duration in the longest unit of which it is a whole multiple.
pub(crate) fn write_duration(nanos: i128, f: &mut impl fmt::Write) -> fmt::Result {
    let whole = |&&(_, unit): &&(&str, u64)| nanos % i128::from(unit) == 0;
    match UNITS.iter().find(whole).filter(|_| nanos != 0) {
        Some((name, unit)) => write!(f, "{}{name}", nanos / i128::from(*unit)),
        None => f.write_str("0s"),
    }
}
