//! The published benchmark's work: one `POST /write` through the handler, without a socket, until
//! every task has drained.
//!
//! The lines are those of kapacitor's `integrations/benchmark_test.go`: `m1 value=17 0000000017`, in
//! seconds, and its original recording's: 4848 lines of one measurement `packets`, twelve seconds of
//! it again and again.

use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use corsair_stream::engine::{Engine, EngineOptions, StartError, TaskError, TaskOptions};
use corsair_stream::http::router;
use std::fmt::Write;
use std::time::{Duration, Instant};
use tower::ServiceExt;

/// What is to be done, and what every task must have seen of it.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How many tasks, all with this text.
    pub tasks: usize,
    /// The text of a task.
    pub text: String,
    /// A body per `POST /write`, which are sent one after the other.
    pub bodies: Vec<Bytes>,
    /// How many points each `from` of each task gets.
    pub delivered: u64,
}

/// Why a workload was not measured.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// No engine.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A text that does not parse as a task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A write that was refused.
    #[error("the write was answered with {0}")]
    Refused(StatusCode),
    /// Points that did not arrive.
    #[error("the task `{task}` got {got} points of {wanted} at `{node}`")]
    Lost {
        /// Which task.
        task: String,
        /// Which of its nodes.
        node: String,
        /// How many it got.
        got: u64,
        /// How many it should have got.
        wanted: u64,
    },
}

impl Workload {
    /// As many tasks of this text, and as many lines of a measurement.
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

    /// The original recording's shape.
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

    /// Starts an engine with the tasks, does the work, and gives the time from the first write until
    /// all points have gone their way. Starting and stopping are not part of it. Every task is checked
    /// afterwards.
    ///
    /// # Errors
    /// See [`MeasureError`].
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
        // The run's report says nothing that the tasks have not said.
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
