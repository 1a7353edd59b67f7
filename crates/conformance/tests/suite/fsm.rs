//! The pirates and the FSM.

mod digest;
mod gold;
mod loss;
mod pinned;
mod watch;
