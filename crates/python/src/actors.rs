//! Actors written in Python, in virtual time.
//!
//! The engine runs the actors on the calling thread, which is attached to the interpreter the whole time. So there is
//! one worker, and no other thread ever runs Python. The [`Context`] records the requests of a handler. The requests
//! are carried out after the handler has returned, so Python never has a reference to an object of the engine.

mod context;
mod fingerprint;
mod mail;
mod relay;
mod saving;
mod simulation;

pub use context::Context;
pub use simulation::Simulation;
