//! The names of the FSM and its pirates.

use corsair::fsm::pirate_name;
use corsair::{Addr, AddrRange};
use corsair_observe::{Node, Population};
use std::borrow::Cow;
use std::sync::Arc;

/// The kind of nodes in the FSM's graphs.
pub const PIRATE: &str = "pirate";

/// The names of the actors of one run.
#[derive(Clone, Debug)]
pub struct Names {
    arch: String,
    listed: Option<Arc<[String]>>,
    pirates: AddrRange,
}

impl Names {
    /// Creates the names of pirates: the listed names, or names made from the name of the architecture.
    pub fn new(arch: &str, listed: Option<Arc<[String]>>) -> Names {
        Names {
            arch: arch.to_owned(),
            listed,
            pirates: AddrRange::new(Addr::NONE, 0),
        }
    }

    /// Returns the names, for pirates at these addresses.
    pub fn at(self, pirates: AddrRange) -> Names {
        Names { pirates, ..self }
    }

    /// Returns the name of the actor at this address: a pirate, or else the FSM.
    pub fn of(&self, addr: Addr) -> Cow<'_, str> {
        match self.pirates.index_of(addr) {
            Some(index) => self.name(index),
            None => "fsm".into(),
        }
    }
}

impl Population for Names {
    fn name(&self, index: u32) -> Cow<'_, str> {
        let listed = self.listed.as_ref();
        match listed.and_then(|names| names.get(index as usize)) {
            Some(name) => name.as_str().into(),
            None => pirate_name(&self.arch, index).into(),
        }
    }

    /// Returns a pirate as a node, with its place in the name: `fsm.atlantic.bermuda.blackbeard1.pirate`.
    fn node(&self, index: u32) -> Node {
        let name = self.name(index).into_owned();
        let mut parts = name.split('.').skip(1);
        let mut part = || parts.next().unwrap_or("*").to_owned();
        let (region, zone) = (part(), part());
        Node {
            container: None,
            full_name: name.clone(),
            name,
            service: PIRATE.to_owned(),
            package: PIRATE.to_owned(),
            region,
            zone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pirates_have_names_and_all_else_is_the_fsm() {
        let pirates = AddrRange::new(Addr::from_u32(64), 2);
        let names = Names::new("fsm", None).at(pirates);
        assert_eq!(
            names.of(Addr::from_u32(65)),
            "fsm.atlantic.bermuda.blackbeard1.pirate"
        );
        assert_eq!(names.of(Addr::from_u32(0)), "fsm");
        let listed = ["anne", "bart"].map(String::from).into();
        let names = Names::new("fsm", Some(listed)).at(pirates);
        assert_eq!(names.of(Addr::from_u32(64)), "anne");
    }

    #[test]
    fn a_name_says_where_a_pirate_is() {
        let node = Names::new("fsm", None).node(7);
        assert_eq!((&*node.region, &*node.zone), ("atlantic", "bermuda"));
        let listed = ["anne"].map(String::from).into();
        let node = Names::new("fsm", Some(listed)).node(0);
        assert_eq!((&*node.region, &*node.zone), ("*", "*"));
    }
}
