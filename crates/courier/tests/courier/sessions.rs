//! Sessions of a user: listed, revoked, and closed by a change of the password.

use crate::node::{PASSWORD, call, http, in_memory, quiet};
use corsair_courier_load::client::{Http, Login};
use hyper::Method;
use serde_json::{Value, json};

async fn sessions(http: &mut Http, who: &Login) -> Vec<Value> {
    let (status, list) = call(http, who, Method::GET, "/sessions", Value::Null).await;
    assert_eq!(status, 200, "{list}");
    list["sessions"].as_array().unwrap().clone()
}

#[tokio::test]
async fn one_session_is_revoked_and_the_others_stay() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let first = http.create_user("anne", PASSWORD).await.unwrap();
    let second = http.log_in("anne", PASSWORD).await.unwrap();
    let mary = http.create_user("mary", PASSWORD).await.unwrap();
    let mut socket = quiet(&node, &second, "").await;
    let all = sessions(&mut http, &first).await;
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one["opened"].as_u64().is_some()));
    let other = all.iter().find(|one| one["current"] == false).unwrap();
    let path = format!("/sessions/{}", other["id"].as_str().unwrap());
    // The session of another user, and an id that is not valid, are refused.
    for (who, path) in [(&mary, path.as_str()), (&first, "/sessions/nonsense")] {
        let (status, _) = call(&mut http, who, Method::DELETE, path, Value::Null).await;
        assert_eq!(status, 404, "{path}");
    }
    let (status, _) = call(&mut http, &first, Method::DELETE, &path, Value::Null).await;
    assert_eq!(status, 204);
    assert_eq!(socket.next().await.unwrap(), None);
    let (status, _) = call(&mut http, &second, Method::GET, "/sessions", Value::Null).await;
    assert_eq!(status, 401);
    assert_eq!(sessions(&mut http, &first).await.len(), 1);
    node.stop().await;
}

#[tokio::test]
async fn a_new_password_revokes_all_other_sessions_and_the_old_one_is_wrong() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let first = http.create_user("anne", PASSWORD).await.unwrap();
    let second = http.log_in("anne", PASSWORD).await.unwrap();
    let change = |old: &str, new: &str| json!({ "old": old, "new": new });
    for (old, new, wanted) in [
        ("wrong horse", "battery staple", 403),
        (PASSWORD, "short", 422),
        (PASSWORD, "battery staple", 204),
        (PASSWORD, "battery staple", 403),
    ] {
        let path = "/users/me/password";
        let (status, said) = call(&mut http, &first, Method::PUT, path, change(old, new)).await;
        assert_eq!(status, wanted, "{said}");
    }
    let (status, _) = call(&mut http, &second, Method::GET, "/sessions", Value::Null).await;
    assert_eq!(status, 401);
    assert_eq!(sessions(&mut http, &first).await.len(), 1);
    let refused = http.log_in("anne", PASSWORD).await.unwrap_err();
    assert_eq!(refused.status(), Some(401));
    http.log_in("anne", "battery staple").await.unwrap();
    node.stop().await;
}
