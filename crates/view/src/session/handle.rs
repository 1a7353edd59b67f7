//! The handle to a session: a bounded channel of requests, and the newest frame, status and scene.

use super::{SessionRequest, Status};
use crate::frame::Frame;
use crate::world::Scene;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use tokio::sync::{oneshot, watch};

pub(super) struct PendingRequest {
    pub(super) asked: SessionRequest,
    pub(super) answer: oneshot::Sender<Result<Value, String>>,
}

/// Sends requests to a session and receives its frames. Each viewer has its own clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) asked: SyncSender<PendingRequest>,
    pub(super) frames: watch::Receiver<Frame>,
    pub(super) statuses: watch::Receiver<Status>,
    pub(super) scenes: watch::Receiver<Arc<Scene>>,
    pub(super) watchers: Arc<AtomicU32>,
}

/// A guard that counts a viewer until the guard is dropped.
#[derive(Debug)]
pub struct Watching(Arc<AtomicU32>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Handle {
    /// Returns the scene: the constant part of the world.
    pub fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.scenes.borrow())
    }

    /// Returns the receiver of scenes. A world that is rebuilt with more capacity sends a new
    /// scene.
    pub fn scenes(&mut self) -> &mut watch::Receiver<Arc<Scene>> {
        &mut self.scenes
    }

    /// Counts the caller as a viewer until the result is dropped.
    pub fn watch(&self) -> Watching {
        self.watchers.fetch_add(1, Ordering::Relaxed);
        Watching(Arc::clone(&self.watchers))
    }

    /// Returns the receiver of frames, which always has the newest frame.
    pub fn frames(&mut self) -> &mut watch::Receiver<Frame> {
        &mut self.frames
    }

    /// Returns the receiver of statuses, which always has the newest status.
    pub fn statuses(&mut self) -> &mut watch::Receiver<Status> {
        &mut self.statuses
    }

    /// Sends a request and waits for its reply.
    ///
    /// # Errors
    /// Returns a sentence that says why the request failed.
    pub async fn ask(&self, asked: SessionRequest) -> Result<Value, String> {
        let (answer, answered) = oneshot::channel();
        self.send(PendingRequest { asked, answer })?;
        answered.await.unwrap_or_else(|_| Err(OVER.to_owned()))
    }

    /// Sends a request and blocks the thread until the reply arrives.
    ///
    /// # Errors
    /// Returns a sentence that says why the request failed.
    pub fn ask_blocking(&self, asked: SessionRequest) -> Result<Value, String> {
        let (answer, answered) = oneshot::channel();
        self.send(PendingRequest { asked, answer })?;
        answered
            .blocking_recv()
            .unwrap_or_else(|_| Err(OVER.to_owned()))
    }

    fn send(&self, request: PendingRequest) -> Result<(), String> {
        self.asked.try_send(request).map_err(|error| match error {
            TrySendError::Full(_) => {
                "the simulation is busy and too many requests are waiting; try again".to_owned()
            }
            TrySendError::Disconnected(_) => OVER.to_owned(),
        })
    }
}

const OVER: &str = "the session has ended";
