//! `http_out`: serves the latest window or point of every group over HTTP.

use crate::batch::Flow;
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::definition::AnyDefinition;
use crate::node::latest::LatestByGroup;
use crate::node::{Built, Context, Counters, Definition, Kind, Operator, State};
use crate::pipeline::{Chain, Rule, Text, Writer};
use std::fmt;
use std::sync::Arc;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["http_out", "httpOut"],
    properties: &[],
    parse,
};

/// Shows the latest window or point of every group at `GET /tasks/{task}/{endpoint}`.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpOut {
    /// The last part of the URL.
    pub endpoint: Arc<str>,
}

impl<'p> Chain<'p> {
    /// Adds an `http_out`: the latest window or point of its input can be fetched under this name. Passes its input on.
    pub fn http_out(self, endpoint: impl Into<Arc<str>>) -> Chain<'p> {
        let endpoint = endpoint.into();
        self.then(HttpOut { endpoint })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let endpoint = program.parser.argument(Parser::string)?;
    Ok(AnyDefinition::from(HttpOut { endpoint }))
}

impl Definition for HttpOut {
    fn name(&self) -> &'static str {
        KIND.names[0]
    }

    fn check(&mut self) -> Result<(), Rule> {
        let endpoint = &self.endpoint;
        let unreserved = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        // A URL segment of one or two dots means another directory.
        let dots = endpoint.chars().all(|c| c == '.') && endpoint.len() <= 2;
        match dots || !endpoint.chars().all(unreserved) {
            true => Err(Rule::Endpoint(endpoint.clone())),
            false => Ok(()),
        }
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&Text(&self.endpoint)])
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let latest = LatestByGroup::new(context.limits);
        Built {
            latest: Some(latest.clone()),
            ..Built::from(HttpOutOperator(latest))
        }
    }

    fn endpoint(&self) -> Option<&Arc<str>> {
        Some(&self.endpoint)
    }
}

/// The operator of an `http_out`.
struct HttpOutOperator(LatestByGroup);

impl Operator for HttpOutOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        let shown = match &flow {
            // Stores only the last point, however points are divided into batches.
            Flow::Points(batch) => {
                let rows = batch.rows.len();
                let last = batch.rows.slice(rows.saturating_sub(1), rows);
                Flow::Points(batch.with_rows(last))
            }
            Flow::Window(_) => flow.clone(),
        };
        self.0.set(shown);
        out.push(flow);
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn save(&self) -> Option<State> {
        Some(self.0.save())
    }

    fn restore(&mut self, state: &State) {
        self.0.restore(state);
    }
}
