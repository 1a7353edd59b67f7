//! The client of redis-rs with mini-redis, a server in Rust: sets and gets, published messages, and a killed server.

use corsair_host::{Fault, HostState, Sim, SimError};
use redis::AsyncCommands;
use std::time::Duration;
use tokio::net::TcpListener;

#[tokio::main]
async fn server() {
    let listener = TcpListener::bind("0.0.0.0:6379").await.unwrap();
    mini_redis::server::run(listener, std::future::pending::<()>())
        .await
        .unwrap();
}

/// Writes and reads keys, and connects again when the server is gone.
#[tokio::main]
async fn client() {
    let client = redis::Client::open("redis://server/?protocol=resp2").unwrap();
    let mut connection = None;
    let mut lost = 0;
    for key in 0..60 {
        let work = async {
            let mut open = match connection.take() {
                Some(open) => open,
                None => client.get_multiplexed_async_connection().await?,
            };
            let _: () = open.set(key, key * 3).await?;
            let value: i64 = open.get(key).await?;
            assert_eq!(value, key * 3);
            redis::RedisResult::Ok(open)
        };
        match tokio::time::timeout(Duration::from_millis(500), work).await {
            Ok(Ok(open)) => connection = Some(open),
            Ok(Err(error)) => {
                lost += 1;
                println!("{key}: {}", error.kind() == redis::ErrorKind::Io);
            }
            Err(_) => lost += 1,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("{lost} of 60 lost");
    assert!(lost > 0 && lost < 30);
}

#[corsair_host::test(seeds = 10, deterministic = true)]
fn redis_connects_again_after_a_kill(sim: &mut Sim) -> Result<(), SimError> {
    sim.preemption(20);
    let server = sim.host("server", server);
    let clients = sim.hosts("client", 2, |_| client());
    sim.at(Duration::from_millis(1_000), Fault::kill(&server));
    sim.at(Duration::from_millis(1_500), Fault::start(&server));
    sim.run_until(Duration::from_secs(60))?;
    for client in &clients {
        assert_eq!(sim.state(client), HostState::Exited(0), "{}", sim.log());
    }
    Ok(())
}
