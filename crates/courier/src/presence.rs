//! The online users, on this node and on others.
//!
//! A user is online while there is a socket on any node. Changes are sent to all users in batches. The more users are
//! online, the more time passes between two batches. So ten thousand users who connect at once do not cause a hundred
//! million frames.

pub(crate) mod shared;

use crate::frame::{ServerFrame, UserInfo, split};
use crate::model::UserId;
use axum::extract::ws::Utf8Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;
use std::time::Duration;

/// The minimum time for which a batch waits.
const SHORTEST: Duration = Duration::from_millis(100);
/// The additional waiting time of a batch for each recipient.
const EACH: Duration = Duration::from_micros(50);
/// The maximum number of changes stored for other nodes. Beyond this number other nodes receive a complete list again.
const MOST_CHANGES: usize = 1 << 14;

/// Frames about users who came online and went offline, which are the same for all recipients.
#[derive(Debug)]
pub(crate) struct PresenceUpdate {
    pub frames: Vec<Utf8Bytes>,
}

/// The identity of a node, for the lifetime of its process.
pub(crate) type NodeId = u64;

/// The online users. See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Presence {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    users: BTreeMap<UserId, Online>,
    /// The users whose status has changed, and whether each was online in the last update.
    changed: HashMap<UserId, (bool, Arc<str>)>,
    /// Changes to send to other nodes, if there are other nodes.
    changes: Option<Changes>,
}

#[derive(Debug)]
struct Online {
    name: Arc<str>,
    /// The nodes on which the user has sockets. This node is [`HERE`].
    nodes: Vec<NodeId>,
}

/// Changes on this node since the last update to other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// All changes; `true` if the user came online.
    Some(Vec<(UserInfo, bool)>),
    /// More changes than are stored.
    TooMany,
}

impl Changes {
    fn add(&mut self, info: UserInfo, came: bool) {
        match self {
            Changes::Some(all) if all.len() < MOST_CHANGES => all.push((info, came)),
            _ => *self = Changes::TooMany,
        }
    }
}

/// The number that stands for this node in the list of the nodes on which a user is online.
const HERE: NodeId = 0;

impl Presence {
    /// Records that a user has connected to this node.
    pub fn came(&self, info: UserInfo) {
        let mut inner = self.inner.lock();
        inner.came(HERE, info.clone());
        inner.note(info, true);
    }

    /// Records that a user has no socket on this node any more.
    pub fn left(&self, info: UserInfo) {
        let mut inner = self.inner.lock();
        inner.left(HERE, info.id);
        inner.note(info, false);
    }

    /// Records that a user has connected to another node.
    pub fn came_to(&self, node: NodeId, info: UserInfo) {
        self.inner.lock().came(node, info);
    }

    /// Records that a user has no socket on another node any more.
    pub fn left_from(&self, node: NodeId, user: UserId) {
        self.inner.lock().left(node, user);
    }

    /// Records that exactly these users are on another node.
    pub fn are_on(&self, node: NodeId, users: Vec<UserInfo>) {
        let mut inner = self.inner.lock();
        let gone = inner.on(node);
        let kept: HashSet<_> = users.iter().map(|info| info.id).collect();
        for info in gone.into_iter().filter(|info| !kept.contains(&info.id)) {
            inner.left(node, info.id);
        }
        for info in users {
            inner.came(node, info);
        }
    }

    /// Returns the users on this node.
    pub fn here(&self) -> Vec<UserInfo> {
        self.inner.lock().on(HERE)
    }

    /// Returns the changes on this node since the last call. The first call starts the recording of changes.
    pub fn changes(&self) -> Changes {
        let mut inner = self.inner.lock();
        let none = Changes::Some(Vec::new());
        inner.changes.replace(none).unwrap_or(Changes::TooMany)
    }

    /// Returns the number of online users, and the first of them.
    pub fn first(&self, limit: usize) -> (usize, Vec<UserInfo>) {
        let (total, users, _) = self.page(UserId(0), limit);
        (total, users)
    }

    /// Returns the number of online users, at most `limit` users whose ids are greater than `after`, and whether there
    /// are more such users.
    pub fn page(&self, after: UserId, limit: usize) -> (usize, Vec<UserInfo>, bool) {
        let inner = self.inner.lock();
        let mut rest = inner.users.range((Excluded(after), Unbounded));
        let users = rest.by_ref().take(limit).map(info).collect();
        (inner.users.len(), users, rest.next().is_some())
    }

    /// Returns the update for all users, and the time to wait before the next call.
    pub fn update(&self) -> (Option<Arc<PresenceUpdate>>, Duration) {
        let mut inner = self.inner.lock();
        let pause = SHORTEST.max(EACH * u32::try_from(inner.users.len()).unwrap_or(u32::MAX));
        let (mut connected, mut disconnected) = (Vec::new(), Vec::new());
        for (id, (before, name)) in std::mem::take(&mut inner.changed) {
            let now = inner.users.contains_key(&id);
            let info = UserInfo { id, name };
            match (before, now) {
                (false, true) => connected.push(info),
                (true, false) => disconnected.push(info),
                _ => {}
            }
        }
        drop(inner);
        for users in [&mut connected, &mut disconnected] {
            users.sort_unstable_by_key(|info| info.id);
        }
        let mut frames = split(&connected, |users| ServerFrame::Connect { users });
        frames.extend(split(&disconnected, |users| ServerFrame::Disconnect {
            users,
        }));
        let update = (!frames.is_empty()).then(|| Arc::new(PresenceUpdate { frames }));
        (update, pause)
    }
}

impl Inner {
    fn note(&mut self, info: UserInfo, came: bool) {
        if let Some(changes) = &mut self.changes {
            changes.add(info, came);
        }
    }

    fn came(&mut self, node: NodeId, info: UserInfo) {
        let UserInfo { id, name } = info;
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

    fn on(&self, node: NodeId) -> Vec<UserInfo> {
        let there = self
            .users
            .iter()
            .filter(|(_, online)| online.nodes.contains(&node));
        there.map(info).collect()
    }
}

fn info((id, online): (&UserId, &Online)) -> UserInfo {
    UserInfo {
        id: *id,
        name: online.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(id: u64) -> UserInfo {
        let name = format!("user{id}").into();
        UserInfo {
            id: UserId(id),
            name,
        }
    }

    fn told(presence: &Presence) -> Vec<String> {
        let (update, _) = presence.update();
        update.map_or_else(Vec::new, |update| {
            update.frames.iter().map(ToString::to_string).collect()
        })
    }

    #[test]
    fn who_comes_and_goes_is_announced_once() {
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
    fn other_nodes_are_notified_of_what_happens_here() {
        let presence = Presence::default();
        assert_eq!(presence.changes(), Changes::TooMany);
        presence.came(person(1));
        presence.came_to(7, person(2));
        presence.left(person(1));
        let changes = vec![(person(1), true), (person(1), false)];
        assert_eq!(presence.changes(), Changes::Some(changes));
        assert_eq!(presence.changes(), Changes::Some(Vec::new()));
        for turn in 0..2 * MOST_CHANGES as u64 {
            presence.came(person(turn + 1));
        }
        assert_eq!(presence.changes(), Changes::TooMany);
    }

    #[test]
    fn a_node_by_itself_keeps_nothing_for_others() {
        let presence = Presence::default();
        presence.came(person(1));
        presence.left(person(1));
        let inner = presence.inner.lock();
        assert!(inner.changes.is_none() && inner.users.is_empty());
    }
}
