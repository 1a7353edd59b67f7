//! `printf`: a text with one placeholder for a value, such as `%0.3f`.

use crate::Value;
use crate::expression;

/// See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Format {
    before: String,
    verb: char,
    left: bool,
    zeros: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    after: String,
}

/// The maximum width or precision.
const MOST: usize = 99;

impl Format {
    /// Parses a format. Returns `None` if it has no verb, several verbs, or an unknown one.
    pub(super) fn new(text: &str) -> Option<Format> {
        let (before, rest) = literal(text);
        let rest = rest?;
        let spec = rest.trim_start_matches(['-', '0', '+', ' ']);
        let flags = &rest[..rest.len() - spec.len()];
        let (width, spec) = number(spec)?;
        let (precision, spec) = match spec.strip_prefix('.') {
            None => (None, spec),
            Some(spec) => {
                let (precision, spec) = number(spec)?;
                (Some(precision), spec)
            }
        };
        let verb = spec
            .chars()
            .next()
            .filter(|verb| "vsdfegq".contains(*verb))?;
        let (after, another) = literal(&spec[1..]);
        if another.is_some() {
            return None;
        }
        Some(Format {
            before,
            verb,
            left: flags.contains('-'),
            zeros: flags.contains('0'),
            plus: flags.contains('+'),
            width,
            precision,
            after,
        })
    }

    /// Appends the text with the value. A value that cannot be formatted in this way is written unformatted.
    pub(super) fn write(&self, value: Option<&Value>, text: &mut String) {
        text.push_str(&self.before);
        let (mut shown, number) = self.shown(value);
        if self.plus && number && !shown.starts_with('-') {
            shown.insert(0, '+');
        }
        let missing = match value {
            Some(_) => self.width.saturating_sub(shown.chars().count()),
            None => 0,
        };
        let sign = usize::from(shown.starts_with(['-', '+']));
        if self.left {
            text.push_str(&shown);
            text.extend(std::iter::repeat_n(' ', missing));
        } else if self.zeros && number {
            text.push_str(&shown[..sign]);
            text.extend(std::iter::repeat_n('0', missing));
            text.push_str(&shown[sign..]);
        } else {
            text.extend(std::iter::repeat_n(' ', missing));
            text.push_str(&shown);
        }
        text.push_str(&self.after);
    }

    /// Returns the formatted value, and whether it is formatted as a number.
    fn shown(&self, value: Option<&Value>) -> (String, bool) {
        let Some(value) = value else {
            return (String::new(), false);
        };
        let float = expression::as_float(value);
        match (self.verb, float) {
            ('f', Some(number)) => {
                let precision = self.precision.unwrap_or(6);
                (format!("{number:.precision$}"), true)
            }
            ('e', Some(number)) => {
                let precision = self.precision.unwrap_or(6);
                // Go writes a sign and two digits.
                let text = format!("{number:.precision$e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let sign = if exponent < 0 { '-' } else { '+' };
                (format!("{digits}e{sign}{:02}", exponent.abs()), true)
            }
            ('d', Some(number)) => match value {
                Value::Float(_) => (format!("{number:.0}"), true),
                whole => (expression::written(whole).to_string(), true),
            },
            ('q', _) => {
                let text = expression::written(value);
                (serde_json::Value::from(&*text).to_string(), false)
            }
            ('s', _) => {
                let text = expression::written(value);
                let most = self.precision.unwrap_or(usize::MAX);
                (text.chars().take(most).collect(), false)
            }
            (_, number) => (expression::written(value).to_string(), number.is_some()),
        }
    }
}

/// Returns the text before a verb, and the text after its `%`, if there is one. `%%` stands for `%`.
fn literal(text: &str) -> (String, Option<&str>) {
    let mut found = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        found.push_str(before);
        match after.strip_prefix('%') {
            Some(after) => {
                found.push('%');
                rest = after;
            }
            None => return (found, Some(after)),
        }
    }
    found.push_str(rest);
    (found, None)
}

/// Parses the number at the start of a text, or 0, and returns the rest. `None` if it is too large.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let number = match &text[..end] {
        "" => 0,
        digits => digits.parse().ok().filter(|number| *number <= MOST)?,
    };
    Some((number, &text[end..]))
}
