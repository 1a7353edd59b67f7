//! Answers to refused requests.

use crate::engine::TaskError;
use axum::Json;
use axum::http::HeaderValue;
use axum::http::StatusCode;
use axum::http::header::{CONNECTION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// A refusal: a status, and a JSON object with `code`, `message` and possibly more. `error` repeats the message,
/// because InfluxDB clients look for it there.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    body: Value,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Refusal {
        let message: String = message.into();
        Refusal {
            status,
            body: json!({ "code": code, "message": message, "error": message }),
        }
    }

    /// Adds an entry to the object.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Refusal {
        self.body[key] = value.into();
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body)).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, 1.into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            // With this header a browser asks for the token.
            let basic = HeaderValue::from_static("Basic realm=\"corsair-stream\"");
            headers.append(WWW_AUTHENTICATE, basic);
        }
        // These answers may be sent before the body has been read, and the connection cannot be reused then.
        let unread = [
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        if unread.contains(&self.status) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

impl From<TaskError> for Refusal {
    fn from(error: TaskError) -> Refusal {
        let message = error.to_string();
        match error {
            TaskError::Language(error) => Refusal::new(StatusCode::BAD_REQUEST, "text", message)
                .with("line", error.line())
                .with("column", error.column()),
            TaskError::Tls { .. } => Refusal::new(StatusCode::BAD_REQUEST, "tls", message),
            TaskError::Endpoint { .. } => {
                Refusal::new(StatusCode::BAD_REQUEST, "endpoint", message)
            }
            TaskError::AlertLog { .. } => Refusal::new(StatusCode::FORBIDDEN, "alert_log", message),
            TaskError::Name(_) => Refusal::new(StatusCode::BAD_REQUEST, "name", message),
            TaskError::TooMany(_) => {
                Refusal::new(StatusCode::INSUFFICIENT_STORAGE, "too_many_tasks", message)
            }
            TaskError::Duplicate(_) => Refusal::new(StatusCode::CONFLICT, "duplicate", message),
            TaskError::Unknown { .. } => {
                Refusal::new(StatusCode::NOT_FOUND, "unknown_task", message)
            }
            TaskError::Closed => {
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", message)
            }
        }
    }
}

/// Returns the refusal for an internal error of the server.
pub(super) fn internal() -> Refusal {
    Refusal::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the request failed inside the server; its log has more",
    )
}
