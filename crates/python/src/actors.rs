//! Actors written in Python, in virtual time.
//!
//! The engine runs them on the thread that calls it, which holds the interpreter all the while; so there is
//! one worker, and no other thread is ever asked to run Python. A handler's wishes are noted in the
//! [`Context`] and carried out when it has returned: Python never holds anything of the engine's.

mod context;
mod fingerprint;
mod relay;
mod saving;
mod simulation;

pub use context::Context;
pub use simulation::Simulation;
