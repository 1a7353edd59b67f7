//! Times the check of a file or of a generated history: `history FILE MODEL [REPEATS]` with the model `kv` or
//! `register`, or `history make OPERATIONS KEYS CLIENTS > FILE`, which writes a linearizable history of registers.

use corsair_check::models::{self, FromRecords, KeyValue, Register};
use corsair_check::{Limits, check, read};
use std::io::{BufWriter, Write};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        let given = arguments.get(index);
        given.map_or(default, |text| match text.parse() {
            Ok(number @ 1..) => number,
            _ => refuse(text, "a number from 1 on"),
        })
    };
    match arguments.first().map(String::as_str) {
        Some("make") => make(number(1, 1_000_000), number(2, 100), number(3, 100))?,
        Some(file) => {
            let text = std::fs::read(file)
                .unwrap_or_else(|error| refuse(file, &format!("a readable file: {error}")));
            let repeats = number(2, 1);
            match arguments.get(1).map(String::as_str) {
                Some("kv") => time::<KeyValue>(&text, repeats)?,
                None | Some("register") => time::<Register>(&text, repeats)?,
                Some(other) => refuse(other, "a model; expected kv or register"),
            }
        }
        None => make(1000, 10, 10)?,
    }
    Ok(())
}

fn refuse(text: &str, expected: &str) -> ! {
    eprintln!("'{text}' is not {expected}");
    std::process::exit(2)
}

fn time<M: FromRecords + Default>(
    text: &[u8],
    repeats: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let began = Instant::now();
    let history = models::operations::<M>(&read::parse(text)?)?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "read {} operations in {:?}",
        history.len(),
        began.elapsed()
    )?;
    let mut least = Duration::MAX;
    for _ in 0..repeats {
        let began = Instant::now();
        let report = check(&M::default(), &history, &Limits::default());
        least = least.min(began.elapsed());
        if repeats == 1 {
            writeln!(out, "{:?}", report.progress)?;
        }
    }
    writeln!(out, "checked in {least:?} at best")?;
    Ok(())
}

/// Writes a history in which each operation takes effect at one instant between its call and its
/// return.
fn make(operations: u64, keys: u64, clients: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut seed = 42u64;
    let mut random = move |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below.max(1)
    };
    let mut open: Vec<Option<Open>> = vec![None; clients as usize];
    let mut registers = vec![0u64; keys as usize];
    let (mut called, mut returned) = (0, 0);
    while returned < operations {
        let client = random(clients) as usize;
        match &mut open[client] {
            None if called < operations => {
                called += 1;
                let key = random(keys);
                let write = (random(2) == 0).then_some(called);
                let value = write.map_or("nil".to_owned(), |value| value.to_string());
                let function = if write.is_some() { "put" } else { "get" };
                writeln!(
                    out,
                    "{{:process {client}, :type :invoke, :f :{function}, :key {key}, :value {value}}}"
                )?;
                open[client] = Some((key, write, false, 0));
            }
            None => {}
            Some((key, write, done, result)) if !*done => {
                if let Some(value) = write {
                    registers[*key as usize] = *value;
                }
                *result = registers[*key as usize];
                *done = true;
            }
            Some((key, write, _, result)) => {
                let function = if write.is_some() { "put" } else { "get" };
                let value = if *result == 0 {
                    "nil".to_owned()
                } else {
                    result.to_string()
                };
                writeln!(
                    out,
                    "{{:process {client}, :type :ok, :f :{function}, :key {key}, :value {value}}}"
                )?;
                open[client] = None;
                returned += 1;
            }
        }
    }
    out.flush()
}

/// An open operation: key, written value (`None` for a read), whether it took effect, result.
type Open = (u64, Option<u64>, bool, u64);
