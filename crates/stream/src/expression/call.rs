//! Functions of expressions: a table with the name, the implementation and the documentation of each.

use super::text::MAX_TEXT;
use super::vector::Vector;
use super::{Expression, ExpressionError, as_float, time};
use crate::Value;
use crate::batch::Rows;
use crate::block::Block;
use crate::now::now;
use std::borrow::Cow;
use std::sync::Arc;

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $work:expr;)*) => {
        /// A function of the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function {
            $($(#[$doc])* $variant,)*
        }

        impl Function {
            /// All functions.
            pub const ALL: &'static [Function] = &[$(Function::$variant),*];

            /// Returns the name of the function in the language.
            pub fn name(self) -> &'static str {
                match self {
                    $(Function::$variant => $name,)*
                }
            }

            fn work(self) -> Work {
                use Value::{Boolean, Integer, Text};
                use Work::{Calendar, Float, Floats, Rows, Texts, Values};
                match self {
                    $(Function::$variant => $work,)*
                }
            }
        }
    };
}

/// The implementation of a function.
enum Work {
    /// One number, as a float.
    Float(fn(f64) -> f64),
    /// Two numbers, as floats.
    Floats(fn(f64, f64) -> f64),
    /// A function of one string.
    Text(fn(&str) -> Value),
    /// A function of two strings.
    Texts(fn(&str, &str) -> Value),
    /// A part of a time.
    Calendar(fn(time::Calendar) -> i64),
    /// A function of this many values. It returns `None` for values that it does not accept.
    Values(usize, fn(&[Value]) -> Result<Option<Value>, Unfit>),
    /// A function of this many arguments that needs the rows; [`call`] evaluates it.
    Rows(usize),
}

