//! A simulation of actors written in Python.

use super::context::Context;
use super::mail::Mail;
use super::relay::{Root, SimulationState};
use super::saving::{self, Saving};
use crate::arguments::{Arguments, Count, Seed, Span};
use crate::error;
use crate::saved::SavedCheckpoint;
use crate::table::Table;
use corsair::{CancelToken, Config, Latency, Simulation as Engine, Time};
use corsair_observe::checkpoint::RunId;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

/// Actors written in Python, in virtual time.
#[pyclass(frozen, module = "corsair._corsair")]
pub struct Simulation {
    engine: Mutex<Life>,
    shared: Arc<SimulationState>,
    /// The current time in nanoseconds: the time of the last event, not the end of a window of the engine.
    now: AtomicU64,
    process: u32,
    /// The identity of a restored run.
    run: Option<RunId>,
}

/// The state of the engine.
enum Life {
    Runs(Box<Engine<Mail>>),
    /// The simulation has ended, for this reason.
    Over(String),
}

/// The maximum number of actors. The number is limited, because the addresses of all actors are reserved at the
/// beginning.
const MOST_ACTORS: u32 = 16_000_000;

impl Simulation {
    fn life(&self) -> PyResult<MutexGuard<'_, Life>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this simulation belongs to the process that made it; make another one after a fork",
            ));
        }
        match self.engine.try_lock() {
            Ok(life) => Ok(life),
            Err(TryLockError::Poisoned(life)) => Ok(life.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the simulation is running; an actor acts through its context",
            )),
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Engine<Mail>) -> PyResult<T>) -> PyResult<T> {
        match &mut *self.life()? {
            Life::Runs(engine) => act(engine),
            Life::Over(why) => Err(error::failed(why)),
        }
    }

    fn context<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, Context>> {
        let context = self.shared.context(py);
        let context = context.ok_or_else(|| error::failed("the simulation was closed"))?;
        Ok(context.into_bound(py))
    }

    /// Runs the engine with `on`. Returns the exception of an actor, or the error of a failed run.
    fn go(
        &self,
        py: Python<'_>,
        until: Option<Time>,
        on: impl FnOnce(&mut Engine<Mail>) -> bool,
    ) -> PyResult<bool> {
        let mut life = self.life()?;
        let engine = match &mut *life {
            Life::Runs(engine) => engine,
            Life::Over(why) => return Err(error::failed(why)),
        };
        let goes_on = on(engine);
        let context = self.context(py)?;
        let reached = match until {
            Some(_) if !engine.is_over() => self.shared.since_began(engine.now()),
            _ => context.borrow().last(),
        };
        self.now.fetch_max(reached, Ordering::Relaxed);
        let failure = context.borrow_mut().take_failure();
        if failure.is_some() || engine.is_over() {
            context.borrow_mut().keep();
        }
        if let Some(failure) = failure {
            let kind = failure.get_type(py).name()?.to_string();
            *life = Life::Over(format!("the simulation ended when an actor raised {kind}"));
            return Err(failure);
        }
        if engine.is_over() {
            let over =
                std::mem::replace(&mut *life, Life::Over("the simulation is over".to_owned()));
            if let Life::Runs(engine) = over
                && let Err(failed) = engine.finish()
            {
                let raised = error::of_run(&failed);
                *life = Life::Over(format!("the simulation ended: {}", raised.value(py)));
                return Err(raised);
            }
        }
        Ok(goes_on)
    }

    /// Converts a time of the simulation to the engine's time.
    fn moment(&self, time: Duration) -> Time {
        let began = self.shared.began.get().copied().unwrap_or(0);
        Time::from_nanos(began).after(time)
    }
}

