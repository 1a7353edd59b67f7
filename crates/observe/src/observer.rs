//! Writes the records of a run while it runs.
//!
//! A thread takes the records of all lanes, orders the records that are ready, and passes them to the sinks: graph
//! files, flows, the message log. An error of a sink ends the output and cancels the run. Until the run has ended, the
//! thread continues to empty the lanes, because other threads wait while the lanes are full.

mod merge;
mod saved;
mod sinks;

#[cfg(feature = "metrics")]
use crate::Clock;
use crate::recorder::RecordKinds;
use crate::recorder::lane::{Lanes, WriterStep};
use crate::times::{csv, guess};
use crate::{ObserveError, OutputSummary, Recorder, SavedOutputs, ServiceTimes, Settings, Source};
use corsair::CancelToken;
use merge::Merge;
use sinks::Sinks;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Observes one run: see the [crate](crate).
///
/// If the observer is dropped without a call of [`Observer::finish`], it leaves no files behind.
#[derive(Debug)]
pub struct Observer {
    lanes: Arc<Lanes>,
    settings: Settings,
    #[cfg(feature = "metrics")]
    server: Option<crate::metrics::Server>,
    writer: Option<JoinHandle<Result<Sinks, ObserveError>>>,
}

impl Observer {
    /// Opens files, connects to other systems, and starts to observe.
    ///
    /// # Errors
    /// If a file cannot be written or a system cannot be reached.
    pub fn start(mut settings: Settings) -> Result<Observer, ObserveError> {
        let kinds = settings.kinds.len() + settings.operations.len();
        if kinds > crate::recorder::NO_KIND {
            return Err(ObserveError::Kinds(kinds));
        }
        let wanted = RecordKinds::of(&settings);
        let (mut sinks, measured) = Sinks::open(&mut settings)?;
        let lanes = Arc::new(Lanes::new(settings.clock.clone(), wanted, settings.sources));
        lanes.times.resume(measured);
        #[cfg(feature = "metrics")]
        let server = settings
            .metrics
            .map(|address| serve(address, &settings, &lanes))
            .transpose()?;
        #[cfg(not(feature = "metrics"))]
        if settings.metrics.is_some() {
            return Err(ObserveError::LeftOut {
                what: "serving metrics",
                feature: "metrics",
            });
        }
        let cancel = settings.cancel.clone();
        let taken = Arc::clone(&lanes);
        let writer = std::thread::Builder::new()
            .name("observer".to_owned())
            .spawn(move || {
                write(&taken, &mut sinks, cancel.as_ref())?;
                Ok(sinks)
            })
            .map_err(ObserveError::Thread)?;
        Ok(Observer {
            lanes,
            settings,
            #[cfg(feature = "metrics")]
            server,
            writer: Some(writer),
        })
    }

    /// Returns the recorder for actors.
    pub fn recorder(&self) -> Recorder {
        Recorder::on(Arc::clone(&self.lanes))
    }

    /// Returns the sources for the other processes of the run; there are [`Settings::sources`] of them.
    pub fn sources(&self) -> Vec<Source> {
        let source = |number| Source::new(Arc::clone(&self.lanes), number);
        (0..self.settings.sources).map(source).collect()
    }

    /// Returns the address at which metrics are served, with the real port if port 0 was requested; `None` if metrics
    /// are not served.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        #[cfg(feature = "metrics")]
        return self.server.as_ref().map(crate::metrics::Server::address);
        #[cfg(not(feature = "metrics"))]
        None
    }

    /// Returns the times measured so far, by service. The cost grows with the number of histograms.
    pub fn times(&self) -> BTreeMap<String, ServiceTimes> {
        self.lanes.times.by_service()
    }

    /// Writes the remaining records and gives all files their final names. The run must have ended, because records
    /// that are made during this call may be lost.
    ///
    /// # Errors
    /// If an output could not be written, now or during the run; then no file is left behind.
    pub fn finish(mut self) -> Result<OutputSummary, ObserveError> {
        let sinks = self.join().unwrap_or_else(|| Ok(Sinks::default()))?;
        let mut observed = sinks.finish()?;
        observed.times = self.times();
        if self.settings.times {
            let times = &observed.times;
            observed.files.extend(csv::write(&self.settings, times)?);
            observed.files.extend(guess::write(&self.settings, times)?);
        }
        Ok(observed)
    }

    fn join(&mut self) -> Option<Result<Sinks, ObserveError>> {
        self.lanes.close();
        self.writer.take().map(|writer| {
            writer.join().unwrap_or_else(|panic| {
                let words = panic.downcast_ref::<String>().map(String::as_str);
                let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
                Err(ObserveError::Panicked(words.unwrap_or("no words").into()))
            })
        })
    }
}

