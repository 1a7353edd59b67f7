//! Our own services: the real main functions of `corsair-courier` and `corsair-stream`, with their flags.

use corsair_host::{Fault, HostId, HostState, Sim, SimError};
use reqwest::blocking::{Client, RequestBuilder};
use serde_json::{Value, json};
use std::time::Duration;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Returns a client that waits at most a second for an answer.
fn http() -> Client {
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap();
    Client::builder().timeout(ms(1000)).build().unwrap()
}

/// Sends a request repeatedly until it is answered, and returns the answer.
fn insist(what: &str, request: impl Fn() -> RequestBuilder) -> String {
    for _ in 0..100 {
        match request().send() {
            Ok(answer) => {
                let status = answer.status();
                match answer.text() {
                    Ok(text) if status.is_success() => return text,
                    Ok(text) => println!("{what}: {status} {text}"),
                    Err(error) => println!("{what}: {error}"),
                }
            }
            Err(error) => println!("{what}: {error}"),
        }
        std::thread::sleep(ms(150));
    }
    panic!("{what}: no answer");
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

const MESSAGES: usize = 60;

/// Posts messages, repeating each until it is answered, and then reads them all.
fn chat() {
    let url = |path: &str| format!("http://courier:8080{path}");
    let client = http();
    let register = |name: &str| {
        let body = json!({"name": name, "password": "correct horse"}).to_string();
        let answer = insist(name, || {
            let request = client.post(url("/users")).body(body.clone());
            request
                .header("content-type", "application/json")
                .timeout(ms(60_000))
        });
        value(&answer)["token"].as_str().unwrap().to_string()
    };
    let (anne, mary) = (register("anne"), register("mary"));
    let post = |path: &str, key: String, body: Value| {
        let request = client
            .post(url(path))
            .bearer_auth(&anne)
            .body(body.to_string());
        request
            .header("content-type", "application/json")
            .header("idempotency-key", key)
    };
    insist("conversation", || {
        post(
            "/conversations",
            "c".to_string(),
            json!({"recipients": [2]}),
        )
    });
    for number in 0..MESSAGES {
        let body = json!({"text": format!("message {number}")});
        insist(&format!("message {number}"), || {
            post(
                "/conversations/1/messages",
                format!("k{number}"),
                body.clone(),
            )
        });
        std::thread::sleep(ms(100));
    }
    let answer = insist("messages", || {
        client
            .get(url("/conversations/1/messages?limit=1000"))
            .bearer_auth(&mary)
    });
    let page = value(&answer);
    let messages = page["messages"]
        .as_array()
        .unwrap_or_else(|| panic!("{page}"));
    let texts: Vec<&str> = messages
        .iter()
        .filter_map(|message| message["text"].as_str())
        .collect();
    let wanted: Vec<String> = (0..MESSAGES)
        .map(|number| format!("message {number}"))
        .collect();
    assert_eq!(texts, wanted, "each message once, in order");
    println!("all messages are there");
}

/// Interrupts a service from the first second on. The milliseconds for which it runs and is off are the least number and
/// a random number below the second one.
fn interrupt(
    sim: &mut Sim,
    node: &HostId,
    faults: &[fn(&HostId) -> Fault],
    up: (u64, u32),
    down: (u64, u32),
) {
    let mut random = corsair::Random::new(sim.seed());
    let mut time = 1_000;
    for fault in faults {
        time += up.0 + u64::from(random.below(up.1));
        sim.at(ms(time), fault(node));
        time += down.0 + u64::from(random.below(down.1));
        sim.at(ms(time), Fault::start(node));
    }
}

#[corsair_host::test(seeds = 4, deterministic = true)]
fn courier_loses_no_message_that_it_answered(sim: &mut Sim) -> Result<(), SimError> {
    let node = sim.host("courier", || {
        courier_program::main();
    });
    let flags =
        "corsair-courier serve --listen 0.0.0.0:8080 --data /var/courier --password-memory 64";
    sim.args(&node, flags.split(' '));
    let client = sim.host("client", chat);
    let faults = [
        Fault::power_loss,
        Fault::kill,
        Fault::power_loss,
        Fault::power_loss,
    ];
    interrupt(sim, &node, &faults, (1_000, 800), (200, 200));
    sim.run_until(Duration::from_secs(120))?;
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    Ok(())
}

const TASK: &str =
    r#"stream | from('cpu') | window(10s, every 10s) | count(value) | http_out('counts')"#;

/// Adds a task, and writes points before and after a restart of the service.
fn write_points() {
    let url = |path: &str| format!("http://stream:9092{path}");
    let client = http();
    let task = json!({"name": "counts", "text": TASK}).to_string();
    insist("task", || {
        let request = client.post(url("/tasks")).body(task.clone());
        request.header("content-type", "application/json")
    });
    // The service is restarted after a second, and keeps the task.
    std::thread::sleep(ms(2_500));
    let line = |second: u64| format!("cpu,host=a value=1 {second}000000000");
    for second in 0..40 {
        insist("points", || {
            client.post(url("/write?db=metrics")).body(line(second))
        });
    }
    std::thread::sleep(ms(200));
    let counts = insist("counts", || client.get(url("/tasks/counts/counts")));
    println!("{counts}");
    assert!(counts.contains("10"), "{counts}");
}

#[corsair_host::test(seeds = 3, deterministic = true)]
fn stream_keeps_its_tasks_through_a_power_loss(sim: &mut Sim) -> Result<(), SimError> {
    let node = sim.host("stream", || {
        stream_program::main();
    });
    let flags = "corsair-stream serve --addr 0.0.0.0:9092 --data /var/stream";
    sim.args(&node, flags.split(' '));
    let client = sim.host("client", write_points);
    sim.at(ms(1_500), Fault::power_loss(&node));
    sim.at(ms(2_000), Fault::start(&node));
    sim.run_until(Duration::from_secs(60))?;
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    Ok(())
}

const POINTS: u64 = 150;

/// Returns the number of writes in the log of the service.
fn position(client: &Client) -> u64 {
    let metrics = insist("position", || client.get("http://stream:9092/metrics"));
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("corsair_stream_log_position "));
    line.map_or(0, |value| value.parse().unwrap())
}

