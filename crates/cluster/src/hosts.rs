//! Where the processes are: a line for each.

use crate::ClusterError;
use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

/// The port of a host that is named without one.
pub const DEFAULT_PORT: u16 = 7351;
/// More processes are refused: each is connected with each.
pub const MOST_PROCESSES: usize = 1024;
const MOST_BYTES: u64 = 1 << 18;

/// Where one process is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    name: String,
    port: u16,
}

impl Host {
    /// Reads `name`, `name:port`, `address:port` or `[address]:port`.
    fn read(text: &str) -> Result<Host, String> {
        let wrong = || {
            format!(
                "'{text}' is no host; write it as node1, node1:{DEFAULT_PORT} or [::1]:{DEFAULT_PORT}"
            )
        };
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (name, port.parse().map_err(|_| wrong())?),
            None => (text, DEFAULT_PORT),
        };
        let inner = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_bare = inner.is_none() && name.contains(':');
        let name = inner.unwrap_or(name);
        let of_name = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
        if port == 0 || is_bare || name.is_empty() || !name.chars().all(of_name) {
            return Err(wrong());
        }
        Ok(Host {
            name: name.to_owned(),
            port,
        })
    }

    /// Its addresses, now.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<_> = (self.name.as_str(), self.port).to_socket_addrs()?.collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
        }
        Ok(found)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

impl From<SocketAddr> for Host {
    fn from(address: SocketAddr) -> Host {
        Host {
            name: address.ip().to_string(),
            port: address.port(),
        }
    }
}

/// Where all processes are, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Vec<Host>);

impl Hosts {
    /// Reads a file: a host a line, the first is process 0; what follows a `#` is a comment.
    ///
    /// # Errors
    /// The file or the line that is wrong.
    pub fn read(path: &Path) -> Result<Hosts, ClusterError> {
        let failed = |why| ClusterError::HostsFile {
            path: path.to_owned(),
            why,
        };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        let mut file = file.take(MOST_BYTES + 1);
        file.read_to_string(&mut text).map_err(failed)?;
        Hosts::parse(&text).map_err(|what| ClusterError::Hosts {
            path: path.to_owned(),
            what,
        })
    }

    /// Reads the text of such a file.
    ///
    /// # Errors
    /// What is wrong, and in which line.
    pub fn parse(text: &str) -> Result<Hosts, String> {
        if text.len() as u64 > MOST_BYTES {
            return Err(format!("a list of hosts has at most {MOST_BYTES} bytes"));
        }
        let mut hosts: Vec<Host> = Vec::new();
        let mut lines = HashMap::new();
        // Some editors begin a file with a mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let host = Host::read(line).map_err(|what| format!("line {number}: {what}"))?;
            if let Some(first) = lines.insert(host.clone(), number) {
                return Err(format!(
                    "lines {first} and {number} are both {host}; give each process a port of its own, as in {}:{}",
                    host.name,
                    host.port.saturating_add(1)
                ));
            }
            hosts.push(host);
        }
        Hosts::new(hosts)
    }

    /// These hosts.
    ///
    /// # Errors
    /// If they are none, or too many.
    pub fn new(hosts: Vec<Host>) -> Result<Hosts, String> {
        if hosts.is_empty() {
            return Err("no host is named; write one a line, the first for process 0".to_owned());
        }
        if hosts.len() > MOST_PROCESSES {
            return Err(format!(
                "{} hosts are too many; at most {MOST_PROCESSES} work together",
                hosts.len()
            ));
        }
        Ok(Hosts(hosts))
    }

    /// How many processes there are.
    #[expect(clippy::len_without_is_empty, reason = "there is one at least")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Where a process is.
    pub fn get(&self, process: usize) -> Option<&Host> {
        self.0.get(process)
    }

    /// All of them in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_names_addresses_ports_and_comments() {
        let hosts = Hosts::parse("# two racks\nnode-1\n\n10.0.0.2:99 # second\n[::1]:7\n").unwrap();
        let shown: Vec<String> = hosts.iter().map(Host::to_string).collect();
        assert_eq!(shown, ["node-1:7351", "10.0.0.2:99", "[::1]:7"]);
        assert_eq!(Hosts::parse("\u{feff}a\r\nb").unwrap().len(), 2);
    }

    #[test]
    fn lists_that_make_no_sense_are_refused_with_their_line() {
        let long = "a\n".repeat(200_000);
        for (text, part) in [
            ("", "no host"),
            ("# nothing\n", "no host"),
            ("a\nb c\n", "line 2"),
            ("a:0", "line 1"),
            ("a:70000", "line 1"),
            ("::1", "[::1]:7351"),
            (":80", "line 1"),
            ("a\n\na:7351", "lines 1 and 3 are both a:7351"),
            (long.as_str(), "bytes"),
        ] {
            let said = Hosts::parse(text).unwrap_err();
            assert!(said.contains(part), "{said:?} lacks {part:?}");
        }
        let many: String = (0..1025).map(|number| format!("n{number}\n")).collect();
        assert!(Hosts::parse(&many).unwrap_err().contains("too many"));
    }
}
