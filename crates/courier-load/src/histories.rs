//! Histories of conversations, for checks of linearizability: every post and every read of a conversation takes effect
//! at one instant between its request and its answer, whichever node it was sent to.
//!
//! The clients run in real time and in simulations alike; an [`Environment`] gives them a clock and connections.

use corsair_check::{Model, Operation};
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The time limit for one attempt.
const ATTEMPT: Duration = Duration::from_secs(2);
/// The number of messages after which a conversation gets no further posts, so that one answer has all messages.
const PAGE: u64 = 480;

/// A request: a post with its text, which is posted once, or a read of all messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The conversation.
    pub room: u64,
    /// The text of a post; `None` is a read.
    pub post: Option<u64>,
}

/// Messages in their order: their number, and a hash of their texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Messages {
    /// The number of messages.
    pub count: u64,
    /// A hash of the texts in their order.
    pub hash: u64,
}

impl Messages {
    /// Returns the messages with one more at the end.
    pub fn with(self, text: u64) -> Messages {
        Messages {
            count: self.count + 1,
            hash: self.hash.wrapping_mul(0x100_0000_01b3) ^ text,
        }
    }
}

/// The model of conversations: a post returns the number of its message, and a read all messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conversations;

impl Model for Conversations {
    type State = Messages;
    type Input = Request;
    /// For a post, only the count is used.
    type Output = Messages;
    type Key = u64;

    fn initial(&self) -> Messages {
        Messages::default()
    }

    fn step(
        &self,
        state: &Messages,
        input: &Request,
        output: Option<&Messages>,
    ) -> Option<Messages> {
        match input.post {
            Some(text) => {
                let next = state.with(text);
                output
                    .is_none_or(|output| output.count == next.count)
                    .then_some(next)
            }
            None => output
                .is_none_or(|output| output == state)
                .then_some(*state),
        }
    }

    fn is_read(&self, input: &Request, _: Option<&Messages>) -> bool {
        input.post.is_none()
    }

    fn key(&self, input: &Request, _: Option<&Messages>) -> Option<u64> {
        Some(input.room)
    }

    fn describe(&self, input: &Request, output: Option<&Messages>) -> String {
        let count = output.map_or_else(|| "?".to_owned(), |output| output.count.to_string());
        match input.post {
            Some(text) => format!("post({:x}) → number {count}", text),
            None => format!("read() → {count} messages"),
        }
    }

    fn describe_state(&self, state: &Messages) -> String {
        format!("{} messages", state.count)
    }

    fn describe_key(&self, key: &u64) -> String {
        format!("conversation {key}")
    }
}

/// The operations of clients.
pub type History = Vec<Operation<Request, Messages>>;

/// What a client needs of the world: a clock, and connections to nodes.
pub trait Environment: Clone + Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Send + Unpin;

    /// Returns the time in nanoseconds since some instant.
    fn now(&self) -> u64;

    /// Waits.
    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;

    /// Returns the output of a future; `None` if it is not ready after this duration.
    fn timeout<T: Send>(
        &self,
        duration: Duration,
        future: impl Future<Output = T> + Send,
    ) -> impl Future<Output = Option<T>> + Send;

    /// Connects to `host:port`.
    fn connect(&self, host: &str) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

