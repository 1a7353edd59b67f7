//! The actor that the engine runs for each Python actor. It calls the Python actor and carries out the Python actor's
//! requests.

use super::context::{Context, Current, Wish, check_returned};
use super::mail::Mail;
use corsair::{
    Actor, Addr, Context as EngineContext, Event, Flow, Kind, Random, Script, Spawn, Time, Token,
    Wait,
};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The shared state of the simulation and its actors.
#[derive(Debug)]
pub struct SimulationState {
    /// The engine's only reference to the context. It is here so that the garbage collector can find it.
    context: Mutex<Option<Py<Context>>>,
    /// The address of the first actor.
    pub first: OnceLock<u32>,
    /// The time on the engine's clock at which the simulation's clock is zero.
    pub began: OnceLock<u64>,
    /// The maximum number of actors.
    pub room: u32,
}

impl SimulationState {
    pub fn new(context: Py<Context>, room: u32) -> SimulationState {
        SimulationState {
            context: Mutex::new(Some(context)),
            first: OnceLock::new(),
            began: OnceLock::new(),
            room,
        }
    }

    /// Returns the context, unless the simulation was closed.
    pub fn context(&self, py: Python<'_>) -> Option<Py<Context>> {
        let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
        context.as_ref().map(|context| context.clone_ref(py))
    }

    /// Drops the context.
    pub fn close(&self) {
        let context = self
            .context
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(context);
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.context.try_lock() {
            Ok(context) => visit.call(&*context),
            Err(_) => Ok(()),
        }
    }

    /// Returns the engine's address of an actor.
    pub fn address(&self, actor: u32) -> Addr {
        match self.first.get() {
            Some(first) if actor < self.room => Addr::from_u32(first + actor),
            _ => Addr::NONE,
        }
    }

    /// Returns the actor at an address of the engine.
    fn actor(&self, address: Addr) -> Option<u32> {
        let actor = address.as_u32().wrapping_sub(*self.first.get()?);
        (actor < self.room).then_some(actor)
    }

    /// Converts a time of the engine to a time of the simulation, in nanoseconds.
    pub fn since_began(&self, time: Time) -> u64 {
        time.as_nanos()
            .saturating_sub(self.began.get().copied().unwrap_or(0))
    }
}

/// The root actor. It reserves addresses for all actors, and then waits forever.
pub struct Root {
    has_spawned: bool,
    shared: Arc<SimulationState>,
}

impl Kind for Root {
    const NAME: &'static str = "root of Python's actors";
    type Parameters = ();
    type Local = Arc<SimulationState>;

    fn make((): &(), shared: &Arc<SimulationState>, _index: u32) -> Root {
        Root {
            has_spawned: false,
            shared: Arc::clone(shared),
        }
    }

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.has_spawned.serialize(to)
    }

    fn restore<'de, D: Deserializer<'de>>(
        from: D,
        shared: &Arc<SimulationState>,
    ) -> Result<Root, D::Error> {
        Ok(Root {
            has_spawned: bool::deserialize(from)?,
            shared: Arc::clone(shared),
        })
    }
}

impl Script<Mail> for Root {
    fn resume<C: EngineContext<Mail>>(&mut self, event: Option<Event<Mail>>, cx: &mut C) -> Wait {
        if let Some(Event::Spawned { first, .. }) = event {
            let _ = self.shared.first.set(first.as_u32());
        }
        if self.has_spawned {
            return Wait::Event;
        }
        self.has_spawned = true;
        let room = Spawn::many(self.shared.room, "actor", "").on_demand();
        Wait::Spawned(cx.spawn_kind_request::<Relay>(room, (), Arc::clone(&self.shared)))
    }
}

/// The engine's actor for an actor that is written in Python.
pub struct Relay {
    actor: u32,
    shared: Arc<SimulationState>,
}

impl Kind for Relay {
    const NAME: &'static str = "actor of Python";
    type Parameters = ();
    type Local = Arc<SimulationState>;

