//! The names and addresses of a test.

use corsair::{Addr, AddrRange};

/// The address of the first node. The second spawn of a run begins with the second page.
const FIRST: u32 = 256;

/// The names of Maelstrom's services.
pub const SERVICES: [&str; 4] = ["lin-kv", "seq-kv", "lww-kv", "lin-tso"];

/// The nodes, services and clients of a test, which are spawned together in this order.
///
/// ```
/// use corsair_maelstrom::Cluster;
///
/// let cluster = Cluster::new(3, 2);
/// assert_eq!(cluster.name(cluster.node(2)), "n2");
/// assert_eq!(cluster.find("c1"), Some(cluster.client(1)));
/// assert!(cluster.find("lin-kv").is_some());
/// assert_eq!(cluster.find("n3"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    nodes: u32,
    clients: u32,
}

impl Cluster {
    /// Returns the cluster with these numbers of nodes and clients.
    pub fn new(nodes: u32, clients: u32) -> Cluster {
        Cluster { nodes, clients }
    }

    /// Returns the addresses of the nodes.
    pub fn nodes(&self) -> AddrRange {
        AddrRange::new(Addr::from_u32(FIRST), self.nodes)
    }

    /// Returns the address of a node, from 0.
    ///
    /// # Panics
    /// If the cluster has fewer nodes.
    pub fn node(&self, index: u32) -> Addr {
        self.nodes().get(index)
    }

    /// Returns the address of a client, from 0.
    ///
    /// # Panics
    /// If the cluster has fewer clients.
    pub fn client(&self, index: u32) -> Addr {
        let first = FIRST + self.nodes + SERVICES.len() as u32;
        AddrRange::new(Addr::from_u32(first), self.clients).get(index)
    }

    /// Returns the address of the service with this index in [`SERVICES`].
    fn service(&self, index: u32) -> Addr {
        Addr::from_u32(FIRST + self.nodes + index)
    }

    /// Returns the address of a node, service or client.
    pub fn find(&self, name: &str) -> Option<Addr> {
        if let Some(index) = SERVICES.iter().position(|service| *service == name) {
            return Some(self.service(index as u32));
        }
        // `n01` and `n+1` are not names of nodes.
        let number = |digits: &str| {
            let index = digits.parse::<u32>().ok()?;
            (index.to_string() == digits).then_some(index)
        };
        let index = name.get(1..).and_then(number)?;
        match name.as_bytes()[0] {
            b'n' => (index < self.nodes).then(|| self.node(index)),
            b'c' => (index < self.clients).then(|| self.client(index)),
            _ => None,
        }
    }

    /// Returns the name of an address: `n0`, `c0`, or the name of a service.
    pub fn name(&self, addr: Addr) -> String {
        let index = addr.as_u32().wrapping_sub(FIRST);
        let services = SERVICES.len() as u32;
        match index.checked_sub(self.nodes) {
            None => format!("n{index}"),
            Some(service) if service < services => SERVICES[service as usize].to_owned(),
            Some(other) => format!("c{}", other - services),
        }
    }

    /// True for the address of a client.
    pub fn is_client(&self, addr: Addr) -> bool {
        let others = FIRST + self.nodes + SERVICES.len() as u32;
        addr.as_u32().wrapping_sub(others) < self.clients
    }

    pub(crate) fn len(&self) -> u32 {
        self.nodes + SERVICES.len() as u32 + self.clients
    }

    pub(crate) fn node_count(&self) -> u32 {
        self.nodes
    }

    /// Returns the role of a node, service or client by its index in the spawn.
    pub(crate) fn role(&self, index: u32) -> Role {
        let services = SERVICES.len() as u32;
        match index.checked_sub(self.nodes) {
            None => Role::Node(index),
            Some(service) if service < services => Role::Service(service),
            Some(other) => Role::Client(other - services),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Node(u32),
    Service(u32),
    Client(u32),
}
