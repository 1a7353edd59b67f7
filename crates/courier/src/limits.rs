//! What a node refuses.

use std::num::NonZeroU32;
use std::time::Duration;

/// What a node refuses. Each refusal is counted in `courier_refused_total`.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body; more is 413.
    pub body: usize,
    /// Bytes of a message's text; more is 413.
    pub text: usize,
    /// Recipients of a conversation; more is 413.
    pub recipients: usize,
    /// Connections at a time; one more is answered 503 and closed.
    pub connections: usize,
    /// Sockets of one user on this node; one more is 429.
    pub sockets: usize,
    /// Requests of one user per second, and at once; more is 429.
    pub rate: NonZeroU32,
    /// Logins, new users and wrong tokens from one IP address per second, and at once; more is 429.
    pub strangers: NonZeroU32,
    /// Bytes of a WebSocket message from a client; a larger one closes the socket (1009).
    pub frame: usize,
    /// Messages or conversations of one page; more are given as so many.
    pub page: usize,
    /// How often a socket is pinged. One from which nothing comes any more is dead within three
    /// times as long.
    pub heartbeat: Duration,
    /// How long a token is good for.
    pub session: Duration,
    /// How long a client may take for the head of a request, and as long again for its body (408).
    pub head: Duration,
    /// Memory that the hash of a password takes, in KiB; less is faster, for tests.
    pub password_memory: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 256 << 10,
            text: 16 << 10,
            recipients: 10_000,
            connections: 20_000,
            sockets: 16,
            rate: NonZeroU32::new(100).expect("100 is not 0"),
            strangers: NonZeroU32::new(20).expect("20 is not 0"),
            frame: 4 << 10,
            page: 500,
            heartbeat: Duration::from_secs(20),
            session: Duration::from_secs(30 * 24 * 60 * 60),
            head: Duration::from_secs(10),
            password_memory: 19 << 10,
        }
    }
}

/// Bytes of a user's name.
pub(crate) const LONGEST_NAME: usize = 64;
/// Bytes of a password.
pub(crate) const SHORTEST_PASSWORD: usize = 8;
/// Bytes of a password.
pub(crate) const LONGEST_PASSWORD: usize = 1024;
/// Bytes of an idempotency key.
pub(crate) const LONGEST_KEY: usize = 255;
