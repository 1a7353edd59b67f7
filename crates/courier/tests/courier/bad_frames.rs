//! Invalid frames: each causes an error or the end of its socket, and the node continues.

use crate::node::{counted, host, http, in_memory, message, quiet, said, users};
use corsair_courier_load::client::{ServerMessage, Socket};
use hyper::header::HeaderValue;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message as Frame;

/// Returns the code of the next error.
async fn fault(socket: &mut Socket) -> String {
    match said(socket).await {
        ServerMessage::Error { code, message } => {
            assert!(message.len() > 10, "{message}");
            code
        }
        other => panic!("{other:?} instead of an error"),
    }
}

#[tokio::test]
async fn an_acknowledgement_of_what_was_never_sent_is_an_error_and_changes_nothing() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 2).await;
    let room = http
        .converse(&people[0].token, &[people[1].user])
        .await
        .unwrap();
    let mut socket = quiet(&node, &people[1], "").await;
    socket.acknowledge(1).await.unwrap();
    assert_eq!(fault(&mut socket).await, "ack_ahead");
    http.post(&people[0].token, room, "one", None)
        .await
        .unwrap();
    assert_eq!(message(&mut socket).await.0, 1);
    socket.acknowledge(u64::MAX).await.unwrap();
    assert_eq!(fault(&mut socket).await, "ack_ahead");
    drop(socket);
    // No message was acknowledged, so it is sent again.
    let mut socket = quiet(&node, &people[1], "").await;
    assert_eq!(message(&mut socket).await.0, 1);
    // A position to resume from that does not exist.
    let ahead = Socket::open(&host(&node), &people[1].token, "?after=2")
        .await
        .unwrap_err();
    assert_eq!(ahead.status(), Some(422));
    assert!(counted(&mut http, "ack_ahead").await);
    node.stop().await;
}

#[tokio::test]
async fn frames_that_mean_nothing_are_errors_and_too_many_end_the_socket() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let mut socket = quiet(&node, &people[0], "").await;
    for frame in [
        Frame::text("{"),
        Frame::text(r#"{"type":"post","text":"a"}"#),
        Frame::text(r#"{"type":"ack","sequence":"1"}"#),
        Frame::text(r#"{"type":"ack","sequence":0,"more":1}"#),
        Frame::binary(vec![0xff, 0xfe]),
    ] {
        socket.send(frame).await.unwrap();
        assert_eq!(fault(&mut socket).await, "malformed_frame");
    }
    for _ in 0..11 {
        socket.send(Frame::text("nonsense")).await.unwrap();
    }
    while let Some(said) = socket.next().await.unwrap() {
        assert!(matches!(said, ServerMessage::Error { .. }), "{said:?}");
    }
    assert!(counted(&mut http, "malformed_frame").await);
    quiet(&node, &people[0], "").await.close().await.unwrap();
    node.stop().await;
}

/// Performs a WebSocket handshake, after which any bytes can be sent.
pub async fn raw(host: &str, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "GET /ws?presence=false HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(
        head.starts_with(b"HTTP/1.1 101"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    stream
}

/// A frame with a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        short @ 0..126 => bytes.push(0x80 | short as u8),
        long => {
            bytes.push(0x80 | 126);
            bytes.extend((long as u16).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes
}

/// Returns the code with which the node closes the socket, if it sends one.
pub async fn closed(mut stream: TcpStream) -> Option<u16> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    let close = bytes.iter().position(|&byte| byte == 0x88)?;
    let code = bytes.get(close + 2..close + 4)?;
    Some(u16::from_be_bytes([code[0], code[1]]))
}

#[tokio::test]
async fn oversized_broken_and_unmasked_frames_end_their_socket_with_a_code() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let (host, token) = (host(&node), &people[0].token);
    let large = vec![b'x'; 5000];
    let half = vec![b'x'; 3000];
    let fragments = [frame(0x01, &half), frame(0x80, &half)].concat();
    let unmasked = [&[0x81, 0x02][..], b"{}"].concat();
    for (bytes, code) in [
        (frame(0x81, &large), 1009),
        // Two fragments that are small enough, but too large together.
        (fragments, 1009),
        (frame(0x81, b"\xff\xfe"), 1007),
        (frame(0x83, b""), 1002),
        // A length of 2^63 - 1.
        (
            [&[0x81, 0xff, 0x7f][..], &[0xff; 7], &[0; 4]].concat(),
            1009,
        ),
        (unmasked, 1002),
        // A continuation frame without a start.
        (frame(0x80, b"{}"), 1002),
    ] {
        let mut stream = raw(&host, token).await;
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(closed(stream).await, Some(code), "{:x?}", &bytes[..4]);
    }
    // An acknowledgement in three fragments is accepted.
    let mut stream = raw(&host, token).await;
    let pieces = [
        frame(0x01, br#"{"type":"#),
        frame(0x00, br#""ack","#),
        frame(0x80, br#""sequence":0}"#),
        frame(0x88, &1000u16.to_be_bytes()),
    ];
    stream.write_all(&pieces.concat()).await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(
        !String::from_utf8_lossy(&rest).contains("error"),
        "{rest:x?}"
    );
    assert!(counted(&mut http, "frame").await);
    node.stop().await;
}

#[tokio::test]
async fn pages_of_other_origins_may_not_connect() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let bearer = format!("Bearer {}", people[0].token);
    let place = host(&node);
    let own = format!("http://{place}");
    assert!(HeaderValue::from_str(&own).is_ok());
    let from = |origin: &str| {
        let (place, bearer, origin) = (place.clone(), bearer.clone(), origin.to_owned());
        async move {
            let headers = [
                ("authorization", bearer.as_str()),
                ("origin", origin.as_str()),
            ];
            Socket::open_with(&place, "", &headers).await
        }
    };
    from(&own).await.unwrap();
    let refused = from("https://evil.example").await.unwrap_err();
    assert_eq!(refused.status(), Some(403));
    assert!(counted(&mut http, "origin").await);
    node.stop().await;
}

#[tokio::test]
async fn a_browser_may_show_its_token_as_a_subprotocol() {
    let node = in_memory().await;
    let mut http = http(&node).await;
    let people = users(&mut http, 1).await;
    let protocols = format!("courier, {}", people[0].token);
    let headers = [("sec-websocket-protocol", protocols.as_str())];
    let socket = Socket::open_with(&host(&node), "", &headers).await.unwrap();
    socket.close().await.unwrap();
    node.stop().await;
}
