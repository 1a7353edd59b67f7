//! What goes over a WebSocket: JSON in text frames.
//!
//! To the client: `message:new`, `users:online`, `users:connect`, `users:disconnect`, `error`.
//! From the client: `ack`.

use crate::model::{Message, UserId};
use axum::extract::ws::Utf8Bytes;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};

/// Users in a `users:online` frame; the rest is to be had from `GET /users/online`.
pub(crate) const MOST_LISTED: usize = 50;

/// A message on its way to sockets. What all recipients get of it is written once.
#[derive(Debug)]
pub(crate) struct Outgoing {
    message: Arc<Message>,
    rest: OnceLock<String>,
}

impl Outgoing {
    pub fn new(message: Arc<Message>) -> Outgoing {
        let rest = OnceLock::new();
        Outgoing { message, rest }
    }

    /// Whether it is this message.
    pub fn is(&self, message: &Arc<Message>) -> bool {
        Arc::ptr_eq(&self.message, message)
    }

    /// The frame for the recipient for whom it has this sequence.
    pub fn frame(&self, sequence: u64) -> Utf8Bytes {
        let rest = self.rest.get_or_init(|| rest(&self.message));
        framed(sequence, rest)
    }
}

/// The frame of one message for one recipient.
pub(crate) fn message_frame(sequence: u64, message: &Message) -> Utf8Bytes {
    framed(sequence, &rest(message))
}

fn rest(message: &Message) -> String {
    let json = serde_json::to_string(message).expect("numbers and texts are JSON");
    format!(",\"message\":{json}}}")
}

fn framed(sequence: u64, rest: &str) -> Utf8Bytes {
    format!("{{\"type\":\"message:new\",\"sequence\":{sequence}{rest}").into()
}

/// A user as others see one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Face {
    /// The number.
    pub id: UserId,
    /// The name.
    #[schema(value_type = String)]
    pub name: Arc<str>,
}

/// Frames other than messages.
#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(crate) enum Notice<'a> {
    #[serde(rename = "users:online")]
    Online { total: usize, users: &'a [Face] },
    #[serde(rename = "users:connect")]
    Connect { users: &'a [Face] },
    #[serde(rename = "users:disconnect")]
    Disconnect { users: &'a [Face] },
    #[serde(rename = "error")]
    Error {
        code: &'static str,
        message: &'a str,
    },
}

impl Notice<'_> {
    pub fn frame(&self) -> Utf8Bytes {
        let json = serde_json::to_string(self).expect("numbers and texts are JSON");
        json.into()
    }
}

/// What a client says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
pub(crate) enum Said {
    /// It has everything up to this sequence.
    #[serde(rename = "ack")]
    Ack { sequence: u64 },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ConversationId, Millis};

    #[test]
    fn a_message_is_one_json_object_however_it_is_made() {
        let message = Message {
            conversation: ConversationId(3),
            number: 5,
            sender: UserId(2),
            sent: Millis(17),
            text: "a \"quoted\" ü\n".to_owned(),
        };
        let frame = message_frame(9, &message);
        let outgoing = Outgoing::new(Arc::new(message.clone()));
        assert_eq!(outgoing.frame(9), frame);
        let value: serde_json::Value = serde_json::from_str(&frame).unwrap();
        assert_eq!(value["type"], "message:new");
        assert_eq!(value["sequence"], 9);
        assert_eq!(
            serde_json::from_value::<Message>(value["message"].clone()).unwrap(),
            message
        );
    }

    #[test]
    fn a_client_can_only_acknowledge() {
        let read = |text| serde_json::from_str::<Said>(text);
        assert!(matches!(
            read(r#"{"type":"ack","sequence":7}"#),
            Ok(Said::Ack { sequence: 7 })
        ));
        for wrong in [
            "",
            "7",
            "{}",
            r#"{"type":"ack"}"#,
            r#"{"type":"ack","sequence":-1}"#,
            r#"{"type":"ack","sequence":"7"}"#,
            r#"{"type":"ack","sequence":7,"more":1}"#,
            r#"{"type":"nack","sequence":7}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
