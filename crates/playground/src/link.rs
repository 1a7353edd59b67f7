//! Connects a page to a session on the same thread. The messages are those of the live view's socket, but there is no
//! socket.

use crate::answers::sentence;
use corsair_view::{Handle, Level, Session, SessionRequest, Watching, World};
use serde::Deserialize;
use serde_json::{Value, json};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A session of any world.
pub(crate) trait Turns {
    /// Runs one turn of the session; see [`Session::turn`].
    fn turn(&mut self) -> Duration;
}

impl<W: World> Turns for Session<W> {
    fn turn(&mut self) -> Duration {
        Session::turn(self)
    }
}

/// A message to the page.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Text(String),
    Frame(Vec<u8>),
}

/// A message of the page.
#[derive(Debug, Deserialize)]
struct PageMessage {
    #[serde(default)]
    drawn: bool,
    /// True if the page has just been loaded and has no state of the session.
    #[serde(default)]
    again: bool,
    level: Option<String>,
    #[serde(default)]
    id: u64,
    ask: Option<Value>,
}

/// A session, and the state of the page that shows the session.
pub(crate) struct Link {
    session: Box<dyn Turns>,
    handle: Handle,
    _watching: Watching,
    level: Level,
    /// The version and epoch of the page's frame, and whether the page is still drawing that frame.
    known: u64,
    epoch: u32,
    is_drawing: bool,
    pub(crate) messages: Vec<Message>,
}

impl Link {
    pub(crate) fn new<W: World + 'static>((session, handle): (Session<W>, Handle)) -> Link {
        let watching = handle.watch();
        let mut link = Link {
            session: Box::new(session),
            handle,
            _watching: watching,
            level: Level::Each,
            known: 0,
            epoch: 0,
            is_drawing: false,
            messages: Vec::new(),
        };
        link.post_all();
        link
    }

    /// Runs the session for a short time and posts the changes. Returns how long the page may wait before the next
    /// turn.
    pub(crate) fn turn(&mut self) -> Duration {
        let wait = self.session.turn();
        self.post_news();
        wait
    }

    /// Handles a message of the page.
    pub(crate) fn hear(&mut self, text: &str) {
        let said: PageMessage = match serde_json::from_str(text) {
            Ok(said) => said,
            Err(error) => {
                let wrong = format!("the request is not understood: {error}");
                return self.post(&json!({ "type": "answer", "id": 0, "wrong": wrong }));
            }
        };
        if said.again {
            self.post_all();
        }
        if said.drawn {
            self.is_drawing = false;
        }
        if let Some(level) = said.level {
            self.level = match level.as_str() {
                "folded" => Level::Folded,
                _ => Level::Each,
            };
            self.known = 0;
            self.handle.frames().mark_changed();
        }
        if let Some(ask) = said.ask {
            let answer = match self.ask(ask) {
                Ok(value) => json!({ "type": "answer", "id": said.id, "value": value }),
                Err(wrong) => json!({ "type": "answer", "id": said.id, "wrong": wrong }),
            };
            self.post(&answer);
        }
        self.post_news();
    }

    /// Sends a request to the session, which answers it during its next turn.
    fn ask(&mut self, ask: Value) -> Result<Value, String> {
        let asked: SessionRequest = serde_json::from_value(ask)
            .map_err(|error| format!("the request is not understood: {}", sentence(error)))?;
        let handle = self.handle.clone();
        let mut answer = pin!(handle.ask(asked));
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
            return answer;
        }
        self.session.turn();
        match answer.poll(&mut context) {
            Poll::Ready(answer) => answer,
            Poll::Pending => Err("the session did not answer; try again".to_owned()),
        }
    }

    fn post(&mut self, value: &Value) {
        self.messages.push(Message::Text(value.to_string()));
    }

    /// Posts the complete state, for a page that has just been loaded.
    fn post_all(&mut self) {
        (self.known, self.is_drawing) = (0, false);
        self.handle.scenes().mark_changed();
        self.handle.statuses().mark_changed();
        self.handle.frames().mark_changed();
        self.post_news();
        self.post(&json!({ "type": "controls", "has": true, "watchers": 1 }));
    }

    /// Posts the scene, the status and the frame, each only if it has changed.
    fn post_news(&mut self) {
        if self.handle.scenes().has_changed().unwrap_or(false) {
            let scene = self.handle.scenes().borrow_and_update().clone();
            self.known = 0;
            self.handle.frames().mark_changed();
            self.post(&json!({ "type": "scene", "scene": &*scene }));
        }
        if self.handle.statuses().has_changed().unwrap_or(false) {
            let status = self.handle.statuses().borrow_and_update().clone();
            self.post(&json!({ "type": "status", "status": status }));
        }
        if !self.is_drawing && self.handle.frames().has_changed().unwrap_or(false) {
            let frame = self.handle.frames().borrow_and_update().clone();
            if frame.epoch != self.epoch {
                (self.epoch, self.known) = (frame.epoch, 0);
            }
            let bytes = frame.encode(self.known, self.level);
            (self.known, self.is_drawing) = (frame.version, true);
            self.messages.push(Message::Frame(bytes));
        }
    }
}
