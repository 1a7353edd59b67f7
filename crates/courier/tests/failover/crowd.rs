//! Users that post and listen while nodes fail, and the check of their messages.

use corsair_courier::{ConversationId, Message, UserId};
use corsair_courier_load::client::{ClientError, Http, Login, PostReceipt, ServerMessage, Socket};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The time limit for the last messages to arrive.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time limit for one attempt.
const ATTEMPT: Duration = Duration::from_secs(10);

/// Users, and the conversations in which some of them post.
pub struct Crowd {
    hosts: Arc<[String]>,
    logins: Vec<Login>,
    rooms: Vec<Room>,
}

/// A conversation of two users who post and some who listen.
#[derive(Clone)]
struct Room {
    conversation: ConversationId,
    members: Vec<usize>,
}

impl Crowd {
    /// Creates `users` users and `rooms` conversations of five.
    pub async fn gather(hosts: &[String], users: usize, rooms: usize) -> Crowd {
        let mut http = Http::connect(&hosts[0]).await.unwrap();
        let mut logins = Vec::new();
        for number in 0..users {
            let name = format!("user{number}");
            logins.push(http.create_user(&name, "correct horse").await.unwrap());
        }
        let mut made = Vec::new();
        for number in 0..rooms {
            // Every user is a member of some conversation.
            let members: Vec<_> = (0..users)
                .filter(|user| user % rooms == number || (user + 1) % rooms == number)
                .collect();
            let ids: Vec<UserId> = members.iter().map(|&user| logins[user].user).collect();
            let token = &logins[members[0]].token;
            // Any node knows the data that another node has stored.
            let mut http = Http::connect(&hosts[number % hosts.len()]).await.unwrap();
            let conversation = http.converse(token, &ids).await.unwrap();
            made.push(Room {
                conversation,
                members,
            });
        }
        Crowd {
            hosts: hosts.into(),
            logins,
            rooms: made,
        }
    }
}

/// The results of a load.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of POSTs, including repeated POSTs.
    pub posted: u64,
    pub acknowledged: u64,
    /// The number of messages that sockets have received for the first time.
    pub delivered: u64,
    pub duplicated: u64,
    pub lost: u64,
    /// Descriptions of unexpected messages.
    pub wrong: Vec<String>,
}

impl Tally {
    #[expect(clippy::print_stdout, reason = "a test says what it has counted")]
    pub fn print(&self) {
        println!("{self}");
    }

    /// Checks that no message is lost and none is wrong.
    pub fn check(&self) {
        assert_eq!(self.lost, 0, "{self}");
        assert!(self.wrong.is_empty(), "{self}\n{:#?}", self.wrong);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "posted {}, acknowledged {}, delivered {}, duplicated {}, lost {}",
            self.posted, self.acknowledged, self.delivered, self.duplicated, self.lost
        )
    }
}

/// The messages of one poster whose storage was acknowledged.
type Acknowledged = Vec<(ConversationId, u64, String)>;

/// A running load.
pub struct Load {
    crowd: Arc<Crowd>,
    over: Arc<AtomicBool>,
    posted: Arc<AtomicU64>,
    posters: Vec<JoinHandle<Acknowledged>>,
    inboxes: Vec<Arc<Mutex<Inbox>>>,
    listeners: Vec<JoinHandle<()>>,
}

/// The messages that a user's sockets have received.
#[derive(Default)]
struct Inbox {
    /// The messages by sequence number.
    messages: BTreeMap<u64, Message>,
    /// The last sequence number that was acknowledged over any socket.
    acknowledged: u64,
    duplicated: u64,
    wrong: Vec<String>,
}

