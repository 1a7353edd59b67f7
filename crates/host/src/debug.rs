//! Debugging by environment variables: `STOP`, `STRACE` and `PCAP`.

use crate::error::SimError;
use std::path::PathBuf;

/// The values of the variables.
#[derive(Debug, Default)]
pub(crate) struct Debug {
    /// The host to stop for a debugger, and the time in nanoseconds.
    pub stop: Option<(usize, u64)>,
    /// For each host, true if every call is logged.
    pub traced: Vec<bool>,
    /// The file to which packets are written.
    pub packets: Option<PathBuf>,
}

/// True if a host will be stopped for a debugger, so that output must not be captured.
pub(crate) fn stops() -> bool {
    std::env::var_os("STOP").is_some()
}

impl Debug {
    /// Reads the variables.
    ///
    /// # Errors
    /// If a variable is invalid.
    pub(crate) fn read(hosts: &[&str]) -> Result<Debug, SimError> {
        let get = |name| std::env::var(name).ok();
        let index = |variable: &str, name: &str| {
            let found = hosts.iter().position(|&host| host == name);
            found.ok_or_else(|| {
                SimError::Settings(format!(
                    "{variable} names the host '{name}', which does not exist; the hosts are {}",
                    hosts.join(", ")
                ))
            })
        };
        let stop = match get("STOP") {
            None => None,
            Some(text) => {
                let parsed = text.split_once('@').and_then(|(name, time)| {
                    let seconds = time.strip_suffix('s').unwrap_or(time).parse::<f64>().ok()?;
                    let is_time = (0.0..1e9).contains(&seconds);
                    is_time.then_some((name, (seconds * 1e9) as u64))
                });
                let (name, time) = parsed.ok_or_else(|| {
                    SimError::Settings(format!(
                        "STOP={text} is not a host and a time; expected for example web-1@1.0101s"
                    ))
                })?;
                Some((index("STOP", name)?, time))
            }
        };
        let mut traced = vec![false; hosts.len()];
        match get("STRACE").as_deref() {
            None => {}
            Some("all") => traced.fill(true),
            Some(names) => {
                for name in names.split(',') {
                    traced[index("STRACE", name)?] = true;
                }
            }
        }
        Ok(Debug {
            stop,
            traced,
            packets: get("PCAP").map(PathBuf::from),
        })
    }
}