functions! {
    /// True if the point has this field or tag.
    IsPresent "isPresent" Rows(1);
    /// Returns the second argument if the first is true, otherwise the third.
    If "if" Values(3, choose);
    /// Converts to a string.
    Text "string" Values(1, |values| Ok(Some(Text(written(&values[0])))));
    /// Converts to an integer: a float is rounded towards zero, a string is parsed, a boolean is 1 or 0.
    Integer "int" Values(1, |values| Ok(to_integer(&values[0])));
    /// Converts to a float.
    Float "float" Values(1, |values| Ok(to_float(&values[0])));
    /// Converts to a boolean: 1 is true and 0 is false; a string is parsed.
    Boolean "bool" Values(1, |values| Ok(to_boolean(&values[0])));
    /// The absolute value.
    Abs "abs" Float(f64::abs);
    /// Rounds down.
    Floor "floor" Float(f64::floor);
    /// Rounds up.
    Ceil "ceil" Float(f64::ceil);
    /// Rounds to the nearest whole number.
    Round "round" Float(f64::round);
    /// Removes the fraction.
    Trunc "trunc" Float(f64::trunc);
    /// The square root.
    Sqrt "sqrt" Float(f64::sqrt);
    /// e to this power.
    Exp "exp" Float(f64::exp);
    /// The natural logarithm.
    Log "log" Float(f64::ln);
    /// The logarithm to base 2.
    Log2 "log2" Float(f64::log2);
    /// The logarithm to base 10.
    Log10 "log10" Float(f64::log10);
    /// The first argument to the power of the second.
    Pow "pow" Floats(f64::powf);
    /// The remainder of a division of floats.
    Modulo "mod" Floats(std::ops::Rem::rem);
    /// The hypotenuse of a right-angled triangle with these two sides.
    Hypot "hypot" Floats(f64::hypot);
    /// The cube root.
    Cbrt "cbrt" Float(f64::cbrt);
    /// 2 to this power.
    Exp2 "exp2" Float(f64::exp2);
    /// e to this power, minus 1.
    Expm1 "expm1" Float(f64::exp_m1);
    /// The natural logarithm of one plus the argument.
    Log1p "log1p" Float(f64::ln_1p);
    /// The sine of an angle.
    Sin "sin" Float(f64::sin);
    /// The cosine of an angle.
    Cos "cos" Float(f64::cos);
    /// The tangent of an angle.
    Tan "tan" Float(f64::tan);
    /// The angle with this sine.
    Asin "asin" Float(f64::asin);
    /// The angle with this cosine.
    Acos "acos" Float(f64::acos);
    /// The angle with this tangent.
    Atan "atan" Float(f64::atan);
    /// The angle of the point (x, y). The first argument is y.
    Atan2 "atan2" Floats(f64::atan2);
    /// The hyperbolic sine.
    Sinh "sinh" Float(f64::sinh);
    /// The hyperbolic cosine.
    Cosh "cosh" Float(f64::cosh);
    /// The hyperbolic tangent.
    Tanh "tanh" Float(f64::tanh);
    /// The inverse of the hyperbolic sine.
    Asinh "asinh" Float(f64::asinh);
    /// The inverse of the hyperbolic cosine.
    Acosh "acosh" Float(f64::acosh);
    /// The inverse of the hyperbolic tangent.
    Atanh "atanh" Float(f64::atanh);
    /// The smaller of two floats.
    Min "min" Floats(f64::min);
    /// The larger of two floats.
    Max "max" Floats(f64::max);
    /// The number of bytes in a string.
    Length "strLength" Work::Text(|one| Integer(one.len() as i64));
    /// True if the first string contains the second.
    Contains "strContains" Texts(|one, other| Boolean(one.contains(other)));
    /// True if the first string contains any character of the second.
    ContainsAny "strContainsAny" Texts(|one, other| Boolean(one.contains(|c| other.contains(c))));
    /// True if the first string begins with the second.
    HasPrefix "strHasPrefix" Texts(|one, other| Boolean(one.starts_with(other)));
    /// True if the first string ends with the second.
    HasSuffix "strHasSuffix" Texts(|one, other| Boolean(one.ends_with(other)));
    /// The first position of the second string in the first, in bytes; -1 if there is none.
    Index "strIndex" Texts(|one, other| place(one.find(other)));
    /// The position in the first string, in bytes, of its first character that is also in the second string; -1 if
    /// there is none.
    IndexAny "strIndexAny" Texts(|one, other| place(one.find(|c| other.contains(c))));
    /// The last position of the second string in the first, in bytes; -1 if there is none.
    LastIndex "strLastIndex" Texts(|one, other| place(one.rfind(other)));
    /// The position in the first string, in bytes, of its last character that is also in the second string; -1 if
    /// there is none.
    LastIndexAny "strLastIndexAny" Texts(|one, other| place(one.rfind(|c| other.contains(c))));
    /// The number of times that the second string occurs in the first.
    Count "strCount" Texts(|one, other| Integer(one.matches(other).count() as i64));
    /// Converts to lower case.
    ToLower "strToLower" Work::Text(|one| text(&one.to_lowercase()));
    /// Converts to upper case.
    ToUpper "strToUpper" Work::Text(|one| text(&one.to_uppercase()));
    /// Removes white space at both ends.
    TrimSpace "strTrimSpace" Work::Text(|one| text(one.trim()));
    /// Removes characters of the second string at both ends of the first.
    Trim "strTrim" Texts(|one, other| text(one.trim_matches(|c| other.contains(c))));
    /// Removes characters of the second string at the start of the first.
    TrimLeft "strTrimLeft" Texts(|one, other| text(one.trim_start_matches(|c| other.contains(c))));
    /// Removes characters of the second string at the end of the first.
    TrimRight "strTrimRight" Texts(|one, other| text(one.trim_end_matches(|c| other.contains(c))));
    /// Removes the prefix.
    TrimPrefix "strTrimPrefix" Texts(|one, other| text(one.strip_prefix(other).unwrap_or(one)));
    /// Removes the suffix.
    TrimSuffix "strTrimSuffix" Texts(|one, other| text(one.strip_suffix(other).unwrap_or(one)));
    /// The bytes of the first argument from the index in the second up to, but not including, the index in the third.
    Substring "strSubstring" Values(3, |values| Ok(substring(values)));
    /// Replaces the second string with the third within the first string. The fourth argument is the maximum number
    /// of replacements; a negative number means no limit.
    Replace "strReplace" Values(4, replace);
    /// In the second string, replaces all matches of the pattern (the first argument) with the third string.
    RegexReplace "regexReplace" Rows(3);
    /// The number of points so far, including the current point.
    PointCount "count" Rows(0);
    /// The distance from the mean of the values so far, in standard deviations.
    Sigma "sigma" Rows(1);
    /// The difference between the largest and the smallest value so far.
    Spread "spread" Rows(1);
    /// The present time in nanoseconds.
    Now "now" Rows(0);
    /// A time in nanoseconds, as an integer.
    UnixNano "unixNano" Values(1, |values| Ok(matches!(values[0], Integer(_)).then(|| values[0].clone())));
    /// The minute of a time, from 0.
    Minute "minute" Calendar(|at| at.minute);
    /// The hour of a time, from 0.
    Hour "hour" Calendar(|at| at.hour);
    /// The day of a time's week; 0 is Sunday.
    Weekday "weekday" Calendar(|at| at.weekday);
    /// The day of a time's month, from 1.
    Day "day" Calendar(|at| at.day);
    /// The month of a time, from 1.
    Month "month" Calendar(|at| at.month);
    /// The year of a time.
    Year "year" Calendar(|at| at.year);
}