impl Load {
    pub fn start(crowd: Crowd) -> Load {
        let crowd = Arc::new(crowd);
        let over = Arc::new(AtomicBool::new(false));
        let posted = Arc::new(AtomicU64::new(0));
        let (mut listeners, mut inboxes) = (Vec::new(), Vec::new());
        for user in 0..crowd.logins.len() {
            let inbox = Arc::new(Mutex::new(Inbox::default()));
            inboxes.push(inbox.clone());
            listeners.push(tokio::spawn(listen(crowd.clone(), user, inbox)));
        }
        let mut posters = Vec::new();
        for room in crowd.rooms.clone() {
            for &user in room.members.iter().take(2) {
                posters.push(tokio::spawn(post(
                    crowd.clone(),
                    room.clone(),
                    user,
                    over.clone(),
                    posted.clone(),
                )));
            }
        }
        Load {
            crowd,
            over,
            posted,
            posters,
            inboxes,
            listeners,
        }
    }

    /// Stops the posters, waits for outstanding messages, and returns the results.
    pub async fn finish(self) -> Tally {
        self.over.store(true, Relaxed);
        let mut expected: HashMap<usize, BTreeMap<(ConversationId, u64), String>> = HashMap::new();
        let mut tally = Tally::default();
        for poster in self.posters {
            let acknowledged = poster.await.unwrap();
            tally.acknowledged += acknowledged.len() as u64;
            for (conversation, number, text) in acknowledged {
                let mut rooms = self.crowd.rooms.iter();
                let room = rooms
                    .find(|room| room.conversation == conversation)
                    .unwrap();
                let sender = sender(&text);
                for &member in room.members.iter().filter(|&&member| member != sender) {
                    let known = expected.entry(member).or_default();
                    if known.insert((conversation, number), text.clone()).is_some() {
                        tally
                            .wrong
                            .push(format!("two posts got {conversation}/{number}"));
                    }
                }
            }
        }
        tally.posted = self.posted.load(Relaxed);
        let begun = Instant::now();
        let missing = || -> u64 {
            let short = |(&user, wanted): (&usize, &BTreeMap<_, _>)| {
                let inbox = self.inboxes[user].lock().unwrap();
                let others = inbox.messages.values();
                let others = others.filter(|message| sender(&message.text) != user);
                wanted.len().saturating_sub(others.count()) as u64
            };
            expected.iter().map(short).sum()
        };
        while missing() > 0 && begun.elapsed() < PATIENCE {
            sleep(Duration::from_millis(50)).await;
        }
        for listener in &self.listeners {
            listener.abort();
        }
        for (user, inbox) in self.inboxes.iter().enumerate() {
            let mut inbox = inbox.lock().unwrap();
            tally.delivered += inbox.messages.len() as u64;
            tally.duplicated += inbox.duplicated;
            tally.wrong.append(&mut inbox.wrong);
            let wanted = expected.remove(&user).unwrap_or_default();
            tally.compare(user, &inbox.messages, wanted);
        }
        tally
    }
}

impl Tally {
    /// Compares the received messages of a user with the acknowledged messages for this user.
    fn compare(
        &mut self,
        user: usize,
        got: &BTreeMap<u64, Message>,
        mut wanted: BTreeMap<(ConversationId, u64), String>,
    ) {
        let mut last: HashMap<ConversationId, u64> = HashMap::new();
        for (sequence, message) in got {
            let place = (message.conversation, message.number);
            let before = last.insert(message.conversation, message.number);
            if before.is_some_and(|before| before >= message.number) {
                self.wrong
                    .push(format!("user{user}: {place:?} at {sequence} out of order"));
            }
            // A node that has just started may not know yet whether other nodes support copies for the sender.
            if sender(&message.text) == user {
                continue;
            }
            match wanted.remove(&place) {
                Some(text) if text == message.text => {}
                Some(text) => self.wrong.push(format!(
                    "user{user}: {place:?} says {:?}, not {text:?}",
                    message.text
                )),
                None => self.wrong.push(format!(
                    "user{user}: {place:?} was not acknowledged, or came twice"
                )),
            }
        }
        self.lost += wanted.len() as u64;
    }
}

/// Returns the user who has posted this text.
fn sender(text: &str) -> usize {
    text.split(' ').next().unwrap().parse().unwrap()
}

