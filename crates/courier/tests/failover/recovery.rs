//! A cluster without a majority.

use crate::nodes::{PATIENCE, nodes};
use corsair_courier_load::client::{Http, Socket};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// True if a node answers the request with the header which says that it may be behind.
async fn is_marked(host: &str, path: &str, token: &str) -> bool {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    answer.contains("\r\ncourier-behind: true\r\n")
}

// Guarantee: courier-24.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_has_lost_its_majority_is_not_ready_and_goes_on_from_the_node_that_is_left()
{
    let mut cluster = nodes(3).await;
    let mut http = Http::connect(&cluster.all[0].host()).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    for number in 0..30 {
        let key = number.to_string();
        http.post(&anne.token, room, "ahoy", Some(&key))
            .await
            .unwrap();
    }
    let mut left = cluster.all.remove(1);
    // Two nodes stand still: nothing that is written now is durable at a majority.
    cluster.all.iter().for_each(|node| node.signal("-STOP"));
    left.answers(503, Duration::from_secs(6)).await;
    let mut behind = Http::connect(&left.host()).await.unwrap();
    let history = behind.history(&mary.token, room, 0).await.unwrap();
    assert_eq!(history.len(), 30);
    // They run again.
    cluster.all.iter().for_each(|node| node.signal("-CONT"));
    left.answers(200, PATIENCE).await;
    // They are lost forever.
    cluster.all.clear();
    left.answers(503, Duration::from_secs(6)).await;
    let (code, said) = left.command("recover", &[]);
    assert!(code == Some(2) && said.contains("in use"), "{said}");
    left.kill();
    let (code, said) = left.command("recover", &[]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = left.command("recover", &[]);
    assert!(
        code == Some(2) && said.contains("no data of a member"),
        "{said}"
    );
    let data = left.data.clone();
    drop(left);
    cluster.add_at(&data).await;
    cluster.add().await;
    cluster.add().await;
    cluster.settle(3).await;
    for node in &cluster.all {
        let mut http = Http::connect(&node.host()).await.unwrap();
        let again = http
            .post(&anne.token, room, "ahoy", Some("7"))
            .await
            .unwrap();
        assert_eq!((again.number, again.repeated), (8, true));
        let history = http.history(&mary.token, room, 0).await.unwrap();
        assert_eq!(history.len(), 30);
    }
}

// Guarantee: courier-28.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_may_be_behind_calls_nothing_unknown() {
    let mut cluster = nodes(3).await;
    let mut http = Http::connect(&cluster.all[0].host()).await.unwrap();
    let anne = http.create_user("anne", "correct horse").await.unwrap();
    let mary = http.create_user("mary", "correct horse").await.unwrap();
    let room = http.converse(&anne.token, &[mary.user]).await.unwrap();
    let behind = cluster.all[2].host();
    cluster.all[2].stop();
    http.post(&anne.token, room, "ahoy", None).await.unwrap();
    let bert = http.create_user("bert", "correct horse").await.unwrap();
    let new = http.converse(&anne.token, &[bert.user]).await.unwrap();
    let resume = |after: u64| {
        let (host, token) = (behind.clone(), mary.token.clone());
        async move {
            let query = format!("?presence=false&after={after}");
            let socket = Socket::open(&host, &token, &query).await;
            socket.map(drop).map_err(|error| error.status())
        }
    };
    // It knows only its own data.
    cluster.all[..2]
        .iter()
        .for_each(|node| node.signal("-STOP"));
    cluster.all[2].start_again();
    cluster.all[2].answers(503, PATIENCE).await;
    assert_eq!(resume(1).await, Err(Some(503)));
    let mut http = Http::connect(&behind).await.unwrap();
    assert_eq!(http.history(&anne.token, room, 0).await.unwrap().len(), 0);
    let history = http.history(&anne.token, new, 0).await;
    assert_eq!(history.unwrap_err().status(), Some(503));
    let bearer = format!("Bearer {}", anne.token);
    let headers = [("authorization", bearer.as_str())];
    let path = format!("/conversations/{}", new.0);
    let shown = http.send(hyper::Method::GET, &path, &headers, "").await;
    assert_eq!(shown.unwrap().0.as_u16(), 503);
    let history = format!("/conversations/{}/messages", room.0);
    let reads = [
        "/users?prefix=b",
        "/sessions",
        "/conversations",
        "/conversations/unread",
        &history,
    ];
    for path in reads {
        assert!(is_marked(&behind, path, &anne.token).await, "{path}");
    }
    // It learns of the message before it answers.
    cluster.all[..2]
        .iter()
        .for_each(|node| node.signal("-CONT"));
    cluster.all[2].ready().await;
    for path in reads {
        assert!(!is_marked(&behind, path, &anne.token).await, "{path}");
    }
    assert_eq!(resume(1).await, Ok(()));
    assert_eq!(resume(2).await, Err(Some(422)));
    let history = http.history(&mary.token, new, 0).await;
    assert_eq!(history.unwrap_err().status(), Some(404));
}