/// Sends a request without a client library. Returns the head and the body of an answer that reports success.
///
/// `head` is the method and the path, optionally followed by headers.
pub async fn request<E: Environment>(
    environment: &E,
    host: &str,
    head: [&str; 2],
    token: &str,
    body: &str,
) -> Option<(String, Value)> {
    let [target, headers] = head;
    let exchange = async {
        let mut stream = environment.connect(host).await?;
        let text = format!(
            "{target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nauthorization: Bearer {token}\r\n{headers}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(text.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = environment.timeout(ATTEMPT, exchange).await?.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let body = serde_json::from_str(body).ok()?;
    head.starts_with("HTTP/1.1 2")
        .then(|| (head.to_owned(), body))
}

/// A client of one conversation, which posts and reads at all nodes in turn.
#[derive(Clone, Debug)]
pub struct Client<E> {
    pub(crate) environment: E,
    pub(crate) process: u64,
    pub(crate) hosts: Vec<String>,
    pub(crate) token: String,
    room: u64,
}

impl<E: Environment> Client<E> {
    /// Creates accounts and a conversation of them, and returns a client for each. `number` is the number of the group:
    /// all groups have the same size.
    pub async fn group(
        environment: &E,
        hosts: &[String],
        number: u64,
        size: u64,
    ) -> Vec<Client<E>> {
        let mut logins = Vec::new();
        for member in 0..size {
            let name = format!("user{number}-{member}");
            let body = |attempt: usize| json!({"name": format!("{name}-{attempt}"), "password": "correct horse"});
            let login = insist(environment, hosts, "/users", "", body).await;
            logins.push(login);
        }
        let token = |login: &Value| login["token"].as_str().unwrap_or_default().to_owned();
        let others: Vec<_> = logins.iter().skip(1).map(|login| &login["user"]).collect();
        let first = logins.first().map(token).unwrap_or_default();
        let body = |_| json!({"recipients": others});
        let created = insist(environment, hosts, "/conversations", &first, body).await;
        let room = created["id"].as_u64().unwrap_or_default();
        let client = |(member, login): (u64, &Value)| Client {
            environment: environment.clone(),
            process: number * size + member,
            hosts: hosts.to_vec(),
            token: token(login),
            room,
        };
        (0..).zip(&logins).map(client).collect()
    }

    /// Posts and reads until `is_over` returns true, each request at another node, and passes the operations to `done`.
    pub async fn run(
        self,
        is_over: impl Fn() -> bool + Send,
        mut done: impl FnMut(Operation<Request, Messages>) + Send,
    ) {
        let (mut turn, mut count) = (self.process, 0);
        while !is_over() {
            turn += 1;
            let text = (turn % 3 != 0 && count < PAGE).then_some(self.process << 32 | turn);
            let input = Request {
                room: self.room,
                post: text,
            };
            let call = self.environment.now();
            let mut output = None;
            // A post is repeated with its key until it is answered; a read is not repeated.
            while output.is_none() && !is_over() {
                turn += 1;
                let host = &self.hosts[turn as usize % self.hosts.len()];
                output = match text {
                    Some(text) => self.post(host, text).await,
                    None => self.read(host).await,
                };
                if text.is_none() {
                    break;
                }
                if output.is_none() {
                    self.environment.sleep(Duration::from_millis(20)).await;
                }
            }
            count = output.map_or(count, |output| count.max(output.count));
            let returned = self.environment.now();
            done(match output {
                Some(output) => Operation::completed(self.process, input, call, returned, output),
                None => Operation::unknown(self.process, input, call),
            });
            self.environment.sleep(Duration::from_millis(100)).await;
        }
    }

    async fn post(&self, host: &str, text: u64) -> Option<Messages> {
        let target = format!("POST /conversations/{}/messages", self.room);
        let key = format!("idempotency-key: {text}\r\n");
        let body = json!({"text": text.to_string()}).to_string();
        let head = [&target[..], &key];
        let (_, answer) = request(&self.environment, host, head, &self.token, &body).await?;
        let count = answer["number"].as_u64()?;
        Some(Messages { count, hash: 0 })
    }

    async fn read(&self, host: &str) -> Option<Messages> {
        let target = format!("GET /conversations/{}/messages?limit=500", self.room);
        let head = [&target[..], ""];
        let (head, page) = request(&self.environment, host, head, &self.token, "").await?;
        // Such an answer does not claim to be current. A further page would be read at a later instant.
        if head.contains("courier-behind") || page["more"] != false {
            return None;
        }
        let mut messages = Messages::default();
        for message in page["messages"].as_array()? {
            messages = messages.with(message["text"].as_str()?.parse().ok()?);
        }
        Some(messages)
    }
}

/// Sends a POST to one node after the other until one reports success. `body` receives the number of the attempt.
async fn insist<E: Environment>(
    environment: &E,
    hosts: &[String],
    path: &str,
    token: &str,
    body: impl Fn(usize) -> Value + Send,
) -> Value {
    let target = format!("POST {path}");
    let mut attempt = 0;
    loop {
        let (host, body) = (&hosts[attempt % hosts.len()], body(attempt).to_string());
        if let Some((_, answer)) = request(environment, host, [&target[..], ""], token, &body).await
        {
            return answer;
        }
        attempt += 1;
        environment.sleep(Duration::from_millis(200)).await;
    }
}
