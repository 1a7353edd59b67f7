//! The form in which spans are passed to a function of the program.

use super::span::{NEVER, Names, Span};
use crate::SpanSink;
use std::fmt;

/// A span with the records of both its ends. Times are in nanoseconds since the start of the run. A time that was not
/// recorded is `None`, and a name that was not recorded is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "fields are named after what they are")]
pub struct SeenSpan<'a> {
    pub trace: u64,
    pub span: u64,
    /// The span that caused this span, if there is one.
    pub parent: Option<u64>,
    pub client: &'a str,
    pub client_service: &'a str,
    pub server: &'a str,
    pub server_service: &'a str,
    /// The operation: an endpoint, or the kind of message.
    pub operation: &'a str,
    pub client_send: Option<u64>,
    pub server_receive: Option<u64>,
    pub server_send: Option<u64>,
    pub client_receive: Option<u64>,
    /// True if the span expects no response.
    pub one_way: bool,
    pub failed: bool,
}

/// An output that passes every span to a function.
pub(crate) struct EachSpan(pub(crate) SpanSink);

impl EachSpan {
    pub(crate) fn tell(&mut self, names: &Names<'_>, span: &Span) {
        let known = |time: u64| (time != NEVER).then_some(time);
        let (client, client_service) = named(names, span.client);
        let (server, server_service) = named(names, span.server);
        (self.0)(&SeenSpan {
            trace: span.context.trace().get(),
            span: span.context.span().get(),
            parent: span.context.parent().map(std::num::NonZeroU64::get),
            client,
            client_service,
            server,
            server_service,
            operation: names.kind(span.kind),
            client_send: known(span.client_send),
            server_receive: known(span.server_receive),
            server_send: known(span.server_send),
            client_receive: known(span.client_receive),
            one_way: span.one_way,
            failed: span.failed,
        });
    }
}

/// Returns the names of an actor and its service.
fn named<'a>(names: &Names<'a>, actor: u32) -> (&'a str, &'a str) {
    names
        .placed(actor)
        .map_or(("", ""), |placed| (&placed.name, &placed.service))
}

impl fmt::Debug for EachSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EachSpan")
    }
}
