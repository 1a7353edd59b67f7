//! Histories of conversations are linearizable while leaders fail: every post and every read of a conversation takes
//! effect at one instant between its request and its answer, whichever node it was sent to.

use crate::nodes::{Nodes, nodes};
use corsair_check::{Limits, Model, Operation, Verdict, check};
use corsair_courier_load::client::Http;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The time limit for one attempt.
const ATTEMPT: Duration = Duration::from_secs(5);
/// The number of conversations, and of clients in each.
const ROOMS: u64 = 4;
const CLIENTS: u64 = 3;
/// The number of messages after which a conversation gets no further posts, so that one answer has all messages.
const PAGE: u64 = 480;

/// A request: a post with its text, which is posted once, or a read of all messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Request {
    room: u64,
    post: Option<u64>,
}

/// Messages in their order: their number, and a hash of their texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Messages {
    count: u64,
    hash: u64,
}

impl Messages {
    fn with(self, text: u64) -> Messages {
        Messages {
            count: self.count + 1,
            hash: self.hash.wrapping_mul(0x100_0000_01b3) ^ text,
        }
    }
}

/// A conversation: a post returns its number, and a read all messages.
struct Conversations;

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
}

type History = Vec<Operation<Request, Messages>>;

/// Sends a request without a client library, and returns the head and the body of the answer.
async fn request(host: &str, head: &str, token: &str, body: &str) -> Option<(String, Value)> {
    let exchange = async {
        let mut stream = TcpStream::connect(host).await?;
        let text = format!(
            "{head} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        );
        stream.write_all(text.as_bytes()).await?;
        stream.write_all(b"\r\n").await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(ATTEMPT, exchange).await.ok()?.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let body = serde_json::from_str(body).ok()?;
    head.starts_with("HTTP/1.1 2")
        .then(|| (head.to_owned(), body))
}

struct Client {
    process: u64,
    hosts: Vec<String>,
    token: String,
    room: u64,
    begun: Instant,
}

impl Client {
    fn now(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// Posts and reads until the end, each request at another node.
    async fn run(self, over: Arc<AtomicBool>) -> History {
        let mut history = History::new();
        let (mut turn, mut count) = (self.process, 0);
        while !over.load(Relaxed) {
            turn += 1;
            let text = (turn % 3 != 0 && count < PAGE).then_some(self.process << 32 | turn);
            let input = Request {
                room: self.room,
                post: text,
            };
            let call = self.now();
            let mut output = None;
            // A post is repeated with its key until it is answered; a read is not repeated.
            while output.is_none() && !over.load(Relaxed) {
                turn += 1;
                let host = &self.hosts[turn as usize % self.hosts.len()];
                output = match text {
                    Some(text) => self.post(host, text).await,
                    None => self.read(host).await,
                };
                if text.is_none() {
                    break;
                }
            }
            count = output.map_or(count, |output| count.max(output.count));
            let returned = self.now();
            history.push(match output {
                Some(output) => Operation::completed(self.process, input, call, returned, output),
                None => Operation::unknown(self.process, input, call),
            });
            sleep(Duration::from_millis(100)).await;
        }
        history
    }

    async fn post(&self, host: &str, text: u64) -> Option<Messages> {
        let path = format!(
            "POST /conversations/{}/messages HTTP/1.1\r\nidempotency-key: {text}\r\nx:",
            self.room
        );
        let body = format!(r#"{{"text":"{text}"}}"#);
        let (_, answer) = request(host, &path, &self.token, &body).await?;
        let count = answer["number"].as_u64()?;
        Some(Messages { count, hash: 0 })
    }

    async fn read(&self, host: &str) -> Option<Messages> {
        let mut messages = Messages::default();
        loop {
            let path = format!(
                "GET /conversations/{}/messages?limit=500&after={}",
                self.room, messages.count
            );
            let (head, page) = request(host, &path, &self.token, "").await?;
            // Such an answer does not claim to be current. A further page would be read at a later instant.
            if head.contains("courier-behind") || messages.count > 0 {
                return None;
            }
            for message in page["messages"].as_array()? {
                messages = messages.with(message["text"].as_str()?.parse().ok()?);
            }
            if page["more"] == false {
                return Some(messages);
            }
        }
    }
}

/// Clients in several conversations.
struct Clients {
    over: Arc<AtomicBool>,
    running: Vec<JoinHandle<History>>,
}

impl Clients {
    async fn start(nodes: &Nodes) -> Clients {
        let mut http = Http::connect(&nodes.all[0].host()).await.unwrap();
        let (over, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let mut running = Vec::new();
        for number in 0..ROOMS {
            let mut logins = Vec::new();
            for client in 0..CLIENTS {
                let name = format!("user{number}-{client}");
                logins.push(http.create_user(&name, "correct horse").await.unwrap());
            }
            let others: Vec<_> = logins[1..].iter().map(|login| login.user).collect();
            let room = http.converse(&logins[0].token, &others).await.unwrap();
            for (client, login) in logins.into_iter().enumerate() {
                let client = Client {
                    process: number * CLIENTS + client as u64,
                    hosts: nodes.hosts(),
                    token: login.token,
                    room: room.0,
                    begun,
                };
                running.push(tokio::spawn(client.run(over.clone())));
            }
        }
        Clients { over, running }
    }

    async fn finish(self) -> History {
        self.over.store(true, Relaxed);
        let mut history = History::new();
        for client in self.running {
            history.extend(client.await.unwrap());
        }
        history
    }
}

/// Checks a history with at least this number of answered posts and reads.
fn verify(history: &History, least: usize) {
    let answered = history
        .iter()
        .filter(|operation| operation.completion.is_some());
    let (posts, reads): (Vec<_>, Vec<_>) =
        answered.partition(|operation| operation.input.post.is_some());
    assert!(
        posts.len() >= least && reads.len() >= least / 4,
        "{} {}",
        posts.len(),
        reads.len()
    );
    let report = check(&Conversations, history, &Limits::default());
    assert_eq!(report.verdict, Verdict::Linearizable);
}

#[test]
fn a_lost_a_doubled_and_a_stale_message_are_found() {
    let post = |process, text, call, count| {
        let input = Request {
            room: 1,
            post: Some(text),
        };
        Operation::completed(process, input, call, call + 1, Messages { count, hash: 0 })
    };
    let read = |call, texts: &[u64]| {
        let messages = texts
            .iter()
            .fold(Messages::default(), |all, &text| all.with(text));
        Operation::completed(
            9,
            Request {
                room: 1,
                post: None,
            },
            call,
            call + 1,
            messages,
        )
    };
    let both = [post(1, 5, 0, 1), post(2, 6, 10, 2)];
    for (texts, is_right) in [
        (&[5, 6][..], true),
        (&[5], false),
        (&[5, 6, 6], false),
        (&[6, 5], false),
    ] {
        let history = [both[0].clone(), both[1].clone(), read(20, texts)];
        let verdict = check(&Conversations, &history, &Limits::default()).verdict;
        assert_eq!(verdict == Verdict::Linearizable, is_right, "{texts:?}");
    }
}

// Guarantee: courier-28.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_are_linearizable_while_leaders_fail() {
    let mut nodes = nodes(3).await;
    let clients = Clients::start(&nodes).await;
    for turn in 0..2 {
        sleep(Duration::from_secs(1)).await;
        let leader = nodes.leader(turn).await;
        if turn == 0 {
            nodes.all[leader].kill();
            sleep(Duration::from_secs(2)).await;
            nodes.all[leader].restart().await;
        } else {
            nodes.all[leader].signal("-STOP");
            sleep(Duration::from_secs(3)).await;
            nodes.all[leader].signal("-CONT");
        }
    }
    sleep(Duration::from_secs(1)).await;
    verify(&clients.finish().await, 200);
}

// Guarantee: courier-28.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute: ci/courier.sh"]
async fn conversations_are_linearizable_while_leaders_fail_again_and_again() {
    let mut nodes = nodes(5).await;
    let clients = Clients::start(&nodes).await;
    let mut asked = 0;
    for turn in 0..10 {
        sleep(Duration::from_millis(1500)).await;
        let leader = nodes.leader(asked).await;
        asked = (leader + 1) % 5;
        if turn % 2 == 0 {
            // Another node is down at the same time.
            let other = (leader + 2) % 5;
            nodes.all[leader].kill();
            nodes.all[other].kill();
            sleep(Duration::from_secs(2)).await;
            nodes.all[leader].restart().await;
            nodes.all[other].restart().await;
        } else {
            nodes.all[leader].signal("-STOP");
            sleep(Duration::from_secs(3)).await;
            nodes.all[leader].signal("-CONT");
        }
    }
    sleep(Duration::from_secs(2)).await;
    verify(&clients.finish().await, 1000);
}
