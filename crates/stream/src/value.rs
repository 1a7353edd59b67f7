//! The five types of a field.

use std::fmt;
use std::sync::Arc;

/// The value of a field or a tag; tags are always [`Value::Text`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Value {
    /// A finite 64-bit float (IEEE 754).
    Float(f64),
    /// `42i`
    Integer(i64),
    /// `42u`
    Unsigned(u64),
    /// A string. Fields are written in double quotes, tags without quotes.
    Text(Arc<str>),
    /// `t` or `f`.
    Boolean(bool),
}

/// The type of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// See [`Value::Float`].
    Float,
    /// See [`Value::Integer`].
    Integer,
    /// See [`Value::Unsigned`].
    Unsigned,
    /// See [`Value::Text`].
    Text,
    /// See [`Value::Boolean`].
    Boolean,
}

impl Value {
    /// Returns the type of the value.
    pub fn kind(&self) -> Kind {
        match self {
            Value::Float(_) => Kind::Float,
            Value::Integer(_) => Kind::Integer,
            Value::Unsigned(_) => Kind::Unsigned,
            Value::Text(_) => Kind::Text,
            Value::Boolean(_) => Kind::Boolean,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Float => "float",
            Kind::Integer => "integer",
            Kind::Unsigned => "unsigned integer",
            Kind::Text => "string",
            Kind::Boolean => "boolean",
        })
    }
}
