//! The users of a load: creating them, connecting them, and receiving their messages.

use crate::client::{ClientError, Http, Login, ServerMessage, Socket};
use crate::series::Series;
use crate::{Kind, LoadError, Plan, joined, recipients};
use corsair_courier::{ConversationId, UserId};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The number of users that are created concurrently.
const TOGETHER: usize = 16;
const PASSWORD: &str = "not a secret";
/// The number of messages after which a listener acknowledges.
const ACKNOWLEDGED: u64 = 32;

/// Users who are logged in.
#[derive(Debug)]
pub(crate) struct Crowd {
    logins: Vec<Login>,
}

impl Crowd {
    /// Creates users with names that are not taken.
    pub async fn gather(host: &str, count: usize) -> Result<Crowd, LoadError> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| LoadError::Task(error.to_string()))?;
        let party = u64::from_le_bytes(bytes);
        let mut tasks = Vec::new();
        for first in 0..TOGETHER.min(count) {
            let host = host.to_owned();
            tasks.push(tokio::spawn(async move {
                let mut http = Http::connect(&host).await?;
                let mut made = Vec::new();
                for number in (first..count).step_by(TOGETHER) {
                    let name = format!("load-{party:016x}-{number}");
                    made.push(patient(&mut http, &name).await?);
                }
                Ok::<_, ClientError>(made)
            }));
        }
        let mut logins = Vec::with_capacity(count);
        for task in tasks {
            logins.extend(joined(task).await??);
        }
        Ok(Crowd { logins })
    }

    pub fn token(&self, number: usize) -> &str {
        &self.logins[number].token
    }

    pub fn logins(&self) -> &[Login] {
        &self.logins
    }

    /// Creates the conversations of every worker.
    pub async fn conversations(
        &self,
        host: &str,
        plan: &Plan,
        each: usize,
    ) -> Result<Vec<Vec<PostTarget>>, LoadError> {
        let users: Vec<UserId> = self.logins.iter().map(|login| login.user).collect();
        let mut random = corsair::Random::new(plan.seed);
        let mut http = Http::connect(host).await?;
        let mut all = Vec::new();
        for worker in 0..plan.workers {
            let count = match plan.kind {
                Kind::OneOnAll => 1,
                _ => each.min(plan.messages),
            };
            let mut rooms = Vec::new();
            for _ in 0..count {
                let to = recipients(plan.kind, &users, worker, &mut random);
                rooms.push(PostTarget {
                    conversation: http.converse(self.token(worker), &to).await?,
                    recipients: to.len() as u64,
                });
            }
            all.push(rooms);
        }
        Ok(all)
    }

    /// Opens a socket for each user.
    pub async fn listen(&self, host: &str, board: &Arc<Board>) -> Result<Vec<Listener>, LoadError> {
        let mut listeners = Vec::new();
        for login in &self.logins {
            let socket = Socket::open(host, &login.token, "?presence=false").await?;
            listeners.push(Listener::start(socket, login.user, board.clone()));
        }
        Ok(listeners)
    }
}

/// Creates a user; waits and retries if the node's rate limit is exceeded.
async fn patient(http: &mut Http, name: &str) -> Result<Login, ClientError> {
    loop {
        match http.create_user(name, PASSWORD).await {
            Err(error) if error.status() == Some(429) => {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
            made => return made,
        }
    }
}

/// The conversation to which a worker posts, and its number of recipients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PostTarget {
    pub conversation: ConversationId,
    pub recipients: u64,
}

/// The intended send time of every message.
#[derive(Debug)]
pub(crate) struct Board {
    origin: Instant,
    /// Nanoseconds since the origin; 0 for messages that have not been sent yet.
    meant: Vec<AtomicU64>,
    came: AtomicU64,
    over: AtomicBool,
}

impl Board {
    pub fn new(messages: usize) -> Board {
        Board {
            origin: Instant::now(),
            meant: (0..messages).map(|_| AtomicU64::new(0)).collect(),
            came: AtomicU64::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Records the intended time of a message that is about to be posted.
    pub fn meant(&self, id: usize, at: Instant) {
        let nanos = at.saturating_duration_since(self.origin).as_nanos() as u64;
        self.meant[id].store(nanos.max(1), Release);
    }

    /// Returns the text of a message, which identifies the message on arrival.
    pub fn text(&self, id: usize, length: usize) -> String {
        let mut text = format!("{id} ");
        while text.len() < length {
            text.push('x');
        }
        text
    }

    /// Returns the time since the message with this text was due to be sent.
    fn age(&self, text: &str) -> Option<Duration> {
        let id: usize = text.split(' ').next()?.parse().ok()?;
        match self.meant.get(id)?.load(Acquire) {
            0 => None,
            nanos => Some(
                Instant::now().saturating_duration_since(self.origin + Duration::from_nanos(nanos)),
            ),
        }
    }

    /// Returns the number of messages that sockets have received.
    pub fn came(&self) -> u64 {
        self.came.load(Acquire)
    }
}

/// A user who receives messages.
#[derive(Debug)]
pub(crate) struct Listener {
    task: JoinHandle<Result<Series, ClientError>>,
    board: Arc<Board>,
}

impl Listener {
    fn start(socket: Socket, user: UserId, board: Arc<Board>) -> Listener {
        let task = tokio::spawn(listen(socket, user, board.clone()));
        Listener { task, board }
    }

    /// Ends all listeners, and combines their measurements.
    pub async fn end(listeners: Vec<Listener>) -> Result<Series, LoadError> {
        let mut all = Series::new();
        for listener in &listeners {
            listener.board.over.store(true, Relaxed);
        }
        for listener in listeners {
            all.add(&joined(listener.task).await??);
        }
        Ok(all)
    }
}

/// Receives and acknowledges messages until the end. The user's own messages are not measured.
async fn listen(
    mut socket: Socket,
    user: UserId,
    board: Arc<Board>,
) -> Result<Series, ClientError> {
    let mut series = Series::new();
    let mut expected = 1;
    loop {
        let said = match tokio::time::timeout(Duration::from_millis(50), socket.next()).await {
            Ok(said) => said?,
            Err(_) if board.over.load(Relaxed) => return Ok(series),
            Err(_) => continue,
        };
        match said {
            Some(ServerMessage::Message { sequence, message }) => {
                if sequence != expected {
                    return Err(ClientError::Unexpected(format!(
                        "sequence {sequence} instead of {expected}"
                    )));
                }
                expected += 1;
                if message.sender != user
                    && let Some(age) = board.age(&message.text)
                {
                    series.record(age);
                    board.came.fetch_add(1, AcqRel);
                }
                if sequence % ACKNOWLEDGED == 0 {
                    socket.acknowledge(sequence).await?;
                }
            }
            Some(_) => {}
            None => {
                return Err(ClientError::Connection(
                    "the node closed a socket".to_owned(),
                ));
            }
        }
    }
}
