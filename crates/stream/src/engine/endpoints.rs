//! Reads external receivers from JSON, and checks them.

use crate::node::endpoint::{Endpoint, Endpoints};
use crate::node::post_to::basic;
use crate::nodes::alert::services;
use crate::pipeline::posted_to;
use axum::http::{HeaderName, HeaderValue};
use std::collections::BTreeMap;
use std::sync::Arc;

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
}
