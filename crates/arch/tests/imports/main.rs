//! Imports of changed and of malicious manifests, whose memory is counted.
//!
//! `CORSAIR_MUTATIONS` sets the number of changed manifests; `ci/import.sh` imports 5,000 of them, and large attacks.

#![allow(
    clippy::print_stdout,
    reason = "`ci/import.sh` shows the memory of each attack"
)]

mod attacks;
mod seeds;

use corsair::Random;
use corsair_arch::{ImportError, ImportOptions, import};
use corsair_testing::allocations::{Count, Counting};
use parking_lot::Mutex;
use std::path::PathBuf;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The allocations of the whole process are counted, so that one test imports at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The memory of an import of any size, in bytes.
const BASE: u64 = 48 << 20;
/// The memory of an import for each byte of its files.
const PER_BYTE: u64 = 64;
/// The maximum memory of an import.
const MOST: u64 = 2 << 30;

/// Imports files, and checks that the result is a definition or a sentence, within bounded memory. Returns the memory.
fn import_within_bounds(files: &[(&str, &str)]) -> (Result<usize, String>, u64) {
    let directory = tempfile::tempdir().unwrap();
    let mut paths: Vec<PathBuf> = Vec::new();
    for (name, text) in files {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        if !name.starts_with('.') {
            paths.push(path);
        }
    }
    let count = Count::start();
    let imported = import(&paths, &ImportOptions::default());
    let peak = count.stop().peak;
    let result = match imported {
        Ok(imported) => Ok(imported.definition.services.len()),
        Err(ImportError::Definition(error)) => panic!("{error}\n{files:?}"),
        Err(error) => Err(error.to_string()),
    };
    if let Err(said) = &result {
        assert!(
            !said.is_empty() && said.len() < 2_000 && said.lines().count() == 1,
            "{said}"
        );
    }
    let bytes: u64 = files.iter().map(|(_, text)| text.len() as u64).sum();
    assert!(
        peak < (BASE + PER_BYTE * bytes).min(MOST),
        "{peak} bytes for {bytes}"
    );
    (result, peak)
}

/// Pieces of YAML, JSON and JavaScript that are put anywhere.
const PIECES: [&str; 26] = [
    "{",
    "}",
    "[",
    "]",
    ": ",
    "- ",
    "&a ",
    "*a",
    "\n",
    "---\n",
    "-1",
    "1e309",
    "null",
    "'",
    "\"",
    "<<: ",
    "🏴",
    "\t",
    "99999999999",
    "!!binary ",
    "? ",
    "|\n",
    "$(A)",
    "${A:-${A}}",
    "\u{0}",
    "...",
];

/// Changes a text at random.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(4) {
        let at = random.below(text.len().max(1) as u32) as usize;
        let end = (at + random.below(12) as usize).min(text.len());
        match random.below(6) {
            0 => drop(text.drain(at..end)),
            1 | 2 => {
                let piece = PIECES[random.below(PIECES.len() as u32) as usize];
                text.splice(at..end, piece.chars());
            }
            3 => {
                // A piece again and again, or brackets that do not end.
                let piece = PIECES[random.below(PIECES.len() as u32) as usize];
                let times = 1 << random.below(12);
                text.splice(at..at, piece.repeat(times).chars());
            }
            4 => {
                let end = (at + random.below(400) as usize).min(text.len());
                let copied = text[at..end].to_vec();
                text.splice(at..at, copied);
            }
            _ => {
                let from = random.below(text.len().max(1) as u32) as usize;
                let copied = text[from..(from + 60).min(text.len())].to_vec();
                text.splice(at..end, copied);
            }
        }
        if text.is_empty() {
            break;
        }
    }
    text.into_iter().collect()
}

// Guarantee: arch-19.
#[test]
fn changed_manifests_are_imported_or_refused() {
    let count = std::env::var("CORSAIR_MUTATIONS").ok();
    let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(300);
    let seeds = seeds::all();
    let mut random = Random::new(43);
    let _alone = ONE_AT_A_TIME.lock();
    let (mut imported, mut most) = (0, 0);
    for number in 0..count {
        let (name, text) = &seeds[number % seeds.len()];
        let text = mutate(text, &mut random);
        let other = "services: {other: {image: x, environment: {WEB_ADDR: 'web:80'}}}";
        let (result, peak) =
            import_within_bounds(&[(name, &text), (".env", "A=x$A\n"), ("compose.yml", other)]);
        imported += usize::from(result.is_ok());
        most = most.max(peak);
    }
    println!(
        "{imported} of {count} changed manifests were imported; the most memory was {} KiB",
        most >> 10
    );
    assert!(imported * 20 > count, "{imported} of {count}");
}

// Guarantee: arch-19.
#[test]
fn attacks_take_bounded_memory() {
    // A scale of 100 makes documents of megabytes.
    let scale = match std::env::var_os("CORSAIR_MUTATIONS") {
        Some(_) => 100,
        None => 1,
    };
    let _alone = ONE_AT_A_TIME.lock();
    for (name, files) in attacks::all(scale) {
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (*name, text.as_str()))
            .collect();
        let bytes: usize = files.iter().map(|(_, text)| text.len()).sum();
        let began = std::time::Instant::now();
        let (result, peak) = import_within_bounds(&files);
        println!(
            "{name}: {} KiB, memory {} KiB, {:.1} s: {}",
            bytes >> 10,
            peak >> 10,
            began.elapsed().as_secs_f64(),
            result.map_or_else(|said| said, |services| format!("{services} services"))
        );
    }
}
