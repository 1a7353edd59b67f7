//! Messages: posting one, and reading what was posted.

use super::page::Room;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, InPath, StrictJson, StrictQuery};
use super::users::After;
use crate::command::{Command, Done, Refusal};
use crate::frame::ENVELOPE;
use crate::limits::{FEW, LONGEST_KEY, MOST_FANOUT};
use crate::model::{ConversationId, Message, Millis, UserId};
use crate::node::{Failure, Inner, Node};
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;

/// How long a message to many waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// A message to be posted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// What it says; 1 byte or more.
    text: String,
}

/// A message that is stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct Posted {
    /// Where.
    conversation: ConversationId,
    /// Its number in the conversation, from 1 on.
    number: u64,
    /// When it was first posted, in milliseconds since 1970.
    sent: Millis,
    /// Whether it had been stored before, under the same Idempotency-Key.
    repeated: bool,
}

/// Messages of a conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct Messages {
    /// In order.
    messages: Vec<Message>,
    /// Whether there are more after these.
    more: bool,
}

/// Posts a message. The answer comes when the message is durable.
#[utoipa::path(
    post,
    path = "/conversations/{id}/messages",
    params(
        ("id" = u64, Path, description = "The conversation"),
        ("Idempotency-Key" = Option<String>, Header, description = "Chosen by the client, up to 255 bytes: posts of one user with the same key store one message. Remembered for a day at least"),
    ),
    request_body = NewMessage,
    security(("token" = [])),
    responses(
        (status = 201, body = Posted),
        (status = 200, description = "Stored before, under the same key", body = Posted),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(node): State<Node>,
    who: Authenticated,
    InPath(conversation): InPath,
    Key(key): Key,
    StrictJson(NewMessage { text }): StrictJson<NewMessage>,
) -> Result<(StatusCode, Json<Posted>), Problem> {
    let begun = Instant::now();
    let node = &node.inner;
    let most = node.limits.text;
    if text.is_empty() {
        return Err(Problem::invalid("text", "a message needs a text"));
    }
    if text.len() > most {
        node.metrics.refuse("text");
        let message = format!(
            "a text has at most {most} bytes, this one has {}",
            text.len()
        );
        return Err(Problem::too_large("text", message));
    }
    // Kept until the outcome is known.
    let _turn = admit(node, who.user, conversation).await?;
    let command = Command::Post {
        sender: who.user,
        conversation,
        text,
        key,
        at: Millis::now(),
    };
    let Done::Posted {
        number,
        sent,
        repeated,
    } = node.command(command).await?
    else {
        unreachable!("a message that was posted has a number");
    };
    let (counter, status) = match repeated {
        false => (&node.metrics.posted, StatusCode::CREATED),
        true => (&node.metrics.repeated, StatusCode::OK),
    };
    counter.inc();
    let seconds = begun.elapsed().as_secs_f64();
    node.metrics.post_seconds.observe(seconds);
    let posted = Posted {
        conversation,
        number,
        sent,
        repeated,
    };
    Ok((status, Json(posted)))
}

/// Counts a message by its recipients. One to many waits for its turn, of which it keeps the others
/// while it is held; messages to few do not wait for those.
async fn admit(
    node: &Inner,
    user: UserId,
    conversation: ConversationId,
) -> Result<Option<OwnedSemaphorePermit>, Problem> {
    let recipients = node.recipients(conversation).await?;
    if let Err(wait) = node.rates.recipients(user, recipients) {
        node.metrics.refuse("fanout");
        let most = node.limits.fanout;
        let message =
            format!("your messages go to more than {most} recipients a second; wait a moment");
        return Err(Problem::too_many("fanout", message, wait));
    }
    if recipients < FEW {
        return Ok(None);
    }
    let turn = node.fanout.clone();
    let turn = Box::pin(tokio::time::timeout(
        TURN,
        turn.acquire_many_owned(recipients.min(MOST_FANOUT)),
    ));
    match turn.await {
        Ok(Ok(turn)) => Ok(Some(turn)),
        _ => {
            node.metrics.refuse("busy");
            let message =
                "too many messages to many recipients are under way; try again in a moment";
            Err(Problem::busy("busy", message, Duration::from_secs(1)))
        }
    }
}

/// The hash of the idempotency key, if there is one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(Option<[u8; 16]>);

impl FromRequestParts<Node> for Key {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Node) -> Result<Self, Problem> {
        let mut keys = parts.headers.get_all("idempotency-key").iter();
        let Some(key) = keys.next() else {
            return Ok(Key(None));
        };
        let length = key.as_bytes().len();
        if !(1..=LONGEST_KEY).contains(&length) || keys.next().is_some() {
            let message = format!("there is one Idempotency-Key, of 1 to {LONGEST_KEY} bytes");
            return Err(Problem::invalid("idempotency_key", message));
        }
        let mut half = [0; 16];
        half.copy_from_slice(&blake3::hash(key.as_bytes()).as_bytes()[..16]);
        Ok(Key(Some(half)))
    }
}

/// The messages of a conversation, page by page.
#[utoipa::path(
    get,
    path = "/conversations/{id}/messages",
    params(("id" = u64, Path, description = "The conversation"), After),
    security(("token" = [])),
    responses(
        (status = 200, body = Messages),
        (status = 401, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(node): State<Node>,
    who: Authenticated,
    InPath(id): InPath,
    StrictQuery(after): StrictQuery<After>,
) -> Result<Response, Problem> {
    let node = &node.inner;
    let room = Room::take(node, who.user)?;
    let current = node.catch_up_if_possible().await?;
    let conversation = node.index.conversation(id).await.map_err(Failure::from)?;
    let is_member = conversation.is_some_and(|found| found.members.contains(&who.user));
    if !is_member {
        return Err(Refusal::UnknownConversation(id).into());
    }
    let bytes = node.limits.page_bytes - ENVELOPE;
    let page = node
        .index
        .messages(id, after.after, after.limit(node), bytes);
    let page = page.await.map_err(Failure::from)?;
    let page = Messages {
        messages: page.items,
        more: page.more,
    };
    room.answer(&page, current)
}
