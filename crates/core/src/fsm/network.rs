//! Initial networks: the buddies that each pirate has when a run starts.

use super::MAX_BUDDIES;
use std::sync::Arc;

/// Pirates by name with their buddies, from which a run can start.
///
/// No pirate knows itself, knows a buddy twice, or has more than [`MAX_BUDDIES`] buddies.
///
/// ```
/// use corsair::fsm::Network;
/// let names = ["anne", "bart", "calico"].map(String::from).into();
/// let network = Network::new(names, [(0, 1), (2, 1), (2, 0)])?;
/// assert_eq!(network.buddies(2), [1, 0]);
/// assert_eq!(network.edges().count(), 3);
/// # Ok::<(), corsair::fsm::NetworkError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(try_from = "Unchecked")
)]
pub struct Network {
    names: Arc<[String]>,
    /// The buddies of pirate i are `buddies[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    buddies: Vec<u32>,
}

/// A network before its validation.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Unchecked {
    names: Arc<[String]>,
    starts: Vec<usize>,
    buddies: Vec<u32>,
}

#[cfg(feature = "serde")]
impl TryFrom<Unchecked> for Network {
    type Error = &'static str;

    fn try_from(read: Unchecked) -> Result<Network, &'static str> {
        let Unchecked {
            names,
            starts,
            buddies,
        } = read;
        let in_order = starts.is_sorted() && starts.first() == Some(&0);
        let whole = starts.len() == names.len() + 1 && starts.last() == Some(&buddies.len());
        if !in_order || !whole || buddies.iter().any(|&buddy| buddy as usize >= names.len()) {
            return Err("an invalid network of pirates");
        }
        Ok(Network {
            names,
            starts,
            buddies,
        })
    }
}

impl Network {
    /// Creates a network of pirates with an edge for each pair of indices into `names`: the first pirate of a pair
    /// knows the second. A repeated edge is ignored. The edges of a pirate stay in the given order.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn new(
        names: Arc<[String]>,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Network, NetworkError> {
        let count = u32::try_from(names.len()).map_err(|_| NetworkError::TooMany(names.len()))?;
        let mut known: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
        for (pirate, buddy) in edges {
            if let Some(index) = [pirate, buddy].into_iter().find(|&index| index >= count) {
                return Err(NetworkError::NoSuchPirate { index, count });
            }
            let name = || names[pirate as usize].clone();
            let known = &mut known[pirate as usize];
            if pirate == buddy {
                return Err(NetworkError::KnowsItself(name()));
            }
            if known.contains(&buddy) {
                continue;
            }
            if known.len() == MAX_BUDDIES {
                return Err(NetworkError::TooManyBuddies(name()));
            }
            known.push(buddy);
        }
        let mut starts = Vec::with_capacity(names.len() + 1);
        starts.push(0);
        starts.extend(known.iter().scan(0, |end, buddies| {
            *end += buddies.len();
            Some(*end)
        }));
        Ok(Network {
            names,
            starts,
            buddies: known.concat(),
        })
    }

    /// Returns the number of pirates.
    pub fn len(&self) -> u32 {
        self.names.len() as u32
    }

    /// True if there are no pirates.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the pirates' names in the order of their indices.
    pub fn names(&self) -> &Arc<[String]> {
        &self.names
    }

    /// Returns the buddies of this pirate.
    ///
    /// # Panics
    /// If there is no pirate with this index.
    pub fn buddies(&self, pirate: u32) -> &[u32] {
        let pirate = pirate as usize;
        &self.buddies[self.starts[pirate]..self.starts[pirate + 1]]
    }

    /// Iterates over all edges (pirate, buddy) in the order of pirates.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.len()).flat_map(|pirate| {
            self.buddies(pirate)
                .iter()
                .map(move |&buddy| (pirate, buddy))
        })
    }
}

/// An error in the names and edges of a network of pirates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// An edge of a pirate that does not exist.
    #[error("an edge refers to pirate {index}, but there are only {count} pirates")]
    NoSuchPirate {
        /// The index of the edge.
        index: u32,
        /// The number of pirates.
        count: u32,
    },
    /// An edge from a pirate to itself.
    #[error("{0} has itself for a buddy; remove that edge")]
    KnowsItself(String),
    /// A pirate with too many edges.
    #[error(
        "{0} has more than {MAX_BUDDIES} buddies, the maximum of a pirate; remove some of its edges"
    )]
    TooManyBuddies(String),
    /// More pirates than addresses.
    #[error("{0} pirates are more than a run has addresses")]
    TooMany(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(count: usize, edges: &[(u32, u32)]) -> Result<Network, NetworkError> {
        let names = (0..count).map(|i| format!("p{i}")).collect();
        Network::new(names, edges.iter().copied())
    }

    #[test]
    fn buddies_keep_the_order_of_their_edges_and_none_comes_twice() {
        let network = network(4, &[(2, 3), (0, 1), (2, 0), (2, 3)]).unwrap();
        assert_eq!(network.buddies(2), [3, 0]);
        assert!(network.buddies(1).is_empty());
        assert_eq!(
            network.edges().collect::<Vec<_>>(),
            [(0, 1), (2, 3), (2, 0)]
        );
    }

    #[test]
    fn an_edge_out_of_range_is_refused() {
        let wrong = NetworkError::NoSuchPirate { index: 4, count: 4 };
        assert_eq!(network(4, &[(0, 4)]), Err(wrong.clone()));
        assert_eq!(network(4, &[(4, 0)]), Err(wrong));
    }

    #[test]
    fn a_pirate_that_knows_itself_is_refused() {
        assert_eq!(
            network(2, &[(1, 1)]),
            Err(NetworkError::KnowsItself("p1".into()))
        );
    }

    #[test]
    fn ten_buddies_are_taken_and_eleven_refused() {
        let edges: Vec<_> = (1..=11).map(|buddy| (0, buddy)).collect();
        assert_eq!(network(12, &edges[..10]).unwrap().buddies(0).len(), 10);
        assert_eq!(
            network(12, &edges),
            Err(NetworkError::TooManyBuddies("p0".into()))
        );
    }
}
