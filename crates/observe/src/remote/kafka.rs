//! A topic of a Kafka broker: each payload is a record.

use super::Destination;
use crate::ObserveError;
use rskafka::BackoffConfig;
use rskafka::chrono::{DateTime, Utc};
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{Compression, PartitionClient, UnknownTopicHandling};
use rskafka::record::Record;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

/// The topic that Zipkin's Kafka collector reads by default.
const TOPIC: &str = "zipkin";

const WHAT: &str = "Kafka";

/// The time within which a broker must answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a broker. The topic's partitions receive records in turn.
pub(crate) struct Kafka {
    runtime: Runtime,
    partitions: Vec<PartitionClient>,
    next: usize,
}

impl Kafka {
    /// Connects to one of the brokers, and creates the topic if it is missing.
    pub(crate) fn connect(address: &str) -> Result<Kafka, ObserveError> {
        let unreachable = |reason: String| ObserveError::Unreachable {
            what: WHAT,
            address: address.to_owned(),
            reason,
        };
        let brokers: Vec<String> = address
            .split(',')
            .map(|one| one.trim().to_owned())
            .collect();
        if let Some(wrong) = brokers.iter().find(|broker| !is_broker(broker)) {
            return Err(ObserveError::Address {
                what: WHAT,
                given: wrong.clone(),
                example: "localhost:9092",
            });
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ObserveError::Thread)?;
        let connected = runtime.block_on(async {
            let partitions = partitions(brokers);
            match tokio::time::timeout(TIMEOUT, partitions).await {
                Ok(partitions) => partitions.map_err(|error| error.to_string()),
                Err(_) => Err(no_answer()),
            }
        });
        Ok(Kafka {
            runtime,
            partitions: connected.map_err(unreachable)?,
            next: 0,
        })
    }
}

/// Returns true if the text is a host and a port.
fn is_broker(text: &str) -> bool {
    let port = text
        .rsplit_once(':')
        .map(|(host, port)| (host, port.parse::<u16>()));
    matches!(port, Some((host, Ok(1..))) if !host.is_empty())
}

fn no_answer() -> String {
    format!("no answer within {} s", TIMEOUT.as_secs())
}

async fn partitions(brokers: Vec<String>) -> rskafka::client::error::Result<Vec<PartitionClient>> {
    let backoff = BackoffConfig {
        max_backoff: Duration::from_secs(1),
        deadline: Some(TIMEOUT),
        ..BackoffConfig::default()
    };
    let client = ClientBuilder::new(brokers)
        .client_id("corsair")
        .backoff_config(backoff)
        .build()
        .await?;
    let topics = client.list_topics().await?;
    let topic = topics.into_iter().find(|topic| topic.name == TOPIC);
    let numbers: Vec<i32> = match topic {
        Some(topic) => topic.partitions.into_iter().collect(),
        None => {
            let timeout = TIMEOUT.as_millis() as i32;
            let controller = client.controller_client()?;
            controller.create_topic(TOPIC, 1, 1, timeout).await?;
            vec![0]
        }
    };
    let mut partitions = Vec::new();
    for number in numbers {
        let retry = UnknownTopicHandling::Retry;
        partitions.push(client.partition_client(TOPIC, number, retry).await?);
    }
    Ok(partitions)
}

/// Returns the wall-clock time, which Kafka stores with each record.
fn now() -> DateTime<Utc> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let millis = since.map_or(0, |since| since.as_millis());
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(millis).unwrap_or(DateTime::UNIX_EPOCH)
}

impl Destination for Kafka {
    fn send(&mut self, payload: &[u8]) -> Result<(), String> {
        let record = Record {
            key: None,
            value: Some(payload.to_vec()),
            headers: BTreeMap::new(),
            timestamp: now(),
        };
        let partition = &self.partitions[self.next % self.partitions.len()];
        self.next = self.next.wrapping_add(1);
        let produced = partition.produce(vec![record], Compression::NoCompression);
        self.runtime.block_on(async {
            match tokio::time::timeout(TIMEOUT, produced).await {
                Ok(produced) => produced.map(drop).map_err(|error| error.to_string()),
                Err(_) => Err(no_answer()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_reported() {
        for given in [
            "",
            "localhost",
            "localhost:",
            ":9092",
            "localhost:x",
            "localhost:0",
        ] {
            let said = Kafka::connect(given).err().unwrap().to_string();
            assert!(
                said.contains("write one as localhost:9092"),
                "{given}: {said}"
            );
        }
    }

    #[test]
    fn a_broker_that_is_not_there_is_reported_before_the_run() {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = port.local_addr().unwrap().to_string();
        drop(port);
        let said = Kafka::connect(&address).err().unwrap();
        assert!(matches!(said, ObserveError::Unreachable { .. }), "{said}");
    }
}
