//! Posts over HTTP: the client of a sink, and the attempts to deliver a body.

use super::definition::Context;
use super::endpoint::Endpoint;
use super::post_to::PostTo;
use super::queue::{Deliver, Delivery, Undelivered};
use std::time::{Duration, Instant};

/// The pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// The interval at which a pause checks whether to give up.
const LOOK: Duration = Duration::from_millis(20);

impl PostTo {
    /// Returns the URL and the headers, with those of the endpoint.
    pub(crate) fn resolved(&self, context: &Context<'_>) -> Endpoint {
        let named = self.endpoint.as_deref();
        let endpoint = named.and_then(|name| context.delivery.endpoints.get(name));
        let mut endpoint = endpoint.cloned().unwrap_or_default();
        if endpoint.url.is_empty() {
            endpoint.url = self.url.to_string();
        }
        let own = self.headers.iter();
        let own = own.map(|(name, value)| (name.to_string(), value.to_string()));
        endpoint.headers.extend(own);
        endpoint
    }
}

/// A client for the posts of one queue.
pub(crate) struct Client {
    agent: ureq::Agent,
    headers: Vec<(String, String)>,
    /// The part of `Idempotency-Key` before the number of a body.
    prefix: String,
}

impl Client {
    pub(crate) fn new(context: &Context<'_>, to: &Endpoint) -> Client {
        let timeout = Some(context.delivery.timeout);
        let agent = ureq::Agent::config_builder().timeout_global(timeout);
        let headers = to.all_headers();
        Client {
            agent: agent.build().into(),
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            prefix: format!("{}-{:x}", context.name, context.created),
        }
    }

    /// Posts a body once. The header `Idempotency-Key` has the number of the body, and the number of the last body that
    /// is posted together with it. The header is the same in every post of these bodies, and different in other posts.
    pub(crate) fn post(
        &self,
        url: &str,
        content_type: &str,
        bodies: &[Undelivered],
        text: &str,
    ) -> Delivery {
        let mut key = self.prefix.clone();
        for end in [bodies.first(), bodies.get(1..).and_then(<[_]>::last)]
            .into_iter()
            .flatten()
        {
            key += &format!("-{}", end.number);
        }
        let mut request = self.agent.post(url).content_type(content_type);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request = request.header("Idempotency-Key", key);
        match request.send(text.as_bytes()) {
            Ok(_) => Delivery::Delivered,
            Err(error) => after(&error),
        }
    }
}

/// Tries to deliver a body up to three times, until `over`.
pub(crate) fn attempts(over: &dyn Fn() -> bool, mut send: impl FnMut() -> Delivery) -> Delivery {
    let mut result = Delivery::Unavailable;
    for pause in std::iter::once(Duration::ZERO).chain(PAUSES) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !over() {
            std::thread::sleep(LOOK.min(pause));
        }
        if over() {
            return Delivery::Unavailable;
        }
        result = send();
        if result == Delivery::Delivered {
            break;
        }
    }
    result
}

/// Returns a function that posts bodies as JSON to one URL.
pub(crate) fn poster(context: &Context<'_>, to: Endpoint) -> Deliver {
    let client = Client::new(context, &to);
    Box::new(move |bodies, over| {
        attempts(over, || {
            // A receiver of JSON takes one body at a time.
            client.post(&to.url, "application/json", bodies, &bodies[0].text)
        })
    })
}

/// Returns true if a body that was not accepted may be accepted later.
fn after(error: &ureq::Error) -> Delivery {
    match error {
        ureq::Error::StatusCode(408 | 425 | 429 | 500..) => Delivery::Unavailable,
        ureq::Error::StatusCode(_) | ureq::Error::BadUri(_) | ureq::Error::Http(_) => {
            Delivery::Refused
        }
        _ => Delivery::Unavailable,
    }
}
