//! The content of WebSockets: JSON in text frames.
//!
//! To the client: `message:new`, `users:online`, `users:connect`, `users:disconnect`,
//! `conversation:changed`, `error`.
//! From the client: `ack`.

use crate::model::{ConversationId, Message, UserId};
use axum::extract::ws::Utf8Bytes;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::{Arc, OnceLock};
use utoipa::ToSchema;

/// The maximum number of users in a `users:online` frame; `GET /users/online` lists the rest.
pub(crate) const MOST_LISTED: usize = 50;
/// The maximum bytes of a frame about users; longer lists take several frames.
const LARGEST_UPDATE: usize = 8 << 10;

/// Returns the size of the largest frame for texts of this many bytes. JSON may encode one byte as six.
pub(crate) fn largest(text: usize) -> usize {
    (6 * text + ENVELOPE).max(2 * LARGEST_UPDATE)
}

/// The maximum size of a message's frame without its text.
pub(crate) const ENVELOPE: usize = 256;

/// Returns the length of a text in JSON, in bytes.
pub(crate) fn encoded(text: &str) -> usize {
    let bytes = text.bytes().map(|byte| match byte {
        b'"' | b'\\' | 0x08 | 0x09 | 0x0a | 0x0c | 0x0d => 2,
        0..0x20 => 6,
        _ => 1,
    });
    bytes.sum::<usize>() + 2
}

/// A message for sockets. The part that is equal for all recipients is serialized once.
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

    /// True if this value was made from the given message.
    pub fn is(&self, message: &Arc<Message>) -> bool {
        Arc::ptr_eq(&self.message, message)
    }

    /// Returns the approximate length of the message's frame.
    pub fn length(&self) -> usize {
        encoded(&self.message.text) + ENVELOPE
    }

    /// Returns the frame for the recipient who gets the message under this sequence number.
    pub fn frame(&self, sequence: u64) -> Utf8Bytes {
        let rest = self.rest.get_or_init(|| rest(&self.message));
        framed(sequence, rest)
    }
}

/// Returns the frame of a message for one recipient.
pub(crate) fn message_frame(sequence: u64, message: &Message) -> Utf8Bytes {
    framed(sequence, &rest(message))
}

fn rest(message: &Message) -> String {
    let mut rest = Vec::with_capacity(encoded(&message.text) + ENVELOPE);
    rest.extend_from_slice(b",\"message\":");
    serde_json::to_writer(&mut rest, message).expect("numbers and texts are JSON");
    rest.push(b'}');
    String::from_utf8(rest).expect("JSON is UTF-8")
}

fn framed(sequence: u64, rest: &str) -> Utf8Bytes {
    let mut frame = String::with_capacity(rest.len() + ENVELOPE);
    // Writing to a string does not fail.
    let _ = write!(
        frame,
        "{{\"type\":\"message:new\",\"sequence\":{sequence}{rest}"
    );
    frame.into()
}

/// The public data of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserInfo {
    /// The number.
    pub id: UserId,
    /// The name.
    #[schema(value_type = String)]
    pub name: Arc<str>,
}

/// A frame from the node.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type")]
pub(crate) enum ServerFrame<'a> {
    /// A message. Clients should process each sequence once: an unacknowledged message is sent again.
    #[serde(rename = "message:new")]
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "it is put together from parts that many share")
    )]
    Message {
        /// The number of the message in this user's queue, from 1 on, without gaps.
        sequence: u64,
        message: &'a Message,
    },
    /// The number of online users, and the first of them; `GET /users/online` lists the others.
    #[serde(rename = "users:online")]
    Online { total: usize, users: &'a [UserInfo] },
    /// Users who came online.
    #[serde(rename = "users:connect")]
    Connect { users: &'a [UserInfo] },
    /// Users who went offline.
    #[serde(rename = "users:disconnect")]
    Disconnect { users: &'a [UserInfo] },
    /// A conversation has a new title or other members; `GET /conversations/{id}` returns them. Not every change is
    /// sent, so read the conversations again after connecting.
    #[serde(rename = "conversation:changed")]
    Changed { conversation: ConversationId },
    /// The client has sent something invalid.
    #[serde(rename = "error")]
    Error {
        /// A stable code for programs.
        code: &'static str,
        /// A sentence for people.
        message: &'a str,
    },
}

/// Frames about these users, each within [`LARGEST_UPDATE`].
pub(crate) fn split<'u>(
    users: &'u [UserInfo],
    notice: impl Fn(&'u [UserInfo]) -> ServerFrame<'u>,
) -> Vec<Utf8Bytes> {
    let mut frames = Vec::new();
    let (mut begin, mut length) = (0, 0);
    for (place, user) in users.iter().enumerate() {
        // The longest text around a name: `{"id":18446744073709551615,"name":},`.
        let more = encoded(&user.name) + 36;
        if length + more > LARGEST_UPDATE && begin < place {
            frames.push(notice(&users[begin..place]).frame());
            (begin, length) = (place, 0);
        }
        length += more;
    }
    if begin < users.len() {
        frames.push(notice(&users[begin..]).frame());
    }
    frames
}

impl ServerFrame<'_> {
    pub fn frame(&self) -> Utf8Bytes {
        let json = serde_json::to_string(self).expect("numbers and texts are JSON");
        json.into()
    }
}

/// A frame from a client.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
pub(crate) enum ClientFrame {
    /// The client has received everything up to this sequence number.
    #[serde(rename = "ack")]
    Ack { sequence: u64 },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Millis;

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
        let described = ServerFrame::Message {
            sequence: 9,
            message: &message,
        };
        assert_eq!(described.frame(), frame);
        let value: serde_json::Value = serde_json::from_str(&frame).unwrap();
        assert_eq!(value["type"], "message:new");
        assert_eq!(value["sequence"], 9);
        assert_eq!(
            serde_json::from_value::<Message>(value["message"].clone()).unwrap(),
            message
        );
    }

    #[test]
    fn the_length_of_a_text_as_json_is_known() {
        let odd: String = (0..0x250).filter_map(char::from_u32).collect();
        for text in [
            "",
            "ahoy",
            "\u{0}\u{1f}\u{7f}\t\n\r\u{8}\u{c}\"\\/",
            &odd,
            "🏴‍☠️",
        ] {
            assert_eq!(serde_json::to_string(text).unwrap().len(), encoded(text));
        }
    }

    #[test]
    fn however_many_users_come_each_frame_is_short_and_none_is_left_out() {
        let users: Vec<UserInfo> = (0..5000)
            .map(|id| UserInfo {
                id: UserId(u64::MAX - id),
                name: "\"".repeat(64).into(),
            })
            .collect();
        let frames = split(&users, |users| ServerFrame::Disconnect { users });
        let mut told = Vec::new();
        for frame in &frames {
            assert!(frame.len() <= LARGEST_UPDATE + ENVELOPE, "{}", frame.len());
            let frame: serde_json::Value = serde_json::from_str(frame).unwrap();
            let some = serde_json::from_value::<Vec<UserInfo>>(frame["users"].clone());
            told.extend(some.unwrap());
        }
        assert_eq!(told, users);
        assert!(split(&[], |users| ServerFrame::Connect { users }).is_empty());
    }

    #[test]
    fn a_client_can_only_acknowledge() {
        let read = |text: &str| crate::json::object::<ClientFrame>(text.as_bytes());
        assert!(matches!(
            read(r#"{"type":"ack","sequence":7}"#),
            Ok(ClientFrame::Ack { sequence: 7 })
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
            r#"["ack",7]"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
