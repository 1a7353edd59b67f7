//! JSON by HTTP POST.

use super::Destination;
use crate::ObserveError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::time::Duration;
use ureq::Agent;
use ureq::http::Uri;

/// The time within which a collector must answer.
pub(crate) const COLLECTOR: Duration = Duration::from_secs(5);

/// The time within which a database must answer. The database may need seconds to plan its first statements.
pub(crate) const DATABASE: Duration = Duration::from_secs(30);

/// The maximum number of bytes that are read of an answer.
const ANSWER: u64 = 1 << 20;

/// An address that accepts JSON.
pub(crate) struct Post {
    agent: Agent,
    url: String,
    /// The encoded user name and password.
    login: Option<String>,
    /// Returns the error in an answer with a successful status, if there is one.
    complaint: fn(&str) -> Option<String>,
}

/// Completes a URL: adds `http://` if there is no scheme, and `path` if there is no path.
pub(crate) fn url(
    what: &'static str,
    given: &str,
    path: &str,
    example: &'static str,
) -> Result<String, ObserveError> {
    let wrong = || ObserveError::Address {
        what,
        given: given.to_owned(),
        example,
    };
    let with_scheme = match given.contains("://") {
        true => given.to_owned(),
        false => format!("http://{given}"),
    };
    let uri: Uri = with_scheme.parse().map_err(|_| wrong())?;
    let http = matches!(uri.scheme_str(), Some("http" | "https"));
    if !http || uri.host().is_none_or(str::is_empty) {
        return Err(wrong());
    }
    if uri.scheme_str() == Some("https") && cfg!(not(feature = "tls")) {
        return Err(ObserveError::LeftOut {
            what: "an address with https://",
            feature: "tls",
        });
    }
    Ok(match uri.path() {
        "" | "/" => format!("{}{path}", with_scheme.trim_end_matches('/')),
        _ => with_scheme,
    })
}

impl Post {
    /// Creates a client for `url`. `timeout` limits a request together with its answer.
    pub(crate) fn new(url: String, timeout: Duration) -> Post {
        let agent = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .user_agent("corsair")
            .build()
            .into();
        Post {
            agent,
            url,
            login: None,
            complaint: |_| None,
        }
    }

    /// Adds a user name and password to each request.
    pub(crate) fn login(mut self, user: &str, password: &str) -> Post {
        self.login = Some(format!(
            "Basic {}",
            BASE64.encode(format!("{user}:{password}"))
        ));
        self
    }

    /// Sets the function that finds errors in answers with a successful status.
    pub(crate) fn complaint(mut self, complaint: fn(&str) -> Option<String>) -> Post {
        self.complaint = complaint;
        self
    }

    /// Sends a first payload, before the run.
    ///
    /// # Errors
    /// Returns [`ObserveError::Unreachable`] or [`ObserveError::Refused`].
    pub(crate) fn check(&self, what: &'static str, payload: &[u8]) -> Result<(), ObserveError> {
        match self.post(payload) {
            Ok(()) => Ok(()),
            Err(Failure::Unreachable(reason)) => Err(ObserveError::Unreachable {
                what,
                address: self.url.clone(),
                reason,
            }),
            Err(Failure::Refused(reason)) => Err(ObserveError::Refused {
                what,
                address: self.url.clone(),
                reason,
            }),
        }
    }

    fn post(&self, payload: &[u8]) -> Result<(), Failure> {
        let mut request = self
            .agent
            .post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json");
        if let Some(login) = &self.login {
            request = request.header("authorization", login);
        }
        let unreachable = |error: ureq::Error| Failure::Unreachable(error.to_string());
        let mut answer = request.send(payload).map_err(unreachable)?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER);
        let said = body.read_to_string().unwrap_or_default();
        if !status.is_success() {
            let first: String = said
                .lines()
                .next()
                .unwrap_or("")
                .chars()
                .take(200)
                .collect();
            return Err(Failure::Refused(
                format!("{status} {first}").trim().to_owned(),
            ));
        }
        (self.complaint)(&said).map_or(Ok(()), |complaint| Err(Failure::Refused(complaint)))
    }
}

enum Failure {
    Unreachable(String),
    Refused(String),
}

impl Destination for Post {
    fn send(&mut self, payload: &[u8]) -> Result<(), String> {
        self.post(payload).map_err(|failure| match failure {
            Failure::Unreachable(reason) | Failure::Refused(reason) => reason,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_needs_no_scheme_and_no_path() {
        let url = |given| url("Zipkin", given, "/api/v2/spans", "http://localhost:9411");
        let whole = "http://localhost:9411/api/v2/spans";
        for given in [
            "localhost:9411",
            "http://localhost:9411",
            "http://localhost:9411/",
            whole,
        ] {
            assert_eq!(url(given).unwrap(), whole);
        }
        if cfg!(feature = "tls") {
            assert_eq!(url("https://x/y").unwrap(), "https://x/y");
        } else {
            let said = url("https://x/y").unwrap_err().to_string();
            assert!(said.ends_with("build with --features tls"), "{said}");
        }
        for given in ["", "http://", "ftp://x", "local host", ":9411"] {
            let said = url(given).unwrap_err().to_string();
            assert!(
                said.contains("is not an address; write one as http"),
                "{given}: {said}"
            );
        }
    }
}
