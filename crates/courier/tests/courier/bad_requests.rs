//! Invalid requests: each is answered with a status, a code and a sentence, and the node continues.

use crate::node::{http, in_memory, users};
use corsair_courier_load::client::Http;
use hyper::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends a body as JSON, and returns the status and body of the answer.
async fn posted(http: &mut Http, path: &str, token: &str, body: &[u8]) -> (u16, String) {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let answer = http.send(Method::POST, path, &headers, body.to_vec()).await;
    let (status, body) = answer.unwrap();
    (status.as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

/// Returns the code in the body of an error.
fn code(body: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    assert!(
        value["error"]["message"].as_str().unwrap().len() > 10,
        "{body}"
    );
    value["error"]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn json_that_is_not_what_is_expected_is_refused_by_name() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let (token, to) = (&people[0].token, people[1].user);
    let room = http.converse(token, &[to]).await.unwrap();
    let messages = format!("/conversations/{room}/messages");
    let deep = "[".repeat(100_000);
    for (path, body, status, expected) in [
        (messages.as_str(), &b"{"[..], 400, "malformed_json"),
        (&messages, b"", 400, "malformed_json"),
        (&messages, b"{\"text\":\"\xff\xfe\"}", 400, "malformed_json"),
        (&messages, br#"{"text":"\ud800"}"#, 400, "malformed_json"),
        (&messages, br#"{"text":"a"} {}"#, 400, "malformed_json"),
        (&messages, br#"{"text":"a","to":1}"#, 422, "unexpected_json"),
        (&messages, br#"{"text":1}"#, 422, "unexpected_json"),
        (&messages, br#"{"text":null}"#, 422, "unexpected_json"),
        (
            &messages,
            br#"{"text":"a","text":"b"}"#,
            422,
            "unexpected_json",
        ),
        (&messages, b"{}", 422, "unexpected_json"),
        (&messages, b"[]", 422, "unexpected_json"),
        (&messages, br#"["a"]"#, 422, "unexpected_json"),
        (&messages, b" \n [\"a\"]", 422, "unexpected_json"),
        (
            "/conversations",
            b"[[2],\"title\",false]",
            422,
            "unexpected_json",
        ),
        (
            "/users",
            br#"["bonny","long enough"]"#,
            422,
            "unexpected_json",
        ),
        (
            "/sessions",
            br#"["user0","correct horse"]"#,
            422,
            "unexpected_json",
        ),
        (&messages, br#"{"text":""}"#, 422, "text"),
        (&messages, deep.as_bytes(), 422, "unexpected_json"),
        (
            "/conversations",
            br#"{"recipients":[]}"#,
            422,
            "no_recipients",
        ),
        (
            "/conversations",
            br#"{"recipients":[-1]}"#,
            422,
            "unexpected_json",
        ),
        (
            "/conversations",
            br#"{"recipients":[0]}"#,
            422,
            "unknown_user",
        ),
        (
            "/conversations",
            br#"{"recipients":[99999]}"#,
            422,
            "unknown_user",
        ),
        (
            "/conversations",
            br#"{"recipients":"2"}"#,
            422,
            "unexpected_json",
        ),
        (
            "/users",
            br#"{"name":"","password":"long enough"}"#,
            422,
            "name",
        ),
        (
            "/users",
            br#"{"name":" a","password":"long enough"}"#,
            422,
            "name",
        ),
        (
            "/users",
            br#"{"name":"a\u0000","password":"long enough"}"#,
            422,
            "name",
        ),
        (
            "/users",
            br#"{"name":"a","password":"short"}"#,
            422,
            "password",
        ),
        (
            "/conversations/99/messages",
            br#"{"text":"a"}"#,
            404,
            "unknown_conversation",
        ),
        (
            "/conversations/x/messages",
            br#"{"text":"a"}"#,
            404,
            "unknown_conversation",
        ),
        (
            "/conversations/-1/messages",
            br#"{"text":"a"}"#,
            404,
            "unknown_conversation",
        ),
    ] {
        let (found, said) = posted(&mut http, path, token, body).await;
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
        assert_eq!(
            (found, code(&said).as_str()),
            (status, expected),
            "{path} {shown}: {said}"
        );
    }
    http.post(token, room, "still here", None).await.unwrap();
    node.stop().await;
}

#[tokio::test]
async fn one_who_is_not_part_of_a_conversation_sees_nothing_of_it() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let room = http
        .converse(&people[0].token, &[people[1].user])
        .await
        .unwrap();
    let posted = http
        .post(&people[2].token, room, "hello?", None)
        .await
        .unwrap_err();
    assert_eq!(posted.status(), Some(404));
    let read = http.history(&people[2].token, room, 0).await.unwrap_err();
    assert_eq!(read.status(), Some(404));
    assert!(
        http.history(&people[1].token, room, 0)
            .await
            .unwrap()
            .is_empty()
    );
    node.stop().await;
}

#[tokio::test]
async fn queries_paths_and_methods_that_are_not_known_are_refused_by_name() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let bearer = format!("Bearer {}", people[0].token);
    let headers = [("authorization", bearer.as_str())];
    for (method, path, status, expected) in [
        (Method::GET, "/nowhere", 404, "no_route"),
        (Method::PUT, "/users", 405, "no_method"),
        (
            Method::GET,
            "/conversations?after=x",
            422,
            "unexpected_query",
        ),
        (
            Method::GET,
            "/conversations?afer=1",
            422,
            "unexpected_query",
        ),
        (
            Method::GET,
            "/conversations?after=-1",
            422,
            "unexpected_query",
        ),
        (Method::GET, "/ws?after=1&presence=false", 400, "handshake"),
    ] {
        let (found, body) = http.send(method, path, &headers, "").await.unwrap();
        let said = String::from_utf8(body.to_vec()).unwrap();
        assert_eq!(
            (found.as_u16(), code(&said).as_str()),
            (status, expected),
            "{path}: {said}"
        );
    }
    let (status, body) = http
        .send(Method::POST, "/conversations", &headers, "{}")
        .await
        .unwrap();
    let said = String::from_utf8(body.to_vec()).unwrap();
    assert_eq!((status.as_u16(), code(&said).as_str()), (415, "not_json"));
    // The largest number is accepted.
    let most = format!("/conversations?after={}", u64::MAX);
    let (status, _) = http.send(Method::GET, &most, &headers, "").await.unwrap();
    assert_eq!(status.as_u16(), 200);
    node.stop().await;
}

#[tokio::test]
async fn what_is_no_http_is_answered_or_cut_and_the_node_goes_on() {
    let node = in_memory().await;
    for bytes in [
        &b"\x00\x01\x02\x03\r\n\r\n"[..],
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /users HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\ncontent-length: 11\r\n\r\n",
        b"POST /users HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        b"POST /users HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ncontent-type: application/json\r\n\r\nzz\r\n",
    ] {
        let mut stream = tokio::net::TcpStream::connect(node.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let refused = answer.starts_with("HTTP/1.1 4");
        assert!(refused || answer.is_empty() || read.is_err(), "{answer}");
    }
    let mut http = http(&node).await;
    users(&mut http, 1).await;
    node.stop().await;
}
