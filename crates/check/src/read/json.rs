//! JSON: an array of events, or one event after another.

use super::pairs::Pairs;
use super::{MOST_VALUES, ReadError, line_of};
use crate::Value;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

pub(super) fn read(text: &[u8], pairs: &mut Pairs) -> Result<(), ReadError> {
    let values = Cell::new(0);
    let mut failed = None;
    let mut events = 0;
    let mut event = |map: Value| {
        events += 1;
        // JSON is often one line, so events are numbered instead.
        pairs.map(map, events).map_err(|error| failed = Some(error))
    };
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let is_array = text.trim_ascii_start().first() == Some(&b'[');
    let result = if is_array {
        let seed = Events {
            values: &values,
            event: &mut event,
        };
        seed.deserialize(&mut deserializer)
            .and_then(|()| deserializer.end())
    } else {
        loop {
            // `end` succeeds if no further event follows.
            if deserializer.end().is_ok() {
                break Ok(());
            }
            match (Any { values: &values }).deserialize(&mut deserializer) {
                Ok(map) => {
                    if event(map).is_err() {
                        break Ok(());
                    }
                }
                Err(error) => break Err(error),
            }
        }
    };
    if let Some(mut error) = failed {
        error.problem = format!("event {}: {}", error.line, error.problem);
        error.line = 1;
        return Err(error);
    }
    result.map_err(|error| {
        let line = error.line().max(1);
        let problem = match error.is_eof() {
            true => "the JSON ends too early".to_owned(),
            false => format!("it is not JSON: {error}"),
        };
        let line = if error.line() == 0 {
            line_of(text, 0)
        } else {
            line
        };
        ReadError { line, problem }
    })
}

/// Passes each element of an array to a function.
struct Events<'a, F> {
    values: &'a Cell<usize>,
    event: &'a mut F,
}

impl<'de, F: FnMut(Value) -> Result<(), ()>> DeserializeSeed<'de> for Events<'_, F> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Value) -> Result<(), ()>> Visitor<'de> for Events<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let seed = || Any {
            values: self.values,
        };
        while let Some(value) = seq.next_element_seed(seed())? {
            (self.event)(value).map_err(|()| A::Error::custom("the event is refused"))?;
        }
        Ok(())
    }
}

/// Reads any value, and counts values against the limit.
#[derive(Clone, Copy)]
struct Any<'a> {
    values: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Any<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.values.set(self.values.get() + 1);
        if self.values.get() > MOST_VALUES {
            return Err(D::Error::custom(format_args!(
                "more than {MOST_VALUES} values"
            )));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Any<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value)
            .map(Value::Int)
            .map_err(|_| E::custom(format_args!("{value} is above 2^63 − 1")))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value.to_bits()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element_seed(self)? {
            values.push(value);
        }
        Ok(Value::List(values.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Box<str>>()? {
            entries.push((Value::Text(key), map.next_value_seed(self)?));
        }
        Ok(Value::Map(entries.into()))
    }
}
