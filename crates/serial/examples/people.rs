//! Writes generated people as one JSON array, for programs that are not written in Rust.
//!
//! ```text
//! cargo run --release -p corsair-serial --example people -- 1000 7 > people.json
//! ```

use corsair_serial::{Json, Serial, Strategy, people};
use std::error::Error;
use std::io;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let count = arguments.next().map_or(Ok(1000), |count| count.parse())?;
    let seed = arguments.next().map_or(Ok(7), |seed| seed.parse())?;
    let batch = Serial.marshal(&Json, &people::generate(count, seed))?;
    batch.write_json_array(io::stdout().lock())?;
    Ok(())
}
