//! `log`: writes points as lines of the line protocol to a target that all `log` nodes share.

use crate::batch::Flow;
use crate::language::{Call, Parsed, Parser, Program, set};
use crate::node::append::Append;
use crate::node::definition::AnyDefinition;
use crate::node::queue::{Body, Counts, Deliver, Delivery, Queue};
use crate::node::sink::Sink;
use crate::node::{Built, Context, Counter, Definition, Kind};
use crate::pipeline::{Chain, Text, Writer};
use std::fmt::{self, Display};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["log"],
    properties: &["prefix"],
    parse,
};

/// Writes points as lines to the log, and passes them on.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The prefix of each line. If it is empty, the prefix consists of the names of the task and the node.
    pub prefix: Arc<str>,
}

impl<'p> Chain<'p> {
    /// Adds a `log`: lines with a prefix. Passes its input on.
    pub fn log(self, prefix: impl Into<Arc<str>>) -> Chain<'p> {
        let prefix = prefix.into();
        self.then(Log { prefix })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let mut prefix = None;
    parser.arguments(|parser| {
        let span = parser.span;
        set(&mut prefix, parser.string()?, "prefix", span)
    })?;
    while let Some((property, span)) = parser.property(KIND.properties)? {
        let text = parser.argument(Parser::string)?;
        set(&mut prefix, text, property, span)?;
    }
    let prefix = prefix.unwrap_or_default();
    Ok(AnyDefinition::from(Log { prefix }))
}

impl Definition for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        let prefix = Text(&self.prefix);
        let prefix: Option<&dyn Display> = (!self.prefix.is_empty()).then_some(&prefix);
        out.arguments(prefix.as_slice())
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let prefix = match &*self.prefix {
            "" => format!("{} ", context.name),
            prefix => format!("{prefix} "),
        };
        let lost = Counter::default();
        let counters = vec![("lost", lost.clone())];
        Built::from(Sink {
            queue: context.delivery.log.clone(),
            own: None,
            overflow: context.delivery.log_overflow,
            body: Box::new(move |flow| body(&prefix, &lost, flow)),
            counters,
            posted: 0,
        })
    }
}

/// Returns the lines of a flow as one body, so that lines of different nodes are not mixed.
fn body(prefix: &str, lost: &Counter, flow: &Flow) -> Body {
    let mut text = String::new();
    for batch in flow.batches() {
        for row in batch.rows.iter() {
            let begin = text.len();
            text.push_str(prefix);
            match batch.block.write_line(row, &mut text) {
                true => text.push('\n'),
                // The point cannot be written as a line, for example because a float is not finite.
                false => text.truncate(begin),
            }
        }
    }
    Body {
        number: 0,
        text,
        count: flow.points(),
        counts: Counts {
            delivered: Counter::default(),
            failed: lost.clone(),
            dropped: lost.clone(),
            on_disk: Counter::default(),
        },
        pending: None,
    }
}

/// The target to which all `log` nodes of an engine write.
pub(crate) type LogTarget = Arc<Mutex<dyn Write + Send>>;

/// Returns the queue of lines for a target.
pub(crate) fn queue(target: LogTarget, limit: usize) -> Queue {
    let deliver: Deliver = Box::new(move |bodies, _| {
        let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bodies = bodies.iter();
        let written = bodies.try_for_each(|body| target.write_all(body.text.as_bytes()));
        // A log that cannot be written, for example a closed pipe, does not stop a task.
        match written.and_then(|()| target.flush()) {
            Ok(()) => Delivery::Delivered,
            Err(_) => Delivery::Refused,
        }
    });
    Queue::new("log".into(), limit, deliver)
}

/// Creates a queue of lines that are appended to a file, which is created if it does not exist.
pub(crate) fn file(context: &Context<'_>, path: &str) -> Queue {
    let file = Append::new(PathBuf::from(path));
    if let Some(&length) = context.file_lengths.get(path) {
        file.restore(length);
    }
    Queue::of_file(context.name.clone(), context.delivery.memory, file)
}
