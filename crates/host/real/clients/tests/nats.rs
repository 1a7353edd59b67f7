//! The client of NATS with a small server: subscriptions, requests, and reconnection after a power loss.

use corsair_host::{Fault, HostState, Sim, SimError};
use futures::StreamExt;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The subscriptions of all connections: connection, number of the subscription, subject, output.
type Subscriptions = Arc<Mutex<HashMap<(usize, String), (String, UnboundedSender<Vec<u8>>)>>>;

/// True if a subject is within a pattern that may end with `>`.
fn matches(pattern: &str, subject: &str) -> bool {
    let mut parts = subject.split('.');
    for part in pattern.split('.') {
        match (part, parts.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (part, Some(other)) if part == other => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

/// Serves the part of the protocol that the client uses: CONNECT, PING, SUB, UNSUB, PUB and HPUB.
async fn connection(stream: TcpStream, number: usize, all: Subscriptions) -> io::Result<()> {
    let (input, mut output) = stream.into_split();
    let (send, mut lines) = unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        while let Some(line) = lines.recv().await {
            output.write_all(&line).await?;
        }
        io::Result::Ok(())
    });
    let info = r#"{"server_id":"S","server_name":"s","version":"2.10.0","go":"","host":"0.0.0.0","port":4222,"headers":true,"max_payload":1048576,"proto":1,"client_id":1}"#;
    let _ = send.send(format!("INFO {info}\r\n").into_bytes());
    let mut input = BufReader::new(input);
    let mut line = String::new();
    while input.read_line(&mut line).await? > 0 {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["PING"] => drop(send.send(b"PONG\r\n".to_vec())),
            ["SUB", subject, .., id] => {
                let entry = (subject.to_owned(), send.clone());
                all.lock().unwrap().insert((number, id.to_owned()), entry);
            }
            ["UNSUB", id, ..] => drop(all.lock().unwrap().remove(&(number, id.to_owned()))),
            [verb @ ("PUB" | "HPUB"), subject, ref rest @ .., size] => {
                let mut data = vec![0; size.parse::<usize>().map_err(io::Error::other)? + 2];
                input.read_exact(&mut data).await?;
                // An answer address stands before the sizes.
                let sizes = if verb == "HPUB" { 1 } else { 0 };
                let reply = if rest.len() > sizes { rest[0] } else { "" };
                let head = if verb == "HPUB" {
                    format!("{} ", rest[rest.len() - 1])
                } else {
                    String::new()
                };
                let name = if verb == "HPUB" { "HMSG" } else { "MSG" };
                for ((_, id), (pattern, to)) in all.lock().unwrap().iter() {
                    if matches(pattern, subject) {
                        let mut message =
                            format!("{name} {subject} {id} {reply} {head}{size}\r\n").into_bytes();
                        message.extend_from_slice(&data);
                        let _ = to.send(message);
                    }
                }
            }
            _ => {}
        }
        line.clear();
    }
    all.lock().unwrap().retain(|key, _| key.0 != number);
    Ok(())
}

#[tokio::main]
async fn server() {
    let listener = TcpListener::bind("0.0.0.0:4222").await.unwrap();
    let all = Subscriptions::default();
    for number in 0.. {
        let stream = listener.accept().await.unwrap().0;
        tokio::spawn(connection(stream, number, Arc::clone(&all)));
    }
}

async fn connect() -> async_nats::Client {
    let options = async_nats::ConnectOptions::new()
        .ping_interval(Duration::from_secs(1))
        .retry_on_initial_connect();
    options.connect("nats://server:4222").await.unwrap()
}

/// Answers requests with their double.
#[tokio::main]
async fn doubler() {
    let client = connect().await;
    let mut requests = client.subscribe("double").await.unwrap();
    while let Some(request) = requests.next().await {
        let number: u64 = std::str::from_utf8(&request.payload)
            .unwrap()
            .parse()
            .unwrap();
        if let Some(reply) = request.reply {
            client
                .publish(reply, (2 * number).to_string().into())
                .await
                .unwrap();
        }
    }
}

#[tokio::main]
async fn asker() {
    let client = connect().await;
    let mut answered = vec![];
    for number in 0..80u64 {
        let request = client.request("double", number.to_string().into());
        if let Ok(Ok(answer)) = tokio::time::timeout(Duration::from_millis(300), request).await {
            assert_eq!(answer.payload, (2 * number).to_string());
            answered.push(number);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("answered {}, last {:?}", answered.len(), answered.last());
    assert!(answered.len() > 30 && answered.last() == Some(&79));
}

#[corsair_host::test(seeds = 10, deterministic = true)]
fn nats_connects_again_after_a_power_loss(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(20);
    let server = sim.host("server", server);
    sim.host("doubler", doubler);
    let asker = sim.host("asker", asker);
    sim.at(Duration::from_secs(3), Fault::power_loss(&server));
    sim.at(Duration::from_secs(4), Fault::start(&server));
    sim.run_until(Duration::from_secs(60))?;
    assert_eq!(sim.state(&asker), HostState::Exited(0), "{}", sim.log());
    Ok(())
}
