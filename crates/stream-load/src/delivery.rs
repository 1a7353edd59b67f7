//! The work of the published benchmark: one `POST /write` through the handler, without a socket, until every task has
//! processed all points.
//!
//! There are two kinds of lines. The first are the lines of kapacitor's `integrations/benchmark_test.go` (`m1 value=17
//! 0000000017`, in seconds). The second have the shape of kapacitor's original recording: 4848 lines of one measurement
//! `packets`, in which twelve seconds repeat.

use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use corsair_stream::engine::{Engine, EngineOptions, StartError, TaskError, TaskOptions};
use corsair_stream::http::router;
use std::fmt::Write;
use std::time::{Duration, Instant};
use tower::ServiceExt;

/// The work to be done, and the number of points that every task must have received.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The number of tasks, all with this text.
    pub tasks: usize,
    /// The text of a task.
    pub text: String,
    /// The bodies of the writes, which are sent one after the other.
    pub bodies: Vec<Bytes>,
    /// The number of points that each `from` node of each task must receive.
    pub delivered: u64,
}

/// An error of a measurement.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The engine could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The text is not a valid task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A write was refused.
    #[error("the write was answered with {0}")]
    Refused(StatusCode),
    /// A node did not receive all points.
    #[error("the task `{task}` got {got} points of {wanted} at `{node}`")]
    Lost {
        /// The task that lacks points.
        task: String,
        /// The node of the task that lacks points.
        node: String,
        /// The number of points that the node received.
        got: u64,
        /// The number of points that the node should have received.
        wanted: u64,
    },
}

impl Workload {
    /// Creates a workload of `tasks` tasks with this text, and of `lines` lines of a measurement.
    pub fn new(tasks: usize, text: &str, measurement: &str, lines: usize) -> Workload {
        let mut body = String::new();
        for i in 0..lines {
            let _ = writeln!(body, "{measurement} value={i} {i:010}");
        }
        let matches = text.contains(&format!("'{measurement}'"));
        Workload {
            tasks,
            text: text.into(),
            bodies: vec![body.into()],
            delivered: if matches { lines as u64 } else { 0 },
        }
    }

    /// Creates a workload like the original recording.
    pub fn packets(tasks: usize, text: &str) -> Workload {
        const LINES: usize = 4848;
        const VALUES: [u32; 12] = [
            1000, 1001, 1002, 1003, 1004, 1006, 1007, 1007, 1008, 1009, 1010, 1011,
        ];
        let mut body = String::new();
        for (value, second) in VALUES.iter().zip(1..).cycle().take(LINES) {
            let _ = writeln!(body, "packets value={value} {second:010}");
        }
        let matches = text.contains("'packets'");
        Workload {
            tasks,
            text: text.into(),
            bodies: vec![body.into()],
            delivered: if matches { LINES as u64 } else { 0 },
        }
    }

    /// Starts an engine with the tasks, does the work, and returns the time from the first write until all points have
    /// been processed. Starting and stopping are not included. Every task is checked afterwards.
    ///
    /// # Errors
    /// Returns a [`MeasureError`] if a task did not receive all points, or if the engine fails.
    pub async fn run(&self, options: EngineOptions) -> Result<Duration, MeasureError> {
        let engine = Engine::start(options)?;
        for task in 0..self.tasks {
            let name = format!("task{task}");
            engine
                .add(&name, &self.text, TaskOptions::default())
                .await?;
        }
        let router = router(engine.clone());
        let requests: Vec<Request<Body>> = self.bodies.iter().map(request).collect();
        let begun = Instant::now();
        for request in requests {
            let answer = router.clone().oneshot(request).await;
            let status = answer.map_or(StatusCode::INTERNAL_SERVER_ERROR, |answer| answer.status());
            if status != StatusCode::NO_CONTENT {
                return Err(MeasureError::Refused(status));
            }
        }
        engine.settle().await;
        let time = begun.elapsed();
        self.check(&engine)?;
        // The run's report is ignored, because the tasks have already been checked.
        drop(engine.close().await);
        Ok(time)
    }

    fn check(&self, engine: &Engine) -> Result<(), MeasureError> {
        for task in engine.statuses() {
            for edge in task.edges.iter().filter(|edge| edge.from == "stream") {
                if edge.statistics.received != self.delivered {
                    return Err(MeasureError::Lost {
                        task: task.name,
                        node: edge.to.clone(),
                        got: edge.statistics.received,
                        wanted: self.delivered,
                    });
                }
            }
        }
        Ok(())
    }
}

fn request(body: &Bytes) -> Request<Body> {
    Request::post("/write?db=dbname&rp=rpname&precision=s")
        .body(Body::from(body.clone()))
        .expect("a path that is written out is one")
}
