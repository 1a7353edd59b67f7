//! Tests with a real Kafka broker, which `ci/observe.sh` starts.

use crate::command::{Said, command};
use crate::fleet::{Fleet, config};
use corsair::Executor;
use corsair_observe::{Clock, Observer, Settings};
use rskafka::client::ClientBuilder;
use rskafka::client::partition::{OffsetAt, PartitionClient, UnknownTopicHandling};
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

const FLEET: Fleet = Fleet {
    clients: 100,
    servers: 30,
    requests: 40,
};

/// Returns the address of the broker that `ci/observe.sh` has started.
fn broker() -> String {
    std::env::var("CORSAIR_KAFKA").expect("CORSAIR_KAFKA is the address of a broker")
}

/// Kills the broker.
fn end_the_broker() {
    let pid = std::env::var("CORSAIR_KAFKA_PID").expect("CORSAIR_KAFKA_PID is the broker's");
    let killed = Command::new("kill").args(["-9", &pid]).status();
    assert!(killed.unwrap().success());
}

/// The topic, and the records that it has received since a position.
struct Topic {
    runtime: Runtime,
    partition: PartitionClient,
    before: i64,
}

impl Topic {
    fn of(broker: &str) -> Topic {
        let runtime = Runtime::new().unwrap();
        let (partition, before) = runtime.block_on(async {
            let client = ClientBuilder::new(vec![broker.to_owned()]);
            let client = client.build().await.unwrap();
            let partition = client.partition_client("zipkin", 0, UnknownTopicHandling::Retry);
            let partition = partition.await.unwrap();
            let before = partition.get_offset(OffsetAt::Latest).await.unwrap();
            (partition, before)
        });
        Topic {
            runtime,
            partition,
            before,
        }
    }

    fn has_grown(&self) -> bool {
        let latest = self.partition.get_offset(OffsetAt::Latest);
        self.runtime.block_on(latest).unwrap() > self.before
    }

    /// Returns all received spans.
    fn spans(&self) -> Vec<Value> {
        self.runtime.block_on(async {
            let end = self.partition.get_offset(OffsetAt::Latest).await.unwrap();
            let (mut offset, mut spans) = (self.before, Vec::new());
            while offset < end {
                let bytes = 1..10_000_000;
                let fetched = self.partition.fetch_records(offset, bytes, 1_000).await;
                for record in fetched.unwrap().0 {
                    offset = record.offset + 1;
                    let value = record.record.value.unwrap();
                    spans.extend(serde_json::from_slice::<Vec<Value>>(&value).unwrap());
                }
            }
            spans
        })
    }
}

/// Returns the number of different sides of spans.
fn sides(spans: &[Value]) -> u64 {
    let text = |span: &Value, key: &str| span[key].as_str().unwrap().to_owned();
    let sides = spans
        .iter()
        .map(|span| (text(span, "id"), text(span, "kind")));
    sides.collect::<HashSet<_>>().len() as u64
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
    let topic = Topic::of(&broker);
    FLEET.run(Executor::Virtual, &config, &observer);
    let observed = observer.finish().unwrap();
    assert!(observed.losses.is_empty(), "{:?}", observed.losses);
    let read = topic.spans();
    assert_eq!(observed.spans, 100 * 40 * 2);
    assert_eq!(read.len() as u64, 2 * observed.spans);
    assert_eq!(sides(&read), 2 * observed.spans, "each side once");
}

#[test]
#[ignore = "needs a broker and the command: ci/observe.sh"]
fn the_command_sends_the_spans_of_an_architecture() {
    let broker = broker();
    let topic = Topic::of(&broker);
    let flags = format!("-a netflixoss -d 5 -kv chat:1ms --epoch now -k {broker}");
    let Said { summary, stderr } = command(&flags).output().into();
    assert_eq!(stderr, "");
    let read = topic.spans();
    let incomplete = summary["incomplete_spans"].as_u64().unwrap();
    let counted = summary["spans"].as_u64().unwrap();
    assert!(counted > 10_000, "{summary}");
    assert_eq!(read.len() as u64, 2 * counted - incomplete);
    assert_eq!(sides(&read), 2 * counted - incomplete, "each side once");
}

#[test]
#[ignore = "needs a broker, which it ends, and the command: ci/observe.sh"]
fn a_broker_that_dies_costs_the_command_a_counted_loss_and_a_warning() {
    let broker = broker();
    let topic = Topic::of(&broker);
    let flags = format!("-a lamp -d 5 -kv chat:2ms --executor tokio -k {broker}");
    let mut command = command(&flags);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let run = run.spawn().unwrap();
    while !topic.has_grown() {
        std::thread::sleep(Duration::from_millis(50));
    }
    end_the_broker();
    let Said { summary, stderr } = run.wait_with_output().into();
    let spans = &summary["spans"];
    let begins = format!("corsair: Kafka at {broker}: ");
    assert!(stderr.starts_with(&begins), "{stderr}");
    assert!(
        stderr.contains(&format!(" of {spans} spans were lost: ")),
        "{stderr}"
    );
    assert_eq!(
        (summary["outcome"].as_str(), stderr.lines().count()),
        (Some("completed"), 1)
    );
}

#[test]
#[ignore = "needs a broker, which it ends: ci/observe.sh"]
fn a_broker_that_dies_half_way_costs_a_counted_loss_and_not_the_run() {
    let config = config(2);
    let observer = Observer::start(Settings {
        kafka: Some(broker()),
        kinds: crate::fleet::everything(Path::new("."), Clock::Wall).kinds,
        ..Settings::new("fleet", Clock::Virtual(config.progress.clone()))
    });
    let observer = observer.unwrap();
    FLEET.run(Executor::Virtual, &config, &observer);
    end_the_broker();
    // A second run with the same observer: its time starts at zero again, and its spans are still recorded.
    FLEET.run(Executor::Virtual, &config, &observer);
    let observed = observer.finish().unwrap();
    let [loss] = &observed.losses[..] else {
        panic!("{:?}", observed.losses);
    };
    assert_eq!(loss.of, observed.spans);
    assert!(loss.lost > 0 && !loss.reason.is_empty(), "{loss:?}");
}
