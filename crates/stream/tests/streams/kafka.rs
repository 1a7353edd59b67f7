//! A real Kafka broker, in and out. `ci/stream.sh kafka` starts one and runs these tests.

use crate::program::{Server, terminal};
use rskafka::chrono::DateTime;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

fn broker() -> String {
    std::env::var("CORSAIR_KAFKA").expect("CORSAIR_KAFKA is the address of a broker")
}

async fn topic(client: &Client, name: &str, partitions: i32) -> Vec<PartitionClient> {
    let controller = client.controller_client().unwrap();
    controller
        .create_topic(name, partitions, 1, 5_000)
        .await
        .unwrap();
    let mut clients = Vec::new();
    for number in 0..partitions {
        let retry = UnknownTopicHandling::Retry;
        clients.push(client.partition_client(name, number, retry).await.unwrap());
    }
    clients
}

/// Returns all records of a partition as keys and values.
async fn records(partition: &PartitionClient) -> Vec<(String, String)> {
    let end = partition.get_offset(OffsetAt::Latest).await.unwrap();
    let (mut next, mut all) = (0, Vec::new());
    while next < end {
        let (records, _) = partition
            .fetch_records(next, 1..1 << 20, 100)
            .await
            .unwrap();
        for record in records {
            next = record.offset + 1;
            let text = |bytes: Option<Vec<u8>>| String::from_utf8(bytes.unwrap()).unwrap();
            all.push((text(record.record.key), text(record.record.value)));
        }
    }
    all
}

// Guarantee: stream-12.
#[ignore = "needs a Kafka broker at CORSAIR_KAFKA"]
#[tokio::test(flavor = "multi_thread")]
async fn every_record_takes_effect_once_through_kills() {
    let broker = broker();
    let client = ClientBuilder::new(vec![broker.clone()])
        .build()
        .await
        .unwrap();
    let unique = std::process::id();
    let (input, output) = (format!("in-{unique}"), format!("out-{unique}"));
    let sources = topic(&client, &input, 2).await;
    let sinks = topic(&client, &output, 2).await;
    let terminal = terminal();
    let flags = format!("--data data --checkpoint 0.2 --kafka-in {broker}/{input} --kafka-db db");
    let mut server = Server::start(&terminal, &flags);
    let text = format!(
        "stream | from('m') | groupBy('h') | window(10s, every 10s) | sum(v) | kafka_out('{broker}/{output}')"
    );
    let task = serde_json::json!({ "name": "t", "text": text }).to_string();
    assert!(server.post("/tasks", &task).starts_with("HTTP/1.1 201"));
    let kills: u64 = std::env::var("STREAM_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let seconds = kills * 50;
    let mut expected: HashMap<(String, u64), u64> = HashMap::new();
    for second in 0..seconds {
        // Partition and host are the same, so that points of a host keep their order.
        for (host, partition) in sources.iter().enumerate() {
            let value = second % 7 + host as u64;
            let end = second / 10 * 10 + 10;
            if end < seconds {
                *expected.entry((format!("h{host}"), end)).or_default() += value;
            }
            let record = Record {
                key: None,
                value: Some(
                    format!("m,h=h{host} v={value}i {}", second * 1_000_000_000).into_bytes(),
                ),
                headers: BTreeMap::new(),
                timestamp: DateTime::UNIX_EPOCH,
            };
            partition
                .produce(vec![record], Compression::NoCompression)
                .await
                .unwrap();
        }
        if second % 50 == 49 {
            server.child.kill().unwrap();
            server.child.wait().unwrap();
            server = Server::start(&terminal, &flags);
        }
    }
    let begun = Instant::now();
    let found = loop {
        let mut by_key = HashMap::new();
        for sink in &sinks {
            for (key, value) in records(sink).await {
                let before = by_key.insert(key.clone(), value.clone());
                assert!(
                    before.is_none_or(|before| before == value),
                    "{key} names two bodies"
                );
            }
        }
        if by_key.len() >= expected.len() || begun.elapsed() > Duration::from_secs(60) {
            break by_key;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let found: HashMap<(String, u64), u64> = found
        .values()
        .map(|line| {
            let (series, rest) = line.split_once(" sum=").unwrap();
            let (value, time) = rest.split_once("i ").unwrap();
            let host = series.strip_prefix("m,h=").unwrap().to_owned();
            let second = time.parse::<u64>().unwrap() / 1_000_000_000;
            ((host, second), value.parse().unwrap())
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(server.end("-TERM").2, Some(0));
}
