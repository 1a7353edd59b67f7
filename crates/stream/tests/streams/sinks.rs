//! Tests of receivers that hang, refuse or are slow, next to unrelated tasks.

use crate::http::Service;
use axum::http::{Method, StatusCode};
use corsair::edge::Overflow;
use corsair_stream::engine::TaskOptions;
use std::io::{self, Write};
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A socket that takes connections and never answers.
pub struct Hung(
    #[expect(dead_code, reason = "it listens")] TcpListener,
    pub String,
);

impl Hung {
    pub fn new() -> Hung {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        Hung(listener, url)
    }
}

/// A log that blocks until the test releases it.
#[derive(Clone, Default)]
pub struct Stuck(Arc<(Mutex<(bool, String)>, Condvar)>);

impl Stuck {
    pub fn release(&self) {
        self.0.0.lock().unwrap().0 = true;
        self.0.1.notify_all();
    }

    pub fn text(&self) -> String {
        self.0.0.lock().unwrap().1.clone()
    }
}

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let state = self.0.0.lock().unwrap();
        let mut state = self.0.1.wait_while(state, |(open, _)| !*open).unwrap();
        state.1.push_str(std::str::from_utf8(bytes).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The counter of a node.
pub fn counter(service: &Service, task: &str, node: &str, counter: &str) -> u64 {
    let status = service.engine.status(task).unwrap();
    let node = status.nodes.iter().find(|n| n.name == node).unwrap();
    let found = node.counters.iter().find(|(name, _)| *name == counter);
    found
        .unwrap_or_else(|| panic!("no {counter} of {node:?}"))
        .1
}

// Guarantee: stream-1.
#[tokio::test(flavor = "multi_thread")]
async fn a_hung_receiver_refuses_its_own_measurement_only_and_no_healthy_sink_waits() {
    let hung = Hung::new();
    let service = Service::with(|options| {
        options.sink_memory = 1000;
        options.log_overflow = Overflow::Block;
        options.patience = Duration::from_millis(20);
        options.writes = NonZeroUsize::new(4).unwrap();
    });
    for task in 0..5 {
        let text = format!("stream | from('hung') | http_post('{}')", hung.1);
        let options = TaskOptions {
            capacity: NonZeroUsize::MIN,
            overflow: Overflow::Block,
        };
        service
            .engine
            .add(&format!("hung{task}"), &text, options)
            .await
            .unwrap();
    }
    service
        .task("healthy", "stream | from('well') | log()")
        .await;
    // Writes until no more points can wait for the receiver.
    let mut refused = 0;
    for second in 0..400 {
        let lines = format!("hung v=1 {second}\n");
        let (status, refusal) = service
            .request(Method::POST, "/write?db=db&precision=s", &lines)
            .await;
        if status == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(refusal["code"], "full");
            refused += 1;
        }
        if refused == 3 {
            break;
        }
    }
    assert_eq!(refused, 3, "its own measurement is refused");
    for second in 0..100 {
        service.write(&format!("well v=1 {second}\n")).await;
    }
    let logged = async {
        while service.log.lines().len() < 100 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), logged)
        .await
        .expect("a healthy sink delivers");
    for task in 0..5 {
        service.engine.delete(&format!("hung{task}")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_stops_no_task() {
    let stuck = Stuck::default();
    let log = stuck.clone();
    let service = Service::with(|options| {
        options.log = Arc::new(Mutex::new(log));
        options.sink_memory = 100;
    });
    service
        .task("logs", "stream | from('m') | log() | http_out('seen')")
        .await;
    service
        .task("other", "stream | from('m') | http_out('seen')")
        .await;
    for second in 0..200 {
        service.write(&format!("m v={second} {second}\n")).await;
    }
    let seen = async {
        for task in ["logs", "other"] {
            while !service
                .get(&format!("/tasks/{task}/seen"))
                .await
                .1
                .to_string()
                .contains("199.0")
            {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), seen)
        .await
        .expect("both sinks continue");
    let lost = counter(&service, "logs", "log1", "lost");
    assert!(lost > 100, "{lost}");
    stuck.release();
    service.engine.drain().await;
    let logged = stuck.text().lines().count() as u64;
    assert_eq!(logged + counter(&service, "logs", "log1", "lost"), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_whose_task_may_drop_drops_and_counts() {
    let hung = Hung::new();
    let service = Service::with(|options| options.sink_memory = 1000);
    for overflow in [Overflow::DropNewest, Overflow::DropOldest] {
        let name = overflow.to_string();
        let text = format!(
            "stream | from('m') | http_post('{}') | http_out('seen')",
            hung.1
        );
        let capacity = NonZeroUsize::new(1000).unwrap();
        let options = TaskOptions { capacity, overflow };
        service.engine.add(&name, &text, options).await.unwrap();
        for second in 0..100 {
            service.write(&format!("m v={second} {second}\n")).await;
        }
        let path = format!("/tasks/{name}/seen");
        while !service.get(&path).await.1.to_string().contains("99.0") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(
            counter(&service, &name, "http_post1", "dropped") > 50,
            "{name}"
        );
        service.engine.delete(&name).await.unwrap();
    }
}
