//! Values in histories.

use std::fmt;

/// A value of a history, in the data model that EDN and JSON share.
///
/// Keywords, symbols and strings are all [`Value::Text`], because histories of the same test spell
/// the same value in different ways. Sets are [`Value::List`]s.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// No value.
    #[default]
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number, as the bits of an `f64`.
    Float(u64),
    /// A string, keyword or symbol.
    Text(Box<str>),
    /// A list, vector or set.
    List(Box<[Value]>),
    /// A map, in the order of the file.
    Map(Box<[(Value, Value)]>),
}

impl Value {
    /// Returns the value of the map entry whose key is this text.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let Value::Map(entries) = self else {
            return None;
        };
        let entry = entries.iter().find(|(name, _)| name.text() == Some(key))?;
        Some(&entry.1)
    }

    /// Returns the text, if the value is a [`Value::Text`].
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if the value is a whole number.
    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the elements, if the value is a list.
    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    /// Returns the heap memory of the value in bytes, without the value itself.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::List(values) => values.iter().map(Value::bytes).sum(),
            Value::Map(entries) => entries.iter().map(|(k, v)| k.bytes() + v.bytes()).sum(),
            _ => 0,
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Value>() + self.heap_bytes()
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Int(value.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
    }
}

impl<const N: usize> From<[Value; N]> for Value {
    fn from(values: [Value; N]) -> Value {
        Value::List(Box::new(values))
    }
}

/// The maximum number of characters of a displayed text.
const MOST_SHOWN: usize = 60;

/// Displays the value as EDN, truncated to the first 60 characters of long texts and lists.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write_value(self, &mut text);
        if let Some((end, _)) = text.char_indices().nth(MOST_SHOWN) {
            text.truncate(end);
            text.push('…');
        }
        f.write_str(&text)
    }
}

/// Appends the value, and stops soon after the text is longer than can be displayed.
fn write_value(value: &Value, text: &mut String) {
    use fmt::Write;
    if text.len() > 4 * MOST_SHOWN {
        return;
    }
    // Writing to a string does not fail.
    let _ = match value {
        Value::Nil => write!(text, "nil"),
        Value::Bool(value) => write!(text, "{value}"),
        Value::Int(value) => write!(text, "{value}"),
        Value::Float(bits) => write!(text, "{}", f64::from_bits(*bits)),
        Value::Text(value) => {
            text.extend(value.chars().take(MOST_SHOWN + 1));
            Ok(())
        }
        Value::List(values) => {
            text.push('[');
            for (index, value) in values.iter().take(MOST_SHOWN).enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                write_value(value, text);
            }
            write!(text, "]")
        }
        Value::Map(entries) => {
            text.push('{');
            for (key, value) in entries.iter().take(MOST_SHOWN) {
                write_value(key, text);
                text.push(' ');
                write_value(value, text);
            }
            write!(text, "}}")
        }
    };
}
