//! Conversations and their members.

use super::fanout;
use super::messages::Key;
use super::page::PageReservation;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, StrictJson, StrictQuery};
use super::users::After;
use crate::command::{Command, CommandResult};
use crate::frame::ENVELOPE;
use crate::inner::Failure;
use crate::limits::LONGEST_TITLE;
use crate::model::{Conversation, ConversationId, Millis, UserId};
use crate::node::Node;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A conversation to be created.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewConversation {
    /// One or more users in addition to the caller.
    #[schema(min_items = 1, max_items = 10_000)]
    recipients: Vec<UserId>,
    /// The title, without control characters.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 256)]
    title: Option<String>,
    /// If true, returns the existing pair conversation of the caller and the only recipient, and creates one only if
    /// none exists.
    #[serde(default)]
    pair: bool,
}

/// A conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConversationView {
    /// The number of the conversation.
    id: ConversationId,
    /// The user who created the conversation.
    creator: UserId,
    /// The numbers of all members, including the creator, in ascending order.
    members: Vec<UserId>,
    /// The time of creation, in milliseconds since 1970.
    created: Millis,
    /// The title, if there is one.
    title: Option<String>,
}

/// A conversation that was created or found.
#[derive(Serialize, ToSchema)]
pub(crate) struct Created {
    /// The number of the conversation.
    id: ConversationId,
}

/// Conversations of a user.
#[derive(Serialize, ToSchema)]
pub(crate) struct Conversations {
    /// The conversations, in the order of their numbers.
    conversations: Vec<ConversationView>,
    /// True if there are more conversations after this page.
    more: bool,
}

/// Creates a conversation.
#[utoipa::path(
    post,
    path = "/conversations",
    params(
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, description = "Chosen by the client. A request with the same key returns the conversation that the first request has created. Keys are remembered for at least a day"),
    ),
    request_body = NewConversation,
    security(("token" = [])),
    responses(
        (status = 201, body = Created),
        (status = 200, description = "Already created, as a pair or with the same key", body = Created),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(node): State<Node>,
    who: Authenticated,
    Key(key): Key,
    StrictJson(new): StrictJson<NewConversation>,
) -> Result<(StatusCode, Json<Created>), Problem> {
    let node = &node.inner;
    let NewConversation {
        mut recipients,
        title,
        pair,
    } = new;
    if let Some(title) = &title {
        check_title(title).map_err(|message| Problem::invalid("title", message))?;
    }
    let most = node.limits.recipients;
    if recipients.len() > most {
        node.metrics.refuse("recipients");
        let message = format!("a conversation has at most {most} recipients; name fewer");
        return Err(Problem::too_large("recipients", message));
    }
    recipients.sort_unstable();
    recipients.dedup();
    recipients.retain(|&user| user != who.user);
    if recipients.is_empty() {
        let message = "a conversation needs a recipient other than you";
        return Err(Problem::invalid("no_recipients", message));
    }
    if pair && recipients.len() != 1 {
        let message = "a pair has one recipient; name one, or leave out `pair`";
        return Err(Problem::invalid("pair", message));
    }
    // The permit is held until the outcome is known. Each member is a row of the index.
    let count = u32::try_from(recipients.len()).unwrap_or(u32::MAX);
    let _turn = fanout::admit(node, who.user, count).await?;
    let (creator, at) = (who.user, Millis::now());
    // If possible, the command is one that nodes of the first version can read.
    let command = match (&title, key, pair) {
        (None, None, false) => Command::CreateConversation {
            creator,
            recipients,
            at,
        },
        _ => Command::BeginConversation {
            creator,
            recipients,
            title: title.unwrap_or_default(),
            key,
            pair,
            at,
        },
    };
    match node.command(command).await? {
        CommandResult::Conversation(id) => Ok((StatusCode::CREATED, Json(Created { id }))),
        CommandResult::Found(id) => Ok((StatusCode::OK, Json(Created { id }))),
        _ => unreachable!("a new conversation has a number"),
    }
}

/// Lists the conversations of the caller.
#[utoipa::path(
    get,
    path = "/conversations",
    params(After),
    security(("token" = [])),
    responses(
        (status = 200, body = Conversations),
        (status = 401, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(node): State<Node>,
    who: Authenticated,
    StrictQuery(after): StrictQuery<After>,
) -> Result<Response, Problem> {
    let node = &node.inner;
    let room = PageReservation::take(node, who.user)?;
    let current = node.catch_up_if_possible().await?;
    let first = ConversationId(after.after);
    let bytes = node.limits.page_bytes - ENVELOPE;
    let page = node
        .index
        .conversations(who.user, first, after.limit(node), bytes);
    let page = page.await.map_err(Failure::from)?;
    let conversations = page.items.into_iter().map(view).collect();
    let more = page.more;
    let page = Conversations {
        conversations,
        more,
    };
    room.answer(&page, current)
}

/// Checks a title of a conversation.
pub(super) fn check_title(title: &str) -> Result<(), String> {
    if title.is_empty() || title.len() > LONGEST_TITLE {
        let length = title.len();
        return Err(format!(
            "a title has 1 to {LONGEST_TITLE} bytes, this one has {length}"
        ));
    }
    match title.chars().any(char::is_control) {
        true => Err("a title has no control characters".to_owned()),
        false => Ok(()),
    }
}

pub(super) fn view(
    (id, conversation, title): (ConversationId, Conversation, Option<String>),
) -> ConversationView {
    let Conversation {
        creator,
        members,
        created,
    } = conversation;
    ConversationView {
        id,
        creator,
        members,
        created,
        title,
    }
}

/// The unacknowledged messages of a conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct Unread {
    conversation: ConversationId,
    /// The number of unacknowledged messages.
    count: u64,
}

/// Unacknowledged messages by conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnreadCounts {
    /// The conversations with unacknowledged messages, in the order of their numbers.
    conversations: Vec<Unread>,
    /// True if counting stopped after 10,000 changes from one conversation to another.
    more: bool,
}

/// Returns the number of messages of each conversation that no session of the user has acknowledged.
#[utoipa::path(
    get,
    path = "/conversations/unread",
    security(("token" = [])),
    responses(
        (status = 200, body = UnreadCounts),
        (status = 401, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn unread(
    State(node): State<Node>,
    who: Authenticated,
) -> Result<Response, Problem> {
    let node = &node.inner;
    let room = PageReservation::take(node, who.user)?;
    let current = node.catch_up_if_possible().await?;
    let (counts, more) = node.index.unread(who.user).await.map_err(Failure::from)?;
    let each = |(conversation, count)| Unread {
        conversation,
        count,
    };
    let conversations = counts.into_iter().map(each).collect();
    let page = UnreadCounts {
        conversations,
        more,
    };
    room.answer(&page, current)
}
