//! The API of kapacitor's command line: what its client sends, and what it reads of the answers.

use crate::http::Service;
use crate::program::{Server, terminal};
use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

const TASKS: &str = "/kapacitor/v1/tasks";
const SCRIPT: &str =
    "stream | from().measurement('cpu') | window().period(10s).every(10s) | count('v')";

#[cfg(unix)]
#[test]
fn a_task_is_defined_enabled_changed_disabled_and_deleted() {
    let terminal = terminal();
    let mut server = Server::start(&terminal, "--data data");
    let request = |server: &Server, method: &str, path: &str, body: Value| -> (u16, Value) {
        let answer = server.send(method, path, &body.to_string());
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    };
    let new = json!({"id": "counts", "type": "stream", "dbrps": [{"db": "d", "rp": "r"}], "script": SCRIPT});
    let (status, task) = request(&server, "POST", TASKS, new.clone());
    assert_eq!(
        (status, &task["status"]),
        (200, &json!("disabled")),
        "{task}"
    );
    assert_eq!(task["dbrps"], json!([{"db": "d", "rp": "r"}]));
    assert_eq!(request(&server, "POST", TASKS, new).0, 409);
    let one = format!("{TASKS}/counts");
    // A disabled task is there after a restart, and so is an enabled one.
    for enabled in ["disabled", "enabled"] {
        let (status, task) = request(&server, "PATCH", &one, json!({ "status": enabled }));
        assert_eq!((status, &task["status"]), (200, &json!(enabled)), "{task}");
        assert_eq!(server.end("-TERM").2, Some(0));
        server = Server::start(&terminal, "--data data");
        let (status, task) = request(&server, "GET", &one, Value::Null);
        assert_eq!((status, &task["status"]), (200, &json!(enabled)), "{task}");
        assert_eq!(task["executing"], json!(enabled == "enabled"));
    }
    let changed = SCRIPT.replace("cpu", "mem");
    let (_, task) = request(
        &server,
        "PATCH",
        &one,
        json!({ "script": changed, "dbrps": [] }),
    );
    assert!(task["script"].as_str().unwrap().contains("'mem'"), "{task}");
    let (_, list) = request(
        &server,
        "GET",
        &format!("{TASKS}?pattern=c*&fields=status"),
        Value::Null,
    );
    assert_eq!(list["tasks"][0]["id"], "counts", "{list}");
    let (_, list) = request(&server, "GET", &format!("{TASKS}?pattern=x*"), Value::Null);
    assert_eq!(list, json!({ "tasks": [] }));
    assert_eq!(request(&server, "DELETE", &one, Value::Null).0, 204);
    assert_eq!(request(&server, "GET", &one, Value::Null).0, 404);
    assert_eq!(server.end("-TERM").2, Some(0));
}

#[tokio::test]
async fn definitions_that_cannot_run_here_are_refused_with_a_reason() {
    let service = Service::new();
    for (body, part) in [
        (
            json!({"id": "t", "type": "batch", "script": "batch"}),
            "no database to query",
        ),
        (
            json!({"id": "t", "type": "stream", "script": "stream | nothing()"}),
            "nothing",
        ),
        (json!({"id": "t", "type": "stream"}), "needs a `script`"),
        (
            json!({"id": "a/b", "type": "stream", "script": SCRIPT}),
            "is not a name",
        ),
        (
            json!({"id": "t", "script": SCRIPT, "template-id": "x"}),
            "templates",
        ),
        (
            json!({"id": "t", "script": SCRIPT, "vars": {"a": {}}}),
            "vars",
        ),
        (
            json!({"id": "t", "script": SCRIPT, "dbrps": [{"db": "a", "rp": ""}, {"db": "b", "rp": ""}]}),
            "once for each",
        ),
        (json!([1]), "a task in JSON"),
    ] {
        let (status, answer) = service
            .request(Method::POST, TASKS, &body.to_string())
            .await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
        // The client shows what is under `error`.
        let said = answer["error"].as_str().unwrap();
        assert!(said.contains(part), "{body}: {said}");
    }
    let (status, _) = service
        .request(Method::PATCH, &format!("{TASKS}/none"), "{}")
        .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
