//! The tables that are printed.

use crate::contenders;
use serde_json::json;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// The contender whose rate is the reference for the relative rates.
const REFERENCE: &str = "corsair-async";

/// The row of one contender.
pub struct Row {
    /// The name of the contender.
    pub contender: &'static str,
    /// Messages per second during the delivery.
    pub rate: f64,
    /// The time from the start of the process to its end.
    pub whole: Duration,
    /// The peak memory per pirate in bytes, after the peak of a process with two pirates was subtracted.
    pub bytes: f64,
}

/// Prints the rows of one population.
///
/// # Errors
/// If stdout is closed.
pub fn print(pirates: u32, rows: &[Row]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let reference = rows
        .iter()
        .find(|row| row.contender == REFERENCE)
        .map(|row| row.rate);
    writeln!(out, "\n{pirates} pirates, 5 messages each, medians")?;
    writeln!(
        out,
        "| {:<20} | {:>8} | {:>8} | {:>8} | {:>13} |",
        "contender", "M msg/s", "whole, s", "B/actor", REFERENCE
    )?;
    writeln!(
        out,
        "|{:-<22}|{:->9}:|{:->9}:|{:->9}:|{:->14}:|",
        "", "", "", "", ""
    )?;
    for Row {
        contender,
        rate,
        whole,
        bytes,
    } in rows
    {
        let ratio = reference.map_or_else(
            || "-".to_owned(),
            |reference| format!("{:.3}", rate / reference),
        );
        let (rate, whole) = (rate / 1e6, whole.as_secs_f64());
        writeln!(
            out,
            "| {contender:<20} | {rate:>8.2} | {whole:>8.4} | {bytes:>8.0} | {ratio:>13} |"
        )?;
    }
    out.flush()
}

/// Writes the rows of all populations as one JSON array.
///
/// # Errors
/// If the file cannot be written.
pub fn save(path: &Path, tables: &[(u32, Vec<Row>)]) -> Result<(), String> {
    let rows: Vec<_> = tables
        .iter()
        .flat_map(|(pirates, rows)| rows.iter().map(move |row| (pirates, row)))
        .map(|(pirates, row)| {
            json!({
                "pirates": pirates,
                "contender": row.contender,
                "messages_per_second": row.rate.round(),
                "whole_seconds": row.whole.as_secs_f64(),
                "bytes_per_actor": row.bytes.round(),
            })
        })
        .collect();
    let text = format!("{:#}\n", serde_json::Value::Array(rows));
    std::fs::write(path, text).map_err(|error| format!("--save {}: {error}", path.display()))
}

/// Prints the names of all contenders.
///
/// # Errors
/// If stdout is closed.
pub fn list() -> io::Result<()> {
    let mut out = io::stdout().lock();
    contenders::all()
        .iter()
        .try_for_each(|contender| writeln!(out, "{}", contender.name()))
}
