//! Making the events of multicasts.

use super::Engine;
use crate::contract::Message;
use crate::virtual_time::multicast::Multicast;
use crate::virtual_time::shard::Shard;

impl<M: Message> Engine<M> {
    /// Makes the messages for this shard's actors.
    #[cold]
    #[inline(never)]
    pub(super) fn send_own(&mut self, multicasts: Vec<Multicast<Shard<M>>>) {
        for Multicast { label, bodies } in multicasts {
            for receivers in label.pages() {
                if self
                    .shard()
                    .places
                    .owns(label.first.wrapping_add(receivers.start))
                {
                    bodies.send(label, receivers, self.shard);
                }
            }
        }
    }

    /// Makes all messages of this shard's multicasts, because the run pauses or ends before the shards share
    /// that work.
    #[cold]
    pub(super) fn send_all(&mut self) {
        for Multicast { label, bodies } in std::mem::take(&mut self.shard().multicasts) {
            bodies.send(label, 0..label.count, self.shard);
        }
    }
}
