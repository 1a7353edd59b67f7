//! Sessions: logging in and out, and changing the password.

use super::page::mark;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, Stranger, StrictJson, account};
use crate::command::{Command, Refusal};
use crate::inner::{Failure, Inner};
use crate::limits::{LONGEST_PASSWORD, SHORTEST_PASSWORD};
use crate::log::LogError;
use crate::model::{Millis, SessionId, UserId};
use crate::names;
use crate::node::Node;
use crate::sessions::Bearer;
use crate::token::Token;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A name and a password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Credentials {
    /// 1 to 64 bytes in NFC, without spaces at the ends, control characters or invisible characters.
    #[schema(min_length = 1, max_length = 192)]
    pub name: String,
    /// At least 8 characters, at most 1024 bytes.
    #[schema(min_length = 8, max_length = 1024)]
    pub password: String,
}

/// A new session of a user.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoggedIn {
    /// The user's number.
    user: UserId,
    /// The token for the header `Authorization: Bearer TOKEN`.
    token: String,
    /// The time at which the token expires, in milliseconds since 1970.
    expires: Millis,
}

/// An active session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// The id with which the session can be revoked.
    id: String,
    /// The time at which the session was opened, in milliseconds since 1970, if known.
    opened: Option<Millis>,
    /// The time at which the session expires, in milliseconds since 1970.
    expires: Millis,
    /// True for the session that makes the request.
    current: bool,
}

/// The active sessions of a user.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionList {
    /// The sessions, ordered by expiry, the latest first.
    sessions: Vec<SessionView>,
}

/// A change of the password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPassword {
    /// The current password.
    #[schema(min_length = 1, max_length = 1024)]
    old: String,
    /// The new password: at least 8 characters, at most 1024 bytes.
    #[schema(min_length = 8, max_length = 1024)]
    new: String,
}

