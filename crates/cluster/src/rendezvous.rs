//! How processes find each other before a run.
//!
//! Each listens where the hosts say. All others connect to the first process, which tells them to start when
//! the last has come; then each connects with every one before it, for that session, and says when it is
//! connected with all. When all are, the first says go. Whatever connects in between and does not prove itself
//! is turned away and costs nobody's turn; what proves itself and does not fit ends the rendezvous for all.

use crate::handshake::{self, Failure, Hello, Introduced, Purpose};
use crate::link::{Event, Frame, Link};
use crate::secret::random;
use crate::supervisor::{Supervisor, Watched};
use crate::wire::Deadline;
use crate::{ClusterError, Host, Hosts, Secret};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// The most connections that are being introduced at a time; more are closed at once.
const MOST_AT_ONCE: usize = 64;
/// Between two looks whether somebody connects.
const POLL: Duration = Duration::from_millis(10);
/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// How much longer the others wait than the first process.
const VERDICT: Duration = Duration::from_secs(2);
/// How long one try takes at most.
const TRY: Duration = Duration::from_secs(2);

/// Who this process is, and with whom it wants to run.
#[derive(Debug)]
pub struct Membership {
    /// Where all processes are.
    pub hosts: Hosts,
    /// The number of this one.
    pub process: usize,
    /// How many workers each process has.
    pub workers: usize,
    /// What all of them know.
    pub secret: Secret,
    /// The program and its version, which must be the same everywhere.
    pub program: String,
    /// A hash of all that decides the result, which must be the same everywhere.
    pub configuration: [u8; 32],
    /// The socket to listen at, if there is one already.
    pub listener: Option<TcpListener>,
    /// The process that has started this one, if it is not to go on without that.
    pub parent: Option<u32>,
    /// How long it waits for what.
    pub limits: Limits,
}

/// How long a process waits for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until all have found each other.
    pub rendezvous: Duration,
    /// For a sign of life of another process during the run.
    pub silence: Duration,
    /// For the end of a window.
    pub stall: Duration,
}

impl Default for Limits {
    /// A minute, ten seconds, and five minutes.
    fn default() -> Limits {
        Limits {
            rendezvous: Duration::from_secs(60),
            silence: Duration::from_secs(10),
            stall: Duration::from_secs(300),
        }
    }
}

/// Processes that have found each other, and watch each other from now on.
#[derive(Debug)]
pub struct Mesh {
    pub(crate) process: usize,
    pub(crate) workers: usize,
    /// What each process is called in sentences.
    pub(crate) names: Vec<String>,
    /// By process; none to this one itself.
    pub(crate) data: Vec<Option<TcpStream>>,
    pub(crate) supervisor: Supervisor,
}

impl Mesh {
    /// The number of this process.
    pub fn process(&self) -> usize {
        self.process
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.data.len()
    }

    /// How many workers each of them has.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// What watches over the other processes.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }
}

impl Membership {
    /// Waits for all other processes.
    ///
    /// # Errors
    /// See [`ClusterError`]; what has come until then is told, too.
    pub fn meet(mut self) -> Result<Mesh, ClusterError> {
        let processes = self.hosts.len();
        let Some(host) = self.hosts.get(self.process).cloned() else {
            let process = self.process;
            return Err(ClusterError::Process { process, processes });
        };
        let by = Deadline::after(self.limits.rendezvous);
        let listener = match self.listener.take() {
            Some(listener) => listener,
            None => bind(&host, self.process, by)?,
        };
        let (tell, events) = channel();
        let listening = accept(listener, self.secret.clone(), tell.clone())?;
        let mut meeting = Meeting {
            hello: Hello {
                purpose: Purpose::Control,
                process: self.process as u32,
                processes: processes as u32,
                workers: self.workers as u32,
                session: 0,
                configuration: self.configuration,
                program: self.program.clone(),
            },
            links: (0..processes).map(|_| None).collect(),
            data: (0..processes).map(|_| None).collect(),
            ready: vec![false; processes],
            waiting: Vec::new(),
            turned_away: 0,
            last_turned: String::new(),
            next_link: 0,
            tell,
            listening,
            membership: self,
            by,
        };
        match meeting.run(&events) {
            Ok(()) => meeting.end(events),
            Err(error) => {
                let why = Frame::Failed(meeting.in_words(&error));
                meeting.links.iter_mut().flatten().for_each(|link| {
                    link.send(&why);
                    link.close();
                });
                Err(error)
            }
        }
    }
}

