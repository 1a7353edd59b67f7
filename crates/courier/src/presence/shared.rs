//! Presence of several nodes, over plain NATS subjects: nothing of it has to outlive a node.
//!
//! A node says what changes, numbered, and every second the number it has come to. Who misses a
//! number, or does not know the node, asks it for all its users. A node of which nothing was heard
//! for [`SILENCE`] is gone, and its users with it.

use super::{News, NodeId, Presence};
use crate::frame::Face;
use crate::model::UserId;
use async_nats::{Client, Subscriber};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval};

const SUBJECT: &str = "courier.presence";
/// How often changes are told.
const TICK: Duration = Duration::from_millis(100);
/// How many ticks there are between two signs of life.
const BEAT: u64 = 10;
/// A node that is silent for so long is gone.
const SILENCE: Duration = Duration::from_secs(5);

/// What nodes tell each other.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Told {
    /// This has changed; the changes before are counted in `number`.
    News {
        number: u64,
        came: Vec<Face>,
        left: Vec<UserId>,
    },
    /// So many changes were told.
    Beat { number: u64 },
    /// Everybody, after so many changes.
    All { number: u64, users: Vec<Face> },
    /// Say who is on this node; all nodes if it is nobody's number.
    Ask { node: NodeId },
    /// This node shuts down.
    Gone,
}

/// The number of no node.
const EVERYBODY: NodeId = 0;

/// Another node, as far as it is known.
#[derive(Debug)]
struct Peer {
    heard: Instant,
    /// The number of changes known; `None` while everything was asked for.
    number: Option<u64>,
}

/// See the [module](self).
pub(crate) struct SharedPresence {
    presence: Arc<Presence>,
    client: Client,
    me: NodeId,
    /// Batches of changes told so far.
    told: u64,
    peers: HashMap<NodeId, Peer>,
}

impl SharedPresence {
    pub fn new(presence: Arc<Presence>, client: Client, me: NodeId) -> SharedPresence {
        SharedPresence {
            presence,
            client,
            me,
            told: 0,
            peers: HashMap::new(),
        }
    }

    /// Tells and listens until `closing` returns.
    pub async fn run(mut self, closing: impl Future<Output = ()>) {
        let Ok(mut subscriber) = self.client.subscribe(SUBJECT).await else {
            // The client reconnects by itself; this fails only when it is closed.
            return;
        };
        tokio::select! {
            () = self.exchange(&mut subscriber) => {}
            () = closing => {}
        }
        self.tell(&Told::Gone).await;
        let _ = self.client.flush().await;
    }

    async fn exchange(&mut self, subscriber: &mut Subscriber) {
        self.tell(&Told::Ask { node: EVERYBODY }).await;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 0u64;
        loop {
            tokio::select! {
                message = subscriber.next() => {
                    let Some(message) = message else { return };
                    if let Ok((node, told)) = postcard::from_bytes(&message.payload)
                        && node != self.me
                    {
                        self.hear(node, told).await;
                    }
                }
                _ = ticks.tick() => {
                    tick += 1;
                    self.tell_news().await;
                    if tick.is_multiple_of(BEAT) {
                        self.tell(&Told::Beat { number: self.told }).await;
                        self.bury();
                    }
                }
            }
        }
    }

    async fn tell(&self, told: &Told) {
        let Ok(bytes) = postcard::to_extend(&(self.me, told), Vec::new()) else {
            return;
        };
        // What is not told now is asked for later.
        let _ = self.client.publish(SUBJECT, bytes.into()).await;
    }

    async fn tell_news(&mut self) {
        let (mut came, mut left) = (Vec::new(), Vec::new());
        for news in self.presence.news() {
            // Only the last of each counts.
            match news {
                News::Came(face) => {
                    left.retain(|&user| user != face.id);
                    came.push(face);
                }
                News::Left(user) => {
                    came.retain(|face: &Face| face.id != user);
                    left.push(user);
                }
            }
        }
        if !came.is_empty() || !left.is_empty() {
            let number = self.told;
            self.told += 1;
            self.tell(&Told::News { number, came, left }).await;
        }
    }

    async fn hear(&mut self, node: NodeId, told: Told) {
        let peer = self.peers.get(&node).and_then(|peer| peer.number);
        let number = match told {
            Told::Gone => {
                self.peers.remove(&node);
                self.presence.are_on(node, Vec::new());
                return;
            }
            Told::Ask { node: asked } => {
                if asked == self.me || asked == EVERYBODY {
                    let (number, users) = (self.told, self.presence.here());
                    self.tell(&Told::All { number, users }).await;
                }
                peer
            }
            Told::All { number, users } => {
                self.presence.are_on(node, users);
                Some(number)
            }
            Told::News { number, came, left } if peer == Some(number) => {
                for face in came {
                    self.presence.came_to(node, face);
                }
                for user in left {
                    self.presence.left_from(node, user);
                }
                Some(number + 1)
            }
            Told::Beat { number } if peer == Some(number) => peer,
            Told::News { .. } | Told::Beat { .. } => {
                self.tell(&Told::Ask { node }).await;
                None
            }
        };
        let heard = Instant::now();
        self.peers.insert(node, Peer { heard, number });
    }

    /// Takes those off the list who are on nodes that are gone.
    fn bury(&mut self) {
        let presence = &self.presence;
        self.peers.retain(|&node, peer| {
            let alive = peer.heard.elapsed() < SILENCE;
            if !alive {
                presence.are_on(node, Vec::new());
            }
            alive
        });
    }
}
