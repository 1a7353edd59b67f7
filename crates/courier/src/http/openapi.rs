//! The OpenAPI document, and the one list of routes.

use super::{conversations, members, messages, service, sessions, users, websocket};
use crate::frame::{ClientFrame, ServerFrame};
use crate::limits::Limits;
use crate::node::Node;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

/// All routes. The router is built from them, and a test compares them with the document.
pub(crate) const ROUTES: &[(Method, &str)] = &[
    (Method::POST, "/users"),
    (Method::GET, "/users"),
    (Method::GET, "/users/online"),
    (Method::DELETE, "/users/me"),
    (Method::PUT, "/users/me/password"),
    (Method::POST, "/sessions"),
    (Method::GET, "/sessions"),
    (Method::DELETE, "/sessions"),
    (Method::DELETE, "/sessions/others"),
    (Method::DELETE, "/sessions/{session}"),
    (Method::POST, "/conversations"),
    (Method::GET, "/conversations"),
    (Method::GET, "/conversations/unread"),
    (Method::GET, "/conversations/{id}"),
    (Method::PUT, "/conversations/{id}/title"),
    (Method::POST, "/conversations/{id}/members"),
    (Method::DELETE, "/conversations/{id}/members/{user}"),
    (Method::POST, "/conversations/{id}/messages"),
    (Method::GET, "/conversations/{id}/messages"),
    (Method::GET, "/ws"),
    (Method::GET, "/ping"),
    (Method::GET, "/readyz"),
    (Method::GET, "/healthz"),
    (Method::GET, "/metrics"),
    (Method::GET, "/openapi.json"),
];

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Courier",
        description = "Messages between users: posted over HTTP, pushed over WebSockets, none lost.\n\nLengths are counted in bytes of UTF-8; a text of fewer characters than allowed may still be too long.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    paths(
        users::create,
        users::find,
        users::online,
        sessions::delete_account,
        sessions::change_password,
        sessions::log_in,
        sessions::list,
        sessions::log_out,
        sessions::close_others,
        sessions::close,
        conversations::create,
        conversations::list,
        conversations::unread,
        members::show,
        members::set_title,
        members::add,
        members::remove,
        messages::create,
        messages::list,
        websocket::upgrade,
        service::ping,
        service::ready,
        service::health,
        service::metrics,
        document
    ),
    components(schemas(ServerFrame, ClientFrame)),
    modifiers(&Token)
)]
struct Document;

/// The authentication scheme of tokens.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// Returns this OpenAPI document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    responses((status = 200, description = "An OpenAPI document", body = serde_json::Value, content_type = "application/json"))
)]
pub(crate) async fn document(State(node): State<Node>) -> impl IntoResponse {
    let json = [(CONTENT_TYPE, "application/json")];
    let inner = &node.inner;
    let document = inner.document.get_or_init(|| self::json(&inner.limits));
    (json, document.clone())
}

/// Returns the document of a node with these limits, as JSON. It is created once for each node.
fn json(limits: &Limits) -> Bytes {
    let mut document =
        serde_json::to_value(Document::openapi()).expect("names and numbers are JSON");
    name_operations(&mut document);
    describe_answers(&mut document);
    describe_numbers(&mut document);
    let lengths = [
        ("/NewMessage/properties/text/maxLength", limits.text),
        (
            "/NewConversation/properties/recipients/maxItems",
            limits.recipients,
        ),
        ("/NewMembers/properties/users/maxItems", limits.recipients),
    ];
    for (place, most) in lengths {
        let place = format!("/components/schemas{place}");
        *document.pointer_mut(&place).expect("it is described") = json!(most);
    }
    for path in MAY_BE_BEHIND {
        let operation = document["paths"].get_mut(path).expect("it is a route");
        operation["get"]["responses"]["200"]["headers"]["courier-behind"] = header(
            "`true` if the node has lost the other nodes, and may lack their latest writes",
            "boolean",
        );
    }
    document["paths"]["/ws"]["get"]["x-websocket"] = json!({
        "to-client": { "$ref": "#/components/schemas/ServerFrame" },
        "from-client": { "$ref": "#/components/schemas/ClientFrame" },
    });
    document.to_string().into()
}

/// Names every operation by its method and path, as `get_conversations_id_messages`.
fn name_operations(document: &mut Value) {
    for (path, operations) in document["paths"].as_object_mut().into_iter().flatten() {
        for (method, operation) in operations.as_object_mut().into_iter().flatten() {
            let words = path.split(|c: char| !c.is_ascii_alphanumeric());
            let words = words.filter(|word| !word.is_empty());
            let name = words.fold(method.clone(), |name, word| name + "_" + word);
            operation["operationId"] = json!(name);
        }
    }
}

/// The lists that a node serves from its own state while it has lost the other nodes.
const MAY_BE_BEHIND: [&str; 6] = [
    "/conversations",
    "/conversations/unread",
    "/conversations/{id}",
    "/conversations/{id}/messages",
    "/sessions",
    "/users",
];

/// Returns the description of a header.
fn header(description: &str, kind: &str) -> Value {
    json!({ "description": description, "schema": { "type": kind } })
}

