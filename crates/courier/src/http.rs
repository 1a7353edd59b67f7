//! The HTTP interface: routes, requests and answers.

mod chat;
mod client_address;
mod cluster;
mod conversations;
mod cross_origin;
mod deadline;
mod fanout;
mod members;
mod messages;
mod openapi;
mod origin;
mod page;
mod problem;
mod read;
mod recovery;
mod serve;
mod service;
mod sessions;
mod unread_body;
mod users;
mod websocket;

use openapi::ROUTES;
pub use serve::{ServeOptions, Serving, serve, serve_with};

use crate::node::Node;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Router, http::Method};
use problem::Problem;

impl Node {
    /// Returns the routes of the service.
    pub fn router(&self) -> Router {
        let mut router = Router::new();
        for (method, path) in ROUTES {
            router = router.route(path, handler(method, path));
        }
        router = router
            .merge(chat::routes())
            .merge(cluster::routes())
            .fallback(|| async { Problem::no_route() })
            .method_not_allowed_fallback(|| async { Problem::no_method() });
        // Each layer costs every request half a dozen allocations.
        let origins = &self.inner.origins;
        if !origins.is_empty() {
            router = router.layer(from_fn_with_state(origins.clone(), cross_origin::answer));
        }
        router.with_state(self.clone())
    }
}

/// Returns the handler of a route.
///
/// # Panics
/// If a listed route has no handler. Any test that builds the router finds this.
fn handler(method: &Method, path: &str) -> MethodRouter<Node> {
    match (method.as_str(), path) {
        ("POST", "/users") => post(users::create),
        ("GET", "/users") => get(users::find),
        ("GET", "/users/online") => get(users::online),
        ("DELETE", "/users/me") => delete(sessions::delete_account),
        ("PUT", "/users/me/password") => put(sessions::change_password),
        ("POST", "/sessions") => post(sessions::log_in),
        ("GET", "/sessions") => get(sessions::list),
        ("DELETE", "/sessions") => delete(sessions::log_out),
        ("DELETE", "/sessions/others") => delete(sessions::close_others),
        ("DELETE", "/sessions/{session}") => delete(sessions::close),
        ("POST", "/conversations") => post(conversations::create),
        ("GET", "/conversations") => get(conversations::list),
        ("GET", "/conversations/unread") => get(conversations::unread),
        ("GET", "/conversations/{id}") => get(members::show),
        ("PUT", "/conversations/{id}/title") => put(members::set_title),
        ("POST", "/conversations/{id}/members") => post(members::add),
        ("DELETE", "/conversations/{id}/members/{user}") => delete(members::remove),
        ("POST", "/conversations/{id}/messages") => post(messages::create),
        ("GET", "/conversations/{id}/messages") => get(messages::list),
        ("GET", "/ws") => get(websocket::upgrade),
        ("GET", "/ping") => get(service::ping),
        ("GET", "/readyz") => get(service::ready),
        ("GET", "/healthz") => get(service::health),
        ("GET", "/metrics") => get(service::metrics),
        ("GET", "/openapi.json") => get(openapi::document),
        _ => unreachable!("{method} {path} is listed and has no handler"),
    }
}
