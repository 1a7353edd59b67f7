//! Connecting with other processes.

use super::PAUSE;
use crate::handshake::{self, Failure, Hello, Introduced};
use crate::link::Event;
use crate::wire::Deadline;
use crate::{ClusterError, Host, Secret};
use std::net::TcpStream;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// How long one try takes at most.
const TRY: Duration = Duration::from_secs(2);

/// Connects with other processes, one after the other, and tells of each.
pub(super) fn connect(
    hosts: Vec<(usize, Host)>,
    hello: Hello,
    shares_memory: bool,
    secret: Secret,
    waited: Duration,
    by: Deadline,
    tell: Sender<Event>,
) -> Result<(), ClusterError> {
    let dial = move || {
        for (process, host) in hosts {
            let event = match dial(process, &host, (&hello, shares_memory), &secret, waited, by) {
                Ok(introduced) => Event::Connected(process, Box::new(introduced)),
                Err(error) => Event::NotConnected(error),
            };
            if tell.send(event).is_err() {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("connections".to_owned());
    thread
        .spawn(dial)
        .map(drop)
        .map_err(ClusterError::system("no thread to connect"))
}

fn dial(
    process: usize,
    host: &Host,
    (hello, shares_memory): (&Hello, bool),
    secret: &Secret,
    waited: Duration,
    by: Deadline,
) -> Result<Introduced, ClusterError> {
    let address = host.to_string();
    let mut why = String::new();
    while let Ok(left) = by.left() {
        let addresses = host.addresses().unwrap_or_else(|error| {
            why = error.to_string();
            Vec::new()
        });
        for to in addresses {
            let stream = match TcpStream::connect_timeout(&to, left.min(TRY)) {
                // A port of this machine where nobody listens may connect to itself.
                Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => {
                    "nobody listens there".clone_into(&mut why);
                    continue;
                }
                Ok(stream) => stream,
                Err(error) => {
                    why = error.to_string();
                    continue;
                }
            };
            match handshake::connect(stream, secret, hello, shares_memory, by, &address) {
                Ok(introduced) => return Ok(introduced),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(what)) => why = what,
            }
        }
        thread::sleep(PAUSE);
    }
    Err(ClusterError::Unreachable {
        process,
        address,
        waited,
        why,
    })
}
