//! The state of a run at one moment. A page receives only the changes since its last frame.

pub use corsair_arch::outputs::EdgeState;
use std::sync::Arc;

/// The level of detail: actors separately, or folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Each actor is a separate node.
    Each,
    /// Actors are folded into services.
    Folded,
}

/// The state of a displayed node.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeState {
    /// The state as bits: see the constants, such as [`NodeState::DOWN`].
    pub bits: u8,
    /// The number of waiting requests; for pirates, the amount of gold.
    pub queue: f32,
    /// The number of requests in progress; for pirates, the number of buddies.
    pub busy: f32,
    /// The number of requests answered per second.
    pub rate: f32,
    /// The share of these requests that failed.
    pub errors: f32,
    /// The number of serving instances, and the number of instances that should serve because they are not
    /// deregistered. Both are at most 65,535, and 0 if the node is a single actor.
    pub health: (u16, u16),
}

impl NodeState {
    /// The node, or one of its actors, is killed.
    pub const DOWN: u8 = 1;
    /// The node is paused.
    pub const PAUSED: u8 = 2;
    /// The node is cut off from other zones.
    pub const CUT_OFF: u8 = 4;
    /// The node's service times are not normal.
    pub const SLOW: u8 = 8;
    /// The node is in no registry.
    pub const AWAY: u8 = 16;
    /// The node has not begun, or has ended.
    pub const GONE: u8 = 32;

    /// Sets a bit.
    pub(crate) fn with(mut self, bit: u8) -> NodeState {
        self.bits |= bit;
        self
    }
}

/// A value with the number of the frame in which it last changed.
#[derive(Clone, Debug, Default)]
struct Versioned<T> {
    items: Arc<Vec<(u64, T)>>,
}

impl<T: Clone + PartialEq> Versioned<T> {
    /// Sets the current values. Values that have changed get this version.
    fn update(&mut self, version: u64, now: Vec<T>) {
        let items = Arc::make_mut(&mut self.items);
        items.truncate(now.len());
        for (place, item) in now.into_iter().enumerate() {
            match items.get_mut(place) {
                Some(old) if old.1 == item => {}
                Some(old) => *old = (version, item),
                None => items.push((version, item)),
            }
        }
    }

    fn since(&self, version: u64) -> impl Iterator<Item = (u32, &T)> {
        let all = (0..).zip(self.items.iter());
        let new = all.filter(move |(_, (changed, _))| *changed > version);
        new.map(|(place, (_, item))| (place, item))
    }
}

/// The state at one moment. Cloning is cheap, because clones share the values.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The number of this frame; 0 means before the first frame.
    pub version: u64,
    /// The number of restarts. Frames of earlier epochs are invalid.
    pub epoch: u32,
    /// The current time in seconds.
    pub now: f64,
    /// Virtual seconds per second of wall-clock time.
    pub speed: f64,
    /// True while the run plays.
    pub is_playing: bool,
    /// True if the run is over.
    pub is_over: bool,
    nodes: Versioned<NodeState>,
    edges: Versioned<EdgeState>,
    folded: Versioned<NodeState>,
    folded_edges: Versioned<EdgeState>,
}

/// The size of the head of an encoded frame, and of the records of nodes and edges.
const HEAD: usize = 40;
const NODE: usize = 28;
const EDGE: usize = 24;

impl Frame {
    /// Advances to the next frame, with this state.
    pub(crate) fn next(&mut self, sampled: crate::Sample) {
        self.version += 1;
        let version = self.version;
        self.nodes.update(version, sampled.nodes);
        self.edges.update(version, sampled.edges);
        self.folded.update(version, sampled.folded);
        self.folded_edges.update(version, sampled.folded_edges);
    }

    /// Returns the memory of the values in bytes. Clones share it until the next frame.
    pub(crate) fn bytes(&self) -> usize {
        let nodes = self.nodes.items.len() + self.folded.items.len();
        let edges = self.edges.items.len() + self.folded_edges.items.len();
        nodes * size_of::<(u64, NodeState)>() + edges * size_of::<(u64, EdgeState)>()
    }

