//! The first failure by index is returned, the other workers stop, the batch is empty, and the workers stay usable.

use crate::each::{self, Check};
use corsair_serial::{Batch, Json, MarshalError, Strategy};
use proptest::prelude::*;
use serde::ser::{Error as _, SerializeSeq};
use serde::{Serialize, Serializer};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The behaviour of a value when it is encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Conduct {
    Fine,
    Fails,
    Panics,
}

/// A value of some hundred bytes that may fail after writing a part of itself.
#[derive(Clone, Copy)]
struct Probe<'a> {
    conduct: Conduct,
    encoded: &'a AtomicUsize,
}

impl Serialize for Probe<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.encoded.fetch_add(1, Ordering::Relaxed);
        let mut sequence = serializer.serialize_seq(None)?;
        for number in 0..100 {
            sequence.serialize_element(&number)?;
        }
        match self.conduct {
            Conduct::Fine => sequence.end(),
            Conduct::Fails => Err(S::Error::custom("no such port")),
            Conduct::Panics => panic!("there be dragons"),
        }
    }
}

/// Hides the messages of expected panics.
fn silence_panics() {
    std::panic::set_hook(Box::new(|_| ()));
}

/// Checks that the first failing value by index is returned, and that a later run succeeds.
struct FirstByIndex<'a> {
    values: &'a [Probe<'a>],
}

impl Check for FirstByIndex<'_> {
    fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
        let mut batch = Batch::new();
        strategy.marshal_into(&Json, &["old"], &mut batch).unwrap();
        let outcome = strategy.marshal_into(&Json, self.values, &mut batch);
        let expected = self
            .values
            .iter()
            .position(|value| value.conduct != Conduct::Fine);
        let name = strategy.name();
        match (expected, outcome) {
            (None, Ok(())) => assert_eq!(batch.len(), self.values.len(), "{name}"),
            (Some(index), Err(error)) => {
                assert_eq!(error.index(), Some(index), "{name}");
                let (kind, text) = match self.values[index].conduct {
                    Conduct::Panics => (
                        matches!(error, MarshalError::Panicked { .. }),
                        "there be dragons",
                    ),
                    _ => (matches!(error, MarshalError::Encode { .. }), "no such port"),
                };
                assert!(kind, "{name}: {error:?}");
                let message = error.to_string();
                assert!(message.contains(text), "{name}: {message}");
                assert!(message.contains(&format!("value {index} ")), "{message}");
                assert!(batch.is_empty() && batch.iter().next().is_none(), "{name}");
                assert_eq!(batch.size(), 0, "{name}");
                let mut written = Vec::new();
                batch.write_ndjson(&mut written).unwrap();
                assert!(written.is_empty(), "{name}");
            }
            (expected, outcome) => panic!("{name}: {expected:?}, but {outcome:?}"),
        }
        let numbers: Vec<u32> = (0..5000).collect();
        strategy.marshal_into(&Json, &numbers, &mut batch).unwrap();
        assert!(
            batch
                .iter()
                .eq(numbers.iter().map(|n| n.to_string().into_bytes())),
            "{name}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    // Guarantee: serial-3.
    #[test]
    fn the_first_failure_by_index_comes_back_and_the_workers_stay_usable(
        len in 1..600_usize,
        failing in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..6),
        workers in 1..=64_usize,
    ) {
        silence_panics();
        let encoded = AtomicUsize::new(0);
        let fine = Probe { conduct: Conduct::Fine, encoded: &encoded };
        let mut values = vec![fine; len];
        for (index, panics) in failing {
            values[index.index(len)].conduct =
                if panics { Conduct::Panics } else { Conduct::Fails };
        }
        each::strategy(workers, &mut FirstByIndex { values: &values });
    }
}

/// Checks that not all values are encoded after an early one has failed.
struct StopsEarly<'a> {
    values: &'a [Probe<'a>],
    encoded: &'a AtomicUsize,
}

impl Check for StopsEarly<'_> {
    fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
        self.encoded.store(0, Ordering::Relaxed);
        let error = strategy.marshal(&Json, self.values).unwrap_err();
        assert_eq!(error.index(), Some(100));
        let encoded = self.encoded.load(Ordering::Relaxed);
        let name = strategy.name();
        assert!(encoded < self.values.len(), "{name} encoded all {encoded}");
    }
}

// Guarantee: serial-3.
#[test]
fn the_others_stop_early() {
    silence_panics();
    for conduct in [Conduct::Fails, Conduct::Panics] {
        let encoded = AtomicUsize::new(0);
        let fine = Probe {
            conduct: Conduct::Fine,
            encoded: &encoded,
        };
        let mut values = vec![fine; 200_000];
        values[100].conduct = conduct;
        let mut check = StopsEarly {
            values: &values,
            encoded: &encoded,
        };
        each::strategy(4, &mut check);
    }
}

// Guarantee: serial-3.
#[test]
fn a_panic_with_a_payload_that_panics_again_when_dropped_is_an_error() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("again");
        }
    }
    struct Planted;
    impl Serialize for Planted {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            std::panic::panic_any(Bomb)
        }
    }
    struct Survives;
    impl Check for Survives {
        fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
            for _ in 0..3 {
                let error = strategy.marshal(&Json, &[Planted, Planted]).unwrap_err();
                assert_eq!(error.index(), Some(0), "{}", strategy.name());
            }
        }
    }
    silence_panics();
    each::strategy(2, &mut Survives);
}

/// A value whose encoding waits for a job of the same pool, so that its thread may begin another value during the wait.
struct Forking(u32);

impl Serialize for Forking {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        let (left, right) = rayon::join(
            || self.0,
            || {
                std::thread::yield_now();
                self.0 + 1
            },
        );
        sequence.serialize_element(&left)?;
        sequence.serialize_element(&right)?;
        sequence.end()
    }
}

#[test]
fn values_that_fork_on_the_pool_themselves_neither_hang_nor_mix() {
    struct Forks;
    impl Check for Forks {
        fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
            let values: Vec<Forking> = (0..4_000).map(Forking).collect();
            let mut batch = Batch::new();
            for _ in 0..2 {
                strategy.marshal_into(&Json, &values, &mut batch).unwrap();
                let expected = (0..4_000).map(|n| format!("[{n},{}]", n + 1).into_bytes());
                assert!(batch.iter().eq(expected), "{}", strategy.name());
            }
        }
    }
    each::strategy(4, &mut Forks);
}
