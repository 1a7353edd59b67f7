//! The receiver of posts in a task: its properties, checks and textual form.

use crate::language::{Parsed, Parser, Problem, Span, Token, fail, set};
use crate::pipeline::{Rule, Text, Writer, posted_to};
use axum::http::{HeaderName, HeaderValue};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::fmt::{self, Display};
use std::sync::Arc;

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

    /// Writes the arguments of a node in parentheses: the URL, unless the node names an endpoint.
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
}

/// Returns the value of the header `Authorization` for a name and a password.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!(
        "Basic {}",
        BASE64_STANDARD.encode(format!("{user}:{password}"))
    )
}
