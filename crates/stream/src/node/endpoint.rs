//! External receivers with their credentials. Tasks refer to them by name, so the text of a task contains no
//! password.

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
pub struct Endpoints(pub(crate) Arc<BTreeMap<String, Endpoint>>);

/// A receiver of posts, with its headers and credentials.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Endpoint {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    /// The token, of the scheme `scheme`.
    pub(crate) token: Option<String>,
    /// `Bearer`, or `Token` for InfluxDB.
    pub(crate) scheme: Option<String>,
    /// The organisation of an InfluxDB 2.
    pub(crate) org: Option<String>,
    /// Options of a service, such as `channel`, for properties that a task does not set.
    pub(crate) options: BTreeMap<String, String>,
    /// The topics whose alerts the endpoint receives.
    pub(crate) topics: Vec<String>,
    /// The service in whose format these alerts are sent.
    pub(crate) service: Option<String>,
    /// The header that `username`, `password` and `token` give.
    #[serde(skip)]
    pub(crate) authorization: Option<String>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

impl Endpoints {
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
    /// Returns the headers of a request.
    pub(crate) fn all_headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.headers.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let authorization = self.authorization.as_deref();
        own.chain(authorization.map(|value| ("Authorization", value)))
    }
}
