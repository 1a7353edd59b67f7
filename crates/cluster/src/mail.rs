//! Messages to the first process, which travel with the batches of events.
//!
//! ```text
//! batch for process 0    the events, the mail, the length of the events (8 bytes)
//! mail                   for each message its topic (1 byte), its length (8 bytes) and its bytes
//! ```

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The maximum number of unread messages of a topic in the first process; when it is reached, workers wait for the
/// reader.
const WAITING: usize = 64;

/// The topic of a message to the first process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Records of actors.
    Records,
    /// Reports about the checkpoint files that a process has written.
    Checkpoints,
}

const TOPICS: [Topic; 2] = [Topic::Records, Topic::Checkpoints];

/// Accepts messages for the first process, which receives them after the next exchange of batches.
///
/// Posting never waits: a mailbox buffers the messages of one window. The first process does not use its own mailbox.
#[derive(Clone, Debug, Default)]
pub struct Mailbox(Arc<Mutex<Vec<u8>>>);

impl Mailbox {
    /// Adds a message.
    pub fn post(&self, topic: Topic, message: &[u8]) {
        let mut mail = self.0.lock();
        mail.push(topic as u8);
        mail.extend_from_slice(&(message.len() as u64).to_le_bytes());
        mail.extend_from_slice(message);
    }

    /// Moves all messages to the end of a batch, behind its events.
    pub(crate) fn move_to(&self, batch: &mut Vec<u8>) {
        let events = batch.len() as u64;
        batch.append(&mut self.0.lock());
        batch.extend_from_slice(&events.to_le_bytes());
    }
}

/// A message, with the number of its sending process.
type From = (usize, Vec<u8>);

/// The receiving side, in the first process.
#[derive(Debug, Default)]
pub(crate) struct Inbox([Option<SyncSender<From>>; TOPICS.len()]);

impl Inbox {
    /// Returns the receiver of a topic's messages, each with the number of its sending process. The receiver ends when
    /// the inbox is dropped. Messages of a topic without a receiver are dropped.
    pub(crate) fn receiver(&mut self, topic: Topic) -> Receiver<From> {
        let (sender, receiver) = sync_channel(WAITING);
        self.0[topic as usize] = Some(sender);
        receiver
    }

    /// Removes the mail from a batch and delivers it. Returns `None` if the mail cannot be decoded.
    pub(crate) fn deliver(&self, from: usize, batch: &mut Vec<u8>) -> Option<()> {
        let (rest, events) = batch.split_last_chunk::<8>()?;
        let events = usize::try_from(u64::from_le_bytes(*events)).ok()?;
        let mut mail = rest.get(events..)?;
        while let Some((&topic, rest)) = mail.split_first() {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let (message, rest) = rest.split_at_checked(length)?;
            let topic = TOPICS.into_iter().find(|&known| known as u8 == topic)?;
            if let Some(to) = &self.0[topic as usize] {
                // An error means that the receiver was dropped; the message is then not needed.
                let _ = to.send((from, message.to_vec()));
            }
            mail = rest;
        }
        batch.truncate(events);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_arrives_by_topic_and_in_order_and_the_events_stay() {
        let (mailbox, mut inbox) = (Mailbox::default(), Inbox::default());
        let records = inbox.receiver(Topic::Records);
        let checkpoints = inbox.receiver(Topic::Checkpoints);
        mailbox.post(Topic::Records, b"one");
        mailbox.post(Topic::Checkpoints, b"");
        mailbox.post(Topic::Records, b"two");
        let mut batch = b"events".to_vec();
        mailbox.move_to(&mut batch);
        inbox.deliver(3, &mut batch).unwrap();
        assert_eq!(batch, b"events");
        let all: Vec<_> = records.try_iter().collect();
        assert_eq!(all, [(3, b"one".to_vec()), (3, b"two".to_vec())]);
        assert_eq!(checkpoints.try_iter().count(), 1);
        // A message is delivered only once.
        mailbox.move_to(&mut batch);
        inbox.deliver(3, &mut batch).unwrap();
        assert_eq!(
            (batch.as_slice(), records.try_iter().count()),
            (&b"events"[..], 0)
        );
    }

    #[test]
    fn mail_that_is_shorter_than_it_says_or_of_no_topic_is_refused() {
        let mailbox = Mailbox::default();
        mailbox.post(Topic::Records, b"message");
        let mut whole = b"events".to_vec();
        mailbox.move_to(&mut whole);
        let read = |mut batch: Vec<u8>| Inbox::default().deliver(1, &mut batch);
        assert!(read(whole.clone()).is_some());
        assert!((0..8).all(|length| read(whole[..length].to_vec()).is_none()));
        // Corrupt the topic, the length (too long, too short), and the offset of the mail in the batch.
        for (at, byte) in [(6, 9), (7, 200), (14, 1), (7, 5), (whole.len() - 1, 1)] {
            let mut changed = whole.clone();
            changed[at] = byte;
            assert!(read(changed).is_none(), "{byte} at {at}");
        }
    }
}