/// The reason why a function has no result. The caller adds the position.
enum Unfit {
    /// The function does not accept these arguments.
    Argument(String),
    /// The string would be too long.
    Length,
}

impl Function {
    /// Returns the function with this name.
    pub fn named(name: &str) -> Option<Function> {
        let mut all = Function::ALL.iter();
        all.find(|function| function.name() == name).copied()
    }

    /// True if the function's result depends on earlier points. Only `eval` and `where` support such functions;
    /// elsewhere these functions have no value.
    pub fn remembers(self) -> bool {
        matches!(
            self,
            Function::PointCount | Function::Sigma | Function::Spread
        )
    }

    /// Returns the number of arguments of the function.
    pub fn arguments(self) -> usize {
        match self.work() {
            Work::Float(_) | Work::Text(_) | Work::Calendar(_) => 1,
            Work::Floats(_) | Work::Texts(_) => 2,
            Work::Values(count, _) | Work::Rows(count) => count,
        }
    }

    fn of(self, arguments: &[Value]) -> Result<Value, Unfit> {
        let result = match (self.work(), arguments) {
            (Work::Float(of), [a]) => as_float(a).map(|a| Value::Float(of(a))),
            (Work::Floats(of), [a, b]) => {
                let both = as_float(a).zip(as_float(b));
                both.map(|(a, b)| Value::Float(of(a, b)))
            }
            (Work::Text(of), [Value::Text(one)]) => Some(of(one)),
            (Work::Texts(of), [Value::Text(one), Value::Text(other)]) => Some(of(one, other)),
            (Work::Calendar(part), [Value::Integer(nanos)]) => {
                Some(Value::Integer(part(time::Calendar::of(*nanos))))
            }
            (Work::Values(_, of), values) => of(values)?,
            _ => None,
        };
        result.ok_or_else(|| {
            let kinds = arguments.iter().map(|value| match value {
                Value::Text(text) if text.len() <= 40 => format!("'{text}'"),
                Value::Text(_) => "a long string".into(),
                number => written(number).to_string(),
            });
            Unfit::Argument(kinds.collect::<Vec<_>>().join(", "))
        })
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// Returns a position in a string; -1 if there is none.
fn place(at: Option<usize>) -> Value {
    Value::Integer(at.map_or(-1, |at| at as i64))
}

fn choose(values: &[Value]) -> Result<Option<Value>, Unfit> {
    Ok(match values {
        [Value::Boolean(true), value, _] | [Value::Boolean(false), _, value] => Some(value.clone()),
        _ => None,
    })
}

fn to_integer(value: &Value) -> Option<Value> {
    let integer = match value {
        Value::Integer(number) => Some(*number),
        Value::Unsigned(number) => i64::try_from(*number).ok(),
        Value::Float(number) => whole(*number),
        Value::Boolean(one) => Some((*one).into()),
        Value::Text(text) => text.parse().ok(),
    };
    integer.map(Value::Integer)
}

fn to_float(value: &Value) -> Option<Value> {
    let float = match value {
        Value::Boolean(one) => Some(f64::from(u8::from(*one))),
        Value::Text(text) => text.parse().ok(),
        number => as_float(number),
    };
    float.map(Value::Float)
}

fn to_boolean(value: &Value) -> Option<Value> {
    let boolean = match value {
        Value::Boolean(one) => Some(*one),
        Value::Text(text) => match &**text {
            "true" | "TRUE" | "True" | "t" | "T" | "1" => Some(true),
            "false" | "FALSE" | "False" | "f" | "F" | "0" => Some(false),
            _ => None,
        },
        number => match as_float(number) {
            Some(0.0) => Some(false),
            Some(1.0) => Some(true),
            _ => None,
        },
    };
    boolean.map(Value::Boolean)
}

fn substring(values: &[Value]) -> Option<Value> {
    let [Value::Text(one), Value::Integer(from), Value::Integer(to)] = values else {
        return None;
    };
    let (from, to) = (usize::try_from(*from).ok()?, usize::try_from(*to).ok()?);
    one.get(from..to).map(text)
}

fn replace(values: &[Value]) -> Result<Option<Value>, Unfit> {
    let [
        Value::Text(one),
        Value::Text(old),
        Value::Text(new),
        Value::Integer(most),
    ] = values
    else {
        return Ok(None);
    };
    let most = usize::try_from(*most).unwrap_or(usize::MAX);
    let found = one.matches(&**old).take(most).count();
    let more = found.saturating_mul(new.len().saturating_sub(old.len()));
    if one.len().saturating_add(more) > MAX_TEXT {
        return Err(Unfit::Length);
    }
    Ok(Some(text(&one.replacen(&**old, new, most))))
}

/// Rounds towards zero, if the result fits into 64 bits.
fn whole(number: f64) -> Option<i64> {
    let limit = 9_223_372_036_854_775_808.0;
    (-limit..limit).contains(&number).then_some(number as i64)
}

/// Converts to a string.
pub(crate) fn written(value: &Value) -> Arc<str> {
    match value {
        Value::Text(text) => text.clone(),
        Value::Float(number) => number.to_string().into(),
        Value::Integer(number) => number.to_string().into(),
        Value::Unsigned(number) => number.to_string().into(),
        Value::Boolean(one) => one.to_string().into(),
    }
}

/// Evaluates a function for at least one row.
pub(super) fn call<'a>(
    whole: &Expression,
    function: Function,
    arguments: &'a [Expression],
    block: &'a Block,
    rows: &'a Rows,
) -> Result<Vector<'a>, ExpressionError> {
    match (function, arguments) {
        (function, _) if function.remembers() => return Ok(Vector::Missing),
        (Function::Now, _) => return Ok(Vector::Constant(Value::Integer(now()))),
        (Function::IsPresent, [Expression::Key(name)]) => {
            let Some(column) = block.column(name) else {
                return Ok(Vector::Constant(Value::Boolean(&**name == "time")));
            };
            let present = rows
                .iter()
                .map(|row| Some(Value::Boolean(column.data.get(row).is_some())));
            return Ok(Vector::Mixed(Cow::Owned(present.collect())));
        }
        _ => {}
    }
    let unfit = |unfit| {
        let expression = whole.to_string();
        match unfit {
            Unfit::Argument(argument) => ExpressionError::Argument {
                function: function.name(),
                argument,
                expression,
            },
            Unfit::Length => ExpressionError::Length { expression },
        }
    };
    let pattern = match (function, arguments) {
        (Function::RegexReplace, [Expression::Match(_, pattern, _), ..]) => Some(pattern),
        _ => None,
    };
    let arguments = &arguments[usize::from(pattern.is_some())..];
    let vectors: Vec<Vector<'_>> = arguments
        .iter()
        .map(|argument| argument.vector(block, rows))
        .collect::<Result<_, _>>()?;
    let mut results = Vec::with_capacity(rows.len());
    let mut values = Vec::with_capacity(vectors.len());
    for at in 0..rows.len() {
        values.clear();
        values.extend(vectors.iter().map_while(|vector| vector.get(at)));
        let complete = values.len() == vectors.len();
        results.push(match (&*values, pattern) {
            ([Value::Text(text), Value::Text(with)], Some(pattern)) => {
                let replaced = pattern.replace(text, with, MAX_TEXT);
                let replaced = replaced.ok_or_else(|| unfit(Unfit::Length))?;
                Some(Value::Text(replaced.into()))
            }
            _ if complete && pattern.is_none() => Some(function.of(&values).map_err(unfit)?),
            // Rows have a value where the chosen argument has one.
            ([Value::Boolean(condition), ..], _) if function == Function::If => {
                vectors[if *condition { 1 } else { 2 }].get(at)
            }
            _ => None,
        });
    }
    Ok(Vector::Mixed(Cow::Owned(results)))
}
