//! The names of the FSM and its pirates.

use corsair::fsm::pirate_name;
use corsair::{Addr, AddrRange};
use std::borrow::Cow;
use std::sync::Arc;

/// The names of the actors of one run.
#[derive(Clone, Debug)]
pub struct Names {
    arch: String,
    listed: Option<Arc<[String]>>,
    pirates: AddrRange,
}

impl Names {
    /// The names of these pirates: those listed, or made from the architecture's.
    pub fn new(arch: &str, listed: Option<Arc<[String]>>, pirates: AddrRange) -> Names {
        Names {
            arch: arch.to_owned(),
            listed,
            pirates,
        }
    }

    /// The name of the pirate with this index.
    pub fn pirate(&self, index: u32) -> Cow<'_, str> {
        match self
            .listed
            .as_ref()
            .and_then(|names| names.get(index as usize))
        {
            Some(name) => name.as_str().into(),
            None => pirate_name(&self.arch, index).into(),
        }
    }

    /// The name of the actor at this address; what is no pirate is the FSM.
    pub fn of(&self, addr: Addr) -> Cow<'_, str> {
        match self.pirates.index_of(addr) {
            Some(index) => self.pirate(index),
            None => "fsm".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pirates_have_names_and_all_else_is_the_fsm() {
        let pirates = AddrRange::new(Addr::from_u32(64), 2);
        let names = Names::new("fsm", None, pirates);
        assert_eq!(
            names.of(Addr::from_u32(65)),
            "fsm.atlantic.bermuda.blackbeard1.pirate"
        );
        assert_eq!(names.of(Addr::from_u32(0)), "fsm");
        let listed = ["anne", "bart"].map(String::from).into();
        assert_eq!(
            Names::new("fsm", Some(listed), pirates).of(Addr::from_u32(64)),
            "anne"
        );
    }
}
