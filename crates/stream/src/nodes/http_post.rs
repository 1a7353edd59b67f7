//! `http_post`: posts each window or batch to a URL as JSON.
//!
//! A post is tried three times, then counted as failed, because a receiver that is down must not stop the task. After a
//! crash or a retry a post may be repeated; it then has the same header `Idempotency-Key`, and no other post has that
//! key.

use crate::json::json;
use crate::language::{Call, Parsed, Parser, Program, Token};
use crate::node::definition::AnyDefinition;
use crate::node::queue::{Body, Counts, Deliver, Queue};
use crate::node::sink::Sink;
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Rule, Text, Writer, posted_to};
use std::fmt;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["http_post", "httpPost"],
    properties: &[],
    parse,
};

/// Posts each window or batch to a URL, and passes it on.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpPost {
    /// The URL, http or https.
    pub url: Arc<str>,
}

impl<'p> Chain<'p> {
    /// Adds an `http_post` to this URL. Passes its input on.
    pub fn http_post(self, url: impl Into<Arc<str>>) -> Chain<'p> {
        let url = url.into();
        self.then(HttpPost { url })
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    if !parser.is("(") || parser.following == Token::Symbol(")") {
        return call.missing(
            "a URL, as in `http_post('http://host/path')`; there is no file with endpoints",
        );
    }
    let url = parser.argument(Parser::string)?;
    Ok(AnyDefinition::from(HttpPost { url }))
}

impl Definition for HttpPost {
    fn name(&self) -> &'static str {
        KIND.names[0]
    }

    fn check(&mut self) -> Result<(), Rule> {
        posted_to(&self.url)
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&Text(&self.url)])
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let counts = Counts::default();
        let counted = counts.clone();
        Built::from(Sink {
            queue: queue(context, &self.url),
            counters: counts.named("posted"),
            own: Some(counts),
            overflow: context.delivery.overflow,
            posted: 0,
            body: Box::new(move |flow| Body {
                number: 0,
                text: json(slice::from_ref(flow)),
                count: 1,
                counts: counted.clone(),
                pending: None,
            }),
        })
    }

    fn urls(&self) -> &[Arc<str>] {
        slice::from_ref(&self.url)
    }
}

/// The pauses before the second and the third attempt.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
/// The interval at which a pause checks whether to give up.
const LOOK: Duration = Duration::from_millis(20);

/// Creates a queue of bodies that are posted to a URL.
pub(crate) fn queue(context: &Context<'_>, url: &Arc<str>) -> Queue {
    let url = url.clone();
    let timeout = Some(context.delivery.timeout);
    let agent = ureq::Agent::config_builder().timeout_global(timeout);
    let agent: ureq::Agent = agent.build().into();
    let prefix = format!("{}-{:x}", context.name, context.created);
    let deliver: Deliver = Box::new(move |body, over| {
        let key = format!("{prefix}-{}", body.number);
        let send = || {
            let request = agent.post(&*url).content_type("application/json");
            let request = request.header("Idempotency-Key", &key);
            request.send(body.text.as_bytes()).is_ok()
        };
        let pauses = std::iter::once(Duration::ZERO).chain(PAUSES);
        pauses.into_iter().any(|pause| {
            let until = Instant::now() + pause;
            while Instant::now() < until && !over() {
                std::thread::sleep(LOOK.min(pause));
            }
            !over() && send()
        })
    });
    Queue::new(context.name.clone(), context.delivery.memory, deliver)
}
