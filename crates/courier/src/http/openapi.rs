//! The OpenAPI document, and the one list of routes.

use super::{conversations, messages, service, users, websocket};
use axum::Json;
use axum::http::Method;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

/// All routes. The router is made from them, and a test compares them with the document.
pub(crate) const ROUTES: &[(Method, &str)] = &[
    (Method::POST, "/users"),
    (Method::GET, "/users/online"),
    (Method::POST, "/sessions"),
    (Method::DELETE, "/sessions"),
    (Method::POST, "/conversations"),
    (Method::GET, "/conversations"),
    (Method::POST, "/conversations/{id}/messages"),
    (Method::GET, "/conversations/{id}/messages"),
    (Method::GET, "/ws"),
    (Method::GET, "/ping"),
    (Method::GET, "/metrics"),
    (Method::GET, "/openapi.json"),
];

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Courier",
        description = "Messages between users: posted over HTTP, pushed over WebSockets, none lost."
    ),
    paths(
        users::create,
        users::online,
        users::log_in,
        users::log_out,
        conversations::create,
        conversations::list,
        messages::create,
        messages::list,
        websocket::upgrade,
        service::ping,
        service::metrics,
        document
    ),
    modifiers(&Token)
)]
struct Document;

/// How to show a token.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// This document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    responses((status = 200, description = "An OpenAPI document"))
)]
pub(crate) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_the_routes_and_no_others() {
        let document = serde_json::to_value(Document::openapi()).unwrap();
        let mut described = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for method in operations.as_object().unwrap().keys() {
                described.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
        let routed: BTreeSet<_> = ROUTES
            .iter()
            .map(|(method, path)| format!("{method} {path}"))
            .collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn whatever_the_document_refers_to_is_in_it() {
        let text = serde_json::to_string(&Document::openapi()).unwrap();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let references: Vec<_> = text
            .split("\"$ref\":\"#")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(references.len() > 20, "{references:?}");
        for reference in references {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }
}
