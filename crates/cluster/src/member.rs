//! One process of a run.

use crate::ClusterError;
use crate::mail::{Inbox, Mailbox, Topic};
use corsair::cluster::{Carrier, ProcessLost};
use serde::{Deserialize, Serialize};
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::num::NonZeroUsize;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// One process of a run: the carrier of its events, and its mail to the first process.
///
/// # Examples
/// Two processes that are threads:
/// ```
/// use corsair::cluster::{Carrier, thread_carriers};
/// use corsair_cluster::{Member, Terms, Topic};
///
/// let terms = Terms { program: "corsair 1", configuration: b"-a fsm", workers: None, failure: None };
/// let mut members = thread_carriers(2).into_iter().enumerate();
/// let mut next = || members.next().map(|(process, carrier)| Member::new(carrier, process, 2)).unwrap();
/// let (mut first, mut second) = (next(), next());
/// std::thread::scope(|scope| {
///     scope.spawn(move || {
///         second.agree(&terms).unwrap();
///         second.mailbox().post(Topic::Records, b"a record");
///         second.end(b"an outcome".to_vec(), Vec::new()).unwrap();
///     });
///     first.agree(&terms).unwrap();
///     let records = first.receiver(Topic::Records);
///     let ends = first.end(Vec::new(), Vec::new()).unwrap();
///     assert_eq!(ends[1].part, b"an outcome");
///     assert_eq!(records.recv().unwrap(), (1, b"a record".to_vec()));
/// });
/// ```
#[derive(Debug)]
pub struct Member<C> {
    carrier: C,
    process: usize,
    processes: usize,
    mailbox: Mailbox,
    inbox: Inbox,
    exchanged: ExchangeReport,
}

/// The terms that processes compare before they run together.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The program and its version.
    pub program: &'a str,
    /// Everything that determines the result of the run and its output.
    pub configuration: &'a [u8],
    /// The number of workers per process, if the user has set it.
    pub workers: Option<NonZeroUsize>,
    /// The reason why this process cannot run its part, if it cannot.
    pub failure: Option<&'a str>,
}

/// The terms that all processes have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The number of workers of each process: as set by the user, or as many as the process with the fewest cores can
    /// run.
    pub workers: NonZeroUsize,
    /// A random number that all processes of this run share.
    pub session: u64,
}

/// [`Terms`] in the form that processes send.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    program: String,
    failure: Option<String>,
    configuration: u64,
    workers: NonZeroUsize,
    is_asked_for: bool,
    session: u64,
}

/// The amount of data that a process has exchanged with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeReport {
    /// The total time of the exchanges, including the wait for slower processes.
    pub time: Duration,
    /// The number of exchanges: one per window, and a few more.
    pub count: u64,
    /// Bytes sent to other processes.
    pub sent: u64,
    /// Bytes received from other processes.
    pub received: u64,
}

/// The report of a process at the end of its part of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEnd {
    /// The outcome of the member's part, for [`conclude_parts`](corsair::cluster::conclude_parts).
    pub part: Vec<u8>,
    /// Additional data that the member's actors report.
    pub actor_report: Vec<u8>,
    /// Statistics of the member's exchanges with other processes.
    pub exchange: ExchangeReport,
    /// The process's peak memory in bytes, if the system reports it.
    pub peak_memory: Option<u64>,
}

impl<C: Carrier> Member<C> {
    /// Creates the member for process number `process` of `processes`.
    pub fn new(carrier: C, process: usize, processes: usize) -> Member<C> {
        Member {
            carrier,
            process,
            processes,
            mailbox: Mailbox::default(),
            inbox: Inbox::default(),
            exchanged: ExchangeReport::default(),
        }
    }

    /// Returns the number of this process, from 0.
    pub fn process(&self) -> usize {
        self.process
    }

    /// Returns the number of processes in the run.
    pub fn processes(&self) -> usize {
        self.processes
    }

