//! Compacts the index automatically when much of its file is unused.
//!
//! The space of removed data is reused within the file. So the file need not be compacted while the amount of data
//! stays about the same. If the amount of data decreases, the file is longer than necessary.

use crate::index::IndexSize;
use crate::inner::{Inner, wait};
use std::sync::Arc;
use std::time::Duration;

/// The pause between two checks of the file.
const PAUSE: Duration = Duration::from_secs(3);
/// The default number of unused bytes.
pub(crate) const MOST: u64 = 256 << 20;

/// Compacts the index whenever at least `most` bytes, and at least half of its file, are unused.
pub(crate) async fn run(node: Arc<Inner>, most: u64) {
    // The length of the file after the last attempt. A file of this length is not compacted again.
    let mut before = 0;
    while wait(&node, PAUSE).await {
        let Ok(Some(room)) = node.index.room().await else {
            continue;
        };
        if !is_worth_it(room, most, before) || !node.disk.has(room.needed) {
            continue;
        }
        match node.index.compact().await {
            Ok((from, to)) => {
                node.metrics.compactions.inc();
                tracing::info!("the index had {from} bytes, and has {to} after a compaction");
                before = to;
            }
            Err(error) => {
                tracing::warn!("the index is not compacted: {error}");
                before = room.length;
            }
        }
    }
}

fn is_worth_it(room: IndexSize, most: u64, before: u64) -> bool {
    let waste = room.length.saturating_sub(room.needed);
    waste >= most && waste >= room.length / 2 && room.length >= before.saturating_mul(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_compacted_when_much_and_half_of_it_is_unused_and_the_last_time_helped() {
        let room = |length, needed| IndexSize { length, needed };
        assert!(is_worth_it(room(1000, 400), 500, 0));
        assert!(!is_worth_it(room(1000, 400), 601, 0));
        assert!(!is_worth_it(room(1000, 600), 100, 0));
        assert!(!is_worth_it(room(1000, 400), 500, 501));
        assert!(!is_worth_it(room(100, 4000), 500, 0));
    }
}
