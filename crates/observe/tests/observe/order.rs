//! The files do not depend on the number of threads that record.

use crate::fleet::{Fleet, config, everything};
use corsair::{Executor, Time};
use corsair_observe::{Clock, Metric, Observer, Recorder, Relay, Settings};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Returns all files below a directory with their contents.
fn bytes(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(bytes(&path));
        } else {
            all.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    all.into_iter()
        .map(|(path, bytes)| {
            (
                path.strip_prefix(directory).unwrap_or(&path).to_owned(),
                bytes,
            )
        })
        .collect()
}

const FLEET: Fleet = Fleet {
    clients: 300,
    servers: 700,
    requests: 20,
};

// Guarantee: cluster-5.
#[test]
fn what_another_process_relays_is_written_as_if_it_were_recorded_here() {
    let alone = tempfile::tempdir().unwrap();
    FLEET.observed(1, alone.path());
    let directory = tempfile::tempdir().unwrap();
    let config = config(2);
    let clock = Clock::Virtual(config.progress.clone());
    let settings = Settings {
        sources: 1,
        ..everything(directory.path(), clock)
    };
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Vec<u8>>(2);
    let relay = Relay::start(&settings, move |batch| {
        sender.send(batch.to_vec()).map_err(io::Error::other)
    });
    let relay = relay.unwrap();
    let observer = Observer::start(settings).unwrap();
    let mut source = observer.sources().pop().unwrap();
    let listens = std::thread::spawn(move || {
        let mut batches = receiver.into_iter();
        while !source.receive(&batches.next().unwrap()).unwrap() {}
    });
    FLEET.run_with_recorders(
        Executor::Virtual,
        &config,
        observer.recorder(),
        relay.recorder(),
    );
    relay.finish().unwrap();
    listens.join().unwrap();
    observer.finish().unwrap();
    let (one, two) = (bytes(alone.path()), bytes(directory.path()));
    assert_eq!(one.len(), two.len());
    for (path, bytes) in &one {
        assert!(two[path] == *bytes, "{}", path.display());
    }
}

// Guarantee: cluster-4.
/// Saving a run of several processes needs the times of all processes. The end needs only the times that were measured
/// later.
#[test]
fn times_that_another_process_has_measured_are_there_when_the_run_is_saved_and_counted_once() {
    let (config, directory) = (config(1), tempfile::tempdir().unwrap());
    let few = Fleet {
        requests: 1,
        ..FLEET
    };
    few.run_with_recorders(Executor::Virtual, &config, Recorder::off(), Recorder::off());
    let settings = || Settings {
        sources: 1,
        times: true,
        out: directory.path().to_owned(),
        ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
    };
    let (sender, receiver) = std::sync::mpsc::channel::<Vec<u8>>();
    let relay = Relay::start(&settings(), move |batch| {
        sender.send(batch.to_vec()).map_err(io::Error::other)
    });
    let relay = relay.unwrap();
    let observer = Observer::start(settings()).unwrap();
    let mut source = observer.sources().pop().unwrap();
    let counted = || {
        let times = observer.times();
        let www = times
            .get("www")
            .and_then(|www| www.histogram(Metric::Response));
        www.map_or(0, |histogram| histogram.len())
    };
    let recorder = relay.recorder();
    let www = recorder.service("www");
    recorder.sample(www, Metric::Response, 5);
    // The next window begins after the time of the save. The relay sends this time before it sends the measured times.
    let until = Time::ZERO.after(Duration::from_nanos(1));
    let early = receiver.recv().unwrap();
    assert!(!source.receive(&early).unwrap());
    recorder.save(until).unwrap();
    let listens = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        let mut said = Vec::new();
        for batch in receiver {
            said.push(source.receive(&batch).unwrap());
        }
        said
    });
    // The save returns once the other process has sent everything up to that time.
    observer.recorder().save(until).unwrap();
    assert_eq!(counted(), 1);
    recorder.sample(www, Metric::Response, 7);
    relay.finish().unwrap();
    let said = listens.join().unwrap();
    assert_eq!(counted(), 2);
    assert_eq!(said.iter().filter(|is_last| **is_last).count(), 1);
    observer.finish().unwrap();
}

// Guarantee: cluster-5.
#[test]
fn a_batch_that_is_cut_or_has_more_than_it_says_is_refused() {
    let settings = Settings {
        sources: 1,
        ..Settings::new("fleet", Clock::Wall)
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    let relay = Relay::start(&settings, move |batch| {
        sender.send(batch.to_vec()).map_err(io::Error::other)
    });
    relay.unwrap().finish().unwrap();
    let batch: Vec<u8> = receiver.recv().unwrap();
    let observer = Observer::start(settings).unwrap();
    let mut source = observer.sources().pop().unwrap();
    for length in 0..batch.len() {
        assert!(source.receive(&batch[..length]).is_err(), "{length}");
    }
    assert!(source.receive(&[&batch[..], &[0]].concat()).is_err());
    assert!(source.receive(&batch).unwrap());
}

// Guarantee: observe-1.
#[test]
fn files_are_the_same_for_any_number_of_workers() {
    let run = |workers| {
        let directory = tempfile::tempdir().unwrap();
        let (report, observed) = FLEET.observed(workers, directory.path());
        assert_eq!(observed.spans, 300 * 20 * 2);
        (report.digest, bytes(directory.path()))
    };
    let (digest, one) = run(1);
    assert_eq!(one.len(), 9, "{:?}", one.keys());
    for workers in [1, 2, 3, 4] {
        let (again, other) = run(workers);
        assert_eq!(again, digest);
        for (path, bytes) in &one {
            assert!(
                other[path] == *bytes,
                "{} on {workers} workers",
                path.display()
            );
        }
    }
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// Guarantee: observe-1.
#[test]
fn the_log_of_messages_is_in_the_order_of_time() {
    let log = |workers| {
        let out = Shared::default();
        let config = config(workers);
        let clock = Clock::Virtual(config.progress.clone());
        let observer = Observer::start(Settings {
            messages: Some(Box::new(out.clone())),
            kinds: everything(Path::new("."), Clock::Wall).kinds,
            ..Settings::new("fleet", clock)
        });
        let observer = observer.unwrap();
        FLEET.run(Executor::Virtual, &config, &observer);
        observer.finish().unwrap();
        String::from_utf8(std::mem::take(&mut *out.0.lock().unwrap())).unwrap()
    };
    let one = log(1);
    let times = one.lines().map(|line| line.split(' ').next().unwrap());
    assert!(times.clone().count() > 3 * 300 * 20);
    assert!(times.is_sorted(), "times have the same number of digits");
    assert!(
        one.lines()
            .any(|line| line.contains(" GetRequest ") && line.contains("server"))
    );
    assert!(log(3) == one);
}

// Guarantee: observe-2.
#[test]
fn on_the_wall_clock_nothing_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    for executor in [Executor::Tokio, Executor::Pool] {
        let observer = Observer::start(everything(directory.path(), Clock::Wall)).unwrap();
        FLEET.run(executor, &config(2), &observer);
        let observed = observer.finish().unwrap();
        assert_eq!(observed.spans, 300 * 20 * 2);
        assert_eq!(observed.incomplete, 0);
    }
}
