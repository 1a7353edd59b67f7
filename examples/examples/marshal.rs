//! Marshals many values at once, on any number of workers, and writes them without copying.

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair_serial::{Batch, Chunked, Json, MarshalError, Serial, Strategy};
use corsair_testing::people;
use serde::ser::{Error as _, Serialize, Serializer};
use std::error::Error;
use std::io;
use std::time::Instant;

/// A value that cannot be encoded if it is negative.
struct Depth(i32);

impl Serialize for Depth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            fathoms if fathoms < 0 => Err(S::Error::custom("above the water")),
            fathoms => serializer.serialize_i32(fathoms),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let records = people::generate(20_000, 7);
    let chunked = Chunked::new(std::thread::available_parallelism()?.get())?;

    // The caller owns the batch; passing it in again reuses its memory.
    let mut batch = Batch::new();
    for _ in 0..3 {
        let start = Instant::now();
        chunked.marshal_into(&Json, &records, &mut batch)?;
        println!(
            "{} documents, {} bytes, {:?} on {} workers",
            batch.len(),
            batch.size(),
            start.elapsed(),
            chunked.workers()
        );
    }

    // The documents equal the documents of the serial loop, in the order of the values.
    assert!(batch.iter().eq(Serial.marshal(&Json, &records)?.iter()));

    // Writes one document per line, or one array, directly from the buffers of the batch.
    batch.write_ndjson(io::sink())?;
    batch.write_json_array(io::sink())?;

    // The first failure by index is returned, and the batch is empty.
    let depths: Vec<Depth> = (-10..100_000).rev().map(Depth).collect();
    match chunked.marshal_into(&Json, &depths, &mut batch) {
        Err(error @ MarshalError::Encode { index: 100_000, .. }) => println!("{error}"),
        other => unreachable!("a depth above the water was written: {other:?}"),
    }
    assert!(batch.is_empty());
    Ok(())
}
