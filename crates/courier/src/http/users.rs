//! Users, and their online status.

use super::page::mark;
use super::problem::{ErrorBody, Problem};
use super::read::{Authenticated, Stranger, StrictJson, StrictQuery};
use super::sessions::{Credentials, LoggedIn, check_new, open_session};
use crate::command::{Command, CommandResult};
use crate::frame::UserInfo;
use crate::inner::{Failure, Inner};
use crate::model::{Millis, UserId};
use crate::names;
use crate::node::Node;
use crate::options::Registration;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
use utoipa::{IntoParams, ToSchema};

/// The start of a page.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct After {
    /// Returns users after this number.
    #[serde(default)]
    #[param(default = 0)]
    pub after: u64,
    /// The maximum number of users; the node may return fewer.
    pub limit: Option<usize>,
}

/// Online users.
#[derive(Serialize, ToSchema)]
pub(crate) struct OnlineUsers {
    /// The number of online users.
    total: usize,
    /// A page of the online users, in the order of their numbers.
    users: Vec<UserInfo>,
    /// True if there are more users after these.
    more: bool,
}

/// Creates a user and logs the user in.
#[utoipa::path(
    post,
    path = "/users",
    params(
        ("Registration-Token" = Option<String>, Header, description = "The secret of the node, if it requires one"),
    ),
    request_body = Credentials,
    responses(
        (status = 403, body = ErrorBody),
        (status = 201, body = LoggedIn),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 408, body = ErrorBody), (status = 413, body = ErrorBody), (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(node): State<Node>,
    _: Stranger,
    headers: HeaderMap,
    StrictJson(credentials): StrictJson<Credentials>,
) -> Result<(StatusCode, Json<LoggedIn>), Problem> {
    let node = &node.inner;
    admit(&node.registration, &headers)?;
    let Credentials { name, password } = credentials;
    let name = names::check(&name).map_err(|message| Problem::invalid("name", message))?;
    check_new(&password)?;
    let password = node.passwords.hash(password).await?;
    let at = Millis::now();
    let command = match node.reads() >= 4 {
        true => Command::RegisterUser { name, password, at },
        // Nodes of older versions can read only this command.
        false => Command::CreateUser { name, password, at },
    };
    let CommandResult::User(user) = node.command(command).await? else {
        unreachable!("a new user has a number");
    };
    Ok((StatusCode::CREATED, Json(open_session(node, user).await?)))
}

/// Checks that the caller may create an account.
fn admit(registration: &Registration, headers: &HeaderMap) -> Result<(), Problem> {
    let forbidden = |code, message| Err(Problem::new(StatusCode::FORBIDDEN, code, message));
    match registration {
        Registration::Open => Ok(()),
        Registration::Closed => forbidden(
            "registration_closed",
            "this node accepts no new users; ask its operator for an account",
        ),
        Registration::Token(secret) => {
            let shown = headers.get("registration-token");
            let shown = shown.map_or(&b""[..], |value| value.as_bytes());
            match bool::from(shown.ct_eq(secret.as_bytes())) {
                true => Ok(()),
                false => forbidden(
                    "registration_token",
                    "a new user needs the header Registration-Token with the secret of this node; ask its operator",
                ),
            }
        }
    }
}

/// Lists the users with a socket on any node.
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
    /// Returns the number of items to return.
    pub fn limit(&self, node: &Inner) -> usize {
        limit(node, self.limit)
    }
}

/// Returns the number of items of a page, given the requested number.
pub(super) fn limit(node: &Inner, wanted: Option<usize>) -> usize {
    let most = node.limits.page;
    wanted.unwrap_or(most).clamp(1, most)
}

/// A filter of users.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UserFilter {
    /// Users whose names begin with this text.
    #[param(max_length = 192)]
    prefix: Option<String>,
    /// Returns only names after this name; requires `prefix`.
    #[param(max_length = 192)]
    after: Option<String>,
    /// Returns these users, given as comma-separated numbers; at most 100. Not together with other parameters.
    #[param(max_length = 2100)]
    ids: Option<String>,
    /// The maximum number of users; the node may return fewer.
    limit: Option<usize>,
}

/// Users that were found.
#[derive(Serialize, ToSchema)]
pub(crate) struct Users {
    /// The users by name, or in the requested order.
    users: Vec<UserInfo>,
    /// True if there are more users after this page.
    more: bool,
}

/// Finds users by the beginning of their names, or by numbers.
#[utoipa::path(
    get,
    path = "/users",
    params(UserFilter),
    security(("token" = [])),
    responses(
        (status = 200, body = Users),
        (status = 401, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, body = ErrorBody), (status = 503, body = ErrorBody),
    )
)]
pub(crate) async fn find(
    State(node): State<Node>,
    _: Authenticated,
    StrictQuery(wanted): StrictQuery<UserFilter>,
) -> Result<Response, Problem> {
    let node = &node.inner;
    let UserFilter {
        prefix,
        after,
        ids,
        limit: most,
    } = wanted;
    let current = node.catch_up_if_possible().await?;
    let (users, more) = match ids {
        Some(ids) if prefix.is_none() && after.is_none() => {
            let ids = numbers(&ids).map_err(|message| Problem::invalid("ids", message))?;
            let users = node.index.users(ids).await.map_err(Failure::from)?;
            (users, false)
        }
        Some(_) => {
            let message = "give `ids` or `prefix`, not both";
            return Err(Problem::invalid("unexpected_query", message));
        }
        None => {
            let normal = |name: Option<String>| names::normalized(&name.unwrap_or_default());
            let limit = limit(node, most);
            let page = node
                .index
                .users_named_like(normal(prefix), normal(after), limit);
            let page = page.await.map_err(Failure::from)?;
            (page.items, page.more)
        }
    };
    Ok(mark(Json(Users { users, more }), current))
}

/// Parses a list of user numbers.
fn numbers(text: &str) -> Result<Vec<UserId>, String> {
    const MOST: usize = 100;
    let all = text.split(',').take(MOST + 1);
    let read = all.map(|number| {
        let id = number.parse().map(UserId);
        id.map_err(|_| format!("'{number}' is not a user id; expected numbers, for example 1,2,3"))
    });
    let ids = read.collect::<Result<Vec<_>, _>>()?;
    match ids.len() > MOST {
        true => Err(format!(
            "more than {MOST} numbers; request the rest separately"
        )),
        false => Ok(ids),
    }
}
