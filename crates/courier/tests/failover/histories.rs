//! Histories of conversations are linearizable while leaders fail.

use crate::nodes::{Nodes, PATIENCE, nodes};
use corsair_check::{Limits, Operation, Verdict, check};
use corsair_courier_load::histories::{
    Client, Conversations, Environment, History, Messages, Request,
};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The number of conversations, and of clients in each.
const ROOMS: u64 = 4;
const CLIENTS: u64 = 3;

/// The real time and the real network. The value is the beginning of time.
#[derive(Clone)]
struct Real(Instant);

impl Environment for Real {
    type Stream = TcpStream;

    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    async fn sleep(&self, duration: Duration) {
        sleep(duration).await;
    }

    async fn timeout<T: Send>(
        &self,
        duration: Duration,
        future: impl Future<Output = T> + Send,
    ) -> Option<T> {
        timeout(duration, future).await.ok()
    }

    async fn connect(&self, host: &str) -> io::Result<TcpStream> {
        TcpStream::connect(host).await
    }
}

/// Clients in several conversations.
struct Clients {
    over: Arc<AtomicBool>,
    /// The number of answered posts.
    posts: Arc<AtomicUsize>,
    running: Vec<JoinHandle<History>>,
}

impl Clients {
    async fn start(nodes: &Nodes) -> Clients {
        let (over, real) = (Arc::new(AtomicBool::new(false)), Real(Instant::now()));
        let posts = Arc::new(AtomicUsize::new(0));
        let mut running = Vec::new();
        for number in 0..ROOMS {
            for client in Client::group(&real, &nodes.hosts(), number, CLIENTS).await {
                let (over, posts) = (over.clone(), posts.clone());
                running.push(tokio::spawn(async move {
                    let mut history = History::new();
                    let is_over = || over.load(Relaxed);
                    let done = |operation: Operation<Request, Messages>| {
                        let is_answered = operation.completion.is_some();
                        let is_post = operation.input.post.is_some();
                        posts.fetch_add(usize::from(is_post && is_answered), Relaxed);
                        history.push(operation);
                    };
                    client.run(is_over, done).await;
                    history
                }));
            }
        }
        Clients {
            over,
            posts,
            running,
        }
    }

    /// Ends the clients after this number of answered posts, for which a busy machine needs more time.
    async fn finish(self, least: usize) -> History {
        let begun = Instant::now();
        while self.posts.load(Relaxed) < least && begun.elapsed() < PATIENCE {
            sleep(Duration::from_millis(50)).await;
        }
        self.over.store(true, Relaxed);
        let mut history = History::new();
        for client in self.running {
            history.extend(client.await.unwrap());
        }
        history
    }
}

/// Checks a history with at least this number of answered posts and reads.
fn verify(history: &History, least: usize) {
    let answered = history
        .iter()
        .filter(|operation| operation.completion.is_some());
    let (posts, reads): (Vec<_>, Vec<_>) =
        answered.partition(|operation| operation.input.post.is_some());
    assert!(
        posts.len() >= least && reads.len() >= least / 4,
        "{} {}",
        posts.len(),
        reads.len()
    );
    let report = check(&Conversations, history, &Limits::default());
    assert_eq!(report.verdict, Verdict::Linearizable);
}

#[test]
fn a_lost_a_doubled_and_a_stale_message_are_found() {
    let post = |process, text, call, count| {
        let input = Request {
            room: 1,
            post: Some(text),
        };
        Operation::completed(process, input, call, call + 1, Messages { count, hash: 0 })
    };
    let read = |call, texts: &[u64]| {
        let messages = texts
            .iter()
            .fold(Messages::default(), |all, &text| all.with(text));
        Operation::completed(
            9,
            Request {
                room: 1,
                post: None,
            },
            call,
            call + 1,
            messages,
        )
    };
    let both = [post(1, 5, 0, 1), post(2, 6, 10, 2)];
    for (texts, is_right) in [
        (&[5, 6][..], true),
        (&[5], false),
        (&[5, 6, 6], false),
        (&[6, 5], false),
    ] {
        let history = [both[0].clone(), both[1].clone(), read(20, texts)];
        let verdict = check(&Conversations, &history, &Limits::default()).verdict;
        assert_eq!(verdict == Verdict::Linearizable, is_right, "{texts:?}");
    }
}

// Guarantee: courier-28.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversations_are_linearizable_while_leaders_fail() {
    let mut nodes = nodes(3).await;
    let clients = Clients::start(&nodes).await;
    for turn in 0..2 {
        sleep(Duration::from_secs(1)).await;
        let leader = nodes.leader(turn).await;
        if turn == 0 {
            nodes.all[leader].kill();
            sleep(Duration::from_secs(2)).await;
            nodes.all[leader].restart().await;
        } else {
            nodes.all[leader].signal("-STOP");
            sleep(Duration::from_secs(3)).await;
            nodes.all[leader].signal("-CONT");
        }
    }
    sleep(Duration::from_secs(1)).await;
    verify(&clients.finish(200).await, 200);
}

// Guarantee: courier-28.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes a minute: ci/courier.sh"]
async fn conversations_are_linearizable_while_leaders_fail_again_and_again() {
    let mut nodes = nodes(5).await;
    let clients = Clients::start(&nodes).await;
    let mut asked = 0;
    for turn in 0..10 {
        sleep(Duration::from_millis(1500)).await;
        let leader = nodes.leader(asked).await;
        asked = (leader + 1) % 5;
        if turn % 2 == 0 {
            // Another node is down at the same time.
            let other = (leader + 2) % 5;
            nodes.all[leader].kill();
            nodes.all[other].kill();
            sleep(Duration::from_secs(2)).await;
            nodes.all[leader].restart().await;
            nodes.all[other].restart().await;
        } else {
            nodes.all[leader].signal("-STOP");
            sleep(Duration::from_secs(3)).await;
            nodes.all[leader].signal("-CONT");
        }
    }
    sleep(Duration::from_secs(2)).await;
    verify(&clients.finish(1000).await, 1000);
}
