//! The nodes that have appeared so far, by actor number.

use crate::{Addresses, Container, Node, Places, Population};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

/// The known nodes, in the order of the records.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// The nodes by actor number. Numbers are assigned in pages, so most entries are used.
    placed: Vec<Option<Arc<NodeIdentity>>>,
    populations: Vec<Members>,
    addresses: Addresses,
    /// Shared strings, because the names of packages and services repeat often.
    words: HashMap<String, Arc<str>>,
}

/// The members of a population, which appear together.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    /// The number of the first actor.
    first: u32,
    pub(crate) count: u32,
    pub(crate) population: Arc<dyn Population>,
    /// The address of the first member.
    addresses: Addresses,
}

impl Members {
    /// Iterates over all members as nodes, in order.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Node, Ipv4Addr)> {
        let mut addresses = self.addresses.clone();
        (0..self.count).map(move |index| {
            let node = self.population.node(index);
            let address = addresses.next(&node.region, &node.zone);
            (node, address)
        })
    }
}

/// The identity of an actor in graphs and in the message log.
#[derive(Clone, Debug)]
pub(crate) enum ActorIdentity {
    /// A single node.
    Placed(Arc<NodeIdentity>),
    /// A member of a population: the population, the member's index in it, and its name.
    Member {
        population: usize,
        index: u32,
        name: Arc<str>,
    },
}

impl ActorIdentity {
    pub(crate) fn name(&self) -> &Arc<str> {
        match self {
            ActorIdentity::Placed(placed) => &placed.name,
            ActorIdentity::Member { name, .. } => name,
        }
    }
}

/// A node that has appeared.
#[derive(Debug)]
pub(crate) struct NodeIdentity {
    pub(crate) name: Arc<str>,
    pub(crate) full_name: Arc<str>,
    pub(crate) service: Arc<str>,
    pub(crate) package: Arc<str>,
    pub(crate) region: Arc<str>,
    pub(crate) zone: Arc<str>,
    pub(crate) address: Ipv4Addr,
    pub(crate) container: Option<Container>,
    /// The endpoint in Zipkin's format. It is stored, because many spans contain it.
    pub(crate) endpoint: Box<RawValue>,
}

/// A node as graphs show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeRecord<'a> {
    pub(crate) name: &'a str,
    pub(crate) service: &'a str,
    pub(crate) package: &'a str,
    pub(crate) region: &'a str,
    pub(crate) zone: &'a str,
    pub(crate) address: Ipv4Addr,
}

impl NodeIdentity {
    pub(crate) fn shown(&self) -> NodeRecord<'_> {
        NodeRecord {
            name: &self.name,
            service: &self.service,
            package: &self.package,
            region: &self.region,
            zone: &self.zone,
            address: self.address,
        }
    }
}

impl<'a> NodeRecord<'a> {
    pub(crate) fn of(node: &'a Node, address: Ipv4Addr) -> NodeRecord<'a> {
        NodeRecord {
            name: &node.name,
            service: &node.service,
            package: &node.package,
            region: &node.region,
            zone: &node.zone,
            address,
        }
    }
}

/// The port of all endpoints, as in spigo.
pub(crate) const PORT: u16 = 8080;

/// The serialized form of a node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SavedNode {
    node: Node,
    address: Ipv4Addr,
}

/// The serialized form of all nodes.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedDirectory {
    /// The single nodes by actor number.
    placed: Vec<(u32, SavedNode)>,
    /// The number of the first actor of each population, the number of its members, and the source of their addresses.
    populations: Vec<(u32, u32, Addresses)>,
    addresses: Addresses,
}

impl NodeIdentity {
    pub(crate) fn save(&self) -> SavedNode {
        let node = Node {
            name: self.name.to_string(),
            full_name: self.full_name.to_string(),
            service: self.service.to_string(),
            package: self.package.to_string(),
            region: self.region.to_string(),
            zone: self.zone.to_string(),
            container: self.container.clone(),
        };
        let address = self.address;
        SavedNode { node, address }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint<'a> {
    service_name: &'a str,
    ipv4: Ipv4Addr,
    port: u16,
}

impl Directory {
    /// Creates a directory without nodes. Nodes will be in these places.
    pub(crate) fn of(places: &Arc<Places>) -> Directory {
        Directory {
            addresses: Addresses::of(places),
            ..Directory::default()
        }
    }

    /// Returns the serialized form.
    pub(crate) fn save(&self) -> SavedDirectory {
        let placed = (0..).zip(&self.placed);
        let populations = self.populations.iter();
        SavedDirectory {
            placed: placed
                .filter_map(|(actor, placed)| Some((actor, placed.as_ref()?.save())))
                .collect(),
            populations: populations
                .map(|members| (members.first, members.count, members.addresses.clone()))
                .collect(),
            addresses: self.addresses.clone(),
        }
    }

    /// Returns the nodes of a saved run in these places. `population` describes the members of all populations.
    pub(crate) fn resume(
        places: &Arc<Places>,
        saved: SavedDirectory,
        population: Option<&Arc<dyn Population>>,
    ) -> Directory {
        let mut directory = Directory {
            addresses: saved.addresses.within(places),
            ..Directory::default()
        };
        for (actor, node) in saved.placed {
            let placed = directory.make(node);
            directory.put(actor, placed);
        }
        let populations = saved
            .populations
            .into_iter()
            .zip(population.into_iter().cycle());
        let populations = populations.map(|((first, count, addresses), population)| Members {
            first,
            count,
            population: Arc::clone(population),
            addresses: addresses.within(places),
        });
        directory.populations = populations.collect();
        directory
    }