    /// Compares the terms of all processes, and returns the same agreement to each of them.
    ///
    /// # Errors
    /// [`ClusterError::Failed`] with the first process that cannot run its part; [`ClusterError::Different`] with the
    /// first process whose terms differ from those of process 0; [`ClusterError::Lost`].
    pub fn agree(&mut self, terms: &Terms<'_>) -> Result<Agreement, ClusterError> {
        let mut hash = DefaultHasher::new();
        hash.write(terms.configuration);
        let cores = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let card = Card {
            program: terms.program.to_owned(),
            failure: terms.failure.map(str::to_owned),
            configuration: hash.finish(),
            workers: terms.workers.unwrap_or_else(cores),
            is_asked_for: terms.workers.is_some(),
            session: RandomState::new().build_hasher().finish(),
        };
        let senseless = |process| {
            move |_| ClusterError::Different {
                process,
                what: "are different versions of the program",
            }
        };
        let own = postcard::to_allocvec(&card).map_err(senseless(self.process))?;
        let mut incoming = vec![Vec::new(); self.processes];
        self.exchange(&mut vec![own.clone(); self.processes], &mut incoming)?;
        incoming[self.process] = own;
        let read = |(process, card): (usize, &Vec<u8>)| {
            postcard::from_bytes::<Card>(card).map_err(senseless(process))
        };
        let cards = incoming.iter().enumerate().map(read);
        let cards = cards.collect::<Result<Vec<_>, _>>()?;
        let mut failures = cards.iter().enumerate();
        if let Some((process, why)) =
            failures.find_map(|(process, card)| Some((process, card.failure.clone()?)))
        {
            return Err(ClusterError::Failed { process, why });
        }
        let first = &cards[0];
        let difference = |other: &Card| {
            if other.program != first.program {
                return Some("are different versions of the program");
            }
            if other.configuration != first.configuration {
                return Some("have different flags or another definition");
            }
            let workers = (
                other.is_asked_for,
                other.is_asked_for.then_some(other.workers),
            );
            let is_same = workers
                == (
                    first.is_asked_for,
                    first.is_asked_for.then_some(first.workers),
                );
            (!is_same).then_some("have different numbers of workers")
        };
        let mut others = cards.iter().enumerate();
        if let Some((process, what)) =
            others.find_map(|(process, card)| Some((process, difference(card)?)))
        {
            return Err(ClusterError::Different { process, what });
        }
        let workers = cards.iter().map(|card| card.workers).min();
        Ok(Agreement {
            workers: workers.unwrap_or(NonZeroUsize::MIN),
            session: first.session,
        })
    }

    /// Returns the carrier itself, without the mail.
    #[cfg(feature = "mpi")]
    pub(crate) fn carrier(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// Returns the mailbox for messages to the first process.
    pub fn mailbox(&self) -> Mailbox {
        self.mailbox.clone()
    }

    /// Returns, in the first process, the messages of a topic from all other processes, until [`end`](Self::end). A
    /// thread has to read them, because the workers of this process wait for the reader.
    pub fn receiver(&mut self, topic: Topic) -> Receiver<(usize, Vec<u8>)> {
        self.inbox.receiver(topic)
    }

    /// Reports the outcome of this process. The first process waits for all others and returns the reports of all, in
    /// the order of their numbers; the other processes return an empty list. All mail posted before this call has then
    /// been delivered.
    ///
    /// # Errors
    /// [`ClusterError::Lost`] if another process ended early; [`ClusterError::Outcome`].
    pub fn end(
        mut self,
        part: Vec<u8>,
        actor_report: Vec<u8>,
    ) -> Result<Vec<ProcessEnd>, ClusterError> {
        let end = ProcessEnd {
            part,
            actor_report,
            exchange: self.exchanged,
            peak_memory: corsair::peak_memory(),
        };
        let mut outgoing = vec![Vec::new(); self.processes];
        let mut incoming = outgoing.clone();
        if self.process > 0 {
            let process = self.process;
            let wrong = |error| ClusterError::Outcome { process, error };
            outgoing[0] = postcard::to_allocvec(&end).map_err(wrong)?;
        }
        self.exchange(&mut outgoing, &mut incoming)?;
        if self.process > 0 {
            return Ok(Vec::new());
        }
        let others = incoming.iter().enumerate().skip(1).map(|(process, end)| {
            postcard::from_bytes(end).map_err(|error| ClusterError::Outcome { process, error })
        });
        std::iter::once(Ok(end)).chain(others).collect()
    }
}

impl<C: Carrier> Carrier for Member<C> {
    fn exchange(
        &mut self,
        outgoing: &mut [Vec<u8>],
        incoming: &mut [Vec<u8>],
    ) -> Result<(), ProcessLost> {
        let began = Instant::now();
        if self.process > 0 {
            self.mailbox.move_to(&mut outgoing[0]);
        }
        let own = self.process;
        let bytes = |batches: &[Vec<u8>]| {
            let others = batches
                .iter()
                .enumerate()
                .filter(|(process, _)| *process != own);
            others.map(|(_, batch)| batch.len() as u64).sum::<u64>()
        };
        self.exchanged.sent += bytes(outgoing);
        self.carrier.exchange(outgoing, incoming)?;
        self.exchanged.received += bytes(incoming);
        if self.process == 0 {
            for (from, batch) in incoming.iter_mut().enumerate().skip(1) {
                self.inbox.deliver(from, batch).ok_or(ProcessLost)?;
            }
        }
        self.exchanged.count += 1;
        self.exchanged.time += began.elapsed();
        Ok(())
    }
}
