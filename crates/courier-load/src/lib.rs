//! A load generator for the messaging service: users who post, users who listen, and the measured
//! times. [`client`] connects them to a node.
//!
//! Each message has two latencies: from its POST to the answer, and from its POST to its arrival at a recipient's
//! socket. With a rate the load is an open loop: both times count from the *intended* time of the POST, so that the
//! latencies of a server that stalls are not hidden by clients that wait for it.

#![forbid(unsafe_code)]

pub mod client;
mod compare;
mod crowd;
mod fanout;
pub mod histories;
mod idle;
pub mod listeners;
mod pace;
mod series;
mod threads;
mod worker;

pub use compare::{Bare, Comparison, Posters, Target, compare};
pub use fanout::{Attack, Victim, fanout};
pub use idle::{Idle, idle};
pub use series::Series;
pub use threads::{Threads, Work};

use client::{ClientError, Http};
use corsair_courier::UserId;
use crowd::{Board, Crowd, Listener};
use pace::Due;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use worker::Worker;

/// The time to wait for messages after the last POST.
const PATIENCE: Duration = Duration::from_secs(60);
/// The maximum number of messages of a load; the send time of each is stored.
const MOST: u64 = 100_000_000;
/// The maximum duration of a load.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The number of conversations that a worker uses in turn.
const CONVERSATIONS: usize = 16;

/// The number of recipients of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Conversations with one recipient.
    OneOnOne,
    /// Conversations with two recipients.
    OneOnTwo,
    /// Conversations with five recipients.
    OneOnFive,
    /// Conversations with a random number of recipients, from one to everybody.
    OneOnAny,
    /// Conversations with everybody online.
    OneOnAll,
}

/// The plan of a load.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The recipients of messages.
    pub kind: Kind,
    /// The number of workers, each with its own connection.
    pub workers: usize,
    /// The number of messages of each worker.
    pub messages: usize,
    /// The number of users online, including the workers.
    pub users: usize,
    /// POSTs per second of all workers together; with `None` each worker posts as soon as its
    /// previous POST is answered.
    pub rate: Option<f64>,
    /// The size of a text in bytes.
    pub text: usize,
    /// The seed of the random recipients.
    pub seed: u64,
}

/// The measurements of a load.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// The latency from a POST to the answer.
    pub posts: Series,
    /// The latency from the POST to the recipient's socket.
    pub deliveries: Series,
    /// The time from the first POST to the last message.
    pub wall: Duration,
}

/// An error of a load.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The plan is invalid.
    #[error("{0}")]
    Plan(String),
    /// No port is free for the handler without storage.
    #[error("cannot listen on 127.0.0.1: {0}")]
    Listen(std::io::Error),
    /// A client failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Some stored messages did not arrive.
    #[error("{missing} of {expected} messages did not come within {} s after the last POST", PATIENCE.as_secs())]
    Lost {
        /// The number of missing messages.
        missing: u64,
        /// The number of acknowledged messages.
        expected: u64,
    },
    /// A task of the generator ended early.
    #[error("a part of the load generator failed: {0}")]
    Task(String),
}

/// The progress of a load. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    posted: Arc<AtomicU64>,
}

impl Progress {
    /// Returns the number of messages posted so far.
    pub fn posted(&self) -> u64 {
        self.posted.load(Relaxed)
    }
}

impl Plan {
    /// Returns the number of messages in the plan.
    pub fn total(&self) -> u64 {
        (self.workers as u64).saturating_mul(self.messages as u64)
    }

    /// Returns the minimum number of users for this kind of load.
    pub fn least_users(kind: Kind, workers: usize) -> usize {
        let recipients = match kind {
            Kind::OneOnOne | Kind::OneOnAny | Kind::OneOnAll => 1,
            Kind::OneOnTwo => 2,
            Kind::OneOnFive => 5,
        };
        workers.max(recipients + 1)
    }

    fn check(&self) -> Result<(), LoadError> {
        let least = Plan::least_users(self.kind, self.workers);
        let wrong = if self.workers == 0 || self.messages == 0 {
            "a load needs a worker and a message at least".to_owned()
        } else if self.total() > MOST {
            format!("a load has {MOST} messages at most; lower --workers or --messages")
        } else if self.users < least {
            format!("{least} users are needed, the workers and recipients; raise --users")
        } else if self
            .rate
            .is_some_and(|rate| !(rate > 0.0 && rate.is_finite()))
        {
            "a rate is a number above 0; leave it out to post as fast as is answered".to_owned()
        } else if self
            .rate
            .is_some_and(|rate| self.total() as f64 / rate > LONGEST.as_secs_f64())
        {
            let days = LONGEST.as_secs() / (24 * 60 * 60);
            format!("at this rate the load takes more than {days} days; raise --rate")
        } else {
            return Ok(());
        };
        Err(LoadError::Plan(wrong))
    }
}

