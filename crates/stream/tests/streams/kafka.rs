//! A real Kafka broker, in and out. `ci/stream.sh kafka` starts one, runs these tests, and starts the broker again when
//! a test has killed it.

use crate::program::{Server, terminal};
use crate::terminal::Terminal;
use rskafka::chrono::DateTime;
use rskafka::client::partition::{Compression, OffsetAt, PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use rskafka::record::Record;
use std::collections::{BTreeMap, HashMap};
use std::process::Command;
use std::time::{Duration, Instant};

/// The number of seconds of points between two kills.
const BETWEEN: u64 = 50;

fn broker() -> String {
    std::env::var("CORSAIR_KAFKA").expect("CORSAIR_KAFKA is the address of a broker")
}

async fn client() -> Client {
    ClientBuilder::new(vec![broker()]).build().await.unwrap()
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

async fn produce(partition: &PartitionClient, lines: Option<String>, compression: Compression) {
    let record = Record {
        key: None,
        value: lines.map(String::into_bytes),
        headers: BTreeMap::new(),
        timestamp: DateTime::UNIX_EPOCH,
    };
    partition.produce(vec![record], compression).await.unwrap();
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

/// A server that sums points of two partitions in windows of ten seconds, and sends the sums to two other partitions.
struct Sums {
    sources: Vec<PartitionClient>,
    sinks: Vec<PartitionClient>,
    terminal: Terminal,
    flags: String,
    server: Server,
    /// The second of the next points.
    second: u64,
}

impl Sums {
    async fn start(name: &str) -> Sums {
        let broker = broker();
        let client = client().await;
        let unique = std::process::id();
        let (input, output) = (
            format!("{name}-in-{unique}"),
            format!("{name}-out-{unique}"),
        );
        let sources = topic(&client, &input, 2).await;
        let sinks = topic(&client, &output, 2).await;
        let terminal = terminal();
        let flags =
            format!("--data data --checkpoint 0.2 --kafka-in {broker}/{input} --kafka-db db");
        let server = Server::start(&terminal, &flags);
        let text = format!(
            "stream | from('m') | groupBy('h') | window(10s, every 10s) | sum(v) | kafka_out('{broker}/{output}')"
        );
        let task = serde_json::json!({ "name": "t", "text": text }).to_string();
        assert!(server.post("/tasks", &task).starts_with("HTTP/1.1 201"));
        Sums {
            sources,
            sinks,
            terminal,
            flags,
            server,
            second: 0,
        }
    }

    /// Produces points of this number of seconds. Partition and host are the same, so that the points of a host keep
    /// their order.
    async fn produce(&mut self, seconds: u64) {
        for second in self.second..self.second + seconds {
            for (host, partition) in self.sources.iter().enumerate() {
                let value = value(host, second);
                let line = format!("m,h=h{host} v={value}i {}", second * 1_000_000_000);
                produce(partition, Some(line), Compression::NoCompression).await;
            }
        }
        self.second += seconds;
    }

    fn kill(&mut self) {
        self.server.child.kill().unwrap();
        self.server.child.wait().unwrap();
        self.server = Server::start(&self.terminal, &self.flags);
    }

    /// Checks that the sums of all complete windows arrive, and that a repeated record has the same key.
    async fn check(mut self) {
        let mut expected: HashMap<(String, u64), u64> = HashMap::new();
        for (second, host) in (0..self.second).flat_map(|second| [(second, 0), (second, 1)]) {
            let end = second / 10 * 10 + 10;
            if end < self.second {
                *expected.entry((format!("h{host}"), end)).or_default() += value(host, second);
            }
        }
        let begun = Instant::now();
        let found = loop {
            let mut by_key = HashMap::new();
            for sink in &self.sinks {
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
        assert_eq!(self.server.end("-TERM").2, Some(0));
    }
}

/// The value of a host's point.
fn value(host: usize, second: u64) -> u64 {
    second % 7 + host as u64
}

// Guarantee: stream-12.
#[ignore = "needs a Kafka broker at CORSAIR_KAFKA"]
#[tokio::test(flavor = "multi_thread")]
async fn every_record_takes_effect_once_through_kills() {
    let mut sums = Sums::start("kills").await;
    let kills: u64 = std::env::var("STREAM_KILLS").map_or(20, |kills| kills.parse().unwrap());
    for _ in 0..kills {
        sums.produce(BETWEEN).await;
        sums.kill();
    }
    sums.check().await;
}

// Guarantee: stream-12.
#[ignore = "needs a Kafka broker at CORSAIR_KAFKA, and another one when it is killed"]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_while_the_broker_is_down() {
    let mut sums = Sums::start("down").await;
    sums.produce(BETWEEN).await;
    let pid = std::env::var("CORSAIR_KAFKA_PID").expect("CORSAIR_KAFKA_PID is the broker's");
    let killed = Command::new("kill").args(["-9", &pid]).status();
    assert!(killed.unwrap().success());
    // The server starts without a broker.
    sums.kill();
    sums.produce(BETWEEN).await;
    sums.check().await;
}

#[ignore = "needs a Kafka broker at CORSAIR_KAFKA"]
#[tokio::test(flavor = "multi_thread")]
async fn records_of_every_compression_are_read_and_records_without_a_value_are_empty() {
    let (broker, client) = (broker(), client().await);
    let name = format!("codecs-{}", std::process::id());
    let terminal = terminal();
    let server = Server::start(
        &terminal,
        &format!("--kafka-in {broker}/{name} --kafka-db db"),
    );
    let task = serde_json::json!({ "name": "t", "text": "stream | from('m') | http_out('last')" });
    let added = server.post("/tasks", &task.to_string());
    assert!(added.starts_with("HTTP/1.1 201"), "{added}");
    // The server waits for a topic that does not exist yet.
    let partition = topic(&client, &name, 1).await.remove(0);
    for (value, compression) in [
        Compression::NoCompression,
        Compression::Gzip,
        Compression::Lz4,
        Compression::Snappy,
        Compression::Zstd,
    ]
    .into_iter()
    .enumerate()
    {
        produce(&partition, None, compression).await;
        produce(
            &partition,
            Some(format!("m v={value}i {value}")),
            compression,
        )
        .await;
        let (begun, expected) = (Instant::now(), format!("[[{value},{value}]]"));
        loop {
            let last = server.get("/tasks/t/last");
            if last.contains(&expected) {
                break;
            }
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "{compression:?}: {last}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
