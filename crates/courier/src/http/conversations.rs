//! Conversations: who talks with whom.

use super::fanout;
use super::page::Room;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, StrictJson, StrictQuery};
use super::users::After;
use crate::command::{Command, Done};
use crate::frame::ENVELOPE;
use crate::model::{Conversation, ConversationId, Millis, UserId};
use crate::node::{Failure, Node};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// With whom to talk.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewConversation {
    /// One or many, besides whoever asks.
    #[schema(min_items = 1, max_items = 10_000)]
    recipients: Vec<UserId>,
}

/// A conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConversationView {
    /// Its number.
    id: ConversationId,
    /// Who has made it.
    creator: UserId,
    /// All who are part of it, by number, the creator among them.
    members: Vec<UserId>,
    /// When it was made, in milliseconds since 1970.
    created: Millis,
}

/// A conversation that was made.
#[derive(Serialize, ToSchema)]
pub(crate) struct Created {
    /// Its number.
    id: ConversationId,
}

/// Conversations of a user.
#[derive(Serialize, ToSchema)]
pub(crate) struct Conversations {
    /// By number.
    conversations: Vec<ConversationView>,
    /// Whether there are more after these.
    more: bool,
}

/// Begins a conversation.
#[utoipa::path(
    post,
    path = "/conversations",
    request_body = NewConversation,
    security(("token" = [])),
    responses(
        (status = 201, body = Created),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(node): State<Node>,
    who: Authenticated,
    StrictJson(new): StrictJson<NewConversation>,
) -> Result<(StatusCode, Json<Created>), Problem> {
    let node = &node.inner;
    let mut recipients = new.recipients;
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
        let message = "a conversation needs a recipient other than yourself";
        return Err(Problem::invalid("no_recipients", message));
    }
    // Kept until the outcome is known: each member is a row.
    let count = u32::try_from(recipients.len()).unwrap_or(u32::MAX);
    let _turn = fanout::admit(node, who.user, count).await?;
    let command = Command::CreateConversation {
        creator: who.user,
        recipients,
        at: Millis::now(),
    };
    match node.command(command).await? {
        Done::Conversation(id) => Ok((StatusCode::CREATED, Json(Created { id }))),
        _ => unreachable!("a new conversation has a number"),
    }
}

/// The conversations that one is part of.
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
    let room = Room::take(node, who.user)?;
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

fn view((id, conversation): (ConversationId, Conversation)) -> ConversationView {
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
    }
}

/// Messages of a conversation that were not acknowledged.
#[derive(Serialize, ToSchema)]
pub(crate) struct Unread {
    conversation: ConversationId,
    /// How many.
    count: u64,
}

/// What was not acknowledged, by conversation.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnreadCounts {
    /// By number; those of which there is something.
    conversations: Vec<Unread>,
    /// Whether there is more than was counted, after 10,000 changes from one conversation to another.
    more: bool,
}

/// How many messages of each conversation no session of one's own has acknowledged.
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
    let room = Room::take(node, who.user)?;
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