/// Runs the load against a node at `host:port`.
///
/// # Errors
/// Returns a [`LoadError`] if the load cannot be run.
pub async fn run(host: &str, plan: &Plan, progress: &Progress) -> Result<LoadReport, LoadError> {
    plan.check()?;
    let crowd = Crowd::gather(host, plan.users).await?;
    let conversations = crowd.conversations(host, plan, CONVERSATIONS).await?;
    let board = Arc::new(Board::new(plan.total() as usize));
    let listeners = crowd.listen(host, &board).await?;

    let start = Instant::now() + Duration::from_millis(50);
    let mut due: Vec<Option<Due>> = match plan.rate {
        None => Vec::new(),
        Some(rate) => {
            let due = pace::start(rate, start, plan.workers, plan.messages)?;
            due.into_iter().map(Some).collect()
        }
    };
    due.resize_with(plan.workers, || None);
    let mut workers = Vec::new();
    for ((number, rooms), due) in conversations.into_iter().enumerate().zip(due) {
        let worker = Worker {
            http: Http::connect(host).await?,
            token: crowd.token(number).to_owned(),
            rooms,
            board: board.clone(),
            plan: plan.clone(),
            number,
            start,
            due,
            progress: progress.clone(),
        };
        workers.push(tokio::spawn(worker.run()));
    }
    let (mut posts, mut expected) = (Series::new(), 0);
    for worker in workers {
        let (series, recipients) = joined(worker).await??;
        posts.add(&series);
        expected += recipients;
    }
    let came = timeout(PATIENCE, async {
        while board.came() < expected {
            sleep(Duration::from_millis(2)).await;
        }
    });
    let all = came.await.is_ok();
    let wall = start.elapsed();
    let deliveries = Listener::end(listeners).await?;
    if !all {
        let missing = expected - board.came();
        return Err(LoadError::Lost { missing, expected });
    }
    Ok(LoadReport {
        posts,
        deliveries,
        wall,
    })
}

async fn joined<T>(task: tokio::task::JoinHandle<T>) -> Result<T, LoadError> {
    task.await
        .map_err(|error| LoadError::Task(error.to_string()))
}

/// Chooses the recipients of a conversation of this kind; `worker` is the sender.
fn recipients(
    kind: Kind,
    users: &[UserId],
    worker: usize,
    random: &mut corsair::Random,
) -> Vec<UserId> {
    let mut others: Vec<UserId> = users.to_vec();
    others.swap_remove(worker);
    let wanted = match kind {
        Kind::OneOnOne => 1,
        Kind::OneOnTwo => 2,
        Kind::OneOnFive => 5,
        Kind::OneOnAny => 1 + random.below(others.len() as u32) as usize,
        Kind::OneOnAll => others.len(),
    };
    // Takes the first `wanted` elements of a random permutation.
    for place in 0..wanted.min(others.len() - 1) {
        let left = (others.len() - place) as u32;
        others.swap(place, place + random.below(left) as usize);
    }
    others.truncate(wanted);
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipients_are_as_many_as_the_kind_says_and_never_the_sender() {
        let users: Vec<_> = (1..=9).map(UserId).collect();
        let mut random = corsair::Random::new(1);
        for (kind, least, most) in [
            (Kind::OneOnOne, 1, 1),
            (Kind::OneOnTwo, 2, 2),
            (Kind::OneOnFive, 5, 5),
            (Kind::OneOnAny, 1, 8),
            (Kind::OneOnAll, 8, 8),
        ] {
            for _ in 0..100 {
                let mut all = recipients(kind, &users, 3, &mut random);
                assert!((least..=most).contains(&all.len()), "{kind:?}: {all:?}");
                assert!(!all.contains(&users[3]));
                all.sort();
                all.dedup();
                assert!(all.len() >= least, "{kind:?}: {all:?}");
            }
        }
    }

    #[test]
    fn a_plan_without_enough_users_is_refused() {
        let plan = Plan {
            kind: Kind::OneOnFive,
            workers: 2,
            messages: 1,
            users: 5,
            rate: None,
            text: 10,
            seed: 1,
        };
        assert!(plan.check().unwrap_err().to_string().contains("6 users"));
        let six = Plan { users: 6, ..plan };
        assert!(six.check().is_ok());
        let still = Plan {
            rate: Some(0.0),
            ..six
        };
        assert!(still.check().is_err());
        let large = Plan {
            messages: usize::MAX,
            rate: None,
            ..still
        };
        assert!(large.check().is_err());
        let endless = Plan {
            rate: Some(1e-300),
            ..still
        };
        let said = endless.check().unwrap_err().to_string();
        assert!(said.contains("30 days"), "{said}");
    }
}
