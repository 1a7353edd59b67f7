//! Functions of expressions.

use super::scalar::MAX_TEXT;
use super::time::Calendar;
use super::vector::Vector;
use super::{Expression, ExpressionError};
use crate::Value;
use crate::batch::Rows;
use crate::block::Block;
use crate::now::now;
use std::borrow::Cow;
use std::sync::Arc;

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $least:literal $most:literal;)*) => {
        /// A function, as it is called in the language.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Function {
            $($(#[$doc])* $variant,)*
        }

        impl Function {
            /// All of them.
            pub const ALL: &'static [Function] = &[$(Function::$variant),*];

            /// What it is called.
            pub fn name(self) -> &'static str {
                match self {
                    $(Function::$variant => $name,)*
                }
            }

            /// How many arguments it takes, at least and at most.
            pub fn arguments(self) -> (usize, usize) {
                match self {
                    $(Function::$variant => ($least, $most),)*
                }
            }
        }
    };
}

functions! {
    /// Whether the point has this field or tag.
    IsPresent "isPresent" 1 1;
    /// The second argument if the first is true, else the third.
    If "if" 3 3;
    /// As a string.
    Text "string" 1 1;
    /// As an integer: of a float, rounded towards zero; of a string, what it says; of a boolean, 1 or 0.
    Integer "int" 1 1;
    /// As a float.
    Float "float" 1 1;
    /// As a boolean: of a number, whether it is 1 and not 0; of a string, what it says.
    Boolean "bool" 1 1;
    /// Without its sign.
    Abs "abs" 1 1;
    /// The next smaller whole number.
    Floor "floor" 1 1;
    /// The next larger whole number.
    Ceil "ceil" 1 1;
    /// The nearest whole number.
    Round "round" 1 1;
    /// Without its fraction.
    Trunc "trunc" 1 1;
    /// The square root.
    Sqrt "sqrt" 1 1;
    /// e to this power.
    Exp "exp" 1 1;
    /// The natural logarithm.
    Log "log" 1 1;
    /// The logarithm to base 2.
    Log2 "log2" 1 1;
    /// The logarithm to base 10.
    Log10 "log10" 1 1;
    /// The first to the power of the second.
    Pow "pow" 2 2;
    /// The remainder of a division of floats.
    Modulo "mod" 2 2;
    /// The long side of a triangle with these two at a right angle.
    Hypot "hypot" 2 2;
    /// The cube root.
    Cbrt "cbrt" 1 1;
    /// 2 to this power.
    Exp2 "exp2" 1 1;
    /// e to this power, less 1.
    Expm1 "expm1" 1 1;
    /// The natural logarithm of 1 and this.
    Log1p "log1p" 1 1;
    /// The sine of an angle.
    Sin "sin" 1 1;
    /// The cosine of an angle.
    Cos "cos" 1 1;
    /// The tangent of an angle.
    Tan "tan" 1 1;
    /// The angle of a sine.
    Asin "asin" 1 1;
    /// The angle of a cosine.
    Acos "acos" 1 1;
    /// The angle of a tangent.
    Atan "atan" 1 1;
    /// The angle of the point with these coordinates, y first.
    Atan2 "atan2" 2 2;
    /// The hyperbolic sine.
    Sinh "sinh" 1 1;
    /// The hyperbolic cosine.
    Cosh "cosh" 1 1;
    /// The hyperbolic tangent.
    Tanh "tanh" 1 1;
    /// The inverse of the hyperbolic sine.
    Asinh "asinh" 1 1;
    /// The inverse of the hyperbolic cosine.
    Acosh "acosh" 1 1;
    /// The inverse of the hyperbolic tangent.
    Atanh "atanh" 1 1;
    /// The smaller float.
    Min "min" 2 2;
    /// The larger float.
    Max "max" 2 2;
    /// How many bytes a string has.
    Length "strLength" 1 1;
    /// Whether the first string contains the second.
    Contains "strContains" 2 2;
    /// Whether the first string contains any character of the second.
    ContainsAny "strContainsAny" 2 2;
    /// Whether the first string begins with the second.
    HasPrefix "strHasPrefix" 2 2;
    /// Whether the first string ends with the second.
    HasSuffix "strHasSuffix" 2 2;
    /// Where the second string begins in the first, in bytes; -1 if it does not.
    Index "strIndex" 2 2;
    /// Where the first character of the first string is that is in the second, in bytes; or -1.
    IndexAny "strIndexAny" 2 2;
    /// Where the second string begins in the first for the last time, in bytes; or -1.
    LastIndex "strLastIndex" 2 2;
    /// Where the last character of the first string is that is in the second, in bytes; or -1.
    LastIndexAny "strLastIndexAny" 2 2;
    /// How often the second string is in the first.
    Count "strCount" 2 2;
    /// In small letters.
    ToLower "strToLower" 1 1;
    /// In capitals.
    ToUpper "strToUpper" 1 1;
    /// Without space at both ends.
    TrimSpace "strTrimSpace" 1 1;
    /// Without characters of the second string at both ends of the first.
    Trim "strTrim" 2 2;
    /// Without characters of the second string at the begin of the first.
    TrimLeft "strTrimLeft" 2 2;
    /// Without characters of the second string at the end of the first.
    TrimRight "strTrimRight" 2 2;
    /// Without the second string at the begin of the first.
    TrimPrefix "strTrimPrefix" 2 2;
    /// Without the second string at the end of the first.
    TrimSuffix "strTrimSuffix" 2 2;
    /// From the second argument to before the third, in bytes.
    Substring "strSubstring" 3 3;
    /// The first string with the second replaced by the third, at most as often as the fourth says; if
    /// it is negative, everywhere.
    Replace "strReplace" 4 4;
    /// The second string with what the pattern of the first finds replaced by the third.
    RegexReplace "regexReplace" 3 3;
    /// The present time in nanoseconds.
    Now "now" 0 0;
    /// A time in nanoseconds, as an integer.
    UnixNano "unixNano" 1 1;
    /// The minute of a time, from 0.
    Minute "minute" 1 1;
    /// The hour of a time, from 0.
    Hour "hour" 1 1;
    /// The day of a time's week; 0 is Sunday.
    Weekday "weekday" 1 1;
    /// The day of a time's month, from 1.
    Day "day" 1 1;
    /// The month of a time, from 1.
    Month "month" 1 1;
    /// The year of a time.
    Year "year" 1 1;
}

