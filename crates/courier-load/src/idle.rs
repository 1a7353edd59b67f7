//! The cost of idle sockets.

use crate::LoadError;
use crate::client::{ClientError, Http, Socket};
use crate::crowd::Crowd;
use std::time::Duration;
use tokio::time::sleep;

/// The number of sockets that are opened at a time.
const TOGETHER: usize = 64;
/// The time until temporary allocations are freed.
const SETTLE: Duration = Duration::from_secs(2);

/// The memory of the node's process, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    /// The number of open sockets, each of a different user.
    pub sockets: usize,
    /// The memory before the sockets were opened, in bytes.
    pub before: u64,
    /// The memory with all sockets open, in bytes.
    pub after: u64,
}

impl Idle {
    /// Returns the memory per socket in bytes.
    pub fn each(&self) -> u64 {
        self.after.saturating_sub(self.before) / self.sockets.max(1) as u64
    }
}

/// Opens sockets at a node in another process, which reports its memory.
///
/// # Errors
/// If a client fails, or the node does not report its memory.
pub async fn idle(host: &str, sockets: usize) -> Result<Idle, LoadError> {
    let crowd = Crowd::gather(host, sockets).await?;
    let mut http = Http::connect(host).await?;
    sleep(SETTLE).await;
    let before = resident(&mut http).await?;
    drop(http);
    let mut open = Vec::with_capacity(sockets);
    for some in crowd.logins().chunks(TOGETHER) {
        let opening: Vec<_> = some
            .iter()
            .map(|login| {
                let (host, token) = (host.to_owned(), login.token.clone());
                tokio::spawn(async move { Socket::open(&host, &token, "?presence=false").await })
            })
            .collect();
        for socket in opening {
            open.push(crate::joined(socket).await??);
        }
    }
    sleep(SETTLE).await;
    // A new connection is used, because the node may have closed the first one after the silence.
    let after = resident(&mut Http::connect(host).await?).await?;
    drop(open);
    Ok(Idle {
        sockets,
        before,
        after,
    })
}

/// Returns the resident memory that the node reports, in bytes.
async fn resident(http: &mut Http) -> Result<u64, ClientError> {
    let metrics = http.metrics().await?;
    metrics
        .lines()
        .find_map(|line| line.strip_prefix("courier_resident_bytes "))
        .and_then(|bytes| bytes.parse().ok())
        .ok_or_else(|| {
            ClientError::Unexpected("the metrics lack courier_resident_bytes".to_owned())
        })
}
