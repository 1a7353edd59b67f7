//! Users and their sessions.

use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, Stranger, StrictJson, StrictQuery, account};
use crate::command::{Command, Done};
use crate::frame::UserInfo;
use crate::limits::{LONGEST_PASSWORD, SHORTEST_PASSWORD};
use crate::model::{Millis, UserId};
use crate::names;
use crate::node::{Inner, Node};
use crate::token::Token;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A name and a password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Credentials {
    /// 1 to 64 bytes in NFC, without spaces at its ends, without control characters and invisible ones.
    name: String,
    /// 8 to 1024 bytes.
    password: String,
}

/// A user who is logged in.
#[derive(Serialize, ToSchema)]
pub(crate) struct LoggedIn {
    /// The user's number.
    user: UserId,
    /// To be sent in the header `Authorization: Bearer TOKEN`.
    token: String,
    /// When the token ends to be valid, in milliseconds since 1970.
    expires: Millis,
}

/// Where a list goes on.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// Begin after this number.
    #[serde(default)]
    #[param(default = 0)]
    pub after: u64,
    /// At most this many; the node gives fewer if this is more than it allows.
    pub limit: Option<usize>,
}

/// Who is online.
#[derive(Serialize, ToSchema)]
pub(crate) struct OnlineUsers {
    /// How many there are.
    total: usize,
    /// Some of them, by number.
    users: Vec<UserInfo>,
    /// Whether there are more after these.
    more: bool,
}

/// Creates a user, and logs in.
#[utoipa::path(
    post,
    path = "/users",
    request_body = Credentials,
    responses(
        (status = 201, body = LoggedIn),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(node): State<Node>,
    _: Stranger,
    StrictJson(credentials): StrictJson<Credentials>,
) -> Result<(StatusCode, Json<LoggedIn>), Problem> {
    let node = &node.inner;
    let Credentials { name, password } = credentials;
    let name = names::check(&name).map_err(|message| Problem::invalid("name", message))?;
    if !(SHORTEST_PASSWORD..=LONGEST_PASSWORD).contains(&password.len()) {
        let message = format!("a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} bytes");
        return Err(Problem::invalid("password", message));
    }
    let password = node.passwords.hash(password).await?;
    let at = Millis::now();
    let command = Command::CreateUser { name, password, at };
    let Done::User(user) = node.command(command).await? else {
        unreachable!("a new user has a number");
    };
    Ok((StatusCode::CREATED, Json(open_session(node, user).await?)))
}

/// Logs in.
#[utoipa::path(
    post,
    path = "/sessions",
    request_body = Credentials,
    responses(
        (status = 201, body = LoggedIn),
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
    let (user, hash) = match found.map_err(crate::node::Failure::from)? {
        Some((id, user)) => (Some(id), Some(user.password)),
        None => (None, None),
    };
    let right = node.passwords.check(password, hash).await?;
    match user {
        Some(user) if right => Ok((StatusCode::CREATED, Json(open_session(node, user).await?))),
        _ => Err(Problem::unauthorized(
            "there is no user with this name and this password; POST /users makes a new one",
        )),
    }
}

async fn open_session(node: &Inner, user: UserId) -> Result<LoggedIn, Problem> {
    let token = Token::random().map_err(|error| {
        let message = format!("the system has no random numbers: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "no_random", message)
    })?;
    let lifetime = node.limits.session.as_millis() as u64;
    let expires = Millis(Millis::now().0.saturating_add(lifetime));
    let command = Command::OpenSession {
        user,
        session: token.session,
        proof: token.proof(),
        expires,
    };
    node.command(command).await?;
    Ok(LoggedIn {
        user,
        token: token.reveal(),
        expires,
    })
}

/// Logs out: the token is not valid any more, and its sockets are closed.
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

/// Who has a socket, on any node.
#[utoipa::path(
    get,
    path = "/users/online",
    params(After),
    security(("token" = [])),
    responses(
        (status = 200, body = OnlineUsers),
        (status = 401, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn online(
    State(node): State<Node>,
    _: Authenticated,
    StrictQuery(after): StrictQuery<After>,
) -> Json<OnlineUsers> {
    let limit = after.limit(&node.inner);
    let (total, users, more) = node.inner.presence.page(UserId(after.after), limit);
    Json(OnlineUsers { total, users, more })
}

impl After {
    /// How many to give.
    pub fn limit(&self, node: &Inner) -> usize {
        let most = node.limits.page;
        self.limit.unwrap_or(most).clamp(1, most)
    }
}
