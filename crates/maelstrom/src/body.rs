//! Bodies of messages, and the lines in which processes read and write them.

use corsair::{Addr, Message};
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use thiserror::Error;

/// The body of a message: a JSON object with a type, and usually its own id or the id of the request that it answers.
///
/// ```
/// use corsair_maelstrom::Body;
///
/// let request = Body::new("echo").with("echo", "hello").with_id(7);
/// let reply = Body::new("echo_ok").with("echo", "hello").reply_to(&request);
/// assert_eq!(reply.in_reply_to, Some(7));
/// assert_eq!(reply.get("echo"), request.get("echo"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Body {
    /// The type of the message; empty if the body has none.
    pub kind: Cow<'static, str>,
    /// The id of a request.
    pub msg_id: Option<i64>,
    /// The id of the request that this body answers.
    pub in_reply_to: Option<i64>,
    fields: Vec<(Cow<'static, str>, Json)>,
}

impl Body {
    /// Returns a body of this type without fields.
    pub fn new(kind: impl Into<Cow<'static, str>>) -> Body {
        Body {
            kind: kind.into(),
            ..Body::default()
        }
    }

    /// Returns an `error` with one of Maelstrom's codes.
    pub fn error(code: u32, text: &str) -> Body {
        Body::new("error").with("code", code).with("text", text)
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<Json>) -> Body {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Sets the id.
    #[must_use]
    pub fn with_id(mut self, id: i64) -> Body {
        self.msg_id = Some(id);
        self
    }

    /// Makes this body the reply to a request.
    #[must_use]
    pub fn reply_to(mut self, request: &Body) -> Body {
        self.in_reply_to = request.msg_id;
        self
    }

    /// Returns a field.
    pub fn get(&self, name: &str) -> Option<&Json> {
        let field = self.fields.iter().find(|(field, _)| field == name)?;
        Some(&field.1)
    }

    /// Returns the whole number in a field.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name)?.as_i64()
    }

    /// Returns a field, and removes it.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let index = self.fields.iter().position(|(field, _)| field == name)?;
        Some(self.fields.swap_remove(index).1)
    }

    fn from_json(map: Map<String, Json>) -> Body {
        let mut body = Body::default();
        for (name, value) in map {
            match (name.as_str(), &value, value.as_i64()) {
                ("type", Json::String(kind), _) => body.kind = Cow::Owned(kind.clone()),
                ("msg_id", _, Some(id)) => body.msg_id = Some(id),
                ("in_reply_to", _, Some(id)) => body.in_reply_to = Some(id),
                _ => body.fields.push((Cow::Owned(name), value)),
            }
        }
        body
    }

    fn to_json(&self) -> Map<String, Json> {
        let mut map = Map::new();
        if !self.kind.is_empty() {
            map.insert("type".to_owned(), Json::from(&*self.kind));
        }
        let ids = [("msg_id", self.msg_id), ("in_reply_to", self.in_reply_to)];
        for (name, id) in ids {
            if let Some(id) = id {
                map.insert(name.to_owned(), id.into());
            }
        }
        for (name, value) in &self.fields {
            map.insert(name.clone().into_owned(), value.clone());
        }
        map
    }
}

/// The message type of a test.
#[derive(Clone, Debug, Message)]
#[message(duplicate)]
pub enum Packet {
    /// A message between nodes, clients and services.
    Body(Body),
    /// An instruction to the actor of a process: send the body to the first address, in the name of the second.
    Send(Addr, Addr, Body),
    /// A message that a process sends under the name of another member, for example a request that it passes on.
    Forwarded(Addr, Body),
    /// Notifies the root that a client has finished.
    Finished,
}

/// The reasons why a line of a process is not a message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// The line is too long.
    #[error("a line of more than {MOST_BYTES} bytes")]
    Length,
    /// The line is not JSON.
    #[error("a line that is not JSON ({problem}): {line}")]
    Json {
        /// The parser's message.
        problem: String,
        /// The beginning of the line.
        line: String,
    },
    /// The line is JSON, but not a message.
    #[error("a message whose \"{field}\" is not {expected}: {line}")]
    Field {
        /// The missing or wrong field.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
        /// The beginning of the line.
        line: String,
    },
}

