//! Pages of lists, which are bounded in bytes and counted until the client has read them.

use super::problem::Problem;
use crate::counts::Reservation;
use crate::inner::Inner;
use crate::limits::MOST_UNREAD;
use crate::model::UserId;
use axum::body::Bytes;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::time::Duration;

/// A header which says that the answer may lack what other nodes have written, because the log cannot be reached.
const BEHIND: HeaderName = HeaderName::from_static("courier-behind");

/// Returns an answer, with the header [`BEHIND`] unless it is `current`.
pub(super) fn mark(answer: impl IntoResponse, current: bool) -> Response {
    let mut answer = answer.into_response();
    if !current {
        let headers = answer.headers_mut();
        headers.insert(BEHIND, HeaderValue::from_static("true"));
    }
    answer
}

/// Reserved memory for one page.
#[derive(Debug)]
pub(crate) struct PageReservation {
    user: Reservation<UserId>,
    all: Reservation<()>,
}

impl PageReservation {
    /// Reserves memory for a page of this user, and waits if too much is in use.
    pub fn take(node: &Inner, user: UserId) -> Result<PageReservation, Problem> {
        let bytes = node.limits.page_bytes;
        let most = node.limits.unread;
        let wait = Duration::from_secs(1);
        let Some(user) = node.unread.users.take(user, bytes, most) else {
            node.metrics.refuse("unread");
            let message = format!("you have {most} bytes of unread answers; read them first");
            return Err(Problem::too_many("unread", message, wait));
        };
        let Some(all) = node.unread.all.take((), bytes, MOST_UNREAD.max(bytes)) else {
            node.metrics.refuse("all_unread");
            let message =
                "clients of this node have too many unread answers; try again in a moment";
            return Err(Problem::busy("busy", message, wait));
        };
        Ok(PageReservation { user, all })
    }

    /// Creates the answer with this page. The memory is released when the answer has been sent or the connection has
    /// ended. `current` is false if the log could not be reached.
    pub fn answer(mut self, page: &impl Serialize, current: bool) -> Result<Response, Problem> {
        let bytes = serde_json::to_vec(page).map_err(|error| {
            let message = format!("this page cannot be written: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "page", message)
        })?;
        self.user.shrink(bytes.len());
        self.all.shrink(bytes.len());
        let bytes = Bytes::from_owner(Page { bytes, _room: self });
        let json = HeaderValue::from_static("application/json");
        Ok(mark(([(header::CONTENT_TYPE, json)], bytes), current))
    }
}

struct Page {
    bytes: Vec<u8>,
    _room: PageReservation,
}

impl AsRef<[u8]> for Page {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
