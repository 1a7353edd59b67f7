//! Removes messages beyond the configured age or size.
//!
//! Messages are removed by a command, so all nodes that share a log remove the same messages. The shortest time and the
//! smallest size that are configured on any node apply.

use crate::command::{Command, CommandResult};
use crate::index::{Chunk, IndexError, Stock};
use crate::inner::{Failure, Inner, wait};
use crate::model::Millis;
use std::sync::Arc;
use std::time::Duration;

/// The maximum interval of checks for messages to remove.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The minimum interval. Checks are made at least ten times within the age limit.
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of messages that are removed by one command.
const TOGETHER: u32 = 256;
/// The pause between two commands that remove messages, so that other commands are not delayed.
const BREATH: Duration = Duration::from_millis(20);

/// The rule for removing messages. See the [module](self).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    keep: Option<Duration>,
    keep_bytes: Option<u64>,
    pause: Duration,
}

impl Retention {
    /// Creates the rule: messages are kept for this time, and up to this many bytes.
    pub fn new(keep: Option<Duration>, keep_bytes: Option<u64>) -> Retention {
        let often = keep.map_or(LONGEST_PAUSE, |keep| keep / 10);
        Retention {
            keep,
            keep_bytes,
            pause: often.clamp(SHORTEST_PAUSE, LONGEST_PAUSE),
        }
    }

    /// Removes messages as long as the node runs.
    pub async fn run(self, node: Arc<Inner>) {
        // With a size limit, checks are frequent, because many messages may arrive between two checks.
        let pause = match self.keep_bytes {
            Some(_) => self.pause.min(Duration::from_secs(1)),
            None => self.pause,
        };
        while wait(&node, pause).await {
            match self.remove(&node).await {
                // Removal is tried again after the next pause.
                Ok(()) | Err(Failure::Log(_) | Failure::Late(_)) => {}
                Err(error) => tracing::warn!("old messages cannot be removed: {error}"),
            }
        }
    }

    async fn remove(&self, node: &Inner) -> Result<(), Failure> {
        while let Some(Chunk(through)) = self.over(node).await? {
            let command = Command::Expire {
                through,
                most: TOGETHER,
            };
            match node.command(command).await? {
                // Another node has already removed the messages.
                CommandResult::Expired(0) => return Ok(()),
                CommandResult::Expired(count) => node.metrics.expired.inc_by(count.into()),
                _ => unreachable!("what was removed was counted"),
            };
            if !wait(node, BREATH).await {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns the oldest chunk, if it must be removed.
    async fn over(&self, node: &Inner) -> Result<Option<Chunk>, IndexError> {
        let Stock { bytes, oldest } = node.index.stock().await?;
        let Some((chunk, newest)) = oldest else {
            return Ok(None);
        };
        let keep = self.keep.map(|keep| keep.as_millis() as u64);
        let old = keep.is_some_and(|keep| newest.0.saturating_add(keep) < Millis::now().0);
        let much = self.keep_bytes.is_some_and(|most| bytes > most);
        Ok((old || much).then_some(chunk))
    }
}