/// The maximum length of a line.
pub(crate) const MOST_BYTES: usize = 1 << 20;
/// The largest number of characters of a line that an error shows.
const MOST_SHOWN: usize = 200;

/// A message in the format in which processes write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) src: String,
    pub(crate) dest: String,
    pub(crate) body: Body,
}

impl Line {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Line, LineError> {
        if bytes.len() > MOST_BYTES {
            return Err(LineError::Length);
        }
        let shown = || {
            let text = String::from_utf8_lossy(bytes);
            text.trim().chars().take(MOST_SHOWN).collect::<String>()
        };
        let mut json: Json = serde_json::from_slice(bytes).map_err(|error| LineError::Json {
            problem: error.to_string(),
            line: shown(),
        })?;
        let mut take = |field| json.get_mut(field).map(Json::take);
        let wrong = |field, expected| LineError::Field {
            field,
            expected,
            line: shown(),
        };
        let (src, dest, body) = (take("src"), take("dest"), take("body"));
        let Some(Json::String(src)) = src else {
            return Err(wrong("src", "a string"));
        };
        let Some(Json::String(dest)) = dest else {
            return Err(wrong("dest", "a string"));
        };
        let Some(Json::Object(body)) = body else {
            return Err(wrong("body", "an object"));
        };
        let body = Body::from_json(body);
        Ok(Line { src, dest, body })
    }

    /// Returns the message as a line, including its line feed.
    pub(crate) fn write(src: &str, dest: &str, body: &Body) -> Vec<u8> {
        let mut map = Map::new();
        map.insert("src".to_owned(), src.into());
        map.insert("dest".to_owned(), dest.into());
        map.insert("body".to_owned(), Json::Object(body.to_json()));
        let mut line = Json::Object(map).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_and_written_without_loss() {
        let text = r#"{"src":"n1","dest":"c2","body":{"type":"x","msg_id":3,"in_reply_to":-4,"a":[1.5,null,{"b":18446744073709551615}]}}"#;
        let line = Line::parse(text.as_bytes()).unwrap();
        let written = Line::write(&line.src, &line.dest, &line.body);
        assert_eq!(Line::parse(&written).unwrap(), line);
        assert_eq!(
            (line.body.msg_id, line.body.in_reply_to),
            (Some(3), Some(-4))
        );
    }

    #[test]
    fn ids_that_are_no_numbers_and_bodies_without_a_type_pass_through() {
        let text = r#"{"src":"n1","dest":"n2","body":{"msg_id":"abc","type":7}}"#;
        let line = Line::parse(text.as_bytes()).unwrap();
        let written = String::from_utf8(Line::write("n1", "n2", &line.body)).unwrap();
        assert!(written.contains(r#""msg_id":"abc""#) && written.contains(r#""type":7"#));
    }

    // Guarantee: maelstrom-5.
    #[test]
    fn what_is_no_message_is_refused_in_a_sentence() {
        let deep = "[".repeat(100_000);
        for (text, part) in [
            ("hello", "a line that is not JSON"),
            ("", "a line that is not JSON"),
            (deep.as_str(), "recursion limit"),
            ("[]", "\"src\" is not a string"),
            ("{\"src\":1}", "\"src\" is not a string"),
            ("{\"src\":\"n0\"}", "\"dest\" is not a string"),
            (
                "{\"src\":\"n0\",\"dest\":\"n1\",\"body\":[]}",
                "\"body\" is not an object",
            ),
        ] {
            let error = Line::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
            assert!(error.len() < 1_000, "{}", error.len());
        }
        let long = vec![b' '; MOST_BYTES + 1];
        assert_eq!(Line::parse(&long), Err(LineError::Length));
    }
}
