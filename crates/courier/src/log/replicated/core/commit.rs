//! Committed entries, and the feed of the index.

use super::state::{Changing, Core, LARGEST_GROUP, LARGEST_RECORD};
use crate::log::Entry;
use crate::log::replicated::entry::{decode, origin};
use crate::log::replicated::membership::change;
use crossbeam_channel::TrySendError;
use raft::eraftpb::Entry as LogEntry;
use std::sync::Arc;

impl Core {
    /// Handles committed entries.
    pub(super) fn commit(&mut self, entries: Vec<LogEntry>) {
        let Some(last) = entries.last() else { return };
        let (position, term) = (last.index, last.term);
        let before = self.current.term;
        for entry in &entries {
            if let Some(change) = change(entry) {
                if let Err(error) = self.raft.apply_conf_change(&change) {
                    tracing::error!("a change of the members cannot be applied: {error}");
                }
                self.current.apply(entry);
                self.shared
                    .current
                    .send_replace(Arc::new(self.current.clone()));
            }
            if let Some((origin, number)) = origin(entry)
                && origin == self.origin
                && let Some(pending) = self.pending.get_mut(&number)
            {
                pending.data = None;
                self.idle = 0;
            }
        }
        (self.current.position, self.current.term) = (position, term);
        self.committed = position;
        let is_over =
            |changing: &mut Changing| changing.position <= position || changing.term < term;
        for changing in self.changing.extract_if(.., is_over) {
            let is_done = entries.iter().any(|entry| {
                (entry.index, entry.term) == (changing.position, changing.term)
                    && change(entry).is_some_and(|change| change.node_id == changing.node)
            });
            // Another leader may have been elected.
            let _ = changing
                .reply
                .send(if is_done { Ok(()) } else { Err(None) });
        }
        if term > before {
            self.propose_lost();
        }
    }

    /// Passes committed entries to the index, as many as it takes now.
    pub(super) fn feed_index(&mut self) {
        let mut stopped = None;
        while self.fed < self.committed
            && let Some(feed) = &self.feed
            && !feed.is_full()
        {
            let mut group = Vec::new();
            let mut bytes = 0;
            while self.fed + (group.len() as u64) < self.committed
                && group.len() < LARGEST_GROUP
                && bytes < LARGEST_RECORD
            {
                let position = self.fed + group.len() as u64 + 1;
                let Some(stored) = self.raft.store().entry(position) else {
                    stopped = Some(format!("entry {position} of its log is missing"));
                    break;
                };
                bytes += stored.data.len();
                match decode(stored) {
                    Ok(entry) => {
                        let own = origin(stored).filter(|(origin, _)| *origin == self.origin);
                        let pending = own.and_then(|(_, number)| self.pending.remove(&number));
                        let reply = pending.map(|pending| pending.reply);
                        group.push(Entry { reply, ..entry });
                    }
                    Err(reason) => {
                        stopped = Some(reason);
                        break;
                    }
                }
            }
            let count = group.len() as u64;
            if count > 0 {
                match feed.try_send(group) {
                    Ok(()) => self.fed += count,
                    // This thread is the only one that fills the channel.
                    Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                        self.feed = None;
                        return;
                    }
                }
            }
            if let Some(reason) = stopped.take() {
                return self.stop(reason);
            }
        }
    }
}
