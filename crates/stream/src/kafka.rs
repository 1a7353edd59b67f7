//! Points from the partitions of a Kafka topic: each record has lines of the line protocol.
//!
//! The position in a partition is stored with the points, in the write-ahead log and in checkpoints, and not at the
//! broker. So every record takes effect exactly once, even if the process is killed.

mod consume;

use rskafka::BackoffConfig;
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{PartitionClient, UnknownTopicHandling};
use std::str::FromStr;
use std::time::Duration;

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
}
