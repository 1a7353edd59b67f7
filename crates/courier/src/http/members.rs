//! Changes of the members and the title of a conversation.

use super::conversations::{ConversationView, check_title, view};
use super::fanout;
use super::page::PageReservation;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, InPath, StrictJson};
use crate::command::Command;
use crate::inner::Failure;
use crate::model::{ConversationId, UserId};
use crate::node::Node;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

/// Users to be added to a conversation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMembers {
    /// One or more users; existing members stay.
    #[schema(min_items = 1, max_items = 10_000)]
    users: Vec<UserId>,
}

/// A new title of a conversation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTitle {
    /// The title, without control characters; `null` removes it.
    #[schema(min_length = 1, max_length = 256)]
    title: Option<String>,
}

/// Returns a conversation of the caller.
#[utoipa::path(
    get,
    path = "/conversations/{id}",
    params(("id" = u64, Path, description = "The conversation")),
    security(("token" = [])),
    responses(
        (status = 200, body = ConversationView),
        (status = 401, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn show(
    State(node): State<Node>,
    who: Authenticated,
    InPath(id): InPath,
) -> Result<Response, Problem> {
    let node = &node.inner;
    let room = PageReservation::take(node, who.user)?;
    let (found, current) = node.conversation_of(who.user, id).await?;
    let title = node.index.title(id).await.map_err(Failure::from)?;
    room.answer(&view((id, found, title)), current)
}

/// Changes the title of a conversation.
#[utoipa::path(
    put,
    path = "/conversations/{id}/title",
    params(("id" = u64, Path, description = "The conversation")),
    request_body = NewTitle,
    security(("token" = [])),
    responses(
        (status = 204, description = "Changed"),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 408, body = ErrorBody),
        (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn set_title(
    State(node): State<Node>,
    who: Authenticated,
    InPath(conversation): InPath,
    StrictJson(NewTitle { title }): StrictJson<NewTitle>,
) -> Result<StatusCode, Problem> {
    if let Some(title) = &title {
        check_title(title).map_err(|message| Problem::invalid("title", message))?;
    }
    let command = Command::SetTitle {
        by: who.user,
        conversation,
        title: title.unwrap_or_default(),
    };
    node.inner.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Adds members to a conversation. They can read its history, and get all further messages.
#[utoipa::path(
    post,
    path = "/conversations/{id}/members",
    params(("id" = u64, Path, description = "The conversation")),
    request_body = NewMembers,
    security(("token" = [])),
    responses(
        (status = 204, description = "The users are members"),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 408, body = ErrorBody),
        (status = 409, description = "It is the conversation of two", body = ErrorBody),
        (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn add(
    State(node): State<Node>,
    who: Authenticated,
    InPath(conversation): InPath,
    StrictJson(NewMembers { mut users }): StrictJson<NewMembers>,
) -> Result<StatusCode, Problem> {
    let node = &node.inner;
    let most = node.limits.recipients;
    if users.len() > most {
        node.metrics.refuse("recipients");
        let message = format!("a conversation has at most {most} recipients; name fewer");
        return Err(Problem::too_large("recipients", message));
    }
    users.sort_unstable();
    users.dedup();
    if users.is_empty() {
        let message = "name the users to add";
        return Err(Problem::invalid("no_recipients", message));
    }
    // The permit is held until the outcome is known. Each member is a row of the index, and adding members rewrites all
    // rows.
    let before = node.recipients.of(conversation, &node.index).await;
    let before = before.map_err(Failure::from)?;
    let count = u32::try_from(users.len()).unwrap_or(u32::MAX);
    let _turn = fanout::admit(node, who.user, before.saturating_add(count)).await?;
    let command = Command::AddMembers {
        by: who.user,
        conversation,
        users,
        // The limit counts recipients, and the sender is not one of them.
        most: u32::try_from(most).unwrap_or(u32::MAX).saturating_add(1),
    };
    node.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a member from a conversation. Members may remove themselves, and the creator may remove other members.
/// Messages posted earlier still reach the removed member.
#[utoipa::path(
    delete,
    path = "/conversations/{id}/members/{user}",
    params(
        ("id" = u64, Path, description = "The conversation"),
        ("user" = u64, Path, description = "The member"),
    ),
    security(("token" = [])),
    responses(
        (status = 204, description = "The user is not a member"),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, description = "It is the conversation of two", body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn remove(
    State(node): State<Node>,
    who: Authenticated,
    path: Result<Path<(u64, u64)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let node = &node.inner;
    let unknown = || {
        let message =
            "conversations and users are given by their numbers; GET /conversations lists yours";
        Problem::new(StatusCode::NOT_FOUND, "unknown_member", message)
    };
    let Path((conversation, user)) = path.map_err(|_| unknown())?;
    let conversation = ConversationId(conversation);
    let before = node.recipients.of(conversation, &node.index).await;
    let before = before.map_err(Failure::from)?;
    let _turn = fanout::admit(node, who.user, before).await?;
    let command = Command::RemoveMember {
        by: who.user,
        conversation,
        user: UserId(user),
    };
    node.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}