/// Adds a description to every answer without one, and the headers of answers that should be retried.
fn describe_answers(document: &mut Value) {
    let operations = document["paths"].as_object_mut().into_iter().flatten();
    let operations = operations.filter_map(|(_, path)| path.as_object_mut());
    let answers = operations.flatten().filter_map(|(_, operation)| {
        let answers = operation.get_mut("responses")?;
        answers.as_object_mut()
    });
    let answers = answers.flat_map(|answers| {
        // The HTTP layer may give this answer to any request.
        answers.insert("431".to_owned(), json!({}));
        answers
    });
    for (status, answer) in answers {
        if answer["description"]
            .as_str()
            .unwrap_or_default()
            .is_empty()
        {
            answer["description"] = json!(occasion(status));
        }
        match status.as_str() {
            "429" | "503" => {
                answer["headers"]["Retry-After"] = header("Seconds to wait", "integer");
            }
            "401" => {
                answer["headers"]["WWW-Authenticate"] = header("Always `Bearer`", "string");
            }
            _ => {}
        }
    }
}

/// Returns the description of an answer with this status.
fn occasion(status: &str) -> &'static str {
    match status {
        "200" => "Success",
        "201" => "Created and durable",
        "204" => "Success, without a body",
        "400" => "The request is not valid HTTP or JSON",
        "401" => "The token is missing, expired or revoked",
        "403" => "The operation or the origin is not allowed",
        "404" => "The object does not exist, or the caller has no access to it",
        "408" => "The body did not arrive in time",
        "409" => "Already taken, or changed in the meantime",
        "413" => "A value or the body exceeds its maximum size",
        "415" => "The body is not JSON",
        "422" => "A value is invalid; the message names it",
        "426" => "This route accepts only WebSockets",
        "429" => "A rate limit is exceeded; wait for `Retry-After` and try again",
        "431" => "The head of the request is too long",
        "503" => {
            "The node is temporarily unable to serve the request; wait for `Retry-After`, or use another node"
        }
        _ => "",
    }
}

/// Names the formats of numbers, and sets the maximum of 64-bit numbers.
fn describe_numbers(value: &mut Value) {
    let format = value.get("format").and_then(Value::as_str);
    if let Some(bits) = format.and_then(|format| format.strip_prefix("u-int")) {
        let format = format!("uint{bits}");
        if bits == "64" {
            value["maximum"] = json!(u64::MAX);
        }
        value["format"] = json!(format);
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(describe_numbers),
        Value::Array(items) => items.iter_mut().for_each(describe_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn read(limits: &Limits) -> Value {
        serde_json::from_slice(&json(limits)).unwrap()
    }

    fn operations(document: &Value) -> impl Iterator<Item = (String, &Value)> {
        let paths = document["paths"].as_object().unwrap();
        paths.iter().flat_map(|(path, operations)| {
            let operations = operations.as_object().unwrap().iter();
            operations.map(move |(method, operation)| {
                (format!("{} {path}", method.to_uppercase()), operation)
            })
        })
    }

    #[test]
    fn the_document_has_the_routes_and_no_others() {
        let document = read(&Limits::default());
        let described: BTreeSet<_> = operations(&document).map(|(name, _)| name).collect();
        let routed: BTreeSet<_> = ROUTES
            .iter()
            .map(|(method, path)| format!("{method} {path}"))
            .collect();
        assert_eq!(described, routed);
    }

    #[test]
    fn whatever_the_document_refers_to_is_in_it() {
        let document = read(&Limits::default());
        let text = document.to_string();
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

    #[test]
    fn every_operation_and_every_answer_says_what_it_is() {
        let document = read(&Limits::default());
        let mut names = BTreeSet::new();
        for (name, operation) in operations(&document) {
            assert!(names.insert(operation["operationId"].as_str()), "{name}");
            assert!(
                operation["summary"]
                    .as_str()
                    .is_some_and(|said| !said.is_empty()),
                "{name}"
            );
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let said = answer["description"].as_str();
                assert!(said.is_some_and(|said| !said.is_empty()), "{name} {status}");
            }
        }
    }

    #[test]
    fn lists_that_may_be_behind_name_the_header_for_it() {
        let document = read(&Limits::default());
        let text = document["paths"].to_string();
        assert_eq!(text.matches("\"courier-behind\"").count(), 6);
    }

    #[test]
    fn what_is_bounded_says_so_and_follows_the_flags() {
        let limits = Limits {
            text: 77,
            recipients: 33,
            ..Limits::default()
        };
        let document = read(&limits);
        let schemas = &document["components"]["schemas"];
        assert_eq!(schemas["NewMessage"]["properties"]["text"]["maxLength"], 77);
        let recipients = &schemas["NewConversation"]["properties"]["recipients"];
        assert_eq!(recipients["maxItems"], 33);
        let id = &schemas["UserId"];
        assert_eq!(
            (&id["format"], &id["maximum"]),
            (&json!("uint64"), &json!(u64::MAX))
        );
        let text = document.to_string();
        assert!(!text.contains("\"int64\""), "all numbers are unsigned");
    }

    #[test]
    fn frames_are_described_by_the_types_that_write_and_read_them() {
        let document = read(&Limits::default());
        let schemas = document["components"]["schemas"].to_string();
        for kind in [
            "message:new",
            "users:online",
            "users:connect",
            "users:disconnect",
            "conversation:changed",
            "error",
            "ack",
        ] {
            assert!(schemas.contains(&format!("\"{kind}\"")), "{kind}");
        }
    }
}
