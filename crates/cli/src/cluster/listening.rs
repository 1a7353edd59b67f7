//! The receiver of a process's records: in the first process it writes the files of all processes, in the other
//! processes it sends records to the first one.

use crate::observed;
use crate::options::Options;
use anyhow::{Result, anyhow};
use corsair::cluster::Carrier;
use corsair_cluster::{Member, Topic};
use corsair_observe::{Observer, Recorder, Relay, Settings, Source};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

/// The receiver of a process's records; see the [module](self).
pub enum Listening {
    Observer(Box<Observer>, Option<JoinHandle<Result<()>>>),
    Relay(Relay),
    Nothing,
}

impl Listening {
    /// Starts to receive records.
    ///
    /// # Errors
    /// If a file cannot be written, or the system refuses a thread.
    pub fn start(
        options: &Options,
        mut settings: Settings,
        member: &mut Member<impl Carrier>,
    ) -> Result<Listening> {
        let wants_records = settings.wants_records();
        if member.process() > 0 {
            if !wants_records {
                return Ok(Listening::Nothing);
            }
            let mailbox = member.mailbox();
            let send = move |batch: &[u8]| {
                mailbox.post(Topic::Records, batch);
                Ok(())
            };
            return Ok(Listening::Relay(Relay::start(&settings, send)?));
        }
        settings.sources = match wants_records {
            true => member.processes() - 1,
            false => 0,
        };
        let observer = Observer::start(settings);
        let observer = observer.map_err(|error| observed::with_flag(options, error.into()))?;
        let sources = observer.sources();
        if sources.is_empty() {
            return Ok(Listening::Observer(Box::new(observer), None));
        }
        let records = member.receiver(Topic::Records);
        let thread = std::thread::Builder::new().name("records".to_owned());
        let thread = thread.spawn(move || receive(&records, sources))?;
        Ok(Listening::Observer(Box::new(observer), Some(thread)))
    }

    pub fn recorder(&self) -> Recorder {
        match self {
            Listening::Observer(observer, _) => observer.recorder(),
            Listening::Relay(relay) => relay.recorder(),
            Listening::Nothing => Recorder::off(),
        }
    }

    /// Sends the last records of a process other than the first. In the first process, returns the records of other
    /// processes that are still to be received.
    ///
    /// # Errors
    /// If records could not be sent.
    pub fn flush(self) -> Result<Option<Records>> {
        match self {
            Listening::Observer(observer, thread) => Ok(Some(Records(observer, thread))),
            Listening::Relay(relay) => relay.finish().map(|()| None).map_err(Into::into),
            Listening::Nothing => Ok(None),
        }
    }
}

/// The observer of the first process, and the thread that reads the records of the other processes.
pub struct Records(Box<Observer>, Option<JoinHandle<Result<()>>>);

impl Records {
    /// Waits until the records of all other processes are written; they must have been received before.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn wait(self) -> Result<Observer> {
        if let Some(thread) = self.1 {
            let ended = thread.join();
            ended.map_err(|_| anyhow!("the thread that reads records has panicked"))??;
        }
        Ok(*self.0)
    }
}

/// Reads the records of the other processes.
fn receive(records: &Receiver<(usize, Vec<u8>)>, mut sources: Vec<Source>) -> Result<()> {
    for (from, batch) in records {
        let source = from.checked_sub(1).and_then(|index| sources.get_mut(index));
        let source = source
            .ok_or_else(|| anyhow!("received records of process {from}, which does not exist"))?;
        source.receive(&batch)?;
    }
    Ok(())
}
