//! The WebSocket connection of a viewer.
//!
//! The page sends texts: `{"drawn": true}` when it has drawn a frame, `{"level": "folded"}`,
//! `{"take": true}` to get the controls, and requests such as `{"id": 7, "ask": …}`. The server
//! sends frames as bytes, and texts with a `type`: `scene`, `status`, `controls`, `answer`.

use super::Seat;
use crate::frame::Level;
use crate::session::SessionRequest;
use crate::world::Scene;
use axum::extract::ws::{Message, WebSocket};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The time without reads after which a page is disconnected.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message of a page.
#[derive(Debug, Deserialize)]
struct PageMessage {
    #[serde(default)]
    drawn: bool,
    #[serde(default)]
    take: bool,
    level: Option<String>,
    #[serde(default)]
    id: u64,
    ask: Option<Value>,
}

/// The state of a viewer's connection.
struct Watcher {
    socket: WebSocket,
    seat: Seat,
    level: Level,
    /// The version of the page's frame, and whether the page is still drawing that frame.
    known: u64,
    epoch: u32,
    is_drawing: bool,
}

/// Serves a viewer until the viewer leaves or is too slow, or the session is over.
pub(super) async fn watch(socket: WebSocket, seat: Seat) {
    let mut handle = seat.shared.handle.clone();
    let _watching = handle.watch();
    let mut holder = seat.shared.holder.subscribe();
    let mut statuses = handle.statuses().clone();
    statuses.mark_changed();
    let mut scenes = handle.scenes().clone();
    let frames = handle.frames();
    frames.mark_changed();
    holder.mark_changed();
    let mut watcher = Watcher {
        socket,
        seat,
        level: Level::Each,
        known: 0,
        epoch: 0,
        is_drawing: false,
    };
    let scene = Arc::clone(&scenes.borrow_and_update());
    let mut goes_on = watcher.scene(&scene).await;
    while goes_on {
        goes_on = tokio::select! {
            said = watcher.socket.recv() => match said {
                Some(Ok(Message::Text(text))) => watcher.hear(text.as_str()).await,
                Some(Ok(Message::Close(_)) | Err(_)) | None => false,
                Some(Ok(_)) => true,
            },
            changed = scenes.changed() => {
                let scene = Arc::clone(&scenes.borrow_and_update());
                watcher.known = 0;
                changed.is_ok() && watcher.scene(&scene).await
            }
            changed = statuses.changed() => {
                let status = json!({ "type": "status", "status": &*statuses.borrow_and_update() });
                changed.is_ok() && watcher.text(&status).await
            }
            _ = holder.changed() => {
                let is_free = holder.borrow_and_update().is_none();
                if is_free {
                    watcher.seat.take_controls(false);
                }
                watcher.tell_controls().await
            }
            changed = frames.changed(), if !watcher.is_drawing => {
                let frame = frames.borrow_and_update().clone();
                if frame.epoch != watcher.epoch {
                    (watcher.epoch, watcher.known) = (frame.epoch, 0);
                }
                let bytes = frame.encode(watcher.known, watcher.level);
                (watcher.known, watcher.is_drawing) = (frame.version, true);
                changed.is_ok() && watcher.send(Message::Binary(bytes.into())).await
            }
        };
        if watcher.known == 0 && !watcher.is_drawing {
            frames.mark_changed();
        }
    }
}

impl Watcher {
    async fn send(&mut self, message: Message) -> bool {
        let sent = tokio::time::timeout(PATIENCE, self.socket.send(message)).await;
        matches!(sent, Ok(Ok(())))
    }

    async fn text(&mut self, value: &Value) -> bool {
        self.send(Message::Text(value.to_string().into())).await
    }

    async fn scene(&mut self, scene: &Scene) -> bool {
        self.text(&json!({ "type": "scene", "scene": scene })).await
    }

    async fn tell_controls(&mut self) -> bool {
        let watchers = self.seat.shared.watchers.load(Ordering::Relaxed);
        let has = self.seat.has_controls();
        self.text(&json!({ "type": "controls", "has": has, "watchers": watchers }))
            .await
    }

    /// Handles a message from the page. Returns false if the connection is closed.
    async fn hear(&mut self, text: &str) -> bool {
        let said: PageMessage = match serde_json::from_str(text) {
            Ok(said) => said,
            Err(error) => {
                let wrong = format!("the request is not understood: {error}");
                return self
                    .text(&json!({ "type": "answer", "id": 0, "wrong": wrong }))
                    .await;
            }
        };
        if said.drawn {
            self.is_drawing = false;
        }
        if let Some(level) = said.level {
            self.level = if level == "folded" {
                Level::Folded
            } else {
                Level::Each
            };
            self.known = 0;
        }
        if said.take {
            self.seat.take_controls(true);
        }
        let Some(ask) = said.ask else {
            return true;
        };
        let answer = match serde_json::from_value::<SessionRequest>(ask) {
            Ok(SessionRequest::Control(_)) if !self.seat.has_controls() => {
                Err("another page has control; take control first".to_owned())
            }
            Ok(asked) => self.seat.shared.handle.ask(asked).await,
            Err(error) => Err(format!("the request is not understood: {error}")),
        };
        let answer = match answer {
            Ok(value) => json!({ "type": "answer", "id": said.id, "value": value }),
            Err(wrong) => json!({ "type": "answer", "id": said.id, "wrong": wrong }),
        };
        self.text(&answer).await
    }
}
