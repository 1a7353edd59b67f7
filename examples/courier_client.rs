//! A client of the messaging service that loses no message, however often the node fails. The client repeats each POST
//! with the same idempotency key until the node accepts or refuses it. After a failure it continues to listen after the
//! last message that it has processed.
//!
//! ```text
//! cargo run --example courier_client                                    a node in this process, and two clients
//! cargo run --example courier_client -- HOST:PORT NAME listen           what is sent to NAME, line by line
//! cargo run --example courier_client -- HOST:PORT NAME send TO TEXT     one message
//! ```
//!
//! A name is registered when it is first used; the password is in COURIER_PASSWORD.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair_courier::{ConversationId, Node, Options, UserId, serve};
use corsair_courier_load::client::{ClientError, Http, Login, ServerMessage, Socket};
use serde::Deserialize;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// The pause before a node that does not answer is called again.
const PAUSE: Duration = Duration::from_millis(200);
/// The silence after which a socket counts as lost; nodes send a ping every 20 s.
const SILENCE: Duration = Duration::from_secs(60);

type Done<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A user at a node.
struct Client {
    host: String,
    login: Login,
}

/// Returns true if a retry may help: the node is unavailable or busy, or the client has exceeded a limit.
fn may_pass(error: &ClientError) -> bool {
    error
        .status()
        .is_none_or(|status| status >= 500 || status == 429)
}

impl Client {
    /// Logs in, or makes the account.
    async fn enter(host: &str, name: &str, password: &str) -> Done<Client> {
        loop {
            let entered = async {
                let mut http = Http::connect(host).await?;
                match http.create_user(name, password).await {
                    Err(error) if error.status() == Some(409) => http.log_in(name, password).await,
                    made => made,
                }
            };
            match entered.await {
                Ok(login) => {
                    let host = host.to_owned();
                    return Ok(Client { host, login });
                }
                Err(error) if may_pass(&error) => sleep(PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the user with this name.
    async fn find(&self, name: &str) -> Done<UserId> {
        #[derive(Deserialize)]
        struct User {
            id: UserId,
            name: String,
        }
        #[derive(Deserialize)]
        struct Users {
            users: Vec<User>,
        }
        let mut http = Http::connect(&self.host).await?;
        let bearer = format!("Bearer {}", self.login.token);
        let path = format!("/users?prefix={name}&limit=1");
        let headers = [("authorization", bearer.as_str())];
        let (_, found) = http.send(hyper::Method::GET, &path, &headers, "").await?;
        let found: Users = serde_json::from_slice(&found)?;
        let found = found.users.into_iter().find(|user| user.name == name);
        Ok(found
            .ok_or_else(|| format!("user {name} does not exist"))?
            .id)
    }

    /// Returns the conversation with one other user, which is created only once.
    async fn pair(&self, with: UserId) -> Done<ConversationId> {
        #[derive(Deserialize)]
        struct Created {
            id: ConversationId,
        }
        let mut http = Http::connect(&self.host).await?;
        let bearer = format!("Bearer {}", self.login.token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let body = format!(r#"{{"recipients":[{with}],"pair":true}}"#);
        let sent = http.send(hyper::Method::POST, "/conversations", &headers, body);
        let (_, created) = sent.await?;
        Ok(serde_json::from_slice::<Created>(&created)?.id)
    }

    /// Posts a message. The message is stored exactly once, whatever fails on the way.
    async fn post(&self, to: ConversationId, text: &str) -> Done<u64> {
        let key = format!("{:?}", SystemTime::now());
        loop {
            let posted = async {
                let mut http = Http::connect(&self.host).await?;
                http.post(&self.login.token, to, text, Some(&key)).await
            };
            match posted.await {
                Ok(stored) => return Ok(stored.number),
                Err(error) if may_pass(&error) => sleep(PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Passes every message to `heard`, in order, until the receiver is dropped. A message that the client had not
    /// acknowledged when the node failed arrives again. The client recognises it by its sequence number.
    async fn listen(self, heard: mpsc::Sender<String>) -> Done<()> {
        let mut last = 0;
        loop {
            let query = match last {
                0 => "?presence=false".to_owned(),
                _ => format!("?presence=false&after={last}"),
            };
            match Socket::open(&self.host, &self.login.token, &query).await {
                Ok(mut socket) => {
                    while let Ok(Ok(Some(said))) = timeout(SILENCE, socket.next()).await {
                        let ServerMessage::Message { sequence, message } = said else {
                            continue;
                        };
                        if sequence <= last {
                            continue;
                        }
                        // First it is dealt with, and then acknowledged.
                        if heard.send(message.text).await.is_err() {
                            return Ok(());
                        }
                        last = sequence;
                        let _ = socket.acknowledge(last).await;
                    }
                }
                Err(error) if may_pass(&error) => {}
                Err(error) => return Err(error.into()),
            }
            sleep(PAUSE).await;
        }
    }
}

/// Runs two clients and a node that is stopped and restarted between two messages.
async fn demonstrate() -> Done<()> {
    let data = std::env::temp_dir().join(format!("courier-client-{}", std::process::id()));
    let options = Options {
        data: Some(data.clone()),
        ..Options::default()
    };
    let mut serving = serve(Node::start(options.clone()).await?, "127.0.0.1:0").await?;
    let host = serving.address().to_string();
    let anne = Client::enter(&host, "anne", "correct horse").await?;
    let mary = Client::enter(&host, "mary", "correct horse").await?;
    let room = anne.pair(mary.login.user).await?;
    let (heard, mut said) = mpsc::channel(16);
    tokio::spawn(mary.listen(heard));
    for text in ["ahoy", "the node was away", "and is back"] {
        anne.post(room, text).await?;
        let came = timeout(SILENCE, said.recv()).await?;
        assert_eq!(came.as_deref(), Some(text));
        println!("mary: {text}");
        serving.stop().await;
        serving = serve(Node::start(options.clone()).await?, &host).await?;
    }
    drop(said);
    serving.stop().await;
    std::fs::remove_dir_all(data)?;
    Ok(())
}

#[tokio::main]
async fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let password = || std::env::var("COURIER_PASSWORD").map_err(|_| "COURIER_PASSWORD is not set");
    match words.as_slice() {
        [] => demonstrate().await,
        [host, name, "listen"] => {
            let client = Client::enter(host, name, &password()?).await?;
            let (heard, mut said) = mpsc::channel(1);
            let listening = tokio::spawn(client.listen(heard));
            while let Some(text) = said.recv().await {
                println!("{text}");
            }
            listening.await?
        }
        [host, name, "send", to, text] => {
            let client = Client::enter(host, name, &password()?).await?;
            let room = client.pair(client.find(to).await?).await?;
            client.post(room, text).await?;
            Ok(())
        }
        _ => Err("say HOST:PORT NAME listen, or HOST:PORT NAME send TO TEXT".into()),
    }
}
