//! Who is online, on this node and on others.
//!
//! A user is online as long as there is a socket anywhere. What changes is told to everybody in
//! batches: a batch waits longer the more users there are to tell, so that ten thousand who come at
//! once do not cost a hundred million frames.

pub(crate) mod shared;

use crate::frame::{Face, Notice};
use crate::hub::{Tidings, lock};
use crate::model::UserId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A batch waits at least so long,
const SHORTEST: Duration = Duration::from_millis(100);
/// and so long for every user who is told.
const EACH: Duration = Duration::from_micros(50);

/// A node of the service, for as long as one process runs it.
pub(crate) type NodeId = u64;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Presence {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    users: BTreeMap<UserId, Online>,
    /// Whether users were online when they were last told of.
    changed: HashMap<UserId, (bool, Arc<str>)>,
    /// What other nodes are to be told.
    news: Vec<News>,
}

#[derive(Debug)]
struct Online {
    name: Arc<str>,
    /// Where there are sockets. This node is [`HERE`].
    nodes: Vec<NodeId>,
}

/// A change on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    Came(Face),
    Left(UserId),
}

/// This node, whose number nobody else has.
const HERE: NodeId = 0;

impl Presence {
    /// A user has come to this node.
    pub fn came(&self, face: Face) {
        let mut inner = lock(&self.inner);
        inner.came(HERE, face.clone());
        inner.news.push(News::Came(face));
    }

    /// A user has no socket on this node any more.
    pub fn left(&self, face: Face) {
        let mut inner = lock(&self.inner);
        inner.left(HERE, face.id);
        inner.news.push(News::Left(face.id));
    }

    /// A user has come to another node.
    pub fn came_to(&self, node: NodeId, face: Face) {
        lock(&self.inner).came(node, face);
    }

    /// A user has left another node.
    pub fn left_from(&self, node: NodeId, user: UserId) {
        lock(&self.inner).left(node, user);
    }

    /// These users, and no others, are on another node.
    pub fn are_on(&self, node: NodeId, faces: Vec<Face>) {
        let mut inner = lock(&self.inner);
        let gone = inner.on(node);
        let kept: HashSet<_> = faces.iter().map(|face| face.id).collect();
        for face in gone.into_iter().filter(|face| !kept.contains(&face.id)) {
            inner.left(node, face.id);
        }
        for face in faces {
            inner.came(node, face);
        }
    }

    /// Who is on this node.
    pub fn here(&self) -> Vec<Face> {
        lock(&self.inner).on(HERE)
    }

    /// What has changed on this node since this was last asked.
    pub fn news(&self) -> Vec<News> {
        std::mem::take(&mut lock(&self.inner).news)
    }

    /// How many are online, and the first of them.
    pub fn first(&self, limit: usize) -> (usize, Vec<Face>) {
        let (total, faces, _) = self.page(UserId(0), limit);
        (total, faces)
    }

    /// How many are online, those after `after` up to a limit, and whether there are more.
    pub fn page(&self, after: UserId, limit: usize) -> (usize, Vec<Face>, bool) {
        let inner = lock(&self.inner);
        let mut rest = inner.users.range((Excluded(after), Unbounded));
        let faces = rest.by_ref().take(limit).map(face).collect();
        (inner.users.len(), faces, rest.next().is_some())
    }

    /// What is to be told to everybody, and how long to wait before asking again.
    pub fn tidings(&self) -> (Option<Arc<Tidings>>, Duration) {
        let mut inner = lock(&self.inner);
        let pause = SHORTEST.max(EACH * u32::try_from(inner.users.len()).unwrap_or(u32::MAX));
        let (mut connected, mut disconnected) = (Vec::new(), Vec::new());
        for (id, (before, name)) in std::mem::take(&mut inner.changed) {
            let now = inner.users.contains_key(&id);
            let face = Face { id, name };
            match (before, now) {
                (false, true) => connected.push(face),
                (true, false) => disconnected.push(face),
                _ => {}
            }
        }
        drop(inner);
        let mut frames = Vec::new();
        for users in [&mut connected, &mut disconnected] {
            users.sort_unstable_by_key(|face| face.id);
        }
        if !connected.is_empty() {
            let users = &connected;
            frames.push(Notice::Connect { users }.frame());
        }
        if !disconnected.is_empty() {
            let users = &disconnected;
            frames.push(Notice::Disconnect { users }.frame());
        }
        let tidings = (!frames.is_empty()).then(|| Arc::new(Tidings { frames }));
        (tidings, pause)
    }
}