/// Starts the server that publishes the measured times while the run is in progress.
#[cfg(feature = "metrics")]
fn serve(
    address: SocketAddr,
    settings: &Settings,
    lanes: &Arc<Lanes>,
) -> Result<crate::metrics::Server, ObserveError> {
    let (arch, clock) = (settings.arch.clone(), settings.clock.clone());
    let (lanes, began) = (Arc::clone(lanes), std::time::Instant::now());
    crate::metrics::Server::start(address, move || {
        let seconds = match &clock {
            Clock::Virtual(progress) => progress.time().elapsed(),
            Clock::Wall => began.elapsed(),
        };
        let times = lanes.times.by_service();
        crate::times::prometheus::text(&arch, seconds.as_secs_f64(), &times)
    })
}

impl Drop for Observer {
    fn drop(&mut self) {
        // `finish` returns the errors of the thread; here they are ignored.
        let _ = self.join();
    }
}

/// The loop of the thread that writes records.
fn write(
    lanes: &Lanes,
    sinks: &mut Sinks,
    cancel: Option<&CancelToken>,
) -> Result<(), ObserveError> {
    let _ending = Ending { lanes, cancel };
    let mut merge = Merge::new(lanes.watermark().is_some());
    let mut spare = Vec::new();
    let mut outcome = Ok(());
    loop {
        let next = lanes.next();
        let saving = lanes.asked_to_save();
        let watermark = match (next, &saving) {
            (WriterStep::Last, _) => u64::MAX,
            // The run is paused, so no earlier record will follow.
            (WriterStep::Look, Some(saving)) => saving.until.saturating_add(1),
            (WriterStep::Look, None) => lanes.watermark().unwrap_or(merge.newest()),
        };
        lanes.take(merge.inbox(), &mut spare);
        let ready = merge.before(watermark, next == WriterStep::Last);
        let count = ready.len() as u64;
        if outcome.is_ok() {
            outcome = sinks.write(ready);
            if let (Err(_), Some(cancel)) = (&outcome, cancel) {
                cancel.cancel();
            }
        } else {
            drop(ready);
        }
        lanes.set_bytes(sinks.bytes());
        lanes.wrote(count, watermark);
        if let Some(saving) = saving {
            let saved = match (&outcome, merge.is_empty()) {
                (Err(_), _) => None,
                (Ok(()), true) => Some(save(sinks, lanes)),
                (Ok(()), false) => Some(Err(ObserveError::NotSaved("records with a future time"))),
            };
            if let Some(saved) = saved {
                // The requester may no longer wait for the answer.
                let _ = saving.answer.send(saved);
            }
        }
        if next == WriterStep::Last {
            break;
        }
    }
    if outcome.is_ok() {
        outcome = sinks.end();
    }
    outcome
}

/// Returns the state from which the output continues.
fn save(sinks: &mut Sinks, lanes: &Lanes) -> Result<SavedOutputs, ObserveError> {
    let mut saved = SavedOutputs::default();
    let mut state = sinks.save(&mut saved)?;
    state.times = lanes.times.save();
    saved.state = serde_json::to_vec(&state).map_err(ObserveError::State)?;
    Ok(saved)
}

/// A guard for the end of the writing thread. When the thread ends, the guard releases the threads that wait for it. If
/// the thread has panicked, the guard also ends the run, because no other thread takes the run's records.
struct Ending<'a> {
    lanes: &'a Lanes,
    cancel: Option<&'a CancelToken>,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.lanes.close();
        if let (true, Some(cancel)) = (std::thread::panicking(), self.cancel) {
            cancel.cancel();
        }
    }
}
