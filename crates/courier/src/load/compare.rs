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

/// Measures at a node that serves [`bare`], too.
///
/// # Errors
/// If a client fails.
pub async fn compare(
    host: &str,
    posters: usize,
    rounds: usize,
    time: Duration,
) -> Result<Comparison, LoadError> {
    // The recipients are not online: what a POST costs, and nothing else.
    let crowd = Crowd::gather(host, 2 * posters).await?;
    let mut clients = Vec::new();
    for number in 0..posters {
        let mut http = Http::connect(host).await?;
        let token = crowd.token(number).to_owned();
        let to = [crowd.logins()[posters + number].user];
        let conversation = http.converse(&token, &to).await?;
        clients.push(Poster {
            http,
            token,
            conversation,
        });
    }
    let (mut durable, mut without) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (rate, back) = round(clients, time, true).await?;
        durable.push(rate);
        let (rate, back) = round(back, time, false).await?;
        without.push(rate);
        clients = back;
    }
    Ok(Comparison {
        durable,
        bare: without,
    })
}

struct Poster {
    http: Http,
    token: String,
    conversation: ConversationId,
}

/// All post for a while: how many per second.
async fn round(
    posters: Vec<Poster>,
    time: Duration,
    durable: bool,
) -> Result<(f64, Vec<Poster>), LoadError> {
    let begun = Instant::now();
    let end = begun + time;
    let tasks: Vec<_> = posters
        .into_iter()
        .map(|poster| tokio::spawn(poster.post_until(end, durable)))
        .collect();
    let (mut posted, mut posters) = (0, Vec::new());
    for task in tasks {
        let (count, poster) = joined(task).await??;
        posted += count;
        posters.push(poster);
    }
    Ok((posted as f64 / begun.elapsed().as_secs_f64(), posters))
}

impl Poster {
    async fn post_until(
        mut self,
        end: Instant,
        durable: bool,
    ) -> Result<(u64, Poster), ClientError> {
        let path = match durable {
            true => format!("/conversations/{}/messages", self.conversation),
            false => BARE.to_owned(),
        };
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("content-type", "application/json"),
            ("authorization", bearer.as_str()),
        ];
        let body = bytes::Bytes::from(format!(r#"{{"text":"{}"}}"#, "x".repeat(100)));
        let mut posted = 0;
        while Instant::now() < end {
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
