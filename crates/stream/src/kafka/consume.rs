//! Writes the records of a topic to an engine.

use super::{KafkaTopic, TIMEOUT};
use crate::engine::{Engine, Write, WriteError};
use rskafka::client::partition::{OffsetAt, PartitionClient};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The maximum number of bytes that are fetched from a partition at once, unless a record is larger.
const FETCHED: i32 = 1 << 20;
/// The time for which a broker waits for records.
const WAIT_MS: i32 = 500;
/// The pause after an error.
const PAUSE: Duration = Duration::from_millis(500);

impl KafkaTopic {
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