/// Logs in.
#[utoipa::path(
    post,
    path = "/sessions",
    request_body = Credentials,
    responses(
        (status = 201, description = "Logged in", body = LoggedIn),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn log_in(
    State(node): State<Node>,
    _: Stranger,
    StrictJson(credentials): StrictJson<Credentials>,
) -> Result<(StatusCode, Json<LoggedIn>), Problem> {
    let node = &node.inner;
    let Credentials { name, password } = credentials;
    let name = names::normalized(&name);
    account(node, &name)?;
    node.caught_up().await?;
    let found = node.index.user_named(name).await;
    let (user, hash) = match found.map_err(Failure::from)? {
        Some((id, user)) => (Some(id), Some(user.password)),
        None => (None, None),
    };
    let right = node.passwords.check(password, hash).await?;
    match user {
        Some(user) if right => Ok((StatusCode::CREATED, Json(open_session(node, user).await?))),
        _ => Err(Problem::unauthorized(
            "no user has this name and password; POST /users creates one",
        )),
    }
}

/// Opens a session for an authenticated user.
pub(super) async fn open_session(node: &Inner, user: UserId) -> Result<LoggedIn, Problem> {
    let token = Token::random().map_err(|error| {
        let message = format!("the system cannot provide random numbers: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no_random", message)
    })?;
    let lifetime = node.limits.session.as_millis() as u64;
    let at = Millis::now();
    let expires = Millis(at.0.saturating_add(lifetime));
    let (session, proof) = (token.session, token.proof());
    let command = Command::LogIn {
        user,
        session,
        proof,
        expires,
        at,
    };
    match node.command(command).await {
        // A node that cannot read this command can read its predecessor.
        Err(Failure::Log(LogError::OlderNodes)) => {
            let command = Command::OpenSession {
                user,
                session,
                proof,
                expires,
            };
            node.command(command).await?
        }
        opened => opened?,
    };
    Ok(LoggedIn {
        user,
        token: token.reveal(),
        expires,
    })
}

/// Checks that a text can be a password.
pub(super) fn check_new(password: &str) -> Result<(), Problem> {
    if password.chars().count() >= SHORTEST_PASSWORD && password.len() <= LONGEST_PASSWORD {
        return Ok(());
    }
    let message = format!(
        "a password has at least {SHORTEST_PASSWORD} characters and at most {LONGEST_PASSWORD} bytes"
    );
    Err(Problem::invalid("password", message))
}

/// Logs out: the token becomes invalid, and its sockets are closed.
#[utoipa::path(
    delete,
    path = "/sessions",
    security(("token" = [])),
    responses(
        (status = 204, description = "Logged out"),
        (status = 401, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn log_out(
    State(node): State<Node>,
    who: Authenticated,
) -> Result<StatusCode, Problem> {
    let command = Command::CloseSession {
        user: who.user,
        session: who.session,
    };
    node.inner.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the sessions of the caller.
#[utoipa::path(
    get,
    path = "/sessions",
    security(("token" = [])),
    responses(
        (status = 200, description = "All active sessions; a user has at most 100", body = SessionList),
        (status = 401, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn list(
    State(node): State<Node>,
    who: Authenticated,
) -> Result<Response, Problem> {
    let node = &node.inner;
    let current = node.catch_up_if_possible().await?;
    let found = node.index.sessions(who.user).await.map_err(Failure::from)?;
    let now = Millis::now();
    let mut sessions: Vec<SessionView> = found
        .into_iter()
        .filter(|(_, session)| session.expires > now)
        .map(|(id, session)| SessionView {
            id: id.to_string(),
            opened: session.opened,
            expires: session.expires,
            current: id == who.session,
        })
        .collect();
    sessions.sort_unstable_by_key(|session| std::cmp::Reverse(session.expires));
    Ok(mark(Json(SessionList { sessions }), current))
}

/// Revokes a session of the caller.
#[utoipa::path(
    delete,
    path = "/sessions/{session}",
    params(("session" = String, Path, description = "The session's id in GET /sessions")),
    security(("token" = [])),
    responses(
        (status = 204, description = "The session has ended"),
        (status = 401, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn close(
    State(node): State<Node>,
    who: Authenticated,
    session: Result<Path<String>, axum::extract::rejection::PathRejection>,
) -> Result<StatusCode, Problem> {
    let node = &node.inner;
    let unknown = || {
        let message = "you have no session with this id; GET /sessions lists your sessions";
        Problem::new(StatusCode::NOT_FOUND, "unknown_session", message)
    };
    let id = session.ok().and_then(|Path(id)| SessionId::parse(&id));
    let id = id.ok_or_else(unknown)?;
    node.caught_up().await?;
    let found = node.index.session(id).await.map_err(Failure::from)?;
    if found.is_none_or(|found| found.user != who.user) {
        return Err(unknown());
    }
    let command = Command::CloseSession {
        user: who.user,
        session: id,
    };
    node.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Revokes all sessions of the caller except the session that makes the request.
#[utoipa::path(
    delete,
    path = "/sessions/others",
    security(("token" = [])),
    responses(
        (status = 204, description = "The sessions have ended"),
        (status = 401, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn close_others(
    State(node): State<Node>,
    who: Authenticated,
) -> Result<StatusCode, Problem> {
    let command = Command::CloseOtherSessions {
        user: who.user,
        kept: Some(who.session),
    };
    node.inner.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A password that confirms the caller's identity.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Password {
    /// The current password.
    #[schema(min_length = 1, max_length = 1024)]
    password: String,
}

/// Deletes the caller's account: name, password, sessions and memberships. The name can be used again, but not the
/// number. Posted messages stay.
#[utoipa::path(
    delete,
    path = "/users/me",
    request_body = Password,
    security(("token" = [])),
    responses(
        (status = 204, description = "Deleted"),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn delete_account(
    State(node): State<Node>,
    who: Authenticated,
    StrictJson(Password { password }): StrictJson<Password>,
) -> Result<StatusCode, Problem> {
    let node = &node.inner;
    let before = proved(node, &who, password, "password").await?;
    let user = who.user;
    node.command(Command::DeleteUser { user, before }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the hash of the caller's password, if the given password is correct; `field` is its name in the request.
async fn proved(
    node: &Inner,
    who: &Bearer,
    password: String,
    field: &str,
) -> Result<String, Problem> {
    account(node, &who.name)?;
    node.caught_up().await?;
    let user = node.index.user(who.user).await.map_err(Failure::from)?;
    let hash = user.ok_or(Refusal::UnknownUser(who.user))?.password;
    if node.passwords.check(password, Some(hash.clone())).await? {
        return Ok(hash);
    }
    let message = format!("this is not your password; give the current one as `{field}`");
    let status = StatusCode::FORBIDDEN;
    Err(Problem::new(status, "wrong_password", message))
}

/// Changes the caller's password, and revokes all other sessions.
#[utoipa::path(
    put,
    path = "/users/me/password",
    request_body = NewPassword,
    security(("token" = [])),
    responses(
        (status = 204, description = "Changed"),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn change_password(
    State(node): State<Node>,
    who: Authenticated,
    StrictJson(NewPassword { old, new }): StrictJson<NewPassword>,
) -> Result<StatusCode, Problem> {
    let node = &node.inner;
    check_new(&new)?;
    let before = proved(node, &who, old, "old").await?;
    let command = Command::ChangePassword {
        user: who.user,
        password: node.passwords.hash(new).await?,
        before,
        kept: who.session,
    };
    node.command(command).await?;
    Ok(StatusCode::NO_CONTENT)
}
