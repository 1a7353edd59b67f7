//! Saves the state of all tasks while they run.
//!
//! The writes of the log since the last saved state are processed again when the server starts after a crash. So the
//! state is saved again before that would take long. Otherwise saving takes at most a tenth of the time.

use crate::terminal::complain;
use corsair_stream::engine::{Engine, EngineSnapshot};
use corsair_stream::store::Store;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// The time that processing the log again may take when the state is saved next.
const REPLAY: Duration = Duration::from_secs(2);
/// The processing speed in bytes of the log per second, until the server has been faster. A short line takes 7 bytes.
const SLOWEST: f64 = 2e6;
/// The interval at which the size of the log is read.
const LOOK: Duration = Duration::from_millis(100);
/// The shortest pause between two reads.
const SHORTEST: Duration = Duration::from_millis(1);
/// The time over which the speed is measured.
const MEASURED: Duration = Duration::from_secs(1);

/// The cost of a saved state.
pub(crate) struct Saved {
    /// The checksum of the state.
    checksum: u32,
    /// The time for creating and writing the state, without the sync of other files.
    took: Duration,
}

/// Writes a state to the data directory, unless its checksum is `last`, and removes the part of the log that it
/// contains.
pub(crate) async fn save(
    engine: &Engine,
    store: &Arc<Store>,
    saved: EngineSnapshot,
    last: Option<u32>,
) -> anyhow::Result<Saved> {
    let (engine, store) = (engine.clone(), store.clone());
    let written = tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        let (position, mut took) = (saved.position(), saved.took());
        let bytes = saved.to_bytes();
        drop(saved);
        let checksum = crc32fast::hash(&bytes);
        took += begun.elapsed();
        if last != Some(checksum) {
            // The state must not be ahead of the files that it continues.
            engine.sync_files()?;
            let begun = Instant::now();
            store.save_bytes(&bytes)?;
            engine.discard_log(position);
            took += begun.elapsed();
        }
        Ok(Saved { checksum, took })
    });
    written.await?
}

/// Saves the state of all tasks until `stop` is sent, with pauses of at least `interval`. An unchanged state is not
/// saved again.
pub(crate) async fn save_regularly(
    engine: Engine,
    store: Arc<Store>,
    interval: Duration,
    stop: oneshot::Receiver<()>,
) {
    let mut log = Log::new();
    let mut pause = interval;
    let mut last = None;
    let mut stop = pin!(stop);
    loop {
        let begun = Instant::now();
        let started = async {
            while begun.elapsed() < interval || (begun.elapsed() < pause && !log.is_long(&engine)) {
                sleep(LOOK.min(interval).max(SHORTEST)).await;
                log.measure(&engine);
            }
            log.begin(&engine);
            engine.checkpoint().await
        };
        // Finishes a file that is being written, so that this file does not replace the final state.
        let saved = tokio::select! {
            saved = started => saved,
            _ = &mut stop => return,
        };
        match save(&engine, &store, saved, last).await {
            Ok(saved) => {
                last = Some(saved.checksum);
                pause = interval.max(saved.took * 9);
            }
            Err(error) => complain(format_args!("the state cannot be saved: {error:#}")),
        }
    }
}

/// The growth of the log since the last state.
struct Log {
    /// The bytes of the log when the last state was taken.
    begin: u64,
    /// The highest speed at which the server has processed the log, in bytes per second.
    speed: f64,
    /// The bytes of the log at the beginning of the current measurement, and its time.
    measured: (u64, Instant),
}

impl Log {
    fn new() -> Log {
        Log {
            begin: 0,
            speed: SLOWEST,
            measured: (0, Instant::now()),
        }
    }

    /// Records that a state is taken.
    fn begin(&mut self, engine: &Engine) {
        self.begin = engine.logged_bytes();
    }

    /// True if processing the log since the last state would take long.
    fn is_long(&self, engine: &Engine) -> bool {
        (engine.logged_bytes() - self.begin) as f64 >= self.speed * REPLAY.as_secs_f64()
    }

    /// Measures the speed: the server processes writes at least as fast when it starts as while it serves clients.
    fn measure(&mut self, engine: &Engine) {
        let (bytes, since) = self.measured;
        let elapsed = since.elapsed();
        if elapsed >= MEASURED {
            let logged = engine.logged_bytes();
            self.speed = self
                .speed
                .max((logged - bytes) as f64 / elapsed.as_secs_f64());
            self.measured = (logged, Instant::now());
        }
    }
}
