//! Sends the records of actors in other processes to the process that writes them.
//!
//! In a run over several processes, the first process writes the files. Every other process has a [`Relay`]. Its actors
//! use a recorder as usual, and the relay sends their records to the first process in batches. Each batch contains the
//! time up to which the records are complete. In the first process, a [`Source`] moves the records into the lanes of
//! the observer, which writes the records of all processes. So the files equal the files of a single process, byte for
//! byte.
//!
//! Memory is bounded as in a single process: actors that record faster than the observer writes have to wait. While a
//! relay waits, the actors of its process wait.

use crate::recorder::RecordKinds;
use crate::recorder::lane::{Lanes, WriterStep};
use crate::recorder::record::{Record, RecordedEvent};
use crate::times::SavedTimes;
use crate::{Recorder, SavedOutputs, Settings};
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The length in bytes after which a batch is complete.
const LONG: usize = 1 << 18;

/// The header of a batch.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Header {
    /// The time before which all records are in this batch or an earlier batch.
    reached: u64,
    records: u32,
    /// The times measured since the last batch with times. They are sent when the run is saved, and at the end of the
    /// run.
    times: Vec<(String, SavedTimes)>,
    /// The number of checkpoints so far. Times measured before the last checkpoint are in this batch or an earlier
    /// batch.
    saves: u64,
    /// True for the last batch.
    is_last: bool,
}

/// Sends the records of this process's actors to the process that writes them.
#[derive(Debug)]
pub struct Relay {
    lanes: Arc<Lanes>,
    sender: JoinHandle<io::Result<()>>,
}

impl Relay {
    /// Starts a relay for the records that an observer with these settings needs. `send` passes a batch to a
    /// [`Source`], and may block.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(
        settings: &Settings,
        send: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Relay> {
        let lanes = Arc::new(Lanes::new(
            settings.clock.clone(),
            RecordKinds::of(settings),
            0,
        ));
        let taken = Arc::clone(&lanes);
        let sender = std::thread::Builder::new().name("relay".to_owned());
        let sender = sender.spawn(move || {
            let sent = Batches::new(send).send_all(&taken);
            // No thread may wait after the relay has ended.
            taken.close();
            sent
        })?;
        Ok(Relay { lanes, sender })
    }

    /// Returns the recorder for actors.
    pub fn recorder(&self) -> Recorder {
        Recorder::on(Arc::clone(&self.lanes))
    }

    /// Ends the relay: sends the remaining records.
    ///
    /// # Errors
    /// If records could not be sent, now or during the run.
    pub fn finish(self) -> io::Result<()> {
        self.lanes.close();
        let panicked = |_| Err(io::Error::other("the sender of records has failed"));
        self.sender.join().unwrap_or_else(panicked)
    }
}

/// The batches of a relay, and the function that sends them.
struct Batches<S> {
    send: S,
    header: Header,
    /// The number of checkpoints so far.
    saves: u64,
    records: Vec<u8>,
    batch: Vec<u8>,
}

impl<S: FnMut(&[u8]) -> io::Result<()>> Batches<S> {
    fn new(send: S) -> Batches<S> {
        Batches {
            send,
            header: Header::default(),
            saves: 0,
            records: Vec::new(),
            batch: Vec::new(),
        }
    }

    fn send_all(&mut self, lanes: &Lanes) -> io::Result<()> {
        let (mut records, mut spare) = (Vec::new(), Vec::new());
        let mut reported = 0;
        loop {
            let next = lanes.next();
            let saving = lanes.asked_to_save();
            let reached = match (next, &saving) {
                (WriterStep::Last, _) => u64::MAX,
                (WriterStep::Look, Some(saving)) => saving.until.saturating_add(1),
                (WriterStep::Look, None) => lanes.watermark().unwrap_or(0),
            };
            lanes.take(&mut records, &mut spare);
            let count = records.len() as u64;
            records
                .drain(..)
                .try_for_each(|record| self.record(record))?;
            self.header.is_last = next == WriterStep::Last;
            self.saves += u64::from(saving.is_some());
            if saving.is_some() || self.header.is_last {
                self.header.times = lanes.times.take();
            }
            if count > 0 || reached != reported || saving.is_some() || self.header.is_last {
                self.header.reached = reached;
                self.batch()?;
                reported = reached;
            }
            lanes.wrote(count, reached);
            if let Some(saving) = saving {
                // The requester may no longer wait for the answer.
                let _ = saving.answer.send(Ok(SavedOutputs::default()));
            }
            if next == WriterStep::Last {
                return Ok(());
            }
        }
    }

    fn record(&mut self, record: Record) -> io::Result<()> {
        if let RecordedEvent::Population { count, population } = &record.what {
            let node = |index| Record {
                at: record.at,
                actor: record.actor + index,
                what: RecordedEvent::Node(Box::new(population.node(index))),
            };
            return (0..*count).try_for_each(|index| self.record(node(index)));
        }
        let records = std::mem::take(&mut self.records);
        self.records = postcard::to_extend(&record, records).map_err(io::Error::other)?;
        self.header.records += 1;
        match self.records.len() {
            ..LONG => Ok(()),
            _ => self.batch(),
        }
    }

    fn batch(&mut self) -> io::Result<()> {
        self.batch.clear();
        let header = Header {
            saves: self.saves,
            ..std::mem::take(&mut self.header)
        };
        let batch = std::mem::take(&mut self.batch);
        self.batch = postcard::to_extend(&header, batch).map_err(io::Error::other)?;
        self.batch.append(&mut self.records);
        (self.send)(&self.batch)
    }
}

/// Receives the records of another process, in the process that writes them.
#[derive(Debug)]
pub struct Source {
    lanes: Arc<Lanes>,
    number: usize,
}

/// The data is not a batch of a [`Relay`].
#[derive(Debug, thiserror::Error)]
#[error("the records of another process are invalid: {0}")]
pub struct RelayError(postcard::Error);

impl Source {
    pub(crate) fn new(lanes: Arc<Lanes>, number: usize) -> Source {
        Source { lanes, number }
    }

    /// Receives a batch, and waits if there are too many unwritten records. Returns true for the last batch.
    ///
    /// # Errors
    /// If the batch is invalid.
    pub fn receive(&mut self, batch: &[u8]) -> Result<bool, RelayError> {
        let (header, mut rest): (Header, &[u8]) =
            postcard::take_from_bytes(batch).map_err(RelayError)?;
        for _ in 0..header.records {
            let (record, behind) = postcard::take_from_bytes(rest).map_err(RelayError)?;
            rest = behind;
            self.lanes.push_record(record);
        }
        if !rest.is_empty() {
            return Err(RelayError(postcard::Error::SerdeDeCustom));
        }
        // The times are added before the progress is reported, because a run that is saved waits for the progress.
        self.lanes.times.resume(header.times);
        if header.reached > 0 {
            let Header { reached, saves, .. } = header;
            self.lanes.reached(self.number, reached, saves);
        }
        Ok(header.is_last)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // The source records nothing more, so no thread needs to wait for it.
        self.lanes.reached(self.number, u64::MAX, u64::MAX);
    }
}
