//! Requests to other members, and the credentials for them.

use super::link;
use super::wire::{Answer, FORMAT, Hello, Request};
use crate::seal::Key;
use crate::tls::Secure;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// The silence after which a connection is closed.
pub(super) const SILENCE: Duration = Duration::from_secs(4);
/// The pause before a connection is opened again.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The time limit of a change of the members.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);

/// The address and the credentials of a node, with which it opens connections.
#[derive(Clone)]
pub(crate) struct Credentials {
    pub key: Key,
    pub secure: Option<Secure>,
    pub address: String,
}

/// Returns the first message of a node.
pub(super) fn hello(cluster: u64, node: u64, address: &str) -> io::Result<Hello> {
    let mut nonce = [0; 32];
    getrandom::fill(&mut nonce).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(Hello {
        format: FORMAT,
        cluster,
        node,
        address: address.to_owned(),
        nonce,
    })
}

/// Sends a request to the member at an address, and returns the answer.
///
/// # Errors
/// The member cannot be reached, or does not have the common key.
pub(super) async fn ask(
    address: &str,
    secure: Option<&Secure>,
    key: &Key,
    hello: Hello,
    request: &Request,
) -> io::Result<Answer> {
    let mut link = link::connect(address, secure, key, hello).await?;
    link.writer.send(request).await?;
    let answer = timeout(PATIENCE + SILENCE, link.reader.receive()).await;
    answer.map_err(|_| io::ErrorKind::TimedOut)?
}
