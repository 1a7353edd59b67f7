//! `http_post`: posts each window or batch to a URL as JSON.
//!
//! Without a disk buffer a post is tried three times, then counted as failed, because a receiver that is down must not
//! stop the task. With a disk buffer a post waits until the receiver takes or refuses it. After a crash or a retry a
//! post may be repeated; it then has the same header `Idempotency-Key`, and no other post has that key.

use crate::json::json;
use crate::language::{Call, Parsed, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::post::poster;
use crate::node::post_to::PostTo;
use crate::node::sink::{OVERFLOW, Sink, overflow, write_overflow};
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Rule, Writer};
use corsair::edge::Overflow;
use std::fmt;
use std::slice;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["http_post", "httpPost"],
    properties: &["endpoint", "header", "basic", "token", OVERFLOW],
    parse,
};

/// Posts each window or batch to a URL, and passes it on.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpPost {
    /// The receiver.
    pub to: PostTo,
    /// The policy of a full queue; `None`: the task's.
    pub overflow: Option<Overflow>,
}

impl<'p> Chain<'p> {
    /// Adds an `http_post` to this URL or receiver. Passes its input on.
    pub fn http_post(self, to: impl Into<PostTo>) -> Chain<'p> {
        let (to, overflow) = (to.into(), None);
        self.then(HttpPost { to, overflow })
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let mut to = PostTo::parse(parser)?;
    let mut policy = None;
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            OVERFLOW => set(&mut policy, overflow(parser)?, property, span)?,
            _ => to.property(parser, property, span)?,
        }
    }
    if to.is_missing() {
        return call.missing(
            "a URL or an endpoint: `http_post('http://host/path')`, `http_post().endpoint('name')`",
        );
    }
    let overflow = policy;
    Ok(AnyDefinition::from(HttpPost { to, overflow }))
}

impl Definition for HttpPost {
    fn name(&self) -> &'static str {
        KIND.names[0]
    }

    fn check(&mut self) -> Result<(), Rule> {
        self.to.check()
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        self.to.write_url(out)?;
        self.to.write(out)?;
        write_overflow(self.overflow, out)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let deliver = poster(context, self.to.resolved(context));
        Built::from(Sink::to_receiver(context, "posted", self.overflow, (None, deliver), |flow| json(slice::from_ref(flow))))
    }

    fn posts(&self) -> Vec<&PostTo> {
        vec![&self.to]
    }
}