/// Why a function has no result; where it stands is known further up.
enum Unfit {
    /// It does not take these.
    Argument(String),
    /// It would be too long.
    Length,
}

impl Function {
    /// The function of this name.
    pub fn named(name: &str) -> Option<Function> {
        let mut all = Function::ALL.iter();
        all.find(|function| function.name() == name).copied()
    }

    fn of(self, arguments: &[Value]) -> Result<Value, Unfit> {
        use Value::{Boolean, Float, Integer, Text, Unsigned};
        let float = |value: &Value| match value {
            Float(number) => Some(*number),
            Integer(number) => Some(*number as f64),
            Unsigned(number) => Some(*number as f64),
            _ => None,
        };
        let math = |of: fn(f64) -> f64| arguments.first().and_then(float).map(of).map(Float);
        let maths = |of: fn(f64, f64) -> f64| match arguments {
            [a, b] => Some(Float(of(float(a)?, float(b)?))),
            _ => None,
        };
        let texts: Vec<&str> = arguments
            .iter()
            .map_while(|value| match value {
                Text(text) => Some(&**text),
                _ => None,
            })
            .collect();
        let text = |text: &str| Some(Text(text.into()));
        let place = |at: Option<usize>| Some(Integer(at.map_or(-1, |at| at as i64)));
        let calendar = |part: fn(Calendar) -> i64| match arguments {
            [Integer(nanos)] => Some(Integer(part(Calendar::of(*nanos)))),
            _ => None,
        };
        let result = match (self, arguments, &*texts) {
            (Function::If, [Boolean(condition), one, other], _) => Some(if *condition {
                one.clone()
            } else {
                other.clone()
            }),
            (Function::Text, [value], _) => Some(Text(written(value))),
            (Function::Integer, [value], _) => match value {
                Integer(_) => Some(value.clone()),
                Unsigned(number) => i64::try_from(*number).ok().map(Integer),
                Float(number) => whole(*number).map(Integer),
                Boolean(one) => Some(Integer((*one).into())),
                Text(text) => text.parse().ok().map(Integer),
            },
            (Function::Float, [value], _) => match value {
                Boolean(one) => Some(Float(f64::from(u8::from(*one)))),
                Text(text) => text.parse().ok().map(Float),
                number => float(number).map(Float),
            },
            (Function::Boolean, [value], _) => match value {
                Boolean(_) => Some(value.clone()),
                Text(text) => match &**text {
                    "true" | "TRUE" | "True" | "t" | "T" | "1" => Some(Boolean(true)),
                    "false" | "FALSE" | "False" | "f" | "F" | "0" => Some(Boolean(false)),
                    _ => None,
                },
                number => match float(number) {
                    Some(0.0) => Some(Boolean(false)),
                    Some(1.0) => Some(Boolean(true)),
                    _ => None,
                },
            },
            (Function::Abs, ..) => math(f64::abs),
            (Function::Floor, ..) => math(f64::floor),
            (Function::Ceil, ..) => math(f64::ceil),
            (Function::Round, ..) => math(f64::round),
            (Function::Trunc, ..) => math(f64::trunc),
            (Function::Sqrt, ..) => math(f64::sqrt),
            (Function::Exp, ..) => math(f64::exp),
            (Function::Log, ..) => math(f64::ln),
            (Function::Log2, ..) => math(f64::log2),
            (Function::Log10, ..) => math(f64::log10),
            (Function::Cbrt, ..) => math(f64::cbrt),
            (Function::Exp2, ..) => math(f64::exp2),
            (Function::Expm1, ..) => math(f64::exp_m1),
            (Function::Log1p, ..) => math(f64::ln_1p),
            (Function::Sin, ..) => math(f64::sin),
            (Function::Cos, ..) => math(f64::cos),
            (Function::Tan, ..) => math(f64::tan),
            (Function::Asin, ..) => math(f64::asin),
            (Function::Acos, ..) => math(f64::acos),
            (Function::Atan, ..) => math(f64::atan),
            (Function::Sinh, ..) => math(f64::sinh),
            (Function::Cosh, ..) => math(f64::cosh),
            (Function::Tanh, ..) => math(f64::tanh),
            (Function::Asinh, ..) => math(f64::asinh),
            (Function::Acosh, ..) => math(f64::acosh),
            (Function::Atanh, ..) => math(f64::atanh),
            (Function::Atan2, ..) => maths(f64::atan2),
            (Function::Hypot, ..) => maths(f64::hypot),
            (Function::Modulo, ..) => maths(std::ops::Rem::rem),
            (Function::Pow, ..) => maths(f64::powf),
            (Function::Min, ..) => maths(f64::min),
            (Function::Max, ..) => maths(f64::max),
            (Function::Length, _, [one]) => Some(Integer(one.len() as i64)),
            (Function::Contains, _, [one, other]) => Some(Boolean(one.contains(other))),
            (Function::ContainsAny, _, [one, other]) => {
                Some(Boolean(one.contains(|c| other.contains(c))))
            }
            (Function::HasPrefix, _, [one, other]) => Some(Boolean(one.starts_with(other))),
            (Function::HasSuffix, _, [one, other]) => Some(Boolean(one.ends_with(other))),
            (Function::Index, _, [one, other]) => place(one.find(other)),
            (Function::IndexAny, _, [one, other]) => place(one.find(|c| other.contains(c))),
            (Function::LastIndex, _, [one, other]) => place(one.rfind(other)),
            (Function::LastIndexAny, _, [one, other]) => place(one.rfind(|c| other.contains(c))),
            (Function::Count, _, [one, other]) => Some(Integer(one.matches(other).count() as i64)),
            (Function::ToLower, _, [one]) => text(&one.to_lowercase()),
            (Function::ToUpper, _, [one]) => text(&one.to_uppercase()),
            (Function::TrimSpace, _, [one]) => text(one.trim()),
            (Function::Trim, _, [one, other]) => text(one.trim_matches(|c| other.contains(c))),
            (Function::TrimLeft, _, [one, other]) => {
                text(one.trim_start_matches(|c| other.contains(c)))
            }
            (Function::TrimRight, _, [one, other]) => {
                text(one.trim_end_matches(|c| other.contains(c)))
            }
            (Function::TrimPrefix, _, [one, other]) => text(one.strip_prefix(other).unwrap_or(one)),
            (Function::TrimSuffix, _, [one, other]) => text(one.strip_suffix(other).unwrap_or(one)),
            (Function::Substring, [_, Integer(from), Integer(to)], [one]) => {
                let range = usize::try_from(*from).ok().zip(usize::try_from(*to).ok());
                range
                    .and_then(|(from, to)| one.get(from..to))
                    .and_then(text)
            }
            (Function::Replace, [.., Integer(most)], [one, old, new]) => {
                let most = usize::try_from(*most).unwrap_or(usize::MAX);
                let found = one.matches(old).take(most).count();
                let more = found.saturating_mul(new.len().saturating_sub(old.len()));
                if one.len().saturating_add(more) > MAX_TEXT {
                    return Err(Unfit::Length);
                }
                text(&one.replacen(old, new, most))
            }
            (Function::UnixNano, [Integer(_)], _) => Some(arguments[0].clone()),
            (Function::Minute, ..) => calendar(|at| at.minute),
            (Function::Hour, ..) => calendar(|at| at.hour),
            (Function::Weekday, ..) => calendar(|at| at.weekday),
            (Function::Day, ..) => calendar(|at| at.day),
            (Function::Month, ..) => calendar(|at| at.month),
            (Function::Year, ..) => calendar(|at| at.year),
            _ => None,
        };
        result.ok_or_else(|| {
            let kinds = arguments.iter().map(|value| match value {
                Text(text) if text.len() <= 40 => format!("'{text}'"),
                Text(_) => "a long string".into(),
                number => written(number).to_string(),
            });
            Unfit::Argument(kinds.collect::<Vec<_>>().join(", "))
        })
    }
}

/// Towards zero, if 64 bits hold it.
fn whole(number: f64) -> Option<i64> {
    let limit = 9_223_372_036_854_775_808.0;
    (-limit..limit).contains(&number).then_some(number as i64)
}

/// As a string.
pub(crate) fn written(value: &Value) -> Arc<str> {
    match value {
        Value::Text(text) => text.clone(),
        Value::Float(number) => number.to_string().into(),
        Value::Integer(number) => number.to_string().into(),
        Value::Unsigned(number) => number.to_string().into(),
        Value::Boolean(one) => one.to_string().into(),
    }
}

/// A function of these rows. There is at least one.
pub(super) fn call<'a>(
    whole: &Expression,
    function: Function,
    arguments: &'a [Expression],
    block: &'a Block,
    rows: &'a Rows,
) -> Result<Vector<'a>, ExpressionError> {
    match (function, arguments) {
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
            // The side that is taken is present.
            ([Value::Boolean(condition), ..], _) if function == Function::If => {
                vectors[if *condition { 1 } else { 2 }].get(at)
            }
            _ => None,
        });
    }
    Ok(Vector::Mixed(Cow::Owned(results)))
}
