//! Conversations whose members and titles change.

use crate::node::{call, http, in_memory, message, quiet, said, users};
use corsair_courier_load::client::{Login, ServerMessage};
use hyper::Method;
use serde_json::{Value, json};

// Guarantee: courier-18.
#[tokio::test]
async fn who_is_added_reads_on_and_back_and_who_leaves_does_not() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let [anne, mary, jack] = [&people[0], &people[1], &people[2]];
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    http.post(&anne.token, room, "before", None).await.unwrap();
    let path = format!("/conversations/{room}");
    let members = format!("{path}/members");
    let get = |who| (who, Method::GET);
    let (who, method) = get(jack);
    let (status, _) = call(&mut http, who, method, &path, Value::Null).await;
    assert_eq!(status, 404);
    let mut socket = quiet(&node, jack, "").await;
    let add = json!({ "users": [jack.user] });
    let (status, _) = call(&mut http, mary, Method::POST, &members, add.clone()).await;
    assert_eq!(status, 204);
    let changed = ServerMessage::Changed { conversation: room };
    assert_eq!(said(&mut socket).await, changed);
    let (_, view) = call(&mut http, jack, Method::GET, &path, Value::Null).await;
    assert_eq!(view["members"], json!([anne.user, mary.user, jack.user]));
    let page = http.history(&jack.token, room, 0).await.unwrap();
    assert_eq!(page[0].text, "before");
    http.post(&anne.token, room, "after", None).await.unwrap();
    let (sequence, first) = message(&mut socket).await;
    assert_eq!((sequence, first.text.as_str()), (1, "after"));
    let title = format!("{path}/title");
    let new = json!({ "title": "the bay" });
    let (status, _) = call(&mut http, jack, Method::PUT, &title, new).await;
    assert_eq!(status, 204);
    assert_eq!(said(&mut socket).await, changed);
    let (_, view) = call(&mut http, mary, Method::GET, &path, Value::Null).await;
    assert_eq!(view["title"], "the bay");
    let (status, _) = call(
        &mut http,
        mary,
        Method::PUT,
        &title,
        json!({ "title": null }),
    )
    .await;
    assert_eq!(status, 204);
    assert_eq!(said(&mut socket).await, changed);
    let (_, view) = call(&mut http, mary, Method::GET, &path, Value::Null).await;
    assert_eq!(view["title"], Value::Null);
    let of = |who: &Login| format!("{members}/{}", who.user);
    let (status, refused) = call(&mut http, mary, Method::DELETE, &of(anne), Value::Null).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (403, &json!("not_creator"))
    );
    let (status, _) = call(&mut http, anne, Method::DELETE, &of(jack), Value::Null).await;
    assert_eq!(status, 204);
    assert_eq!(said(&mut socket).await, changed);
    let refused = http.post(&jack.token, room, "still here?", None).await;
    assert_eq!(refused.unwrap_err().status(), Some(404));
    let (status, _) = call(&mut http, mary, Method::DELETE, &of(mary), Value::Null).await;
    assert_eq!(status, 204);
    let (_, list) = call(&mut http, mary, Method::GET, "/conversations", Value::Null).await;
    assert_eq!(list["conversations"], json!([]));
    // A single member receives its own messages.
    http.post(&anne.token, room, "anybody?", None)
        .await
        .unwrap();
    node.stop().await;
}

#[tokio::test]
async fn members_that_cannot_be_are_refused_by_name() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 3).await;
    let anne = &people[0];
    let pair = json!({ "recipients": [people[1].user], "pair": true });
    let (_, made) = call(&mut http, anne, Method::POST, "/conversations", pair).await;
    let pair = format!("/conversations/{}/members", made["id"]);
    let room = http.converse(&anne.token, &[people[1].user]).await.unwrap();
    let room = format!("/conversations/{room}");
    let members = format!("{room}/members");
    let (post, delete, put) = (Method::POST, Method::DELETE, Method::PUT);
    let title = format!("{room}/title");
    for (method, path, body, status, code) in [
        (&post, pair.clone(), json!({ "users": [3] }), 409, "pair"),
        (&delete, format!("{pair}/1"), Value::Null, 409, "pair"),
        (
            &post,
            members.clone(),
            json!({ "users": [] }),
            422,
            "no_recipients",
        ),
        (
            &post,
            members.clone(),
            json!({ "users": [99] }),
            422,
            "unknown_user",
        ),
        (&post, members.clone(), json!({}), 422, "unexpected_json"),
        (
            &delete,
            format!("{members}/3"),
            Value::Null,
            404,
            "unknown_member",
        ),
        (
            &delete,
            format!("{members}/x"),
            Value::Null,
            404,
            "unknown_member",
        ),
        (&put, title.clone(), json!({ "title": "" }), 422, "title"),
        (&put, title, json!({ "title": "a\nb" }), 422, "title"),
        (
            &put,
            "/conversations/9/title".to_owned(),
            json!({ "title": "x" }),
            404,
            "unknown_conversation",
        ),
    ] {
        let (found, said) = call(&mut http, anne, method.clone(), &path, body).await;
        assert_eq!(
            (found, &said["error"]["code"]),
            (status, &json!(code)),
            "{path} {said}"
        );
    }
    node.stop().await;
}
