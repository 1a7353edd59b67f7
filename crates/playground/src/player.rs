//! A live session of the playground.

use crate::answers::{config, duration, sentence, topology};
use crate::link::{Link, Message};
use corsair::fsm::Fsm;
use corsair_arch::Plan;
use corsair_view::{ExtraCapacity, Make, Pirates, Services, Session};
use serde_json::{Map, json};
use wasm_bindgen::prelude::wasm_bindgen;

/// The maximum number of pirates in a session.
const MOST_PIRATES: u32 = 1_000_000;

/// A session of the live view on the caller's thread. The caller must call [`Player::turn`] repeatedly.
#[wasm_bindgen]
#[allow(missing_debug_implementations, reason = "a page has no use for it")]
pub struct Player(Link);

#[wasm_bindgen]
impl Player {
    /// Starts a session of a definition.
    ///
    /// # Errors
    /// If the definition or the duration is invalid.
    #[wasm_bindgen(constructor)]
    pub fn new(definition: &str, seed: u64, seconds: f64) -> Result<Player, String> {
        let plan = Plan {
            duration: duration(seconds)?,
            ..Plan::default()
        };
        let topology = topology(definition)?;
        let config = corsair_arch::config(&topology, config(seed));
        let mut flags = Map::new();
        flags.insert("arch".to_owned(), json!(topology.arch));
        flags.insert("seed".to_owned(), json!(seed.to_string()));
        let build = move |room: &ExtraCapacity| {
            let mut topology = topology.clone();
            topology.add_extra_capacity(room).map_err(sentence)?;
            Services::new(&config, topology, &plan).map_err(sentence)
        };
        let world = build(&ExtraCapacity::new())?;
        let make: Make<Services> = Box::new(build);
        Ok(Player(Link::new(Session::new(world, flags, Some(make)))))
    }

    /// Starts a session of pirates.
    ///
    /// # Errors
    /// If there are too many pirates, or the duration is out of range.
    pub fn pirates(population: u32, seed: u64, seconds: f64) -> Result<Player, String> {
        if population > MOST_PIRATES {
            return Err(format!(
                "{population} pirates are too many for a page; give at most {MOST_PIRATES}"
            ));
        }
        let talk = duration(seconds)?;
        let build = move |_: &ExtraCapacity| {
            let scenario = Fsm {
                population,
                talk,
                ..Fsm::default()
            };
            Pirates::new(&config(seed), scenario).map_err(sentence)
        };
        let world = build(&ExtraCapacity::new())?;
        let make: Make<Pirates<()>> = Box::new(build);
        Ok(Player(Link::new(Session::new(
            world,
            Map::new(),
            Some(make),
        ))))
    }

    /// Handles a message from the page. The format is that of the live view's socket.
    pub fn hear(&mut self, text: &str) {
        self.0.hear(text);
    }

    /// Runs the session for about ten milliseconds if it is playing. Returns the number of milliseconds that the page
    /// may wait before the next turn.
    pub fn turn(&mut self) -> f64 {
        self.0.turn().as_secs_f64() * 1e3
    }

    /// Returns the next message for the page if it is a text.
    pub fn take_text(&mut self) -> Option<String> {
        match self.0.messages.first()? {
            Message::Text(_) => match self.0.messages.remove(0) {
                Message::Text(text) => Some(text),
                Message::Frame(_) => None,
            },
            Message::Frame(_) => None,
        }
    }

    /// Returns the next message for the page if it is a frame.
    pub fn take_frame(&mut self) -> Option<Vec<u8>> {
        match self.0.messages.first()? {
            Message::Frame(_) => match self.0.messages.remove(0) {
                Message::Frame(bytes) => Some(bytes),
                Message::Text(_) => None,
            },
            Message::Text(_) => None,
        }
    }
}
