//! Random interleavings of posts, acknowledgements, disconnects and reconnects, compared with a model: a list of
//! messages for each user.

use crate::node::{PATIENCE, http, in_memory, quiet};
use corsair_courier::{ConversationId, Serving};
use corsair_courier_load::client::{Http, Login, ServerMessage, Socket};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::time::timeout;

const USERS: usize = 3;

/// A step of the test.
#[derive(Clone, Debug)]
enum Step {
    /// A user posts in a conversation, perhaps a second time with the same key.
    Post {
        by: usize,
        room: usize,
        again: bool,
    },
    /// A user's socket receives all available messages.
    Receive {
        user: usize,
    },
    /// A user acknowledges all received messages except this many.
    Acknowledge {
        user: usize,
        but: u64,
    },
    Disconnect {
        user: usize,
    },
    /// A user opens a new socket, which resumes at the position of the node or of the client.
    Connect {
        user: usize,
        told: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let user = 0..USERS;
    let step = prop_oneof![
        4 => (0..USERS, 0..2usize, any::<bool>())
            .prop_map(|(by, room, again)| Step::Post { by, room, again }),
        2 => user.clone().prop_map(|user| Step::Receive { user }),
        2 => (user.clone(), 0..3u64).prop_map(|(user, but)| Step::Acknowledge { user, but }),
        1 => user.clone().prop_map(|user| Step::Disconnect { user }),
        2 => (user, any::<bool>()).prop_map(|(user, told)| Step::Connect { user, told }),
    ];
    vec(step, 1..60)
}

/// A user with the state that the test knows and the state that the model requires.
struct Person {
    login: Login,
    socket: Option<Socket>,
    /// The model: texts in the order of their sequences.
    queue: Vec<String>,
    /// The sequence number of the last received message.
    received: u64,
    /// The last acknowledged sequence number.
    acknowledged: u64,
}

impl Person {
    /// Receives until everything in the model has arrived.
    async fn receive(&mut self) {
        let Some(socket) = &mut self.socket else {
            return;
        };
        while self.received < self.queue.len() as u64 {
            let said = timeout(PATIENCE, socket.next()).await.expect("in time");
            match said.unwrap() {
                Some(ServerMessage::Message { sequence, message }) => {
                    assert_eq!(sequence, self.received + 1);
                    assert_eq!(message.text, self.queue[self.received as usize]);
                    self.received = sequence;
                }
                other => panic!("{other:?} instead of a message"),
            }
        }
    }
}

struct World {
    serving: Serving,
    http: Http,
    people: Vec<Person>,
    rooms: Vec<(ConversationId, Vec<usize>)>,
    posted: u64,
}

impl World {
    async fn new() -> World {
        let serving = in_memory().await;
        let mut http = http(&serving).await;
        let mut people = Vec::new();
        for login in crate::node::users(&mut http, USERS).await {
            people.push(Person {
                login,
                socket: None,
                queue: Vec::new(),
                received: 0,
                acknowledged: 0,
            });
        }
        let mut rooms = Vec::new();
        for members in [vec![0, 1], vec![0, 1, 2]] {
            let ids: Vec<_> = members
                .iter()
                .map(|&user| people[user].login.user)
                .collect();
            let made = http.converse(&people[members[0]].login.token, &ids).await;
            rooms.push((made.unwrap(), members));
        }
        World {
            serving,
            http,
            people,
            rooms,
            posted: 0,
        }
    }

    async fn step(&mut self, step: &Step) {
        match *step {
            Step::Post { by, room, again } => {
                let (conversation, members) = &self.rooms[room];
                let token = self.people[by].login.token.clone();
                self.posted += 1;
                let text = format!("message {}", self.posted);
                let key = format!("key {}", self.posted);
                let stored = self
                    .http
                    .post(&token, *conversation, &text, Some(&key))
                    .await;
                if !members.contains(&by) {
                    assert_eq!(stored.unwrap_err().status(), Some(404));
                    return;
                }
                assert!(!stored.unwrap().repeated);
                if again {
                    let stored = self
                        .http
                        .post(&token, *conversation, &text, Some(&key))
                        .await;
                    assert!(stored.unwrap().repeated);
                }
                for &member in members {
                    self.people[member].queue.push(text.clone());
                }
            }
            Step::Receive { user } => self.people[user].receive().await,
            Step::Acknowledge { user, but } => {
                let person = &mut self.people[user];
                let sequence = person.received.saturating_sub(but);
                if let Some(socket) = &mut person.socket {
                    socket.acknowledge(sequence).await.unwrap();
                    person.acknowledged = person.acknowledged.max(sequence);
                }
            }
            Step::Disconnect { user } => {
                if let Some(socket) = self.people[user].socket.take() {
                    // The end of the socket follows the acknowledgement, so the node has read the acknowledgement
                    // before.
                    self.part(user, socket).await;
                }
            }
            Step::Connect { user, told } => {
                if let Some(socket) = self.people[user].socket.take() {
                    self.part(user, socket).await;
                }
                let person = &mut self.people[user];
                let after = if told {
                    person.received
                } else {
                    person.acknowledged
                };
                let query = match told {
                    true => format!("?after={after}"),
                    false => String::new(),
                };
                person.socket = Some(quiet(&self.serving, &person.login, &query).await);
                person.received = after;
            }
        }
    }

    /// Closes a socket, and waits until the node has read all of its frames.
    async fn part(&mut self, _: usize, mut socket: Socket) {
        let close = tokio_tungstenite::tungstenite::Message::Close(None);
        socket.send(close).await.unwrap();
        while let Ok(Some(_)) = socket.next().await {}
    }

    /// At the end, all users receive all messages that they have not acknowledged.
    async fn end(mut self) {
        for user in 0..USERS {
            self.step(&Step::Connect { user, told: false }).await;
            self.people[user].receive().await;
            self.step(&Step::Disconnect { user }).await;
        }
        self.serving.stop().await;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // Guarantee: courier-2.
    #[test]
    fn whatever_happens_in_between_everything_comes_once_and_in_order(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in &steps {
                world.step(step).await;
            }
            world.end().await;
        });
    }
}
