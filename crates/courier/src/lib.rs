//! A messaging service: messages are posted over HTTP and received over WebSockets, and none is
//! lost.
//!
//! Guarantees:
//! - a POST is answered with success only when its message is durable;
//! - every recipient gets every message, in the order of its conversation, with a sequence number
//!   that has no gaps; unacknowledged messages are sent again, at whichever node the client
//!   connects to;
//! - a POST that is repeated with the same `Idempotency-Key` stores one message;
//! - a client that reads slowly costs other clients nothing.
//!
//! ```text
//!   POST ──▶ log: one order, durable ──▶ index: users, conversations, a queue per user
//!            alone, or replicated by Raft  │
//!                                          ▼
//!                       hub: an actor per online user ──▶ its WebSockets
//! ```
//!
//! A [`Node`] is the complete service in one process; [`serve`] listens for connections.
#![forbid(unsafe_code)]

mod acknowledgements;
mod backup;
mod cluster;
mod command;
mod control;
mod counts;
mod database;
mod disk;
mod error;
mod export;
mod frame;
mod guard;
mod http;
mod hub;
mod index;
mod inner;
mod json;
mod limits;
mod log;
mod metrics;
mod model;
mod names;
mod node;
mod offline;
mod options;
mod password;
mod presence;
pub mod process;
mod rates;
mod readiness;
mod recipients;
mod retention;
mod seal;
mod sessions;
mod tls;
mod token;
mod waste;

pub use backup::BackupError;
pub use cluster::MemberRequest;
pub use cluster::begin::recover;
pub use error::StartError;
pub use export::{export, import};
pub use frame::UserInfo;
pub use guard::hush_guarded_panics;
pub use http::{ServeOptions, Serving, serve, serve_with};
pub use limits::Limits;
pub use model::{ConversationId, Message, Millis, UserId};
pub use node::Node;
pub use offline::{backup, change_members, compact, restore};
pub use options::{Options, Registration};
pub use tls::Tls;
