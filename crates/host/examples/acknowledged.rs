//! Tests a service that acknowledges writes. Power losses show which acknowledged writes the service loses.
//!
//! ```sh
//! cargo run -p corsair-host --example acknowledged -- nothing    # loses lines
//! cargo run -p corsair-host --example acknowledged -- file       # loses the file's name
//! cargo run -p corsair-host --example acknowledged -- directory  # damages a line
//! cargo run -p corsair-host --example acknowledged -- repaired   # loses nothing in 100 seeds
//! ```
#![allow(clippy::print_stdout, reason = "prints what it finds")]

use corsair_host::{Fault, Sim, init, simulate};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::num::NonZeroUsize;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};

const FILE: &str = "/var/numbers";
const SEEDS: u64 = 100;

/// The durability of the service. Each level includes the earlier ones.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Level {
    /// Syncs nothing.
    Nothing,
    /// Syncs the file before it acknowledges.
    File,
    /// Also syncs the directory after the service has created the file.
    Directory,
    /// Also removes, when the service starts, the incomplete line that a power loss has left.
    Repaired,
}

const LEVELS: [(&str, Level); 4] = [
    ("nothing", Level::Nothing),
    ("file", Level::File),
    ("directory", Level::Directory),
    ("repaired", Level::Repaired),
];

fn level(name: &str) -> Option<Level> {
    LEVELS
        .into_iter()
        .find(|level| level.0 == name)
        .map(|level| level.1)
}

// ANCHOR: service
/// The service: appends each line that it receives to a file, and answers "ok".
#[tokio::main]
async fn service() -> io::Result<()> {
    let name = std::env::args().nth(1).unwrap_or_default();
    let level = level(&name).ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .append(true)
        .open(FILE)?;
    if level >= Level::Directory {
        File::open("/var")?.sync_all()?;
    }
    if level >= Level::Repaired {
        let mut content = vec![];
        file.read_to_end(&mut content)?;
        let is_text = |byte: &u8| byte.is_ascii_digit() || *byte == b'\n';
        let good = content.iter().take_while(|byte| is_text(byte)).count();
        let whole = content[..good].iter().rposition(|&byte| byte == b'\n');
        file.set_len(whole.map_or(0, |end| end as u64 + 1))?;
        file.sync_all()?;
    }
    let listener = TcpListener::bind("0.0.0.0:80").await?;
    loop {
        let mut client = BufStream::new(listener.accept().await?.0);
        let mut line = String::new();
        while client.read_line(&mut line).await.is_ok_and(|read| read > 0) {
            file.write_all(line.as_bytes())?;
            if level >= Level::File {
                file.sync_data()?;
            }
            line.clear();
            if client.write_all(b"ok\n").await.is_err() || client.flush().await.is_err() {
                break;
            }
        }
    }
}
// ANCHOR_END: service

/// The client: sends one number after the other, and prints each one that was acknowledged.
#[tokio::main]
async fn client() {
    for number in 0..200 {
        match tokio::time::timeout(Duration::from_millis(100), post(number)).await {
            Ok(Ok(())) => println!("acknowledged {number}"),
            Ok(Err(error)) => println!("{number}: {error}"),
            Err(_) => println!("{number}: no answer"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn post(number: u32) -> io::Result<()> {
    let mut server = BufStream::new(TcpStream::connect("server:80").await?);
    server.write_all(format!("{number}\n").as_bytes()).await?;
    server.flush().await?;
    let mut answer = String::new();
    match server.read_line(&mut answer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

// ANCHOR: test
/// The test: power fails while the client sends, and every acknowledged number must be in the file afterwards.
fn survives_power_loss(sim: &mut Sim, level: &str) -> Result<(), Box<dyn Error>> {
    let server = sim.host("server", service);
    sim.args(&server, ["service", level]);
    sim.host("client", client);
    sim.at(Duration::from_millis(700), Fault::power_loss(&server));
    sim.at(Duration::from_millis(900), Fault::start(&server));
    sim.run_until(Duration::from_secs(10))?;

    let content = sim.read_file(&server, FILE).unwrap_or_default();
    let content = String::from_utf8_lossy(&content);
    let written: Vec<&str> = content.lines().collect();
    let log = sim.log();
    let acknowledged: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split_once("acknowledged "))
        .map(|(_, number)| number)
        .collect();
    match acknowledged
        .iter()
        .filter(|number| !written.contains(number))
        .count()
    {
        0 => Ok(()),
        lost => Err(format!(
            "{lost} of {} acknowledged numbers are lost",
            acknowledged.len()
        )
        .into()),
    }
}
// ANCHOR_END: test

fn main() -> Result<(), String> {
    init()?;
    let name = std::env::args().nth(1).unwrap_or("nothing".to_owned());
    if level(&name).is_none() {
        let names = LEVELS.map(|level| level.0).join("|");
        return Err(format!(
            "'{name}' is not a level; usage: acknowledged [{names}]"
        ));
    }
    for seed in 0..SEEDS {
        let (failure, _) = simulate(seed, NonZeroUsize::MIN, |sim| {
            survives_power_loss(sim, &name)
        })
        .map_err(|error| error.to_string())?;
        if let Some(failure) = failure {
            println!(
                "seed {seed}: {}",
                failure.lines().next().unwrap_or_default()
            );
            return Ok(());
        }
    }
    println!("{SEEDS} seeds: no acknowledged number is lost");
    Ok(())
}
