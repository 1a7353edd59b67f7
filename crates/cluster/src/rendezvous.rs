//! How processes find each other before a run.
//!
//! Each listens where the hosts say. All others connect to the first process, which tells them to start when
//! the last has come; then each connects with every one before it, for that session, and says when it is
//! connected with all. When all are, the first says go. Whatever connects in between and does not prove itself
//! is turned away and costs nobody's turn; what proves itself and does not fit ends the rendezvous for all.

mod dialing;
mod meeting;

use crate::listening::{accept, bind};
use crate::shared::Memory;
use crate::supervisor::Supervisor;
use crate::wire::Deadline;
use crate::{ClusterError, Hosts, Limits, Origin, Secret};
use meeting::Meeting;
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

/// Between two tries to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// How much longer the others wait than the first process.
const VERDICT: Duration = Duration::from_secs(2);

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
    /// Where this process knows of that the run goes on from. Of all that are known the latest is taken.
    pub origin: Option<Origin>,
    /// Whether each process has a connection to the first one for [what it relays](crate::ClusterRun::take_relays), which
    /// must be the same everywhere.
    pub relays: bool,
    /// Whether what workers have for those of an earlier process of the same machine goes through memory that both share, if the
    /// system allows it, instead of a socket.
    pub shares_memory: bool,
}

/// Processes that have found each other, and watch each other from now on.
#[derive(Debug)]
pub struct Mesh {
    pub(crate) process: usize,
    pub(crate) workers: usize,
    /// What each process is called in sentences.
    pub(crate) names: Vec<String>,
    /// By process; none to this one itself.
    pub(crate) data: Vec<Option<Way>>,
    /// For what is relayed: the first process has one from each other, each other one to the first.
    pub(crate) relays: Vec<Option<TcpStream>>,
    pub(crate) session: u64,
    pub(crate) origin: Option<Origin>,
    pub(crate) supervisor: Supervisor,
}

/// What carries the events between this process and another one.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) stream: TcpStream,
    pub(crate) memory: Option<Memory>,
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
        Meeting::new(self, tell, listening, by).meet(events)
    }
}
