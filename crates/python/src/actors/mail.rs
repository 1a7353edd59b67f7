//! The message of actors that are written in Python.

use corsair::Message;
use pyo3::prelude::*;

/// A message between actors that are written in Python.
#[derive(Debug)]
pub struct Mail {
    /// The Python message; `None` starts the actor.
    pub body: Option<Py<PyAny>>,
    pub fingerprint: u64,
}

impl Message for Mail {
    const KINDS: &'static [&'static str] = &["start", "message"];

    fn kind(&self) -> usize {
        self.body.is_some().into()
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}
