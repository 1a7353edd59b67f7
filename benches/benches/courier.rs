//! Benchmarks of the messaging service. The first one compares durable POSTs of 64 posters with POSTs to a bare axum
//! handler, which reads the body and stores nothing. The second one measures the latency of one message from its POST
//! to a socket.
//!
//! Server and clients share the process and its cores.

use corsair_courier::{Limits, Node, Options, Serving, serve};
use corsair_courier_load::client::{Http, ServerMessage, Socket};
use corsair_courier_load::{Bare, Posters, Target};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const POSTERS: usize = 64;

/// Starts a node with its data in the directory `data`.
async fn node(data: &Path) -> Serving {
    let node = Node::start(Options {
        data: Some(data.to_owned()),
        limits: Limits {
            rate: NonZeroU32::MAX,
            strangers: NonZeroU32::MAX,
            fanout: NonZeroU32::MAX,
            password_memory: 8,
            ..Limits::default()
        },
        ..Options::default()
    });
    let node = node.await.expect("an empty directory");
    serve(node, "127.0.0.1:0").await.expect("a free port")
}

fn post(c: &mut Criterion) {
    let runtime = Runtime::new().expect("threads");
    let data = tempfile::tempdir().expect("a directory");
    let serving = runtime.block_on(node(data.path()));
    let host = serving.address().to_string();
    let bare = runtime.block_on(Bare::start()).expect("a free port");
    let posters = runtime.block_on(Posters::connect(&host, &bare.host(), POSTERS));
    let mut posters = posters.expect("users");
    let mut group = c.benchmark_group("courier/post");
    group.throughput(Throughput::Elements(POSTERS as u64));
    for (name, target) in [("durable", Target::Durable), ("bare", Target::Bare)] {
        group.bench_function(BenchmarkId::new(name, POSTERS), |b| {
            b.iter_custom(|each| {
                let time = runtime.block_on(posters.time(target, each));
                time.expect("every POST is answered with success")
            });
        });
    }
    group.finish();
    runtime.block_on(serving.stop());
}

fn post_to_socket(c: &mut Criterion) {
    let runtime = Runtime::new().expect("threads");
    let data = tempfile::tempdir().expect("a directory");
    let serving = runtime.block_on(node(data.path()));
    let host = serving.address().to_string();
    let (mut http, token, room, mut socket) = runtime.block_on(async {
        let mut http = Http::connect(&host).await.expect("a node");
        let from = http
            .create_user("anne", "correct horse")
            .await
            .expect("anne");
        let to = http
            .create_user("mary", "correct horse")
            .await
            .expect("mary");
        let room = http
            .converse(&from.token, &[to.user])
            .await
            .expect("a room");
        let socket = Socket::open(&host, &to.token, "?presence=false")
            .await
            .expect("a socket");
        (http, from.token, room, socket)
    });
    c.bench_function("courier/post to socket", |b| {
        b.iter_custom(|times| {
            runtime.block_on(async {
                let mut total = Duration::ZERO;
                for _ in 0..times {
                    let begun = Instant::now();
                    let (stored, said) =
                        tokio::join!(http.post(&token, room, "ahoy", None), socket.next());
                    total += begun.elapsed();
                    let number = stored.expect("stored").number;
                    let said = said.expect("an open socket").expect("a message");
                    assert!(
                        matches!(said, ServerMessage::Message { message, .. } if message.number == number)
                    );
                }
                total
            })
        });
    });
    runtime.block_on(serving.stop());
}

criterion_group! {
    name = benches;
    config = corsair_benches::for_about!(20, Duration::from_secs(4));
    targets = post, post_to_socket
}
criterion_main!(benches);
