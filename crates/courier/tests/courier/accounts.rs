//! Users, logins, tokens.

use crate::node::{PASSWORD, call, http, in_memory, on_disk, quiet, users};
use corsair_courier_load::client::Http;
use hyper::{Method, StatusCode};

async fn conversations_with(http: &mut Http, authorization: &str) -> (StatusCode, String) {
    let headers = [("authorization", authorization)];
    let answer = http.send(Method::GET, "/conversations", &headers, "").await;
    let (status, body) = answer.unwrap();
    (status, String::from_utf8_lossy(&body).into_owned())
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    http.create_user("anne", PASSWORD).await.unwrap();
    let again = http.create_user("anne", "another one").await.unwrap_err();
    assert_eq!(again.status(), Some(409));
    assert!(again.to_string().contains("name_taken"), "{again}");
    node.stop().await;
}

// Guarantee: courier-23.
#[tokio::test]
async fn names_that_look_alike_belong_to_one_user() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    for name in ["anne", "Вера", "rnary", "mary", "Zoë", "海賊"] {
        first.create_user(name, PASSWORD).await.unwrap();
    }
    let alike = [
        "\u{430}nne",       // Cyrillic а
        "ann\u{435}",       // Cyrillic е
        "\u{430}nn\u{435}", // both
        "\u{251}nne",       // Latin alpha
        "Bepa",             // in Latin letters
        "Z\u{43e}\u{eb}",   // Cyrillic о
        "\u{1d41a}nne",     // mathematical bold a
        "\u{ff41}nne",      // full width
    ];
    for name in alike {
        let refused = first.create_user(name, PASSWORD).await.unwrap_err();
        assert_eq!(refused.status(), Some(409), "{name}");
        assert!(
            refused.to_string().contains("name_looks_taken"),
            "{refused}"
        );
    }
    node.stop().await;
    // The check works after a restart, and ends when the account is deleted.
    let node = on_disk(dir.path()).await;
    let mut http = http(&node).await;
    let refused = http.create_user("\u{430}nne", PASSWORD).await.unwrap_err();
    assert_eq!(refused.status(), Some(409));
    let anne = http.log_in("anne", PASSWORD).await.unwrap();
    let body = serde_json::json!({ "password": PASSWORD });
    let (status, _) = call(&mut http, &anne, Method::DELETE, "/users/me", body).await;
    assert_eq!(status, 204);
    http.create_user("\u{430}nne", PASSWORD).await.unwrap();
    let refused = http.create_user("anne", PASSWORD).await.unwrap_err();
    assert_eq!(refused.status(), Some(409));
    node.stop().await;
}

#[tokio::test]
async fn only_the_right_password_logs_in() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let made = http.create_user("anne", PASSWORD).await.unwrap();
    let login = http.log_in("anne", PASSWORD).await.unwrap();
    assert_eq!(login.user, made.user);
    assert_ne!(login.token, made.token);
    for (name, password) in [("anne", "wrong horse"), ("mary", PASSWORD)] {
        let refused = http.log_in(name, password).await.unwrap_err();
        assert_eq!(refused.status(), Some(401), "{name}");
    }
    node.stop().await;
}

#[tokio::test]
async fn forged_cut_and_foreign_tokens_are_refused() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let good = &people[0].token;
    let bearer = |token: &str| format!("Bearer {token}");
    let (status, _) = conversations_with(&mut http, &bearer(good)).await;
    assert_eq!(status, StatusCode::OK);
    // A session id with the secret of another session, and a secret whose last byte was changed.
    let mixed = format!("{}{}", &good[..30], &people[1].token[30..]);
    let last = if good.ends_with('A') { 'B' } else { 'A' };
    let changed = format!("{}{last}", &good[..good.len() - 1]);
    for wrong in [
        bearer(&mixed),
        bearer(&changed),
        bearer(&good[..good.len() - 1]),
        bearer(""),
        format!("Basic {good}"),
        good.clone(),
    ] {
        let (status, body) = conversations_with(&mut http, &wrong).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{wrong}");
        assert!(body.contains("unauthorized"), "{body}");
        assert!(!body.contains(&good[10..]), "{body}");
    }
    node.stop().await;
}

#[tokio::test]
async fn a_token_that_was_logged_out_is_not_valid_and_its_sockets_are_closed() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    let anne = first.create_user("anne", PASSWORD).await.unwrap();
    let other = first.log_in("anne", PASSWORD).await.unwrap();
    let mut closed = quiet(&node, &anne, "").await;
    let mut open = quiet(&node, &other, "").await;
    let bearer = format!("Bearer {}", anne.token);
    let headers = [("authorization", bearer.as_str())];
    let (status, _) = first
        .send(Method::DELETE, "/sessions", &headers, "")
        .await
        .unwrap();
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(closed.next().await.unwrap(), None);
    // The revoked token is sent again, now and after a restart.
    let (status, _) = conversations_with(&mut first, &bearer).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    open.acknowledge(0).await.unwrap();
    node.stop().await;
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    let (status, _) = conversations_with(&mut first, &bearer).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let bearer = format!("Bearer {}", other.token);
    let (status, _) = conversations_with(&mut first, &bearer).await;
    assert_eq!(status, StatusCode::OK);
    node.stop().await;
}

#[tokio::test]
async fn neither_passwords_nor_tokens_lie_in_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let node = on_disk(dir.path()).await;
    let mut first = http(&node).await;
    let anne = first.create_user("anne bonny", PASSWORD).await.unwrap();
    first.log_in("anne bonny", PASSWORD).await.unwrap();
    node.stop().await;
    let mut all = Vec::new();
    for directory in [dir.path().to_owned(), dir.path().join("log")] {
        for file in std::fs::read_dir(directory).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                all.extend(std::fs::read(path).unwrap());
            }
        }
    }
    let holds = |part: &[u8]| all.windows(part.len()).any(|window| window == part);
    assert!(holds(b"anne bonny"));
    assert!(!holds(PASSWORD.as_bytes()));
    let encoded = anne.token.trim_start_matches("courier_");
    let bytes = data_encoding::BASE64URL_NOPAD
        .decode(encoded.as_bytes())
        .unwrap();
    assert!(holds(&bytes[..16]), "the public half is there");
    assert!(!holds(&bytes[16..]), "the secret half is not");
    assert!(!holds(encoded.as_bytes()));
    assert!(!format!("{anne:?}").contains(encoded));
}

#[tokio::test]
async fn a_token_ends_when_its_time_is_over() {
    let limits = corsair_courier::Limits {
        session: std::time::Duration::ZERO,
        ..crate::node::limits()
    };
    let node = crate::node::with(limits).await;
    let mut http = http(&node).await;
    let anne = http.create_user("anne", PASSWORD).await.unwrap();
    let (status, _) = conversations_with(&mut http, &format!("Bearer {}", anne.token)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    node.stop().await;
}
