//! `GET /`: the graphs of all tasks with their counters, on a page that reloads itself.
//!
//! The page has no script, and its content policy forbids scripts.

use super::refusal::Refusal;
use super::{Server, answer};
use crate::engine::{TaskState, TaskStatus, escaped};
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use std::fmt::Write;

/// Maximum number of tasks on one page.
const TASKS: usize = 50;

const PAGE_POLICY: &str = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; \
                           base-uri 'none'; form-action 'none'";
/// The policy of a picture that is opened separately.
const PICTURE_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

#[derive(serde::Deserialize)]
pub(super) struct PageQuery {
    /// The name of the first task on the page.
    from: Option<String>,
}

pub(super) async fn page(
    State(server): State<Server>,
    asked: Result<Query<PageQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(PageQuery { from }) =
        asked.map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "query", error.body_text()))?;
    let engine = server.engine.clone();
    let make = move || {
        let from = from.unwrap_or_default();
        let tasks = engine.statuses_from(&from, TASKS + 1);
        html(&tasks, !from.is_empty()).into_bytes()
    };
    let page = answer::long(&server, "text/html; charset=utf-8", make).await?;
    Ok(guarded(page, PAGE_POLICY))
}

pub(super) async fn style() -> impl IntoResponse {
    let style = include_str!("page.css").to_owned() + &corsair::picture::style();
    ([(CONTENT_TYPE, "text/css")], style)
}

/// Answers with the graph of a task.
pub(super) async fn picture(server: &Server, status: TaskStatus) -> Result<Response, Refusal> {
    let make = move || status.svg().into_bytes();
    let picture = answer::long(server, "image/svg+xml", make).await?;
    Ok(guarded(picture, PICTURE_POLICY))
}

/// Adds the security headers of an answer.
fn guarded(mut answer: Response, policy: &'static str) -> Response {
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn html(tasks: &[TaskStatus], has_earlier: bool) -> String {
    let mut html = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"refresh\" content=\"2\">\n<title>corsair-stream</title>\n\
         <link rel=\"stylesheet\" href=\"/style.css\">\n</head>\n<body>\n<h1>Tasks</h1>\n",
    );
    if tasks.is_empty() {
        html.push_str("<p>There are none. <code>POST /tasks</code> adds one.</p>\n");
    }
    if has_earlier {
        html.push_str("<p><a href=\"/\">the first tasks</a></p>\n");
    }
    for task in tasks.iter().take(TASKS) {
        let name = escaped(&task.name);
        let (state, reason) = (task.state.word(), reason(&task.state));
        let _ = writeln!(
            html,
            "<section>\n<h2><a href=\"/tasks/{name}\">{name}</a> <span class=\"{state}\">{state}</span></h2>\n{reason}\
             <pre>{}</pre>\n<figure>{}</figure>\n</section>",
            escaped(&task.text),
            task.svg()
        );
    }
    if let Some(next) = tasks.get(TASKS) {
        let name = escaped(&next.name);
        let _ = writeln!(
            html,
            "<p><a href=\"/?from={name}\">more, from {name} on</a></p>"
        );
    }
    html.push_str("</body>\n</html>\n");
    html
}

fn reason(state: &TaskState) -> String {
    match state {
        TaskState::Failed { node, reason } => {
            format!("<p>{}: {}</p>\n", escaped(node), escaped(reason))
        }
        TaskState::Running | TaskState::Ended => String::new(),
    }
}