/// Listens at the first address of this process that can be had.
fn bind(host: &Host, process: usize, by: Deadline) -> Result<TcpListener, ClusterError> {
    // Who listened there before may have been ended just now.
    let freed = Deadline::after(VERDICT);
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
fn accept(
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

/// Connects with other processes, one after the other, and tells of each.
fn connect(
    hosts: Vec<(usize, Host)>,
    hello: Hello,
    secret: Secret,
    waited: Duration,
    by: Deadline,
    tell: Sender<Event>,
) -> Result<(), ClusterError> {
    let dial = move || {
        for (process, host) in hosts {
            let event = match dial(process, &host, &hello, &secret, waited, by) {
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
    hello: &Hello,
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
                Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => continue,
                Ok(stream) => stream,
                Err(error) => {
                    why = error.to_string();
                    continue;
                }
            };
            match handshake::connect(stream, secret, hello, by, &address) {
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

/// A rendezvous under way.
struct Meeting {
    membership: Membership,
    by: Deadline,
    hello: Hello,
    /// The first process has one to each other; each other has one to the first.
    links: Vec<Option<Link>>,
    data: Vec<Option<TcpStream>>,
    ready: Vec<bool>,
    /// Those who have connected before the session was known.
    waiting: Vec<Introduced>,
    turned_away: usize,
    last_turned: String,
    next_link: u64,
    tell: Sender<Event>,
    listening: Listening,
}

impl Meeting {
    fn is_first(&self) -> bool {
        self.membership.process == 0
    }

    fn has_begun(&self) -> bool {
        self.hello.session != 0
    }

    fn run(&mut self, events: &Receiver<Event>) -> Result<(), ClusterError> {
        let own = self.membership.process;
        if self.data.len() == 1 {
            return Ok(());
        }
        if !self.is_first() {
            self.connect(0..1, Purpose::Control)?;
        }
        loop {
            if self.is_first() && !self.has_begun() && self.links[1..].iter().all(Option::is_some) {
                // 0 says that there is none.
                self.hello.session = u64::from_le_bytes(random()?).max(1);
                let session = self.hello.session;
                self.tell_all(&Frame::Start { session });
            }
            let connected =
                (0..self.data.len()).all(|other| other == own || self.data[other].is_some());
            if connected && !self.ready[own] {
                self.ready[own] = true;
                if !self.is_first() {
                    self.tell_all(&Frame::Ready);
                }
            }
            if self.is_first() && self.ready.iter().all(|ready| *ready) {
                self.tell_all(&Frame::Go);
                return Ok(());
            }
            // Of what is missing the first process knows more, and says so to all that have come; whoever
            // cannot be reached, the thread that tries.
            let by = match self.is_first() {
                true => self.by,
                false => self.by.later(VERDICT),
            };
            let left = by.left().map_err(|_| self.missing())?;
            match events.recv_timeout(left) {
                Ok(event) => {
                    if self.take(event)? {
                        return Ok(());
                    }
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(self.missing());
                }
            }
        }
    }

    /// Takes in what happens. Whether the run begins.
    fn take(&mut self, event: Event) -> Result<bool, ClusterError> {
        match event {
            Event::Arrived(introduced) => self.arrived(*introduced)?,
            Event::TurnedAway { from, why } => {
                self.turned_away += 1;
                self.last_turned = format!("from {}: {why}", from.ip());
            }
            Event::Connected(process, introduced) => match introduced.hello.purpose {
                Purpose::Control => self.link(process, *introduced)?,
                Purpose::Data => self.data[process] = Some(introduced.stream),
            },
            Event::NotConnected(error) => return Err(error),
            Event::Said { link, from, frame } if self.is_current(from, link) => match frame {
                Frame::Start { session } if !self.is_first() && !self.has_begun() => {
                    self.hello.session = session;
                    for introduced in std::mem::take(&mut self.waiting) {
                        self.arrived(introduced)?;
                    }
                    self.connect(0..self.membership.process, Purpose::Data)?;
                }
                Frame::Ready if self.is_first() => self.ready[from] = true,
                Frame::Go if !self.is_first() => return Ok(true),
                // It may come again.
                Frame::Failed(why) if self.is_first() && !self.has_begun() => {
                    self.turned_away += 1;
                    self.last_turned = why;
                    self.links[from] = None;
                }
                Frame::Failed(why) => return Err(ClusterError::Lost(why)),
                _ => {
                    return Err(ClusterError::Lost(format!(
                        "{} said something out of turn",
                        self.name(from)
                    )));
                }
            },
            Event::Closed { link, from, why } if self.is_current(from, link) => {
                if self.has_begun() || !self.is_first() {
                    return Err(ClusterError::Lost(format!(
                        "{} has left before the run began ({why})",
                        self.name(from)
                    )));
                }
                // It may come again.
                self.links[from] = None;
            }
            Event::Said { .. } | Event::Closed { .. } | Event::Ordered(_) | Event::Woken => {}
        }
        Ok(false)
    }

    /// Another process has come; it is taken in or told why not.
    fn arrived(&mut self, mut introduced: Introduced) -> Result<(), ClusterError> {
        let theirs = &introduced.hello;
        if let Some(objection) = self.hello.objection(theirs) {
            // It is told, if it still listens; all others are told by who calls this.
            let _ = introduced.answer(Some(&objection));
            return Err(ClusterError::Lost(objection));
        }
        let (from, own) = (theirs.process as usize, self.membership.process);
        let is_data = theirs.purpose == Purpose::Data;
        if is_data && !self.has_begun() {
            self.waiting.push(introduced);
            return Ok(());
        }
        let objection = if from >= self.data.len() || from == own {
            Some(format!(
                "there is another process {from}; give each a --process of its own"
            ))
        } else if is_data && theirs.session != self.hello.session {
            Some("it belongs to another rendezvous".to_owned())
        } else if is_data && (from < own || self.data[from].is_some())
            || !is_data && (!self.is_first() || self.has_begun())
        {
            Some(format!(
                "process {from} has come twice, or at the wrong time"
            ))
        } else if !is_data && self.links[from].is_some() {
            Some(format!(
                "process {from} is there already; give each a --process of its own"
            ))
        } else {
            None
        };
        let answered = introduced.answer(objection.as_deref());
        if let Some(why) = objection {
            self.turned_away += 1;
            self.last_turned = why;
        } else if answered.is_ok() {
            match is_data {
                true => self.data[from] = Some(introduced.stream),
                false => self.link(from, introduced)?,
            }
        }
        Ok(())
    }

    fn link(&mut self, process: usize, introduced: Introduced) -> Result<(), ClusterError> {
        self.next_link += 1;
        let Introduced { reader, writer, .. } = introduced;
        let link = Link::new(self.next_link, process, reader, writer, self.tell.clone());
        self.links[process] = Some(link.map_err(ClusterError::system("no thread to receive"))?);
        Ok(())
    }

    fn is_current(&self, process: usize, number: u64) -> bool {
        let link = self.links[process].as_ref();
        link.is_some_and(|link| link.number == number)
    }

    /// Connects with these processes, for this.
    fn connect(&self, with: std::ops::Range<usize>, purpose: Purpose) -> Result<(), ClusterError> {
        let host = |process| {
            self.membership
                .hosts
                .get(process)
                .map(|host| (process, host.clone()))
        };
        let hello = Hello {
            purpose,
            ..self.hello.clone()
        };
        connect(
            with.filter_map(host).collect(),
            hello,
            self.membership.secret.clone(),
            self.membership.limits.rendezvous,
            self.by,
            self.tell.clone(),
        )
    }

    fn tell_all(&mut self, frame: &Frame) {
        self.links
            .iter_mut()
            .flatten()
            .for_each(|link| link.send(frame));
    }

    fn name(&self, process: usize) -> String {
        match self.membership.hosts.get(process) {
            Some(host) => format!("process {process} at {host}"),
            None => format!("process {process}"),
        }
    }

    /// An error of this process, as the others are told.
    fn in_words(&self, error: &ClusterError) -> String {
        match error {
            ClusterError::Lost(why) => why.clone(),
            error => format!("process {}: {error}", self.membership.process),
        }
    }

    /// Not all have come.
    fn missing(&self) -> ClusterError {
        let own = self.membership.process;
        let missing: Vec<String> = (0..self.data.len())
            .filter(|&other| match (self.is_first(), self.has_begun()) {
                (true, false) => other != own && self.links[other].is_none(),
                (true, true) => !self.ready[other],
                (false, false) => other == 0 && self.links[0].is_none(),
                (false, true) => other != own && self.data[other].is_none(),
            })
            .map(|other| self.name(other))
            .collect();
        let more = match missing.len() {
            0 => "one of the other processes".to_owned(),
            1..=4 => missing.join(", "),
            all => format!("{} and {} more", missing[..4].join(", "), all - 4),
        };
        let note = match self.turned_away {
            0 => String::new(),
            1 => format!("; a connection was turned away ({})", self.last_turned),
            all => format!(
                "; {all} connections were turned away (the last {})",
                self.last_turned
            ),
        };
        ClusterError::Missing {
            missing: more,
            waited: self.membership.limits.rendezvous,
            note,
        }
    }

    /// All are connected with all.
    fn end(self, events: Receiver<Event>) -> Result<Mesh, ClusterError> {
        let names: Vec<String> = (0..self.data.len())
            .map(|process| self.name(process))
            .collect();
        let mut data = Vec::new();
        for stream in &self.data {
            let clone = stream.as_ref().map(TcpStream::try_clone).transpose();
            data.push(clone.map_err(ClusterError::system("no second handle of a socket"))?);
        }
        for stream in self.data.iter().flatten() {
            let plain = stream
                .set_read_timeout(None)
                .and_then(|()| stream.set_write_timeout(None));
            plain.map_err(ClusterError::system("a socket cannot wait"))?;
        }
        let Membership {
            process,
            workers,
            limits,
            parent,
            ..
        } = self.membership;
        let watched = Watched {
            process,
            workers,
            names: names.clone(),
            limits,
            links: self.links,
            data,
            listening: self.listening,
            parent,
        };
        let supervisor = Supervisor::start(watched, self.tell, events)?;
        Ok(Mesh {
            process,
            workers,
            names,
            data: self.data,
            supervisor,
        })
    }
}
