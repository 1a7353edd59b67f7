//! A client that gets JSON from other systems by HTTP GET, with limits of time and size.

use anyhow::{Result, anyhow, bail};
use std::time::Duration;
use ureq::Agent;
use ureq::http::Uri;

/// The time within which a system must answer.
const ANSWER: Duration = Duration::from_secs(120);

/// A system that answers queries.
#[derive(Debug)]
pub struct Web {
    agent: Agent,
    /// The flag that names the address, for messages.
    flag: &'static str,
    base: String,
}

impl Web {
    /// Creates a client of the system at an address.
    ///
    /// # Errors
    /// If the address is not a URL that this build can use.
    pub fn new(flag: &'static str, address: &str, example: &str) -> Result<Web> {
        let base = match address.contains("://") {
            true => address.to_owned(),
            false => format!("http://{address}"),
        };
        let base = base.trim_end_matches('/').to_owned();
        let uri: Option<Uri> = base.parse().ok();
        let scheme = uri.as_ref().and_then(Uri::scheme_str);
        let has_host = uri
            .as_ref()
            .and_then(Uri::host)
            .is_some_and(|host| !host.is_empty());
        if !has_host || !matches!(scheme, Some("http" | "https")) {
            bail!("{flag}: '{address}' is not an address; write for example {example}");
        }
        if scheme == Some("https") && cfg!(not(feature = "tls")) {
            bail!("{flag}: this build has no https; run `cargo run --features tls -- learn …`");
        }
        let agent = Agent::config_builder()
            .timeout_global(Some(ANSWER))
            .http_status_as_error(false)
            .user_agent("corsair")
            .build()
            .into();
        Ok(Web { agent, flag, base })
    }

    /// Returns the body of the answer to `GET path?query`.
    ///
    /// # Errors
    /// If there is no answer, its status is not a success, or it is too long.
    pub fn get(&self, path: &str, query: &[(&str, String)], most: u64) -> Result<Vec<u8>> {
        let (flag, base) = (self.flag, &self.base);
        let url = format!("{base}{path}");
        let request = self.agent.get(&url).header("accept", "application/json");
        let query = query.iter().map(|(key, value)| (*key, value.as_str()));
        let answer = request.query_pairs(query).call();
        let mut answer = answer.map_err(|error| anyhow!("{flag} {base}: {error}"))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(most).read_to_vec();
        let body = body.map_err(|error| match error {
            ureq::Error::BodyExceedsLimit(_) => {
                anyhow!("{flag} {base}: the answer has more than {} MiB; ask for a shorter --lookback or a smaller --limit", most >> 20)
            }
            error => anyhow!("{flag} {base}: {error}"),
        })?;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            let first: String = said
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect();
            bail!("{flag} {base}: {path} was answered with {status}: {first}");
        }
        Ok(body)
    }
}
