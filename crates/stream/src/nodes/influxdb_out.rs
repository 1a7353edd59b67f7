//! `influxdb_out`: writes points to an InfluxDB, through the write API of version 1, or of version 2 if there is an
//! organisation.
//!
//! Each body has the lines of one window or batch. Bodies that wait are written with one request of at most a mebibyte.
//! If the request is refused, each of its bodies is written alone, so that a bad point affects only its own body. A
//! point that is written again replaces itself, so repeated deliveries change nothing.

use crate::batch::{Batch, Flow};
use crate::block::{Block, Column, Data, Origin, Words};
use crate::language::{Call, Parsed, Parser, Problem, Program, fail, set};
use crate::line::Precision;
use crate::node::definition::AnyDefinition;
use crate::node::post::{Client, attempts};
use crate::node::post_to::PostTo;
use crate::node::queue::{Deliver, Delivery, Together, Undelivered};
use crate::node::sink::{OVERFLOW, Sink, overflow, write_overflow};
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Rule, Text, Writer, distinct};
use corsair::edge::Overflow;
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::sync::Arc;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["influxdb_out", "influxDBOut", "influxdbOut"],
    properties: &[
        "cluster", "database", "retentionPolicy", "measurement", "precision", "writeConsistency", "tag", "create",
        "buffer", "flushInterval", "org", "header", "basic", "token", OVERFLOW,
    ],
    parse,
};

/// The endpoint of an `influxDBOut` that names neither a URL nor a cluster.
const DEFAULT_CLUSTER: &str = "influxdb";

/// Writes points to an InfluxDB, and passes them on.
///
/// ```
/// use corsair_stream::pipeline::InfluxdbOut;
///
/// let text = "stream | from() | influxdb_out('http://localhost:8086').database('copies')";
/// let pipeline = corsair_stream::language::parse(text)?;
/// let out = pipeline.nodes()[1].what.get::<InfluxdbOut>().expect("an influxdb_out node");
/// assert_eq!(out.database.as_deref(), Some("copies"));
/// # Ok::<(), corsair_stream::language::LanguageError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InfluxdbOut {
    /// The server: a URL without a path, or an endpoint.
    pub to: PostTo,
    /// The database, or the bucket of version 2; `None`: that of the points.
    pub database: Option<Arc<str>>,
    /// The retention policy; `None`: the default of the database.
    pub policy: Option<Arc<str>>,
    /// The measurement; `None`: that of the points.
    pub measurement: Option<Arc<str>>,
    /// The precision to which times are rounded down; `None`: nanoseconds.
    pub precision: Option<Precision>,
    /// The write consistency of a cluster.
    pub consistency: Option<Arc<str>>,
    /// Tags that all points get.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// True if the database is created before the first write; version 1 only.
    pub create: bool,
    /// The organisation, which selects the write API of version 2.
    pub org: Option<Arc<str>>,
    /// The policy of a full queue; `None`: the task's.
    pub overflow: Option<Overflow>,
}

impl<'p> Chain<'p> {
    /// Adds an `influxdb_out`. Passes its input on.
    pub fn influxdb_out(self, out: InfluxdbOut) -> Chain<'p> {
        self.then(out)
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let mut out = InfluxdbOut {
        to: PostTo::parse(parser)?,
        ..InfluxdbOut::default()
    };
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "cluster" => out.to.property(parser, "endpoint", span)?,
            "token" => {
                let token = parser.argument(Parser::string)?;
                let header = ("Authorization".into(), format!("Token {token}").into());
                out.to.headers.push(header);
            }
            "header" | "basic" => out.to.property(parser, property, span)?,
            "create" => {
                parser.nothing()?;
                out.create = true;
            }
            "tag" => {
                let values = parser.list(Parser::string)?;
                let [name, value] = &values[..] else {
                    let (expected, found) = (2, values.len());
                    return fail(Problem::Values { property, expected, found }, span);
                };
                out.tags.push((name.clone(), value.clone()));
            }
            // Points are written at once.
            "buffer" => drop(parser.argument(Parser::count)?),
            "flushInterval" => drop(parser.argument(Parser::duration)?),
            OVERFLOW => set(&mut out.overflow, overflow(parser)?, property, span)?,
            "precision" => {
                let span = parser.span;
                let text = parser.argument(Parser::string)?;
                let Ok(precision) = text.parse() else {
                    return fail(Problem::Precision(text.to_string()), span);
                };
                set(&mut out.precision, precision, property, span)?;
            }
            _ => {
                let text = parser.argument(Parser::string)?;
                let slot = match property {
                    "database" => &mut out.database,
                    "retentionPolicy" => &mut out.policy,
                    "measurement" => &mut out.measurement,
                    "writeConsistency" => &mut out.consistency,
                    _ => &mut out.org,
                };
                set(slot, text, property, span)?;
            }
        }
    }
    if out.to.is_missing() {
        out.to.endpoint = Some(DEFAULT_CLUSTER.into());
    }
    Ok(AnyDefinition::from(out))
}

