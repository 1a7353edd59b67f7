//! Points from the partitions of a Kafka topic: each record has lines of the line protocol.
//!
//! The position in a partition is stored with the points, in the write-ahead log and in checkpoints, and not at the
//! broker. So every record takes effect exactly once, even if the process is killed.

use crate::engine::{Engine, Write, WriteError};
use rskafka::BackoffConfig;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// A topic, and the brokers that have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTopic {
    /// Addresses of brokers, `host:port`.
    pub brokers: Vec<String>,
    /// The name of the topic.
    pub topic: String,
}

/// The error for a text that does not name brokers and a topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a topic; expected BROKER:PORT[,BROKER:PORT…]/TOPIC, for example localhost:9092/points"
)]
pub struct KafkaTopicError(String);

impl FromStr for KafkaTopic {
    type Err = KafkaTopicError;

    /// ```
    /// use corsair_stream::kafka::KafkaTopic;
    ///
    /// let topic: KafkaTopic = "a:9092,b:9092/points".parse()?;
    /// assert_eq!((topic.brokers.len(), &*topic.topic), (2, "points"));
    /// assert!("localhost/points".parse::<KafkaTopic>().is_err());
    /// # Ok::<(), corsair_stream::kafka::KafkaTopicError>(())
    /// ```
    fn from_str(text: &str) -> Result<KafkaTopic, KafkaTopicError> {
        let wrong = || KafkaTopicError(text.chars().take(80).collect());
        let (brokers, topic) = text.split_once('/').ok_or_else(wrong)?;
        let brokers: Vec<String> = brokers
            .split(',')
            .map(|one| one.trim().to_owned())
            .collect();
        let is_broker = |broker: &String| {
            let port = broker
                .rsplit_once(':')
                .map(|(host, port)| (host, port.parse::<u16>()));
            matches!(port, Some((host, Ok(1..))) if !host.is_empty())
        };
        let is_topic = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if !brokers.iter().all(is_broker)
            || !(1..=249).contains(&topic.len())
            || !topic.chars().all(is_topic)
        {
            return Err(wrong());
        }
        Ok(KafkaTopic {
            brokers,
            topic: topic.to_owned(),
        })
    }
}

/// The time within which a broker must answer before a request is tried again.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum number of bytes that are fetched from a partition at once, unless a record is larger.
const FETCHED: i32 = 1 << 20;
/// The time for which a broker waits for records.
const WAIT_MS: i32 = 500;
/// The pause after an error.
const PAUSE: Duration = Duration::from_millis(500);

impl KafkaTopic {
    /// Connects to the partitions of the topic.
    pub(crate) async fn connect(&self) -> rskafka::client::error::Result<Vec<PartitionClient>> {
        let backoff = BackoffConfig {
            max_backoff: Duration::from_secs(1),
            deadline: Some(TIMEOUT),
            ..BackoffConfig::default()
        };
        let client = ClientBuilder::new(self.brokers.clone());
        let client = client.client_id("corsair-stream").backoff_config(backoff);
        let client = client.build().await?;
        let topics = client.list_topics().await?;
        let topic = topics.into_iter().find(|topic| topic.name == self.topic);
        let numbers: Vec<i32> = topic
            .into_iter()
            .flat_map(|topic| topic.partitions)
            .collect();
        let mut partitions = Vec::new();
        for number in numbers {
            let unknown = UnknownTopicHandling::Error;
            partitions.push(
                client
                    .partition_client(&*self.topic, number, unknown)
                    .await?,
            );
        }
        Ok(partitions)
    }

    /// Writes the records of all partitions to an engine, each partition from the position that the engine has, or from
    /// its oldest record. Ends when `stop` is true. Partitions that are added later are not read.
    pub async fn consume(self, engine: Engine, to: Write, stop: watch::Receiver<bool>) {
        let mut stopped = stop.clone();
        let stopped = stopped.wait_for(|stop| *stop);
        tokio::select! {
            () = self.consume_all(engine, to, &stop) => {}
            _ = stopped => {}
        }
    }

    async fn consume_all(&self, engine: Engine, to: Write, stop: &watch::Receiver<bool>) {
        let partitions = loop {
            match tokio::time::timeout(TIMEOUT, self.connect()).await {
                Ok(Ok(partitions)) if !partitions.is_empty() => break partitions,
                Ok(Ok(_)) => tracing::warn!("Kafka has no topic {}; waiting for it", self.topic),
                Ok(Err(error)) => tracing::warn!("Kafka at {}: {error}", self.brokers.join(",")),
                Err(_) => tracing::warn!("Kafka at {} does not answer", self.brokers.join(",")),
            }
            sleep(TIMEOUT).await;
        };
        let mut reading = JoinSet::new();
        for partition in partitions {
            let (engine, to) = (engine.clone(), to.clone());
            reading.spawn(consume_partition(partition, engine, to, stop.clone()));
        }
        while reading.join_next().await.is_some() {}
    }
}

/// Writes the records of a partition.
async fn consume_partition(
    partition: PartitionClient,
    engine: Engine,
    to: Write,
    stop: watch::Receiver<bool>,
) {
    let source = format!("kafka/{}/{}", partition.topic(), partition.partition());
    let mut next = engine.source_position(&source);
    while !*stop.borrow() {
        let Some(offset) = next else {
            match partition.get_offset(OffsetAt::Earliest).await {
                Ok(earliest) => next = Some(earliest),
                Err(error) => {
                    tracing::warn!("{source}: {error}");
                    sleep(PAUSE).await;
                }
            }
            continue;
        };
        let fetched = partition.fetch_records(offset, 1..FETCHED, WAIT_MS).await;
        let records = match fetched {
            Ok((records, _)) => records,
            Err(error) => {
                tracing::warn!("{source} at offset {offset}: {error}");
                next = Some(oldest_since(&partition, offset).await);
                sleep(PAUSE).await;
                continue;
            }
        };
        let Some(last) = records.last().map(|record| record.offset) else {
            continue;
        };
        let mut lines = Vec::new();
        for record in records.iter().filter(|record| record.offset >= offset) {
            lines.extend_from_slice(record.record.value.as_deref().unwrap_or_default());
            lines.push(b'\n');
        }
        if !write(&engine, &source, last + 1, &to, &lines).await {
            return;
        }
        next = Some(last + 1);
    }
}

/// Returns the offset of the oldest record from `offset` on, because a broker removes old records.
async fn oldest_since(partition: &PartitionClient, offset: i64) -> i64 {
    match partition.get_offset(OffsetAt::Earliest).await {
        Ok(earliest) if earliest > offset => {
            let (topic, lost) = (partition.topic(), earliest - offset);
            tracing::error!("the broker has removed {lost} records of {topic} that were not read");
            earliest
        }
        _ => offset,
    }
}

/// Writes lines, and waits while tasks have no capacity. Returns false if the engine has been closed.
async fn write(engine: &Engine, source: &str, next: i64, to: &Write, lines: &[u8]) -> bool {
    loop {
        match engine.write_from(source, next, to, lines).await {
            Ok(report) => {
                if let Some(bad) = report.errors.first() {
                    let count = report.rejected;
                    tracing::warn!(
                        "{source}: {count} bad lines before offset {next}; the first: {}",
                        bad.message
                    );
                }
                return true;
            }
            Err(WriteError::Closed) => return false,
            Err(error) => {
                tracing::warn!("{source}: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}
