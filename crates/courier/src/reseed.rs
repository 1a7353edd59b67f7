//! Begins a stream from the data of one node.
//!
//! This is needed if a server has lost entries permanently, and if a single node becomes one of several nodes. The
//! index of the most advanced node becomes the first snapshot of an empty stream, and every other node starts from it.

use crate::backup::BackupError;
use crate::disk::blocking;
use crate::error::StartError;
use crate::index::OpenedIndex;
use crate::log::embedded;
use crate::metrics::Metrics;
use crate::node::connect;
use crate::offline::{Offline, opened};
use crate::options::Options;

/// Begins an empty stream on the server of `options.nats` from the data in `options.data`, on which no node may run.
/// Returns the last entry of the old log in the data.
///
/// # Errors
/// If the stream has entries, there are no data, or something cannot be read or written. An incomplete stream must be
/// removed from the server before the next attempt.
pub async fn reseed(options: Options) -> Result<u64, BackupError> {
    let setting = |reason: &str| StartError::Setting(reason.to_owned());
    let data = options.data.clone();
    let data = data.ok_or_else(|| setting("name the directory of the data with --data"))?;
    let url = options.nats.clone();
    let url = url.ok_or_else(|| setting("name the server of the new stream with --nats"))?;
    let mut index = match opened(&data).await? {
        Offline::Index(index) => index,
        Offline::Node(node) => {
            // After the close, the index has applied the complete log.
            node.close().await;
            drop(node);
            let data = data.clone();
            blocking(move || OpenedIndex::open(Some(&data))).await?
        }
    };
    let known = index.applied().position;
    let (connected, _) = connect(&options, url, Metrics::new()).await?;
    let applied = connected.begin_at_snapshot().await?;
    let log = connected.identity();
    let index = blocking(move || index.continue_with(log, applied).map(|()| index)).await?;
    crate::snapshots::store(&connected, index, &data).await?;
    embedded::remove(&data);
    Ok(known)
}
