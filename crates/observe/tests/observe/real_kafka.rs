//! A real Kafka broker: `ci/observe.sh` starts one and runs these.

use crate::fleet::{Fleet, config};
use corsair::Executor;
use corsair_observe::{Clock, Observer, Settings};
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

const FLEET: Fleet = Fleet {
    clients: 100,
    servers: 30,
    requests: 40,
};

/// The broker that `ci/observe.sh` has started.
fn broker() -> String {
    std::env::var("CORSAIR_KAFKA").expect("CORSAIR_KAFKA is the address of a broker")
}

async fn partition(broker: &str) -> PartitionClient {
    let client = ClientBuilder::new(vec![broker.to_owned()])
        .build()
        .await
        .unwrap();
    let partition = client.partition_client("zipkin", 0, UnknownTopicHandling::Retry);
    partition.await.unwrap()
}

#[test]
#[ignore = "needs a broker: ci/observe.sh"]
fn spans_are_in_the_topic_after_the_run() {
    let broker = broker();
    let config = config(2);
    let settings = Settings {
        kafka: Some(broker.clone()),
        kinds: crate::fleet::everything(Path::new("."), Clock::Wall).kinds,
        ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
    };
    let observer = Observer::start(settings).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (partition, before) = runtime.block_on(async {
        let partition = partition(&broker).await;
        let before = partition.get_offset(OffsetAt::Latest).await.unwrap();
        (partition, before)
    });
    FLEET.run(Executor::Virtual, &config, &observer);
    let observed = observer.finish().unwrap();
    assert!(observed.losses.is_empty(), "{:?}", observed.losses);
    let read = runtime.block_on(async {
        let end = partition.get_offset(OffsetAt::Latest).await.unwrap();
        let (mut offset, mut spans) = (before, Vec::new());
        while offset < end {
            let fetched = partition.fetch_records(offset, 1..10_000_000, 1_000).await;
            for record in fetched.unwrap().0 {
                offset = record.offset + 1;
                let value = record.record.value.unwrap();
                spans.extend(serde_json::from_slice::<Vec<Value>>(&value).unwrap());
            }
        }
        spans
    });
    assert_eq!(observed.spans, 100 * 40 * 2);
    assert_eq!(read.len() as u64, 2 * observed.spans);
    let sides: HashSet<(&str, &str)> = read
        .iter()
        .map(|span| (span["id"].as_str().unwrap(), span["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(sides.len(), read.len(), "each side of each span once");
}

#[test]
#[ignore = "needs a broker, which it ends: ci/observe.sh"]
fn a_broker_that_dies_half_way_costs_a_counted_loss_and_not_the_run() {
    let pid = std::env::var("CORSAIR_KAFKA_PID").expect("CORSAIR_KAFKA_PID is the broker's");
    let config = config(2);
    let observer = Observer::start(Settings {
        kafka: Some(broker()),
        kinds: crate::fleet::everything(Path::new("."), Clock::Wall).kinds,
        ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
    });
    let observer = observer.unwrap();
    FLEET.run(Executor::Virtual, &config, &observer);
    // Without a chance to say goodbye.
    let killed = std::process::Command::new("kill")
        .args(["-9", &pid])
        .status();
    assert!(killed.unwrap().success());
    // A second run of the same observer: time goes back, the spans are told all the same.
    FLEET.run(Executor::Virtual, &config, &observer);
    let observed = observer.finish().unwrap();
    let [loss] = &observed.losses[..] else {
        panic!("{:?}", observed.losses);
    };
    assert_eq!(loss.of, observed.spans);
    assert!(loss.lost > 0 && !loss.reason.is_empty(), "{loss:?}");
}
