//! The limits of a node.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

/// The limits of a node. Each refusal is counted in `courier_refused_total`.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The maximum bytes of a request's body (413).
    pub body: usize,
    /// The maximum bytes of a message's text (413).
    pub text: usize,
    /// The maximum number of recipients of a conversation (413).
    pub recipients: usize,
    /// The maximum number of connections; a further one is answered with 503 and closed.
    pub connections: usize,
    /// The maximum number of connections from one address, except a trusted proxy; a further one is answered with 503
    /// and closed.
    pub address_connections: usize,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpAddr>,
    /// The maximum number of sockets of one user on this node (429).
    pub sockets: usize,
    /// Requests of one user per second, which is also the burst; further ones are answered with 429. The
    /// limit also applies to frames of a socket.
    pub rate: NonZeroU32,
    /// The maximum number of recipients of one user's messages per second, and in a burst (429).
    pub fanout: NonZeroU32,
    /// The maximum number of logins, new users and wrong tokens per second from one IP address, and in a burst. The
    /// same limit applies to logins to one account (429).
    pub strangers: NonZeroU32,
    /// The maximum bytes of a WebSocket message from a client; a larger one closes the socket (1009).
    pub frame: usize,
    /// The maximum number of messages or conversations on one page, even if a request asks for more.
    pub page: usize,
    /// The maximum bytes of one page, which nevertheless has at least one item.
    pub page_bytes: usize,
    /// The maximum bytes of one user's pages that the client has not read yet (429).
    pub unread: usize,
    /// The maximum bytes of messages that wait for one socket; further messages stay in the durable queue.
    pub outbox: usize,
    /// The time in which a client must read 4 KiB of an answer before its connection is closed.
    pub write: Duration,
    /// The interval of pings. A socket that is silent for three intervals is dead.
    pub heartbeat: Duration,
    /// The time for which a token is valid.
    pub session: Duration,
    /// The time in which a client must send the head of a request, and then its body (408).
    pub head: Duration,
    /// The memory that hashing a password takes, in KiB; less is faster, for tests.
    pub password_memory: u32,
    /// The bytes to leave free on the disk of the data. If fewer are free, writes are refused (503).
    pub reserve: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body: 256 << 10,
            text: 16 << 10,
            recipients: 10_000,
            connections: 20_000,
            address_connections: 2_000,
            trusted_proxies: Vec::new(),
            sockets: 16,
            rate: NonZeroU32::new(100).expect("100 is not 0"),
            fanout: NonZeroU32::new(10_000).expect("10,000 is not 0"),
            strangers: NonZeroU32::new(20).expect("20 is not 0"),
            frame: 4 << 10,
            page: 500,
            page_bytes: 256 << 10,
            unread: 1 << 20,
            outbox: 64 << 10,
            write: Duration::from_secs(10),
            heartbeat: Duration::from_secs(20),
            session: Duration::from_secs(30 * 24 * 60 * 60),
            head: Duration::from_secs(10),
            password_memory: 19 << 10,
            reserve: 64 << 20,
        }
    }
}

impl Limits {
    /// Checks that the limits are consistent.
    ///
    /// # Errors
    /// A sentence about the first invalid limit.
    pub fn check(&self) -> Result<(), String> {
        const SHORTEST: Duration = Duration::from_millis(1);
        const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
        // Two concurrent hashes with this much memory fit into any machine.
        const MOST_MEMORY: u32 = 1 << 20;
        let times = [
            ("--heartbeat", self.heartbeat),
            ("--write-timeout", self.write),
        ];
        for (flag, time) in times {
            if !(SHORTEST..=LONGEST).contains(&time) {
                return Err(format!("{flag} must be from 1ms to 24h, not {time:?}"));
            }
        }
        if self.page_bytes < 1024 {
            return Err(format!(
                "--page-bytes {} is too small; give 1024 or more",
                self.page_bytes
            ));
        }
        if self.text > self.body {
            return Err(format!(
                "--text {} is larger than --body {}, which has to hold it; raise --body",
                self.text, self.body
            ));
        }
        if self.address_connections > self.connections {
            return Err(format!(
                "--address-connections {} is more than --connections {}; lower it",
                self.address_connections, self.connections
            ));
        }
        if self.unread < self.page_bytes {
            return Err(format!(
                "--unread {} is less than a page of --page-bytes {}; raise it",
                self.unread, self.page_bytes
            ));
        }
        if !(8..=MOST_MEMORY).contains(&self.password_memory) {
            return Err(format!(
                "--password-memory is from 8 to {MOST_MEMORY} KiB, not {}",
                self.password_memory
            ));
        }
        Ok(())
    }
}

/// The maximum length of a user's name in bytes.
pub(crate) const LONGEST_NAME: usize = 64;
/// The minimum length of a password in characters.
pub(crate) const SHORTEST_PASSWORD: usize = 8;
/// The maximum length of a password in bytes.
pub(crate) const LONGEST_PASSWORD: usize = 1024;
/// The maximum length of a conversation's title in bytes.
pub(crate) const LONGEST_TITLE: usize = 256;
/// The maximum length of an idempotency key in bytes.
pub(crate) const LONGEST_KEY: usize = 255;
/// The maximum bytes of pages of all users that clients have not read yet (503).
pub(crate) const MOST_UNREAD: usize = 256 << 20;
/// The maximum number of recipients of messages in the log at a time. Messages to fewer than [`FEW`] do not
/// count, so they never wait for messages to many.
pub(crate) const MOST_FANOUT: u32 = 10_000;
pub(crate) const FEW: u32 = 100;