    fn make((): &(), shared: &Arc<SimulationState>, index: u32) -> Relay {
        Relay {
            actor: index,
            shared: Arc::clone(shared),
        }
    }

    fn save<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.actor.serialize(to)
    }

    fn restore<'de, D: Deserializer<'de>>(
        from: D,
        shared: &Arc<SimulationState>,
    ) -> Result<Relay, D::Error> {
        Ok(Relay {
            actor: u32::deserialize(from)?,
            shared: Arc::clone(shared),
        })
    }
}

impl Drop for Relay {
    /// Drops the Python actor after the engine has ended it.
    fn drop(&mut self) {
        Python::attach(|py| {
            let context = self.shared.context(py);
            let ended = context.and_then(|context| {
                let mut context = context.bind(py).try_borrow_mut().ok()?;
                context.end(self.actor)
            });
            drop(ended);
        });
    }
}

impl Actor<Mail> for Relay {
    fn on<C: EngineContext<Mail>>(&mut self, event: Event<Mail>, cx: &mut C) -> Flow {
        Python::attach(|py| {
            let Some(context) = self.shared.context(py) else {
                return Flow::Stop;
            };
            self.handle(&context.into_bound(py), event, cx)
        })
    }
}

impl Relay {
    fn handle<C: EngineContext<Mail>>(
        &self,
        context: &Bound<'_, Context>,
        event: Event<Mail>,
        cx: &mut C,
    ) -> Flow {
        let py = context.py();
        let mut noted = context.borrow_mut();
        if noted.has_failed() {
            return Flow::Continue;
        }
        let (message, sender) = match event {
            Event::Message { from, body } => (body.body, self.shared.actor(from)),
            Event::Timer(token) => match noted.timer_is_due(self.actor, token.number()) {
                Some(message) => (Some(message), Some(self.actor)),
                None => return Flow::Continue,
            },
            _ => return Flow::Continue,
        };
        let now = self.shared.since_began(cx.now());
        noted.begin(Current {
            actor: self.actor,
            sender,
            now,
        });
        let Some(actor) = noted.actor(self.actor) else {
            return Flow::Stop;
        };
        actor.random.get_or_insert_with(|| Random::new(cx.random()));
        let start = actor.start.take();
        let on = actor.on.clone_ref(py);
        if let Some(message) = &message {
            noted.received(message.bind(py));
        }
        let signals = noted.is_time_for_signals();
        drop(noted);
        let called = (|| {
            if signals {
                py.check_signals()?;
            }
            if let Some(start) = start {
                check_returned(start.call1(py, (context,))?.bind(py))?;
            }
            match message {
                Some(message) => check_returned(on.call1(py, (message, context))?.bind(py)),
                None => Ok(()),
            }
        })();
        let mut noted = context.borrow_mut();
        if let Err(error) = called {
            noted.fail(py, self.actor, now, error);
        }
        self.fulfil(&mut noted, cx)
    }

    /// Carries out the requests in order.
    fn fulfil<C: EngineContext<Mail>>(&self, noted: &mut Context, cx: &mut C) -> Flow {
        let mut flow = Flow::Continue;
        let mut wishes = noted.wishes();
        for wish in wishes.drain(..) {
            match wish {
                Wish::Send { to, mail, delay } => {
                    let to = self.shared.address(to);
                    if delay == 0 {
                        cx.send(to, mail);
                    } else {
                        cx.send_after(Duration::from_nanos(delay), to, mail);
                    }
                }
                Wish::Timer {
                    token,
                    after,
                    again,
                } => {
                    let (after, token) = (Duration::from_nanos(after), Token::new(token));
                    let handle = match again {
                        true => cx.every(after, token),
                        false => cx.timer_handle(after, token),
                    };
                    noted.timer_is_set(self.actor, token.number(), handle);
                }
                Wish::Cancel { handle } => {
                    cx.cancel(handle);
                }
                Wish::Stop { who } if who == self.actor => flow = Flow::Stop,
                Wish::Stop { who } => cx.stop(self.shared.address(who)),
            }
        }
        noted.end_of_turn(wishes);
        flow
    }
}
