//! Compares durable POSTs with POSTs that store nothing, with the same client and bodies, in alternating rounds.

use crate::client::{ClientError, Http};
use crate::crowd::Crowd;
use crate::threads::Threads;
use crate::{LoadError, joined};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use axum::serve::ListenerExt;
use corsair_courier::ConversationId;
use hyper::Method;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Rates that were measured in alternating rounds.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Durable POSTs per second, for each round.
    pub durable: Vec<f64>,
    /// POSTs per second to a handler that reads the body and answers 200, for each round.
    pub bare: Vec<f64>,
    /// The thread time for a durable POST.
    pub durable_work: Threads,
    /// The thread time for a POST to the bare handler.
    pub bare_work: Threads,
}

impl Comparison {
    /// Returns the median of the rounds' ratios of durable to bare.
    pub fn ratio(&self) -> f64 {
        let mut ratios: Vec<f64> = self
            .durable
            .iter()
            .zip(&self.bare)
            .map(|(durable, bare)| durable / bare)
            .collect();
        ratios.sort_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or_default()
    }
}

/// A handler that reads the body, stores nothing and answers 200, served by axum with default
/// settings until it is dropped.
#[derive(Debug)]
pub struct Bare {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl Bare {
    /// Starts the handler on a free port of the loopback interface.
    ///
    /// # Errors
    /// If every port is in use.
    pub async fn start() -> Result<Bare, LoadError> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(LoadError::Listen)?;
        let address = listener.local_addr().map_err(LoadError::Listen)?;
        let answer = post(|body: Bytes| async move {
            std::hint::black_box(body);
        });
        let router = Router::new().route("/", answer);
        let serving = tokio::spawn(async move {
            let listener = listener.tap_io(|stream| {
                let _ = stream.set_nodelay(true);
            });
            // The server ends only when its task is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Bare { address, serving })
    }

    /// Returns the address of the handler as `host:port`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Compares a node in this process with [`Bare`]: rounds of this length, alternating between the
/// two.
///
/// # Errors
/// If a client fails.
pub async fn compare(
    host: &str,
    posters: usize,
    rounds: usize,
    time: Duration,
) -> Result<Comparison, LoadError> {
    let bare = Bare::start().await?;
    let mut posters = Posters::connect(host, &bare.host(), posters).await?;
    let (mut durable, mut bare) = (Side::default(), Side::default());
    for _ in 0..rounds {
        durable.round(&mut posters, Target::Durable, time).await?;
        bare.round(&mut posters, Target::Bare, time).await?;
    }
    Ok(Comparison {
        durable_work: durable.work.each(durable.posted),
        bare_work: bare.work.each(bare.posted),
        durable: durable.rates,
        bare: bare.rates,
    })
}

/// The measurements of one side of the comparison.
#[derive(Default)]
struct Side {
    rates: Vec<f64>,
    posted: u64,
    work: Threads,
}

impl Side {
    async fn round(
        &mut self,
        posters: &mut Posters,
        target: Target,
        time: Duration,
    ) -> Result<(), LoadError> {
        let (before, begun) = (Threads::now(), Instant::now());
        let posted = posters.post(target, Until::Time(begun + time)).await?;
        self.rates
            .push(posted as f64 / begun.elapsed().as_secs_f64());
        self.posted += posted;
        self.work.add_since(&before);
        Ok(())
    }
}

/// The target of POSTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A conversation of two users; the recipient is offline.
    Durable,
    /// The [`Bare`] handler.
    Bare,
}

/// Users who post, each over its own connection, and each as soon as its previous POST is answered.
#[derive(Debug)]
pub struct Posters {
    posters: Vec<Poster>,
}

#[derive(Debug)]
struct Poster {
    durable: Http,
    bare: Http,
    token: String,
    conversation: ConversationId,
}

/// The condition that ends posting.
#[derive(Clone, Copy)]
enum Until {
    Time(Instant),
    /// The number of POSTs of each user.
    Count(u64),
}

impl Posters {
    /// Creates users and their conversations at the node `host`, and connects them to both servers.
    ///
    /// # Errors
    /// If the node refuses, or a connection fails.
    pub async fn connect(host: &str, bare: &str, count: usize) -> Result<Posters, LoadError> {
        // The recipients are offline, so that only the cost of a POST is measured.
        let crowd = Crowd::gather(host, 2 * count).await?;
        let mut posters = Vec::new();
        for number in 0..count {
            let mut durable = Http::connect(host).await?;
            let token = crowd.token(number).to_owned();
            let to = [crowd.logins()[count + number].user];
            let conversation = durable.converse(&token, &to).await?;
            posters.push(Poster {
                durable,
                bare: Http::connect(bare).await?,
                token,
                conversation,
            });
        }
        Ok(Posters { posters })
    }

    /// Returns the time that `each` POSTs of every user take.
    ///
    /// # Errors
    /// If a client fails.
    pub async fn time(&mut self, target: Target, each: u64) -> Result<Duration, LoadError> {
        let begun = Instant::now();
        self.post(target, Until::Count(each)).await?;
        Ok(begun.elapsed())
    }

    async fn post(&mut self, target: Target, until: Until) -> Result<u64, LoadError> {
        let tasks: Vec<_> = std::mem::take(&mut self.posters)
            .into_iter()
            .map(|poster| tokio::spawn(poster.post(target, until)))
            .collect();
        let mut posted = 0;
        for task in tasks {
            let (count, poster) = joined(task).await??;
            posted += count;
            self.posters.push(poster);
        }
        Ok(posted)
    }
}

impl Poster {
    async fn post(mut self, target: Target, until: Until) -> Result<(u64, Poster), ClientError> {
        let (http, path) = match target {
            Target::Durable => {
                let path = format!("/conversations/{}/messages", self.conversation);
                (&mut self.durable, path)
            }
            Target::Bare => (&mut self.bare, "/".to_owned()),
        };
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        let body = Bytes::from(format!(r#"{{"text":"{}"}}"#, "x".repeat(100)));
        let mut posted = 0;
        loop {
            match until {
                Until::Time(end) if Instant::now() >= end => break,
                Until::Count(count) if posted >= count => break,
                _ => {}
            }
            let sent = http.send(Method::POST, &path, &headers, body.clone());
            let (status, answer) = sent.await?;
            if !status.is_success() {
                return Err(ClientError::Refused {
                    status: status.as_u16(),
                    body: String::from_utf8_lossy(&answer).into_owned(),
                });
            }
            posted += 1;
        }
        Ok((posted, self))
    }
}
