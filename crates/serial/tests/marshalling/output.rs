//! A batch is written completely and in order, with vectored writes directly from its buffers.

use crate::each::{self, Check};
use corsair_serial::{Batch, Json, Postcard, Serial, Strategy};
use corsair_testing::people;
use proptest::prelude::*;
use std::io::{self, IoSlice, Write};

/// A writer that takes a few bytes at a time, is sometimes interrupted, and counts its calls.
struct Reluctant {
    written: Vec<u8>,
    at_most: usize,
    calls: usize,
}

impl Reluctant {
    fn new(at_most: usize) -> Reluctant {
        Reluctant {
            written: Vec::new(),
            at_most,
            calls: 0,
        }
    }
}

impl Write for Reluctant {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.calls += 1;
        if self.calls.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut left = self.at_most;
        for slice in slices {
            let taken = slice.len().min(left);
            self.written.extend_from_slice(&slice[..taken]);
            left -= taken;
        }
        Ok(self.at_most - left)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Checks that lines and array contain the documents, with a writer that takes few bytes at a time.
struct GoesOut<'a> {
    values: &'a [String],
    at_most: usize,
}

impl Check for GoesOut<'_> {
    fn check<S: Strategy + Sync>(&mut self, strategy: &S) {
        let batch = strategy.marshal(&Json, self.values).unwrap();
        let mut lines = Reluctant::new(self.at_most);
        batch.write_ndjson(&mut lines).unwrap();
        let expected: String = self
            .values
            .iter()
            .map(|value| serde_json::to_string(value).unwrap() + "\n")
            .collect();
        assert_eq!(lines.written, expected.as_bytes(), "{}", strategy.name());

        let mut array = Reluctant::new(self.at_most);
        batch.write_json_array(&mut array).unwrap();
        let expected = serde_json::to_vec(self.values).unwrap();
        assert_eq!(array.written, expected, "{}", strategy.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    // Guarantee: serial-5.
    #[test]
    fn lines_and_array_survive_short_writes_and_interruptions(
        values in prop::collection::vec(".{0,30}", 0..1500),
        at_most in 1..5000_usize,
        workers in 1..=8_usize,
    ) {
        each::strategy(workers, &mut GoesOut { values: &values, at_most });
    }
}

#[test]
fn lines_of_one_worker_go_out_in_one_call() {
    let batch = Serial.marshal(&Json, &people::generate(1000, 1)).unwrap();
    let mut writer = Reluctant::new(usize::MAX);
    batch.write_ndjson(&mut writer).unwrap();
    assert_eq!(writer.calls, 1);
}

#[test]
fn an_array_of_many_documents_takes_few_calls() {
    let batch = Serial.marshal(&Json, &people::generate(1000, 1)).unwrap();
    let mut writer = Reluctant::new(usize::MAX);
    batch.write_json_array(&mut writer).unwrap();
    assert!(writer.calls <= 16, "{}", writer.calls);
}

#[test]
fn an_empty_batch_is_no_line_and_an_empty_array() {
    let batch = Batch::<Json>::new();
    let (mut lines, mut array) = (Vec::new(), Vec::new());
    batch.write_ndjson(&mut lines).unwrap();
    batch.write_json_array(&mut array).unwrap();
    assert_eq!((lines.as_slice(), array.as_slice()), (&b""[..], &b"[]"[..]));
}

#[test]
fn a_full_writer_is_an_error() {
    let batch = Serial.marshal(&Json, &people::generate(3, 1)).unwrap();
    let mut small = [0; 100];
    let error = batch.write_ndjson(&mut small[..]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
}

#[test]
fn binary_documents_go_out_back_to_back() {
    let batch = Serial.marshal(&Postcard, &[1_u8, 2, 3]).unwrap();
    let mut written = Vec::new();
    batch.write_to(&mut written).unwrap();
    assert_eq!(written, [1, 2, 3]);
}

#[test]
fn documents_are_read_from_both_ends() {
    let batch = Serial.marshal(&Json, &[1, 2, 3]).unwrap();
    let mut documents = batch.iter();
    assert_eq!(documents.next_back(), Some(&b"3"[..]));
    assert_eq!(documents.next(), Some(&b"1"[..]));
    assert_eq!(documents.len(), 1);
    assert_eq!(documents.next_back(), Some(&b"2"[..]));
    assert_eq!((documents.next(), documents.next_back()), (None, None));
}
