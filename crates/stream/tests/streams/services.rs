//! Alerts for services and topics, in the forms that kapacitor's tests expect of their receivers.

use crate::http::Service;
use axum::Router;
use axum::extract::{Request, State};
use corsair_stream::engine::{Endpoints, TaskOptions};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

type Posts = Arc<Mutex<Vec<(String, Value)>>>;

async fn receive(State(posts): State<Posts>, request: Request) {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let post = (
        parts.uri.to_string(),
        serde_json::from_slice(&body).unwrap(),
    );
    posts.lock().unwrap().push(post);
}

/// Runs an alert with these handlers over two points; in the text and the endpoints `ADDRESS` is a receiver. Returns its posts.
async fn posts(handlers: &str, endpoints: &str) -> Vec<(String, Value)> {
    let posts = Posts::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routes = Router::new().fallback(receive).with_state(posts.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let endpoints = Endpoints::parse(&endpoints.replace("ADDRESS", &url)).unwrap();
    let service = Service::with(|options| options.endpoints = endpoints);
    let alert = "alert().id('kapacitor.cpu.{{ index .Tags \"host\" }}').message('{{ .ID }} is {{ .Level }}')";
    let levels = "info(v > 6).warn(v > 7).crit(v > 8)";
    let text = format!(
        "stream | from('cpu') | groupBy('host') | {alert}.{levels}{}",
        handlers.replace("ADDRESS", &url)
    );
    service.task("t", &text).await;
    // The canonical text means the same.
    let canonical = service.engine.status("t").unwrap().text;
    service.task("copy", &canonical).await;
    assert_eq!(service.engine.status("copy").unwrap().text, canonical);
    service.engine.delete("copy").await.unwrap();
    service
        .write("cpu,host=serverA v=10 31536010\ncpu,host=serverA v=1 31536011\n")
        .await;
    service.engine.drain().await;
    let posts = std::mem::take(&mut *posts.lock().unwrap());
    assert!(!posts.is_empty(), "{handlers}");
    posts
}

// Guarantee: stream-4.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_gets_an_alert_in_the_form_that_kapacitor_sends() {
    let message = "kapacitor.cpu.serverA is CRITICAL";
    let slack = |channel: &str, username: &str| {
        json!({
            "as_user": false,
            "channel": channel,
            "text": "",
            "attachments": [{"fallback": message, "color": "danger", "text": message, "mrkdwn_in": ["text"]}],
            "username": username,
            "icon_emoji": "",
        })
    };
    let endpoints = r##"{
        "slack": {"url": "ADDRESS/slack", "options": {"channel": "#channel", "username": "bot"}},
        "company": {"url": "ADDRESS/company", "options": {}},
        "discord": {"url": "ADDRESS/discord"},
        "telegram": {"url": "ADDRESS/bot:TOKEN/sendMessage", "options": {"chatId": "123"}},
        "pagerDuty2": {"url": "ADDRESS/v2/enqueue", "options": {"routingKey": "rkey"}},
        "victorOps": {"url": "ADDRESS/api_key"}
    }"##;
    for (handlers, path, expected) in [
        (".slack()", "/slack", slack("#channel", "bot")),
        (
            ".slack().workspace('company').channel('#alerts').username('me')",
            "/company",
            slack("#alerts", "me"),
        ),
        (
            ".discord().username('me').embedTitle('Down')",
            "/discord",
            json!({
                "username": "me",
                "avatar_url": "",
                "embeds": [{"color": 0xF9_5F53, "title": "Down", "description": message, "timestamp": ""}],
            }),
        ),
        (
            ".teams().channelURL('ADDRESS/teams')",
            "/teams",
            json!({
                "@type": "MessageCard",
                "@context": "http://schema.org/extensions",
                "title": "CRITICAL: [kapacitor.cpu.serverA]",
                "text": message,
                "summary": "CRITICAL: [kapacitor.cpu.serverA] - kapacitor.cpu.serverA is CRITICAL...",
                "themeColor": "CC4A31",
            }),
        ),
        (
            ".telegram().parseMode('HTML').disableNotification()",
            "/bot:TOKEN/sendMessage",
            json!({"chat_id": "123", "text": message, "parse_mode": "HTML", "disable_notification": true}),
        ),
        (
            ".pagerDuty2()",
            "/v2/enqueue",
            json!({
                "routing_key": "rkey",
                "event_action": "trigger",
                "dedup_key": "kapacitor.cpu.serverA",
                "payload": {
                    "summary": message,
                    "source": "serverA",
                    "severity": "critical",
                    "timestamp": "1971-01-01T00:00:10Z",
                    "class": "t",
                    "custom_details": {"result": {"series": [{
                        "name": "cpu",
                        "tags": {"host": "serverA"},
                        "columns": ["time", "v"],
                        "values": [[31_536_010_000_000_000_u64, 10.0]],
                    }]}},
                },
                "client": "corsair-stream",
            }),
        ),
    ] {
        let found = posts(handlers, endpoints).await;
        assert_eq!(found[0], (path.to_owned(), expected), "{handlers}");
        assert_eq!(found.len(), 2, "{handlers}");
    }
    let found = posts(".victorOps().routingKey('team')", endpoints).await;
    let [(path, critical), (_, recovery)] = &found[..] else {
        panic!("{found:?}");
    };
    assert_eq!(path, "/api_key/team");
    assert_eq!(
        (&critical["message_type"], &critical["timestamp"]),
        (&json!("CRITICAL"), &json!(31_536_010))
    );
    assert_eq!(recovery["message_type"], "RECOVERY");
}

// Guarantee: stream-4.
#[tokio::test(flavor = "multi_thread")]
async fn a_topic_stands_for_the_endpoints_that_name_it() {
    let endpoints = r#"{
        "a": {"url": "ADDRESS/a", "topics": ["cpu", "mem"]},
        "b": {"url": "ADDRESS/b", "topics": ["cpu"], "service": "teams"},
        "c": {"url": "ADDRESS/c", "topics": ["mem"]}
    }"#;
    let mut found = posts(".topic('cpu')", endpoints).await;
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    let paths: Vec<&str> = found.iter().map(|(path, _)| &**path).collect();
    assert_eq!(paths, ["/a", "/a", "/b", "/b"]);
    assert_eq!(found[0].1["level"], "CRITICAL");
    assert_eq!(found[2].1["@type"], "MessageCard");
}

#[tokio::test]
async fn a_service_or_property_that_is_not_there_is_named() {
    for (handlers, part) in [
        (
            ".slack()",
            "posts to the endpoint 'slack', and there is none",
        ),
        (".channel('a')", "write it after the service"),
        (".telegram().channel('a')", "`.telegram()` has no `channel`"),
        (".teams().channelURL('nowhere')", "is not a URL"),
        (".email('a@b')", "`email` of kapacitor is not here"),
    ] {
        let text = format!("stream | from('m') | alert().crit(v > 1){handlers}");
        let service = Service::new();
        let added = service.engine.add("t", &text, TaskOptions::default()).await;
        let said = added.expect_err(handlers).to_string();
        assert!(said.contains(part), "{handlers}: {said}");
    }
    let said = Endpoints::parse(r#"{"a": {"url": "http://x/", "service": "slak"}}"#);
    let said = said.unwrap_err().to_string();
    assert!(said.contains("expected one of slack, discord"), "{said}");
}
