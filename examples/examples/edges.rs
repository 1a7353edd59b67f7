//! Edges: a small graph of tasks that measure, distribute, add up and print. One handle stops the whole graph.
//!
//! ```text
//!   two sensors ──> merge ──> fan-out ──> mean   (waits: nothing is lost)
//!                                    └──> screen (slow: keeps the last few)
//! ```

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use corsair::edge::{self, AbortHandle, FanOut, Merge, Options, Overflow, Receiver, Sender};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
struct Point {
    sensor: &'static str,
    value: f64,
}

type Shared = Arc<Point>;

/// Measures until its edge is aborted.
async fn sensor(name: &'static str, mut out: Sender<Shared>) -> u64 {
    for tick in 0_u32.. {
        let value = f64::from(tick).sin();
        let point = Arc::new(Point {
            sensor: name,
            value,
        });
        if out.send(point).await.is_err() {
            return u64::from(tick);
        }
        tokio::task::yield_now().await;
    }
    unreachable!("the graph is aborted")
}

/// Sends every point to all receivers. If it cannot, it drops its ends, which aborts the tasks upstream.
async fn spread(mut from: Merge<Shared>, mut to: FanOut<Shared>) {
    while let Some(point) = from.recv().await {
        if to.send(point).await.is_err() {
            break;
        }
    }
}

async fn mean(mut points: Receiver<Shared>) -> (u64, f64) {
    let (mut count, mut sum) = (0, 0.0);
    while let Some(point) = points.recv().await {
        count += 1;
        sum += point.value;
    }
    (count, sum)
}

async fn screen(mut points: Receiver<Shared>) {
    while let Some(point) = points.recv().await {
        println!("{:>8}  {:+.3}", point.sensor, point.value);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::main]
async fn main() -> Result<(), tokio::task::JoinError> {
    let graph = AbortHandle::new();
    let options = || Options::new(64).abort_handle(graph.clone());

    let mut measured = Merge::new();
    let sensors = ["engine", "mast"].map(|name| {
        let (tx, rx) = edge::ring(options());
        measured.add(rx);
        tokio::spawn(sensor(name, tx))
    });
    let mut wanted = FanOut::new();
    let (tx, rx) = edge::ring(options());
    let counted = tx.meter();
    wanted.add(tx);
    let mean = tokio::spawn(mean(rx));
    let (tx, rx) = edge::ring(options().overflow(Overflow::DropOldest));
    let shown = tx.meter();
    wanted.add(tx);
    let screen = tokio::spawn(screen(rx));
    let spread = tokio::spawn(spread(measured, wanted));

    tokio::time::sleep(Duration::from_millis(50)).await;
    graph.abort();
    let (count, sum) = mean.await?;
    spread.await?;
    screen.await?;
    for sensor in sensors {
        assert!(sensor.await? > 0);
    }
    println!("{count} points, mean {:+.4}", sum / count as f64);
    println!("to the mean:   {:?}", counted.read());
    println!("to the screen: {:?}", shown.read());
    assert_eq!(counted.read().received, count);
    Ok(())
}