impl Inner {
    fn came(&mut self, node: NodeId, face: Face) {
        let Face { id, name } = face;
        if !self.users.contains_key(&id) {
            self.changed
                .entry(id)
                .or_insert_with(|| (false, name.clone()));
        }
        let nodes = Vec::new();
        let online = self.users.entry(id).or_insert(Online { name, nodes });
        if !online.nodes.contains(&node) {
            online.nodes.push(node);
        }
    }

    fn left(&mut self, node: NodeId, user: UserId) {
        let Some(online) = self.users.get_mut(&user) else {
            return;
        };
        online.nodes.retain(|&other| other != node);
        if online.nodes.is_empty() {
            let name = online.name.clone();
            self.changed.entry(user).or_insert((true, name));
            self.users.remove(&user);
        }
    }

    fn on(&self, node: NodeId) -> Vec<Face> {
        let there = self
            .users
            .iter()
            .filter(|(_, online)| online.nodes.contains(&node));
        there.map(face).collect()
    }
}

fn face((id, online): (&UserId, &Online)) -> Face {
    Face {
        id: *id,
        name: online.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(id: u64) -> Face {
        let name = format!("user{id}").into();
        Face {
            id: UserId(id),
            name,
        }
    }

    fn told(presence: &Presence) -> Vec<String> {
        let (tidings, _) = presence.tidings();
        tidings.map_or_else(Vec::new, |tidings| {
            tidings.frames.iter().map(ToString::to_string).collect()
        })
    }

    #[test]
    fn who_comes_and_goes_is_told_once() {
        let presence = Presence::default();
        presence.came(person(2));
        presence.came(person(1));
        let frame =
            r#"{"type":"users:connect","users":[{"id":1,"name":"user1"},{"id":2,"name":"user2"}]}"#;
        assert_eq!(told(&presence), [frame]);
        presence.left(person(2));
        let frame = r#"{"type":"users:disconnect","users":[{"id":2,"name":"user2"}]}"#;
        assert_eq!(told(&presence), [frame]);
        assert_eq!(told(&presence), [""; 0]);
    }

    #[test]
    fn who_is_back_within_a_batch_has_not_been_away() {
        let presence = Presence::default();
        presence.came(person(1));
        told(&presence);
        presence.left(person(1));
        presence.came(person(1));
        assert_eq!(told(&presence), [""; 0]);
        presence.left(person(1));
        presence.came(person(1));
        presence.left(person(1));
        assert_eq!(told(&presence).len(), 1);
    }

    #[test]
    fn a_user_is_online_until_the_last_node_says_otherwise() {
        let presence = Presence::default();
        presence.came(person(1));
        presence.came_to(7, person(1));
        presence.came_to(7, person(3));
        told(&presence);
        presence.left(person(1));
        assert_eq!(told(&presence), [""; 0]);
        presence.are_on(7, vec![person(3), person(4)]);
        assert_eq!(told(&presence).len(), 2);
        assert_eq!(presence.first(1), (2, vec![person(3)]));
        let (_, page, more) = presence.page(UserId(3), 5);
        assert_eq!((page, more), (vec![person(4)], false));
        assert_eq!(presence.here(), []);
    }

    #[test]
    fn other_nodes_are_told_what_happens_here() {
        let presence = Presence::default();
        presence.came(person(1));
        presence.came_to(7, person(2));
        presence.left(person(1));
        assert_eq!(
            presence.news(),
            [News::Came(person(1)), News::Left(UserId(1))]
        );
        assert_eq!(presence.news(), []);
    }
}
