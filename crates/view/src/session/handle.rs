//! How a session is spoken to: a bounded channel for questions, the newest of frames, statuses and scenes.

use super::{Asked, Status};
use crate::frame::Frame;
use crate::world::Scene;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::{oneshot, watch};

pub(super) struct Question {
    pub(super) asked: Asked,
    pub(super) answer: oneshot::Sender<Result<Value, String>>,
}

/// How a session speaks and is spoken to. A clone is another watcher's.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) asked: SyncSender<Question>,
    pub(super) frames: watch::Receiver<Frame>,
    pub(super) statuses: watch::Receiver<Status>,
    pub(super) scenes: watch::Receiver<Arc<Scene>>,
    pub(super) watchers: Arc<AtomicU32>,
}

/// Counts a watcher as long as it is there.
#[derive(Debug)]
pub struct Watching(Arc<AtomicU32>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handle {
    /// What does not change while a world runs.
    pub fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.scenes.borrow())
    }

    /// The newest scene, and those to come: a world that is made anew with more room has another one.
    pub fn scenes(&mut self) -> &mut watch::Receiver<Arc<Scene>> {
        &mut self.scenes
    }

    /// Counts as a watcher until the result is dropped.
    pub fn watch(&self) -> Watching {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        Watching(Arc::clone(&self.watchers))
    }

    /// The newest frame, and those to come.
    pub fn frames(&mut self) -> &mut watch::Receiver<Frame> {
        &mut self.frames
    }

    /// The newest status, and those to come.
    pub fn statuses(&mut self) -> &mut watch::Receiver<Status> {
        &mut self.statuses
    }

    /// Asks for something.
    ///
    /// # Errors
    /// If it cannot be done, a sentence that says why.
    pub async fn ask(&self, asked: Asked) -> Result<Value, String> {
        let (answer, answered) = oneshot::channel();
        self.send(Question { asked, answer })?;
        answered.await.unwrap_or_else(|_| Err(OVER.to_owned()))
    }

    /// The same, on a thread that may wait.
    ///
    /// # Errors
    /// If it cannot be done, a sentence that says why.
    pub fn ask_blocking(&self, asked: Asked) -> Result<Value, String> {
        let (answer, answered) = oneshot::channel();
        self.send(Question { asked, answer })?;
        answered
            .blocking_recv()
            .unwrap_or_else(|_| Err(OVER.to_owned()))
    }

    fn send(&self, question: Question) -> Result<(), String> {
        self.asked.try_send(question).map_err(|error| match error {
            TrySendError::Full(_) => {
                "the simulation is busy and too many questions wait; ask again".to_owned()
            }
            TrySendError::Disconnected(_) => OVER.to_owned(),
        })
    }
}

const OVER: &str = "the session is over";
