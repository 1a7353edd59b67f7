//! External receivers with their credentials. Tasks refer to them by name, so the text of a task contains no
//! password.

use crate::node::post::basic;
use crate::nodes::alert::services;
use crate::pipeline::posted_to;
use axum::http::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The receivers that tasks may name.
///
/// ```
/// use corsair_stream::engine::Endpoints;
///
/// let text = r#"{"pager": {"url": "https://host/hook", "token": "secret"}}"#;
/// assert_eq!(Endpoints::parse(text)?.names().collect::<Vec<_>>(), ["pager"]);
/// assert!(Endpoints::parse(r#"{"pager": {"url": "nowhere"}}"#).is_err());
/// # Ok::<(), corsair_stream::engine::EndpointError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Endpoints(Arc<BTreeMap<String, Endpoint>>);

/// A receiver of posts, with its headers and credentials.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Endpoint {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    username: Option<String>,
    password: Option<String>,
    /// The token, of the scheme `scheme`.
    pub(crate) token: Option<String>,
    /// `Bearer`, or `Token` for InfluxDB.
    scheme: Option<String>,
    /// The organisation of an InfluxDB 2.
    pub(crate) org: Option<String>,
    /// Options of a service, such as `channel`, for properties that a task does not set.
    pub(crate) options: BTreeMap<String, String>,
    /// The topics whose alerts the endpoint receives.
    topics: Vec<String>,
    /// The service in whose format these alerts are sent.
    pub(crate) service: Option<String>,
    /// The header that `username`, `password` and `token` give.
    #[serde(skip)]
    authorization: Option<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// An error in the text of endpoints.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The text is not JSON of the expected form.
    #[error(
        "endpoints are JSON, {{\"NAME\": {{\"url\": \"http://…\", \"headers\": [[\"NAME\", \"VALUE\"]], \"token\": \"…\"}}}}, or \"username\" and \"password\": {0}"
    )]
    Json(#[from] serde_json::Error),
    /// An endpoint has a wrong URL or header.
    #[error("the endpoint `{name}`: {reason}")]
    Endpoint {
        /// The name of the endpoint.
        name: String,
        /// A description of the fault.
        reason: String,
    },
}

impl Endpoints {
    /// Reads endpoints from JSON.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn parse(text: &str) -> Result<Endpoints, EndpointError> {
        let mut all: BTreeMap<String, Endpoint> = serde_json::from_str(text)?;
        for (name, endpoint) in &mut all {
            endpoint
                .complete()
                .map_err(|reason| EndpointError::Endpoint {
                    name: name.clone(),
                    reason,
                })?;
        }
        Ok(Endpoints(Arc::new(all)))
    }

    /// Returns the names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the endpoints that receive the alerts of a topic, with their names.
    pub(crate) fn of_topic(&self, topic: &str) -> impl Iterator<Item = (&str, Endpoint)> {
        let all = self.0.iter();
        let named =
            all.filter(move |(_, endpoint)| endpoint.topics.iter().any(|named| named == topic));
        named.map(|(name, endpoint)| (name.as_str(), endpoint.clone()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Endpoint> {
        self.0.get(name)
    }
}

impl Endpoint {
    fn complete(&mut self) -> Result<(), String> {
        posted_to(&self.url.as_str().into()).map_err(|rule| rule.to_string())?;
        self.authorization = match (&self.username, &self.password, &self.token) {
            (None, None, None) => None,
            (Some(user), Some(password), None) => Some(basic(user, password)),
            (None, None, Some(token)) => {
                let scheme = self.scheme.as_deref().unwrap_or("Bearer");
                Some(format!("{scheme} {token}"))
            }
            _ => return Err("give `username` and `password`, or `token`".into()),
        };
        if let Some(service) = self
            .service
            .as_deref()
            .filter(|name| services::kind(name).is_none())
        {
            let known: Vec<&str> = services::names().collect();
            return Err(format!(
                "there is no service '{service}'; expected one of {}",
                known.join(", ")
            ));
        }
        for (name, value) in self.all_headers() {
            if HeaderName::from_bytes(name.as_bytes()).is_err()
                || HeaderValue::from_str(value).is_err()
            {
                return Err(format!(
                    "'{name}' is not a header, or its value is not one line of text"
                ));
            }
        }
        Ok(())
    }

    /// Returns the headers of a request.
    pub(crate) fn all_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.headers.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let authorization = self.authorization.as_deref();
        own.chain(authorization.map(|value| ("Authorization", value)))
    }
}