/// Posts until the stop signal. Each message is repeated until it is acknowledged.
async fn post(
    crowd: Arc<Crowd>,
    room: Room,
    user: usize,
    over: Arc<AtomicBool>,
    posted: Arc<AtomicU64>,
) -> Acknowledged {
    let login = &crowd.logins[user];
    let mut acknowledged = Vec::new();
    let mut host = user;
    let mut http: Option<Http> = None;
    for turn in 0.. {
        if over.load(Relaxed) {
            break;
        }
        let text = format!("{user} {turn} in {}", room.conversation);
        let key = format!("{}-{turn}", room.conversation);
        let stored: PostReceipt = loop {
            posted.fetch_add(1, Relaxed);
            let attempt = timeout(ATTEMPT, async {
                if http.is_none() {
                    http = Some(Http::connect(&crowd.hosts[host % crowd.hosts.len()]).await?);
                }
                let http = http.as_mut().expect("connected just now");
                http.post(&login.token, room.conversation, &text, Some(&key))
                    .await
            });
            match attempt.await {
                Ok(Ok(stored)) => break stored,
                Ok(Err(ClientError::Refused { status, body })) if status < 500 => {
                    panic!("user{user} was refused: {status} {body}");
                }
                // Another node may be up.
                Ok(Err(_)) | Err(_) => {
                    (http, host) = (None, host + 1);
                    sleep(Duration::from_millis(50)).await;
                }
            }
        };
        acknowledged.push((room.conversation, stored.number, text));
        // A client occasionally posts at another node.
        if turn % 16 == 15 {
            (http, host) = (None, host + 1);
        }
        sleep(Duration::from_millis(10)).await;
    }
    acknowledged
}

/// Listens for ever, at any node that is up.
async fn listen(crowd: Arc<Crowd>, user: usize, inbox: Arc<Mutex<Inbox>>) {
    let login = &crowd.logins[user];
    let mut host = user;
    loop {
        host += 1;
        let place = &crowd.hosts[host % crowd.hosts.len()];
        // Some users send the position to resume from; for the others the node decides.
        let last = last(&inbox);
        let query = match user % 2 {
            0 => "?presence=false".to_owned(),
            _ => format!("?presence=false&after={last}"),
        };
        match timeout(ATTEMPT, Socket::open(place, &login.token, &query)).await {
            Ok(Ok(socket)) => receive(socket, user, &inbox).await,
            Ok(Err(ClientError::Refused { status, body })) if status < 500 => {
                let wrong = format!("user{user} may not listen: {status} {body}");
                inbox.lock().unwrap().wrong.push(wrong);
                return;
            }
            _ => {}
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn last(inbox: &Mutex<Inbox>) -> u64 {
    let inbox = inbox.lock().unwrap();
    inbox.messages.last_key_value().map_or(0, |(&last, _)| last)
}

/// Receives messages until the socket ends.
async fn receive(mut socket: Socket, user: usize, inbox: &Mutex<Inbox>) {
    let mut before = None;
    while let Ok(Some(said)) = socket.next().await {
        let ServerMessage::Message { sequence, message } = said else {
            continue;
        };
        {
            let mut inbox = inbox.lock().unwrap();
            let last = inbox.messages.last_key_value().map_or(0, |(&last, _)| last);
            let previous = before.replace(sequence).unwrap_or(last.min(sequence - 1));
            // A node that was behind begins too early, and then learns that messages were acknowledged and removed.
            let removed = inbox.acknowledged.min(sequence - 1);
            if sequence != previous.max(removed) + 1 {
                inbox.wrong.push(format!(
                    "user{user}: {sequence} after {previous}, with {removed} acknowledged: a gap"
                ));
            } else if sequence <= last {
                inbox.duplicated += 1;
                if inbox.messages.get(&sequence) != Some(&message) {
                    inbox
                        .wrong
                        .push(format!("user{user}: two messages are {sequence}"));
                }
            } else {
                inbox.messages.insert(sequence, message);
            }
        }
        if sequence % 4 == 0 {
            {
                let noted = &mut inbox.lock().unwrap().acknowledged;
                *noted = sequence.max(*noted);
            }
            if socket.acknowledge(sequence).await.is_err() {
                return;
            }
        }
    }
}
