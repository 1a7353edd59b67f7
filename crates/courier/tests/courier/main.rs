//! The service from the point of view of its clients: over HTTP and WebSockets, with a node in this process.

mod abuse;
mod accounts;
mod bad_frames;
mod bad_requests;
mod client_needs;
mod damage;
mod delivery;
mod idempotency;
mod keeping;
mod limits;
mod members;
mod model;
mod node;
mod pages;
mod presence;
mod sessions;
mod shutdown;
mod slow_readers;
