//! Posts over HTTP: the receiver of a sink with its headers, and the attempts to deliver a body.

use super::definition::Context;
use super::queue::{Deliver, Delivery, Undelivered};
use crate::engine::Endpoint;
use crate::language::{Parsed, Parser, Problem, Span, Token, fail, set};
use crate::pipeline::{Rule, Text, Writer, posted_to};
use axum::http::{HeaderName, HeaderValue};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The receiver of posts: a URL in the task, or an endpoint of the server, and headers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PostTo {
    /// The URL, http or https; empty if there is an endpoint.
    pub url: Arc<str>,
    /// The name of an endpoint of the server, which has a URL and may have headers and credentials.
    pub endpoint: Option<Arc<str>>,
    /// Headers with their values. The headers of the endpoint come first.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
}

impl<T: Into<Arc<str>>> From<T> for PostTo {
    fn from(url: T) -> PostTo {
        PostTo {
            url: url.into(),
            ..PostTo::default()
        }
    }
}

impl PostTo {
    /// The names of the receiver's properties in the language.
    pub(crate) const PROPERTIES: [&'static str; 4] = ["endpoint", "header", "basic", "token"];

    /// Parses the URL in the parentheses of a node, if there is one.
    pub(crate) fn parse(parser: &mut Parser<'_>) -> Parsed<PostTo> {
        match parser.is("(") && parser.following != Token::Symbol(")") {
            true => Ok(parser.argument(Parser::string)?.into()),
            false => parser.nothing().map(|()| PostTo::default()),
        }
    }

    /// True if the task names neither a URL nor an endpoint.
    pub(crate) fn is_missing(&self) -> bool {
        self.url.is_empty() && self.endpoint.is_none()
    }

    /// Parses one property of the receiver, whose name was read.
    pub(crate) fn property(
        &mut self,
        parser: &mut Parser<'_>,
        property: &'static str,
        span: Span,
    ) -> Parsed<()> {
        let mut values = parser.list(Parser::string)?.into_iter();
        let expected = match property {
            "endpoint" | "token" => 1,
            _ => 2,
        };
        let found = values.len();
        let (Some(first), true) = (values.next(), found == expected) else {
            return fail(
                Problem::Values {
                    property,
                    expected,
                    found,
                },
                span,
            );
        };
        let second = values.next().unwrap_or_default();
        let authorization = |value: String| ("Authorization".into(), value.into());
        match property {
            "endpoint" => return set(&mut self.endpoint, first, property, span),
            "header" => self.headers.push((first, second)),
            "basic" => self.headers.push(authorization(basic(&first, &second))),
            _ => self.headers.push(authorization(format!("Bearer {first}"))),
        }
        Ok(())
    }

    /// Checks the URL and the headers.
    pub(crate) fn check(&self) -> Result<(), Rule> {
        match (&self.endpoint, self.url.is_empty()) {
            (Some(_), true) => {}
            (Some(endpoint), false) => return Err(Rule::TwoReceivers(endpoint.clone())),
            (None, _) => posted_to(&self.url)?,
        }
        for (name, value) in &self.headers {
            if HeaderName::from_bytes(name.as_bytes()).is_err()
                || HeaderValue::from_str(value).is_err()
            {
                return Err(Rule::Header(name.clone()));
            }
        }
        Ok(())
    }

    /// Returns the name of the endpoint, or the URL.
    pub(crate) fn label(&self) -> String {
        self.endpoint.as_ref().unwrap_or(&self.url).to_string()
    }

    /// Writes the parentheses of a node, with the URL if there is no endpoint.
    pub(crate) fn write_url(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let url = Text(&self.url);
        let url: Option<&dyn Display> = self.endpoint.is_none().then_some(&url);
        out.arguments(url.as_slice())
    }

    /// Writes the properties behind the URL.
    pub(crate) fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        self.write_as("endpoint", out)
    }

    /// Writes the properties behind the URL, for a node that calls an endpoint by another name.
    pub(crate) fn write_as(&self, endpoint: &str, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.text(endpoint, self.endpoint.as_ref())?;
        for (name, value) in &self.headers {
            out.property("header", &[&Text(name), &Text(value)])?;
        }
        Ok(())
    }

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

/// Returns the value of the header `Authorization` for a name and a password.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{password}"))
    )
}

/// The pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// The interval at which a pause checks whether to give up.
const LOOK: Duration = Duration::from_millis(20);

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