/// Writes points, each until it is in the log, and checks that each is in the sum once.
fn sum_points() {
    let client = http();
    let text = "stream | from('cpu') | cumulativeSum(value).as('sum') | http_out('sum')";
    let task = json!({"name": "sum", "text": text}).to_string();
    insist("task", || {
        let request = client.post("http://stream:9092/tasks").body(task.clone());
        request.header("content-type", "application/json")
    });
    for point in 1..=POINTS {
        let line = format!("cpu value={point}i {point}000000000");
        loop {
            let request = client.post("http://stream:9092/write?db=metrics");
            let accepted = request.body(line.clone()).send();
            let accepted = accepted.is_ok_and(|answer| answer.status().is_success());
            let position = position(&client);
            assert!(
                position == point || position == point - 1,
                "{position} after {point} points"
            );
            assert!(
                !accepted || position == point,
                "point {point} was answered and is lost"
            );
            if position == point {
                break;
            }
        }
    }
    std::thread::sleep(ms(500));
    let shown = insist("sum", || client.get("http://stream:9092/tasks/sum/sum"));
    let sum = &value(&shown)["series"][0]["values"][0][1];
    assert_eq!(*sum, json!(POINTS * (POINTS + 1) / 2), "{shown}");
}

// Guarantee: stream-9.
#[corsair_host::test(seeds = 20, deterministic = true)]
fn stream_counts_each_point_once_through_power_losses(sim: &mut Sim) -> Result<(), SimError> {
    let node = sim.host("stream", || {
        stream_program::main();
    });
    let flags = "corsair-stream serve --addr 0.0.0.0:9092 --data /var/stream --durability always --checkpoint 0.1";
    sim.args(&node, flags.split(' '));
    let client = sim.host("client", sum_points);
    let faults = [
        Fault::power_loss,
        Fault::kill,
        Fault::power_loss,
        Fault::kill,
        Fault::power_loss,
    ];
    interrupt(sim, &node, &faults, (200, 400), (100, 200));
    for second in 1..=60 {
        sim.run_until(Duration::from_secs(second))?;
        if sim.state(&client) != HostState::Running {
            break;
        }
    }
    assert_eq!(sim.state(&client), HostState::Exited(0), "{}", sim.log());
    Ok(())
}
