//! Durable POSTs beside POSTs that store nothing: the same client, the same bodies, in turn.

use super::crowd::Crowd;
use super::{LoadError, joined};
use crate::ConversationId;
use crate::client::{ClientError, Http};
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use hyper::Method;
use std::time::Duration;
use tokio::time::Instant;

/// Where the handler that stores nothing is.
const BARE: &str = "/bare";

/// Rates that were measured in turn.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// POSTs that were stored, per second, of each round.
    pub durable: Vec<f64>,
    /// POSTs to a handler that reads the body and answers 200, per second, of each round.
    pub bare: Vec<f64>,
}

impl Comparison {
    /// The middle of the rounds' ratios of durable to bare.
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

/// A handler that reads the body and answers 200, to be served beside a node's routes.
pub fn bare() -> Router {
    Router::new().route(
        BARE,
        post(|body: Bytes| async move {
            std::hint::black_box(body);
        }),
    )
}

/// Measures at a node that serves [`bare`], too: rounds of this time, of both sides in turn.
///
/// # Errors
/// If a client fails.
pub async fn compare(
    host: &str,
    posters: usize,
    rounds: usize,
    time: Duration,
) -> Result<Comparison, LoadError> {
    let mut posters = Posters::connect(host, posters).await?;
    let (mut durable, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        durable.push(posters.rate(Target::Durable, time).await?);
        bare.push(posters.rate(Target::Bare, time).await?);
    }
    Ok(Comparison { durable, bare })
}

/// Where POSTs go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A conversation of two, of whom the other is not online.
    Durable,
    /// The handler of [`bare`].
    Bare,
}

/// Users who post, each over a connection of its own and the next when one is answered.
#[derive(Debug)]
pub struct Posters {
    posters: Vec<Poster>,
}

#[derive(Debug)]
struct Poster {
    http: Http,
    token: String,
    conversation: ConversationId,
}

/// When posters stop.
#[derive(Clone, Copy)]
enum Until {
    Time(Instant),
    /// So many each.
    Count(u64),
}

impl Posters {
    /// Makes users and their conversations.
    ///
    /// # Errors
    /// If the node refuses.
    pub async fn connect(host: &str, count: usize) -> Result<Posters, LoadError> {
        // The recipients are not online: what a POST costs, and nothing else.
        let crowd = Crowd::gather(host, 2 * count).await?;
        let mut posters = Vec::new();
        for number in 0..count {
            let mut http = Http::connect(host).await?;
            let token = crowd.token(number).to_owned();
            let to = [crowd.logins()[count + number].user];
            let conversation = http.converse(&token, &to).await?;
            posters.push(Poster {
                http,
                token,
                conversation,
            });
        }
        Ok(Posters { posters })
    }

    /// POSTs per second, measured for this time.
    ///
    /// # Errors
    /// If a client fails.
    pub async fn rate(&mut self, target: Target, time: Duration) -> Result<f64, LoadError> {
        let begun = Instant::now();
        let posted = self.post(target, Until::Time(begun + time)).await?;
        Ok(posted as f64 / begun.elapsed().as_secs_f64())
    }

    /// The time that so many POSTs of each take.
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
        let path = match target {
            Target::Durable => format!("/conversations/{}/messages", self.conversation),
            Target::Bare => BARE.to_owned(),
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
            let sent = self.http.send(Method::POST, &path, &headers, body.clone());
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
