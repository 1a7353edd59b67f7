//! Errors for clients: a status, a code for programs, and a sentence with the remedy.

use crate::command::Refusal;
use crate::inner::Failure;
use crate::log::LogError;
use crate::password::PasswordError;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    message: String,
    retry_after: Option<Duration>,
}

/// The body of an answer that is an error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

/// The error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorDetail {
    /// A stable code for programs.
    code: String,
    /// A sentence for people: the fault and its remedy.
    message: String,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            status,
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Creates the answer to a request beyond a rate limit, which should be retried later.
    pub fn too_many(code: &'static str, message: impl Into<String>, wait: Duration) -> Problem {
        Problem {
            retry_after: Some(wait),
            ..Problem::new(StatusCode::TOO_MANY_REQUESTS, code, message)
        }
    }

    /// Creates the answer of a node that is temporarily unable to serve a request.
    pub fn busy(code: &'static str, message: impl Into<String>, wait: Duration) -> Problem {
        Problem {
            retry_after: Some(wait),
            ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, message)
        }
    }

    /// Creates the answer to a request with a value that exceeds a size limit.
    pub fn too_large(code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, code, message)
    }

    /// Creates the answer to a request with invalid values.
    pub fn invalid(code: &'static str, message: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, message)
    }

    pub fn no_route() -> Problem {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no_route",
            "this path does not exist; GET /openapi.json lists the paths",
        )
    }

    pub fn no_method() -> Problem {
        Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "no_method",
            "this path does not support this method; GET /openapi.json lists the methods",
        )
    }

    pub fn unauthorized(message: &'static str) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Problem {
            status,
            code,
            message,
            retry_after,
        } = self;
        let error = ErrorDetail {
            code: code.to_owned(),
            message,
        };
        let mut response = (status, Json(ErrorBody { error })).into_response();
        let headers = response.headers_mut();
        if let Some(wait) = retry_after {
            let seconds = wait.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let (status, code) = match refusal {
            Refusal::NameTaken(_) => (StatusCode::CONFLICT, "name_taken"),
            Refusal::NameLooksTaken(_) => (StatusCode::CONFLICT, "name_looks_taken"),
            Refusal::UnknownUser(_) => (StatusCode::UNPROCESSABLE_ENTITY, "unknown_user"),
            Refusal::UnknownConversation(_) => (StatusCode::NOT_FOUND, "unknown_conversation"),
            Refusal::UnknownMember(_) => (StatusCode::NOT_FOUND, "unknown_member"),
            Refusal::Pair => (StatusCode::CONFLICT, "pair"),
            Refusal::NotCreator => (StatusCode::FORBIDDEN, "not_creator"),
            Refusal::TooManyMembers(_) => (StatusCode::PAYLOAD_TOO_LARGE, "recipients"),
            Refusal::PasswordChanged => (StatusCode::CONFLICT, "password_changed"),
            Refusal::KeyReused => (StatusCode::UNPROCESSABLE_ENTITY, "key_reused"),
        };
        Problem::new(status, code, refusal.to_string())
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let code = match failure {
            Failure::Refused(refusal) => return refusal.into(),
            Failure::Log(LogError::Busy(_)) => "busy",
            Failure::Log(LogError::Closed) => "closing",
            Failure::Log(LogError::Full(_)) => "disk_full",
            Failure::Log(LogError::OlderNodes) => "older_nodes",
            Failure::Log(LogError::Stopped(_)) => "stopped",
            Failure::Log(LogError::Failed(_)) => "log_failed",
            Failure::Log(LogError::Unreachable(_)) => "log_unreachable",
            Failure::Index(_) => "index_failed",
            Failure::Late(_) => "late",
        };
        Problem::busy(code, failure.to_string(), Duration::from_secs(1))
    }
}

impl From<PasswordError> for Problem {
    fn from(error: PasswordError) -> Problem {
        if let PasswordError::Busy = error {
            return Problem::busy("busy", error.to_string(), Duration::from_secs(1));
        }
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "password_failed",
            error.to_string(),
        )
    }
}
