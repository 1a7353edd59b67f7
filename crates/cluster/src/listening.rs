//! The socket at which a process waits for the others, and who is introduced there.

use crate::handshake;
use crate::link::Event;
use crate::wire::Deadline;
use crate::{ClusterError, Host, Secret};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// Between two tries to listen.
const PAUSE: Duration = Duration::from_millis(100);
/// How long who listened there before may take to end.
const LEAVING: Duration = Duration::from_secs(2);
/// The most connections that are being introduced at a time; more are closed at once.
const MOST_AT_ONCE: usize = 64;
/// Between two looks whether somebody connects.
const POLL: Duration = Duration::from_millis(10);

/// Listens at the first address of this process that can be had.
pub(crate) fn bind(host: &Host, process: usize, by: Deadline) -> Result<TcpListener, ClusterError> {
    // Who listened there before may have been ended just now.
    let freed = Deadline::after(LEAVING);
    loop {
        let bound = host
            .addresses()
            .and_then(|addresses| TcpListener::bind(&addresses[..]));
        match bound {
            Ok(listener) => return Ok(listener),
            // A name may come up a little later than who has it.
            Err(_) if host.addresses().is_err() && !by.is_over() => thread::sleep(PAUSE),
            Err(why) if why.kind() == ErrorKind::AddrInUse && !freed.is_over() => {
                thread::sleep(PAUSE);
            }
            Err(why) => {
                return Err(ClusterError::Listen {
                    process,
                    address: host.to_string(),
                    why,
                });
            }
        }
    }
}

/// Others are introduced as long as there is one of these.
#[derive(Debug)]
pub(crate) struct Listening(Arc<AtomicBool>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Lets a thread introduce whatever connects.
pub(crate) fn accept(
    listener: TcpListener,
    secret: Secret,
    tell: Sender<Event>,
) -> Result<Listening, ClusterError> {
    let under_way = Arc::new(AtomicUsize::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let listening = Listening(Arc::clone(&is_over));
    let polled = listener.set_nonblocking(true);
    polled.map_err(ClusterError::system("cannot listen"))?;
    let listen = move || {
        while !is_over.load(Ordering::Relaxed) {
            let Ok((stream, from)) = listener.accept() else {
                // Nothing has come, or there are no more sockets for now.
                thread::sleep(POLL);
                continue;
            };
            if stream.set_nonblocking(false).is_err() {
                continue;
            }
            if under_way.fetch_add(1, Ordering::Relaxed) >= MOST_AT_ONCE {
                under_way.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (secret, told, count) = (secret.clone(), tell.clone(), Arc::clone(&under_way));
            let introduce = move || {
                let event = match handshake::listen(stream, &secret) {
                    Ok(introduced) => Event::Arrived(Box::new(introduced)),
                    Err(why) => Event::TurnedAway { from, why },
                };
                count.fetch_sub(1, Ordering::Relaxed);
                // Who is not waited for any more is not introduced either.
                let _ = told.send(event);
            };
            if thread::Builder::new()
                .name("introduction".to_owned())
                .spawn(introduce)
                .is_err()
            {
                under_way.fetch_sub(1, Ordering::Relaxed);
            }
        }
    };
    let thread = thread::Builder::new().name("introductions".to_owned());
    let thread = thread.spawn(listen);
    thread.map_err(ClusterError::system("no thread to listen"))?;
    Ok(listening)
}