/// Returns the parameters of a simulation.
fn settings(arguments: &Bound<'_, PyDict>) -> PyResult<(Config, u32)> {
    let arguments = Arguments(arguments);
    let Count(room) = arguments.get("most_actors")?;
    if !(1..=MOST_ACTORS).contains(&room) {
        return Err(PyValueError::new_err(format!(
            "most_actors: {room} is out of range; give 1 to {MOST_ACTORS}"
        )));
    }
    let Span(latency) = arguments.get("latency")?;
    let config = Config {
        seed: arguments.get::<Seed>("seed")?.0,
        workers: NonZeroUsize::MIN,
        latency: Latency::constant(latency),
        cancel: CancelToken::default(),
        traces: false,
        ..Config::default()
    };
    config.check().map_err(error::value)?;
    Ok((config, room))
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(py: Python<'_>, arguments: &Bound<'_, PyDict>) -> PyResult<Simulation> {
        let (config, room) = settings(arguments)?;
        let context = Py::new(py, Context::new(room, config.cancel.clone()))?;
        let shared = Arc::new(SimulationState::new(context, room));
        let kinds = saving::kinds(&shared);
        let mut engine = Engine::with_kinds::<Root>(&config, &kinds, (), Arc::clone(&shared))
            .map_err(|e| error::of_run(&e))?;
        while shared.first.get().is_none() && engine.step() {}
        let _ = shared.began.set(engine.now().as_nanos() + 1);
        Ok(Simulation {
            engine: Mutex::new(Life::Runs(Box::new(engine))),
            shared,
            now: AtomicU64::new(0),
            process: std::process::id(),
            run: None,
        })
    }

    /// Restores a saved simulation that was created with these arguments: unchanged, or as a branch with another seed.
    #[staticmethod]
    fn restore(
        py: Python<'_>,
        arguments: &Bound<'_, PyDict>,
        saved: &SavedCheckpoint,
        reseed: Option<Seed>,
    ) -> PyResult<Simulation> {
        let (config, room) = settings(arguments)?;
        let reseed = reseed.map(|Seed(seed)| seed);
        let snapshot = saved.snapshot(reseed)?;
        let state = saving::state(saved)?;
        let now = state.now;
        let context = Py::new(py, Context::new(room, config.cancel.clone()))?;
        let shared = Arc::new(SimulationState::new(context.clone_ref(py), room));
        let _ = shared.first.set(state.first);
        let _ = shared.began.set(state.began);
        let engine = saving::restore(context.bind(py), saved, state, reseed.is_some(), || {
            let kinds = saving::kinds(&shared);
            Engine::restore(&config, &kinds, &snapshot).map_err(error::value)
        })?;
        Ok(Simulation {
            engine: Mutex::new(Life::Runs(Box::new(engine))),
            shared,
            now: AtomicU64::new(now),
            process: std::process::id(),
            run: Some(saved.run(reseed, &[])),
        })
    }

    /// Saves the simulation below a directory, and returns the path of the checkpoint. `about` describes the
    /// simulation.
    fn checkpoint(&self, py: Python<'_>, directory: PathBuf, about: &str) -> PyResult<PathBuf> {
        self.with(|engine| {
            let saving = Saving {
                shared: &self.shared,
                now: self.now.load(Ordering::Relaxed),
                run: self.run,
                about,
            };
            saving.write(&self.context(py)?, engine, &directory)
        })
    }

    /// The virtual time in seconds.
    #[getter]
    fn now(&self) -> f64 {
        self.now.load(Ordering::Relaxed) as f64 / 1e9
    }

    /// The time of the next message or timer in seconds; None if there is none.
    #[getter]
    fn next(&self) -> PyResult<Option<f64>> {
        self.with(|engine| {
            let next = engine.next();
            Ok(next.map(|next| self.shared.since_began(next) as f64 / 1e9))
        })
    }

    #[getter]
    fn digest(&self) -> PyResult<String> {
        self.with(|engine| Ok(format!("{:016x}", engine.digest())))
    }

    /// Spawns an actor, and returns its address.
    fn spawn(
        &self,
        py: Python<'_>,
        actor: &Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyResult<u32> {
        self.with(|engine| {
            let (address, wants_start) = self.context(py)?.borrow_mut().admit(actor, name)?;
            if wants_start {
                let mail = Mail {
                    body: None,
                    fingerprint: 0,
                };
                let at = self.soonest(engine);
                let to = self.shared.address(address);
                engine.inject(at, to, mail).map_err(error::value)?;
            }
            Ok(address)
        })
    }

    /// Sends a message without a sender, at a future time or, if no time is given, as the next event.
    fn send(
        &self,
        py: Python<'_>,
        to: u32,
        message: &Bound<'_, PyAny>,
        at: Option<Span>,
    ) -> PyResult<()> {
        self.with(|engine| {
            let context = self.context(py)?;
            context.borrow().check(to)?;
            let mail = context.borrow_mut().mail(message)?;
            let time = match at {
                Some(Span(at)) => self.moment(at),
                None => self.soonest(engine),
            };
            let injected = engine.inject(time, self.shared.address(to), mail);
            injected.map_err(|_| {
                let now = self.now();
                let at = self.shared.since_began(time) as f64 / 1e9;
                error::value(format_args!(
                    "a message cannot arrive at {at} s, the simulation is at {now} s; choose a later time"
                ))
            })?;
            Ok(())
        })
    }

    /// Runs all events up to and including a time.
    fn run_until(&self, py: Python<'_>, time: Span) -> PyResult<()> {
        let until = self.moment(time.0);
        self.go(py, Some(until), |engine| engine.run_until(until))
            .map(drop)
    }

    /// Runs until no event is left.
    fn run(&self, py: Python<'_>) -> PyResult<()> {
        self.go(py, None, |engine| {
            while engine.step() {}
            true
        })
        .map(drop)
    }

    /// Runs until the next event has happened. Returns False if no event is left.
    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        self.go(py, None, Engine::step)
    }

    /// The object of an actor.
    fn actor(&self, py: Python<'_>, which: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let address = self.address(py, which)?;
        self.context(py)?.borrow().object(py, address)
    }

    /// The address of the actor with this name.
    fn find(&self, py: Python<'_>, name: &str) -> PyResult<Option<u32>> {
        Ok(self.context(py)?.borrow().named(name))
    }

    /// The name of an actor.
    fn name(&self, py: Python<'_>, address: u32) -> PyResult<String> {
        let context = self.context(py)?;
        let context = context.borrow();
        context.check(address)?;
        Ok(context.name_of(address))
    }

    /// The addresses of the actors that have not ended.
    #[getter]
    fn actors(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.context(py)?.borrow().living())
    }

    /// The counters of actors.
    #[getter]
    fn counters(&self, py: Python<'_>) -> PyResult<BTreeMap<String, u64>> {
        Ok(self.context(py)?.borrow().counters())
    }

    /// The values that actors have observed under a name, with their times.
    fn observations(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        self.context(py)?.borrow().observations(name)
    }

    /// The report so far.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.with(|engine| {
            let context = self.context(py)?;
            let context = context.borrow();
            let so_far = engine.report();
            let report = PyDict::new(py);
            let delivered = so_far.messages.iter().filter(|kind| kind.kind == "message");
            let delivered: u64 = delivered.map(|kind| kind.count).sum();
            report.set_item("time_seconds", self.now())?;
            report.set_item("spawned", context.spawned())?;
            report.set_item("living", context.living().len())?;
            report.set_item("messages_total", delivered)?;
            report.set_item("timers", so_far.timers)?;
            report.set_item("received", context.counts(py)?)?;
            report.set_item("dead_letters", so_far.dead())?;
            report.set_item("counters", context.counters())?;
            report.set_item("digest", format!("{:016x}", engine.digest()))?;
            Ok(report)
        })
    }

    /// Closes the simulation and releases its actors.
    fn close(&self) -> PyResult<()> {
        let over = Life::Over("the simulation was closed".to_owned());
        let before = std::mem::replace(&mut *self.life()?, over);
        self.shared.close();
        drop(before);
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.shared.traverse(&visit)
    }

    fn __clear__(&self) {
        let _ = self.close();
    }
}

impl Simulation {
    /// Returns the address of an actor, which is given by its address or its name.
    fn address(&self, py: Python<'_>, which: &Bound<'_, PyAny>) -> PyResult<u32> {
        if let Ok(name) = which.extract::<String>() {
            let found = self.context(py)?.borrow().named(&name);
            return found.ok_or_else(|| PyKeyError::new_err(format!("there is no actor '{name}'")));
        }
        which.extract()
    }

    /// Returns the earliest time at which a new message can arrive.
    fn soonest(&self, engine: &Engine<Mail>) -> Time {
        let began = self.shared.began.get().copied().unwrap_or(0);
        Time::from_nanos((engine.now().as_nanos() + 1).max(began))
    }
}