impl Definition for InfluxdbOut {
    fn name(&self) -> &'static str {
        KIND.names[0]
    }

    fn check(&mut self) -> Result<(), Rule> {
        distinct(self.tags.iter().map(|(name, _)| name))?;
        self.to.check()
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        self.to.write_url(out)?;
        self.to.write_as("cluster", out)?;
        for (name, value) in [
            ("org", &self.org),
            ("database", &self.database),
            ("retentionPolicy", &self.policy),
            ("measurement", &self.measurement),
            ("writeConsistency", &self.consistency),
        ] {
            out.text(name, value.as_ref())?;
        }
        if let Some(precision) = self.precision {
            out.property("precision", &[&Text(&precision.to_string())])?;
        }
        for (name, value) in &self.tags {
            out.property("tag", &[&Text(name), &Text(value)])?;
        }
        out.flag("create", self.create)?;
        write_overflow(self.overflow, out)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let out = self.clone();
        let mut to = self.to.resolved(context);
        let org = self.org.as_deref().map(String::from).or(to.org.take());
        let client = Client::new(context, &to);
        let server = Server {
            url: to.url.trim_end_matches('/').to_owned(),
            create: self.create && org.is_none(),
            created: HashSet::new(),
            client,
        };
        let outlet = (Some(TOGETHER), server.deliver());
        Built::from(Sink::to_receiver(context, "written", self.overflow, outlet, move |flow| {
            out.body(flow, org.as_deref())
        }))
    }

    fn posts(&self) -> Vec<&PostTo> {
        vec![&self.to]
    }
}

/// The path and query of a body, and its lines.
fn parts(text: &str) -> (&str, &str) {
    text.split_once('\n').unwrap_or_default()
}

/// Lines for one path are written with one request.
const TOGETHER: Together = Together {
    bytes: 1 << 20,
    fit: |first, next| parts(first).0 == parts(next).0,
};

impl InfluxdbOut {
    /// Returns the path and query of the write, followed by a newline and the lines of the write.
    fn body(&self, flow: &Flow, org: Option<&str>) -> String {
        let origin = &flow.batches()[0].block.origin;
        let database = self.database.as_ref().unwrap_or(&origin.database);
        let mut text = String::new();
        match org {
            Some(org) => {
                text.push_str("/api/v2/write?precision=ns&org=");
                encode(org, &mut text);
                text.push_str("&bucket=");
                encode(database, &mut text);
                if let Some(policy) = &self.policy {
                    text.push_str("%2F");
                    encode(policy, &mut text);
                }
            }
            None => {
                text.push_str("/write?precision=ns&db=");
                encode(database, &mut text);
                for (name, value) in [("&rp=", &self.policy), ("&consistency=", &self.consistency)] {
                    if let Some(value) = value {
                        text.push_str(name);
                        encode(value, &mut text);
                    }
                }
            }
        }
        text.push('\n');
        for batch in flow.batches() {
            let block = self.changed(batch);
            text.push_str(&block.to_lines());
        }
        text
    }

    /// Returns the points with the measurement, tags and precision of the node.
    fn changed(&self, batch: &Batch) -> Block {
        let mut block = batch.to_block();
        if let Some(measurement) = &self.measurement {
            block.origin = Arc::new(Origin {
                measurement: measurement.clone(),
                ..(*block.origin).clone()
            });
        }
        if let Some(precision) = self.precision {
            let unit = precision.unit();
            block.times = block.times.iter().map(|time| time - time.rem_euclid(unit)).collect();
        }
        for (name, value) in self.tags.iter().rev() {
            block.columns.retain(|known| !known.is_tag() || known.name != *name);
            let words = Words {
                codes: vec![0; block.rows()],
                words: vec![value.clone()],
            };
            let (name, data) = (name.clone(), Arc::new(Data::Tag(words)));
            block.columns.insert(0, Column { name, data });
        }
        block
    }
}

/// An InfluxDB, and the databases that were created there.
struct Server {
    url: String,
    create: bool,
    created: HashSet<String>,
    client: Client,
}

impl Server {
    fn deliver(mut self) -> Deliver {
        Box::new(move |bodies, over| {
            let (path, _) = parts(&bodies[0].text);
            let lines: String = bodies.iter().map(|body| parts(&body.text).1).collect();
            attempts(over, || {
                let created = self.create_database(path, bodies);
                if created != Delivery::Delivered {
                    return created;
                }
                let url = format!("{}{path}", self.url);
                self.client.post(&url, "text/plain; charset=utf-8", bodies, &lines)
            })
        })
    }

    /// Creates the database, and the retention policy, of a write once.
    fn create_database(&mut self, path: &str, bodies: &[Undelivered]) -> Delivery {
        if !self.create || self.created.contains(path) {
            return Delivery::Delivered;
        }
        let value = |name: &str| {
            let mut parts = path.split(['?', '&']);
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
        };
        // The values are encoded, and so are the quotes around them.
        let database = value("db").unwrap_or_default();
        let mut queries = vec![format!("CREATE%20DATABASE%20%22{database}%22")];
        if let Some(policy) = value("rp") {
            queries.push(format!(
                "CREATE%20RETENTION%20POLICY%20%22{policy}%22%20ON%20%22{database}%22%20DURATION%200s%20REPLICATION%201"
            ));
        }
        for query in queries {
            let url = format!("{}/query?q={query}", self.url);
            let created = self.client.post(&url, "text/plain", bodies, "");
            if created != Delivery::Delivered {
                return created;
            }
        }
        self.created.insert(path.to_owned());
        Delivery::Delivered
    }
}

/// Appends a value of a query.
fn encode(value: &str, out: &mut String) {
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            // A string takes whatever is written to it.
            other => drop(write!(out, "%{other:02X}")),
        }
    }
}
