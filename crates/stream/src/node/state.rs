//! The saved state of a node, as bytes that only the node itself reads.

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};

/// The state of a node between two points.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct State {
    /// The number of points and bodies in the state, for reports.
    pub(crate) points: usize,
    #[serde(serialize_with = "as_bytes")]
    bytes: Vec<u8>,
}

/// Serializes bytes at once. Without this function, serde passes them one by one.
pub(crate) fn as_bytes<S: Serializer>(bytes: impl AsRef<[u8]>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bytes(bytes.as_ref())
}

impl State {
    /// Serializes a node's state.
    pub(crate) fn new(points: usize, state: &impl Serialize) -> State {
        let bytes = postcard::to_allocvec(state).expect("plain data can be written");
        State { points, bytes }
    }

    /// Deserializes the state. Returns `None`, with a warning in the log, if another version of the
    /// node wrote it.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        postcard::from_bytes(&self.bytes)
            .inspect_err(|error| tracing::warn!("the state of a node cannot be read: {error}"))
            .ok()
    }
}