    /// Resets the frame because the run restarts.
    pub(crate) fn begin_anew(&mut self) {
        *self = Frame {
            version: self.version,
            epoch: self.epoch + 1,
            ..Frame::default()
        };
    }

    /// Encodes the changes since a frame as bytes, little-endian:
    ///
    /// | | |
    /// |---|---|
    /// | `u8` | 1: a frame |
    /// | `u8` | bits: 1 playing, 2 over, 4 folded |
    /// | `u16` | 0 |
    /// | `u32` | how many nodes |
    /// | `u32` | how many edges |
    /// | `u32` | epoch |
    /// | `f64` × 3 | version, virtual time in seconds, speed |
    /// | a node | `u32` place, `u8` bits, 3 × 0, `f32` queue, busy, rate, errors, `u16` × 2 health |
    /// | an edge | `u32` from, `u32` to, `f32` rate, errors, p50, p99 |
    pub fn encode(&self, since: u64, level: Level) -> Vec<u8> {
        let (nodes, edges) = match level {
            Level::Each => (&self.nodes, &self.edges),
            Level::Folded => (&self.folded, &self.folded_edges),
        };
        let (some_nodes, some_edges) = (nodes.since(since).count(), edges.since(since).count());
        let mut bytes = Vec::with_capacity(HEAD + NODE * some_nodes + EDGE * some_edges);
        let folded = u8::from(level == Level::Folded) << 2;
        let bits = u8::from(self.is_playing) | u8::from(self.is_over) << 1 | folded;
        bytes.extend([1, bits, 0, 0]);
        for number in [some_nodes as u32, some_edges as u32, self.epoch] {
            bytes.extend(number.to_le_bytes());
        }
        for number in [self.version as f64, self.now, self.speed] {
            bytes.extend(number.to_le_bytes());
        }
        for (place, node) in nodes.since(since) {
            bytes.extend(place.to_le_bytes());
            bytes.extend([node.bits, 0, 0, 0]);
            for number in [node.queue, node.busy, node.rate, node.errors] {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(node.health.0.to_le_bytes());
            bytes.extend(node.health.1.to_le_bytes());
        }
        for (_, edge) in edges.since(since) {
            bytes.extend(edge.from.to_le_bytes());
            bytes.extend(edge.to.to_le_bytes());
            for number in [edge.rate, edge.errors, edge.p50, edge.p99] {
                bytes.extend(number.to_le_bytes());
            }
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;

    #[test]
    fn a_frame_has_what_has_changed_since_the_one_that_is_known() {
        let node = |queue| NodeState {
            queue,
            ..NodeState::default()
        };
        let sampled = |a, b| Sample {
            nodes: vec![node(a), node(b)],
            edges: vec![EdgeState::default(); 2],
            ..Sample::default()
        };
        let mut frame = Frame::default();
        frame.next(sampled(1.0, 2.0));
        assert_eq!(
            frame.encode(0, Level::Each).len(),
            HEAD + 2 * NODE + 2 * EDGE
        );
        frame.next(sampled(1.0, 3.0));
        let bytes = frame.encode(1, Level::Each);
        assert_eq!(bytes.len(), HEAD + NODE);
        assert_eq!(bytes[HEAD..HEAD + 4], 1u32.to_le_bytes());
        assert_eq!(bytes[HEAD + 8..HEAD + 12], 3f32.to_le_bytes());
        frame.next(sampled(1.0, 2.0));
        // A page that has missed a frame gets all changes since its last frame.
        assert_eq!(frame.encode(1, Level::Each).len(), HEAD + NODE);
        assert_eq!(frame.encode(3, Level::Each).len(), HEAD);
        assert_eq!(frame.encode(0, Level::Folded).len(), HEAD);
    }
}
