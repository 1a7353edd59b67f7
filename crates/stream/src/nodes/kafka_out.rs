//! `kafka_out`: sends points to a Kafka topic, as lines of the line protocol.
//!
//! Each window or batch is a record. Points of a group go to one partition, so they keep their order. A record that is
//! sent again after a crash has the same key.

use crate::batch::Flow;
use crate::kafka::{KafkaTopic, TIMEOUT};
use crate::language::{Call, Parsed, Parser, Problem, Program, fail, set};
use crate::node::definition::AnyDefinition;
use crate::node::queue::{Deliver, Delivery, Together, Undelivered};
use crate::node::sink::{OVERFLOW, Sink, overflow, write_overflow};
use crate::node::{Built, Context, Definition, Kind};
use crate::now::now;
use crate::pipeline::{Chain, Text, Writer};
use corsair::edge::Overflow;
use rskafka::chrono::DateTime;
use rskafka::client::partition::{Compression, PartitionClient};
use rskafka::record::Record;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::runtime::Handle;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["kafka_out", "kafkaOut"],
    properties: &[OVERFLOW],
    parse,
};

/// Sends each window or batch to a Kafka topic, and passes it on.
#[derive(Clone, Debug, PartialEq)]
pub struct KafkaOut {
    /// Brokers and the topic: `localhost:9092/points`.
    pub topic: Arc<str>,
    /// The policy of a full queue; `None`: the task's.
    pub overflow: Option<Overflow>,
}

impl<'p> Chain<'p> {
    /// Adds a `kafka_out` to a topic, such as `localhost:9092/points`. Passes its input on.
    pub fn kafka_out(self, topic: impl Into<Arc<str>>) -> Chain<'p> {
        let (topic, overflow) = (topic.into(), None);
        self.then(KafkaOut { topic, overflow })
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let span = parser.span;
    let topic = parser.argument(Parser::string)?;
    let mut policy = None;
    while let Some((property, span)) = parser.property(KIND.properties)? {
        set(&mut policy, overflow(parser)?, property, span)?;
    }
    if let Err(error) = topic.parse::<KafkaTopic>() {
        return fail(Problem::Kafka(error), span);
    }
    let overflow = policy;
    Ok(AnyDefinition::from(KafkaOut { topic, overflow }))
}

impl Definition for KafkaOut {
    fn name(&self) -> &'static str {
        KIND.names[0]
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&Text(&self.topic)])?;
        write_overflow(self.overflow, out)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let producer = Producer {
            topic: self.topic.parse().unwrap_or_else(|_| KafkaTopic {
                brokers: Vec::new(),
                topic: self.topic.to_string(),
            }),
            io: context.io.clone(),
            prefix: format!("{}-{:x}", context.name, context.created),
            partitions: Vec::new(),
        };
        let outlet = (Some(TOGETHER), producer.deliver());
        Built::from(Sink::to_receiver(context, "sent", self.overflow, outlet, body))
    }
}

/// Returns the hash of the group, followed by a newline and the lines of a flow.
fn body(flow: &Flow) -> String {
    let group = postcard::to_allocvec(&**flow.group()).unwrap_or_default();
    let mut text = format!("{}\n", crc32fast::hash(&group));
    for batch in flow.batches() {
        text.push_str(&batch.to_block().to_lines());
    }
    text
}

/// Waiting bodies are sent with one request for each partition, in which each body is a record.
const TOGETHER: Together = Together {
    bytes: 256 << 10,
    fit: |_, _| true,
};

/// The connection of a sink to its topic.
struct Producer {
    topic: KafkaTopic,
    io: Handle,
    /// The part of a key before the number of a body.
    prefix: String,
    /// Empty: not connected.
    partitions: Vec<PartitionClient>,
}

impl Producer {
    fn deliver(mut self) -> Deliver {
        Box::new(move |bodies, _| {
            let io = self.io.clone();
            let sent = io.block_on(async { tokio::time::timeout(TIMEOUT * 2, self.send(bodies)).await });
            match sent {
                Ok(Ok(())) => Delivery::Delivered,
                failed => {
                    if let Ok(Err(reason)) = failed {
                        tracing::warn!("{}: Kafka: {reason}", self.prefix);
                    }
                    self.partitions.clear();
                    Delivery::Unavailable
                }
            }
        })
    }

    async fn send(&mut self, bodies: &[Undelivered]) -> Result<(), String> {
        if self.partitions.is_empty() {
            let connected = self.topic.connect().await;
            self.partitions = connected.map_err(|error| error.to_string())?;
        }
        if self.partitions.is_empty() {
            return Err(format!("there is no topic {}; create it", self.topic.topic));
        }
        let mut records: BTreeMap<usize, Vec<Record>> = BTreeMap::new();
        for body in bodies {
            let (hash, lines) = body.text.split_once('\n').unwrap_or_default();
            let hash: usize = hash.parse().unwrap_or_default();
            let records = records.entry(hash % self.partitions.len()).or_default();
            records.push(Record {
                key: Some(format!("{}-{}", self.prefix, body.number).into_bytes()),
                value: Some(lines.trim_end().into()),
                headers: BTreeMap::new(),
                timestamp: DateTime::from_timestamp_millis(now() / 1_000_000).unwrap_or(DateTime::UNIX_EPOCH),
            });
        }
        for (partition, records) in records {
            let produced = self.partitions[partition].produce(records, Compression::NoCompression).await;
            produced.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
