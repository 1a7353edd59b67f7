//! A rendezvous under way, as one process sees it.

use super::dialing::connect;
use super::{Membership, Mesh, VERDICT, Way};
use crate::ClusterError;
use crate::handshake::{Hello, Introduced, Purpose};
use crate::link::{Event, Frame, Link};
use crate::listening::Listening;
use crate::secret::random;
use crate::supervisor::{Supervisor, Watched};
use crate::wire::Deadline;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};

/// A rendezvous under way.
pub(super) struct Meeting {
    membership: Membership,
    by: Deadline,
    hello: Hello,
    /// The first process has one to each other; each other has one to the first.
    links: Vec<Option<Link>>,
    data: Vec<Option<Way>>,
    relays: Vec<Option<TcpStream>>,
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
    pub(super) fn new(
        membership: Membership,
        tell: Sender<Event>,
        listening: Listening,
        by: Deadline,
    ) -> Meeting {
        let processes = membership.hosts.len();
        Meeting {
            hello: Hello {
                purpose: Purpose::Control,
                process: membership.process as u32,
                processes: processes as u32,
                workers: membership.workers as u32,
                session: 0,
                configuration: membership.configuration,
                program: membership.program.clone(),
                relays: membership.relays,
                origin: membership.origin.clone(),
                offer: None,
            },
            links: (0..processes).map(|_| None).collect(),
            data: (0..processes).map(|_| None).collect(),
            relays: (0..processes).map(|_| None).collect(),
            ready: vec![false; processes],
            waiting: Vec::new(),
            turned_away: 0,
            last_turned: String::new(),
            next_link: 0,
            tell,
            listening,
            membership,
            by,
        }
    }

    /// Waits until all are connected with all, or tells all others why that will not be.
    pub(super) fn meet(mut self, events: Receiver<Event>) -> Result<Mesh, ClusterError> {
        match self.run(&events) {
            Ok(()) => self.end(events),
            Err(error) => {
                let why = Frame::Failed(self.in_words(&error));
                self.links.iter_mut().flatten().for_each(|link| {
                    link.send(&why);
                    link.close();
                });
                Err(error)
            }
        }
    }

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
                let (session, origin) = (self.hello.session, self.hello.origin.clone());
                self.tell_all(&Frame::Start { session, origin });
            }
            if self.is_connected() && !self.ready[own] {
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

    /// Whether it has all connections that the run needs.
    fn is_connected(&self) -> bool {
        let own = self.membership.process;
        let mut others = (0..self.data.len()).filter(|&other| other != own);
        let relays = |other| self.membership.relays && (own == 0 || other == 0);
        others.all(|other| {
            self.data[other].is_some() && (!relays(other) || self.relays[other].is_some())
        })
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
                Purpose::Data => self.data[process] = Some(introduced.into_way()),
                Purpose::Relay => self.relays[process] = Some(introduced.stream),
            },
            Event::NotConnected(error) => return Err(error),
            Event::Said { link, from, frame } if self.is_current(from, link) => match frame {
                Frame::Start { session, origin } if !self.is_first() && !self.has_begun() => {
                    (self.hello.session, self.hello.origin) = (session, origin);
                    for introduced in std::mem::take(&mut self.waiting) {
                        self.arrived(introduced)?;
                    }
                    self.connect(0..self.membership.process, Purpose::Data)?;
                    if self.membership.relays {
                        self.connect(0..1, Purpose::Relay)?;
                    }
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
        let purpose = theirs.purpose;
        let is_control = purpose == Purpose::Control;
        if !is_control && !self.has_begun() {
            self.waiting.push(introduced);
            return Ok(());
        }
        let is_wrong = match purpose {
            Purpose::Control => !self.is_first() || self.has_begun(),
            Purpose::Data => from < own || self.data.get(from).is_some_and(Option::is_some),
            Purpose::Relay => {
                !self.is_first() || self.relays.get(from).is_some_and(Option::is_some)
            }
        };
        let objection = if from >= self.data.len() || from == own {
            Some(format!(
                "there is another process {from}; give each a --process of its own"
            ))
        } else if !is_control && theirs.session != self.hello.session {
            Some("it belongs to another rendezvous".to_owned())
        } else if is_wrong {
            Some(format!(
                "process {from} has come twice, or at the wrong time"
            ))
        } else if is_control && self.links[from].is_some() {
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
            match purpose {
                Purpose::Data => self.data[from] = Some(introduced.into_way()),
                Purpose::Relay => self.relays[from] = Some(introduced.stream),
                Purpose::Control => {
                    let origin = introduced.hello.origin.clone();
                    self.hello.origin = self.hello.origin.take().max(origin);
                    self.link(from, introduced)?;
                }
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
            self.membership.shares_memory && purpose == Purpose::Data,
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
        let data = self
            .data
            .iter()
            .map(|way| way.as_ref().map(|way| &way.stream));
        let all: Vec<_> = data.chain(self.relays.iter().map(Option::as_ref)).collect();
        let mut streams = Vec::new();
        for stream in &all {
            let clone = stream.map(TcpStream::try_clone).transpose();
            streams.push(clone.map_err(ClusterError::system("no second handle of a socket"))?);
        }
        for stream in all.into_iter().flatten() {
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
            streams,
            listening: self.listening,
            parent,
        };
        let supervisor = Supervisor::start(watched, self.tell, events)?;
        Ok(Mesh {
            process,
            workers,
            names,
            data: self.data,
            relays: self.relays,
            session: self.hello.session,
            origin: self.hello.origin,
            supervisor,
        })
    }
}