    /// Returns the members of the population with this number.
    pub(crate) fn population(&self, number: usize) -> Option<&Members> {
        self.populations.get(number)
    }

    /// Adds an actor that has appeared.
    pub(crate) fn add(&mut self, actor: u32, node: Node) -> Arc<NodeIdentity> {
        let address = self.addresses.next(&node.region, &node.zone);
        self.place(actor, node, address)
    }

    /// Adds actors that appeared together. The first of them has this number. `each` is called with every member and
    /// its address.
    ///
    /// # Errors
    /// Returns the first error of `each`.
    pub(crate) fn add_population<E>(
        &mut self,
        first: u32,
        count: u32,
        population: Arc<dyn Population>,
        mut each: impl FnMut(Node, Ipv4Addr) -> Result<(), E>,
    ) -> Result<&Members, E> {
        let members = Members {
            first,
            count,
            population,
            addresses: self.addresses.clone(),
        };
        for index in 0..count {
            let node = members.population.node(index);
            let address = self.addresses.next(&node.region, &node.zone);
            each(node, address)?;
        }
        self.populations.push(members);
        Ok(&self.populations[self.populations.len() - 1])
    }

    /// Names an actor that no graph shows. Such an actor gets no address, so that the addresses of other nodes do not
    /// change.
    pub(crate) fn call(&mut self, actor: u32, name: &str) -> Arc<NodeIdentity> {
        let node = Node {
            name: name.to_owned(),
            container: None,
            full_name: name.to_owned(),
            service: "unknown".to_owned(),
            package: "unknown".to_owned(),
            region: "*".to_owned(),
            zone: "*".to_owned(),
        };
        self.place(actor, node, Ipv4Addr::UNSPECIFIED)
    }

    fn place(&mut self, actor: u32, node: Node, address: Ipv4Addr) -> Arc<NodeIdentity> {
        let placed = self.make(SavedNode { node, address });
        self.put(actor, Arc::clone(&placed));
        placed
    }

    /// Creates a node with all data that the output files need.
    pub(crate) fn make(&mut self, SavedNode { node, address }: SavedNode) -> Arc<NodeIdentity> {
        let endpoint = Endpoint {
            service_name: &node.full_name,
            ipv4: address,
            port: PORT,
        };
        let endpoint = serde_json::value::to_raw_value(&endpoint)
            .expect("names and numbers can be written as JSON");
        Arc::new(NodeIdentity {
            name: node.name.into(),
            full_name: node.full_name.into(),
            service: self.word(node.service),
            package: self.word(node.package),
            region: self.word(node.region),
            zone: self.word(node.zone),
            address,
            container: node.container,
            endpoint,
        })
    }

    fn put(&mut self, actor: u32, placed: Arc<NodeIdentity>) {
        let place = actor as usize;
        if place >= self.placed.len() {
            self.placed.resize(place + 1, None);
        }
        self.placed[place] = Some(placed);
    }

    /// Returns the node of an actor, if it has appeared.
    pub(crate) fn get(&self, actor: u32) -> Option<&Arc<NodeIdentity>> {
        self.placed.get(actor as usize)?.as_ref()
    }

    /// Returns the identity of an actor. An actor that has not been reported yet gets a placeholder name.
    pub(crate) fn named(&mut self, actor: u32) -> ActorIdentity {
        if let Some(placed) = self.get(actor) {
            return ActorIdentity::Placed(Arc::clone(placed));
        }
        let mut populations = self.populations.iter().enumerate();
        let member = populations.find_map(|(population, members)| {
            let index = actor.checked_sub(members.first)?;
            (index < members.count).then(|| ActorIdentity::Member {
                population,
                index,
                name: members.population.name(index).into(),
            })
        });
        member.unwrap_or_else(|| ActorIdentity::Placed(self.call(actor, &format!("actor{actor}"))))
    }

    fn word(&mut self, word: String) -> Arc<str> {
        let shared = self.words.get(&word).cloned();
        shared.unwrap_or_else(|| {
            let shared: Arc<str> = word.as_str().into();
            self.words.insert(word, Arc::clone(&shared));
            shared
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_written_as_spigo_writes_it() {
        let mut directory = Directory::default();
        let node = Node {
            name: "netflixoss.us-east-1.zoneC.wwwproxy02".into(),
            container: None,
            full_name: "netflixoss.us-east-1.zoneC..wwwproxy02...wwwproxy.zuul".into(),
            service: "wwwproxy".into(),
            package: "zuul".into(),
            region: "us-east-1".into(),
            zone: "zoneC".into(),
        };
        assert_eq!(
            directory.add(7, node).endpoint.get(),
            r#"{"serviceName":"netflixoss.us-east-1.zoneC..wwwproxy02...wwwproxy.zuul","ipv4":"50.19.0.1","port":8080}"#
        );
        assert_eq!(
            &**directory.named(7).name(),
            "netflixoss.us-east-1.zoneC.wwwproxy02"
        );
        assert_eq!(&**directory.named(3).name(), "actor3");
    }

    #[test]
    fn an_actor_in_no_graph_has_a_name_and_takes_no_address() {
        let mut directory = Directory::default();
        let edda = directory.call(1, "netflixoss.*.*.edda");
        assert_eq!(
            (&*edda.name, edda.address),
            ("netflixoss.*.*.edda", Ipv4Addr::UNSPECIFIED)
        );
        let www = Node {
            name: "netflixoss.*.*.www00".into(),
            container: None,
            full_name: "netflixoss.*.*..www00...www.denominator".into(),
            service: "www".into(),
            package: "denominator".into(),
            region: "*".into(),
            zone: "*".into(),
        };
        assert_eq!(directory.add(2, www).address, Ipv4Addr::new(54, 198, 0, 1));
    }
}
