//! The flags.

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use corsair_courier_load::{Kind, Plan};
use std::time::Duration;

/// Put load on the messaging service, and print the latency of messages
#[derive(Clone, Debug, Parser)]
#[command(name = "corsair-courier-load", version)]
pub struct Flags {
    /// Number of recipients of each message
    #[arg(long, value_enum, default_value = "1on1")]
    pub kind: KindArg,
    /// Number of workers, each with its own connection
    #[arg(long, value_name = "NUMBER", default_value = "8", value_parser = at_least_one)]
    pub workers: usize,
    /// Number of messages of each worker
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = at_least_one)]
    pub messages: usize,
    /// Number of users online [default: twice the number of workers, at least 16]
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    pub users: Option<usize>,
    /// POSTs per second of all workers together, regardless of response times
    #[arg(long, value_name = "NUMBER", value_parser = rate)]
    pub rate: Option<f64>,
    /// Size of a text in bytes
    #[arg(long, value_name = "BYTES", default_value = "100", value_parser = at_least_one)]
    pub text: usize,
    /// The URL of a running node, as http://HOST:PORT; its --rate must allow the load
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Compare POSTs with a handler that stores nothing, in rounds of this length
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub compare: Option<Duration>,
    /// Open this many idle sockets instead, and print the memory that each needs in a separate node process
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one)]
    pub idle: Option<usize>,
    /// Measure instead the latency of one user while this many others post to thousands of recipients, at the default
    /// limits
    #[arg(long, value_name = "NUMBER", value_parser = at_least_one, conflicts_with_all = ["idle", "compare"])]
    pub fanout: Option<usize>,
    /// Seed of the random recipients
    #[arg(long, value_name = "NUMBER", default_value = "1")]
    pub seed: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Only run the node of --idle or --fanout until stdin ends
    #[arg(long, hide = true)]
    pub node: Option<NodeArg>,
}

/// The number of recipients of a message.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum KindArg {
    /// One recipient
    #[value(name = "1on1")]
    One,
    /// Two recipients
    #[value(name = "1on2")]
    Two,
    /// Five recipients
    #[value(name = "1on5")]
    Five,
    /// A random number of recipients, from one to all
    #[value(name = "1onAny")]
    Any,
    /// All users online
    #[value(name = "1onAll")]
    All,
}

/// A node in a separate process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NodeArg {
    /// In memory, with limits that a load does not reach
    Idle,
    /// On disk, with the default limits of a user
    Limited,
}

/// The format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables
    Text,
    /// One JSON object
    Json,
}

impl Flags {
    /// Returns the requested load.
    pub fn plan(&self) -> Plan {
        let kind = match self.kind {
            KindArg::One => Kind::OneOnOne,
            KindArg::Two => Kind::OneOnTwo,
            KindArg::Five => Kind::OneOnFive,
            KindArg::Any => Kind::OneOnAny,
            KindArg::All => Kind::OneOnAll,
        };
        Plan {
            kind,
            workers: self.workers,
            messages: self.messages,
            users: self.users.unwrap_or(self.workers.saturating_mul(2).max(16)),
            rate: self.rate,
            text: self.text,
            seed: self.seed,
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate.is_finite() => Ok(rate),
        _ => Err("give a number above 0, as 1000".to_owned()),
    }
}

/// Parses a number, which must not be 0.
fn at_least_one(text: &str) -> Result<usize, String> {
    const MOST: u32 = u32::MAX >> 3;
    match text.parse::<u32>() {
        Ok(number) if (1..=MOST).contains(&number) => Ok(number as usize),
        _ => Err(format!("give a whole number from 1 to {MOST}")),
    }
}

/// Parses a duration with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let parsed = jiff::fmt::friendly::SpanParser::new().parse_unsigned_duration(text);
    parsed
        .map_err(|_| format!("'{text}' is not a duration; expected for example 500ms, 2s or 1m30s"))
}

/// Returns the `host:port` of a URL.
pub fn host(url: &str) -> Result<String> {
    let Some(rest) = url.strip_prefix("http://") else {
        bail!("--url {url}: a node speaks plain HTTP; write it as http://HOST:PORT");
    };
    let host = rest.trim_end_matches('/');
    if host.is_empty() || host.contains('/') {
        bail!("--url {url}: write it as http://HOST:PORT, without a path");
    }
    Ok(match host.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:80"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(line: &str) -> bool {
        let words = std::iter::once("load").chain(line.split_whitespace());
        Flags::try_parse_from(words).is_ok()
    }

    #[test]
    fn the_documented_lines_are_accepted() {
        for line in [
            "--kind 1on1",
            "--kind 1onAll --workers 8 --messages 100 --users 50 --rate 1000",
            "--kind 1onAny --url http://127.0.0.1:8080 --format json",
            "--idle 100",
            "--fanout 8",
        ] {
            assert!(accepts(line), "{line}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "bench",
            "--kind 2on1",
            "--workers 0",
            "--messages 0",
            "--rate 0",
            "--rate fast",
            "--text -1",
            "--fanout 8 --idle 9",
        ] {
            assert!(!accepts(line), "{line}");
        }
    }

    #[test]
    fn a_url_is_http_a_host_and_a_port() {
        for (url, expected) in [
            ("http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("http://node:1/", "node:1"),
            ("http://node", "node:80"),
        ] {
            assert_eq!(host(url).unwrap(), expected);
        }
        for wrong in ["node:1", "https://node", "http://", "http://node/path"] {
            let said = host(wrong).unwrap_err().to_string();
            assert!(said.contains("--url"), "{said}");
        }
    }
}
