//! The methods of a Python actor while it handles a message.

use super::fingerprint::Classes;
use super::mail::Mail;
use crate::arguments::Span;
use crate::error;
use crate::table::Table;
use arrow_array::{ArrayRef, Float64Array};
use corsair::{CancelToken, Distribution, DistributionError, Random, TimerHandle};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A request of an actor, which is carried out after the actor's handler has returned.
#[derive(Debug)]
pub enum Wish {
    Send { to: u32, mail: Mail, delay: u64 },
    Timer { token: u32, after: u64, again: bool },
    Cancel { handle: TimerHandle },
    Stop { who: u32 },
}

/// The current turn: the actor whose handler runs, and the message that it handles.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    pub actor: u32,
    pub sender: Option<u32>,
    /// The current time in nanoseconds.
    pub now: u64,
}

/// A spawned actor that is written in Python.
#[derive(Debug)]
pub struct SpawnedActor {
    pub object: Py<PyAny>,
    /// The method `on` of the actor's object.
    pub on: Py<PyAny>,
    /// The method `start` of the actor's object, until it has been called.
    pub start: Option<Py<PyAny>>,
    pub random: Option<Random>,
    pub name: Option<String>,
    pub timers: Vec<Timer>,
    pub free: Vec<u32>,
}

/// A timer that is set, or a free entry of the list of timers.
#[derive(Debug, Default)]
pub struct Timer {
    /// The number of times that this entry was used. It distinguishes a timer from later timers with the same entry.
    pub uses: u32,
    pub message: Option<Py<PyAny>>,
    pub handle: Option<TimerHandle>,
    pub again: bool,
}

/// The methods of an actor while it handles a message: send, set timers, spawn, draw random numbers.
///
/// A context acts for the actor whose handler is running. While no handler is running, the methods raise RuntimeError.
#[pyclass(module = "corsair._corsair")]
#[derive(Debug)]
pub struct Context {
    current: Option<Current>,
    wishes: Vec<Wish>,
    pub actors: Vec<Option<SpawnedActor>>,
    pub names: BTreeMap<String, u32>,
    /// The class of the first actor.
    pub model: Option<String>,
    pub classes: Classes,
    room: u32,
    cancel: CancelToken,
    failure: Option<PyErr>,
    failed: bool,
    pub counters: BTreeMap<String, u64>,
    pub observed: BTreeMap<String, (Vec<f64>, Vec<f64>)>,
    turns: u64,
    /// The time of the last turn in nanoseconds.
    pub last: u64,
    /// True after the simulation has ended. Actors that the engine drops are then kept for inspection.
    is_over: bool,
}

/// The number of turns after which signals are handled.
const TURNS: u64 = 1024;

impl Context {
    pub fn new(room: u32, cancel: CancelToken) -> Context {
        Context {
            current: None,
            wishes: Vec::new(),
            actors: Vec::new(),
            names: BTreeMap::new(),
            model: None,
            classes: Classes::default(),
            room,
            cancel,
            failure: None,
            failed: false,
            counters: BTreeMap::new(),
            observed: BTreeMap::new(),
            turns: 0,
            last: 0,
            is_over: false,
        }
    }

    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Keeps the actors for inspection after the run, until the simulation is closed.
    pub fn keep(&mut self) {
        self.is_over = true;
    }

    /// Returns the time of the last turn in nanoseconds.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Takes the exception that an actor raised.
    pub fn take_failure(&mut self) -> Option<PyErr> {
        self.failure.take()
    }

    pub fn begin(&mut self, current: Current) {
        self.last = self.last.max(current.now);
        self.current = Some(current);
    }

    pub fn actor(&mut self, actor: u32) -> Option<&mut SpawnedActor> {
        self.actors.get_mut(actor as usize)?.as_mut()
    }

    pub fn received(&mut self, message: &Bound<'_, PyAny>) {
        self.classes.received(message);
    }

    /// Takes the requests of this turn.
    pub fn wishes(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes)
    }

    /// Ends the turn, and takes the list back for reuse.
    pub fn end_of_turn(&mut self, wishes: Vec<Wish>) {
        self.wishes = wishes;
        self.current = None;
    }

    /// Returns the message of a due timer, unless it was cancelled.
    pub fn timer_is_due(&mut self, actor: u32, token: u32) -> Option<Py<PyAny>> {
        let spawned = self.actor(actor)?;
        let timer = spawned.timers.get_mut(token as usize)?;
        if timer.again {
            return Python::attach(|py| Some(timer.message.as_ref()?.clone_ref(py)));
        }
        timer.handle = None;
        timer.uses = timer.uses.wrapping_add(1);
        let message = timer.message.take();
        spawned.free.push(token);
        message
    }

    pub fn timer_is_set(&mut self, actor: u32, token: u32, handle: TimerHandle) {
        let timers = self.actor(actor).map(|actor| &mut actor.timers);
        let timer = timers.and_then(|timers| timers.get_mut(token as usize));
        if let Some(timer) = timer.filter(|timer| timer.message.is_some()) {
            timer.handle = Some(handle);
        }
    }

    /// Records that an actor has raised an exception, which ends the simulation.
    pub fn fail(&mut self, py: Python<'_>, actor: u32, now: u64, error: PyErr) {
        let name = self.name_of(actor);
        let note = format!("raised by {name} at {} s", now as f64 / 1e9);
        // Exceptions have notes only from Python 3.11 on.
        let _ = error.value(py).call_method1("add_note", (note,));
        self.failure.get_or_insert(error);
        self.failed = true;
        self.cancel.cancel();
    }

    /// Removes an actor that the engine has ended, and returns the actor. The caller drops it, because the drop may run
    /// Python code.
    pub fn end(&mut self, actor: u32) -> Option<SpawnedActor> {
        if self.is_over {
            return None;
        }
        let ended = self.actors.get_mut(actor as usize)?.take()?;
        if let Some(name) = &ended.name {
            self.names.remove(name);
        }
        Some(ended)
    }

    pub fn name_of(&self, actor: u32) -> String {
        let spawned = self.actors.get(actor as usize).and_then(Option::as_ref);
        let name = spawned.and_then(|actor| actor.name.clone());
        name.unwrap_or_else(|| format!("actor {actor}"))
    }

    /// Adds an actor, and returns its address and whether it must be started.
    pub fn admit(
        &mut self,
        object: &Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyResult<(u32, bool)> {
        let on = object.getattr("on").ok().filter(|on| on.is_callable());
        let Some(on) = on else {
            return Err(PyTypeError::new_err(format!(
                "an actor has a method on(self, message, ctx), and {} has none",
                object.get_type().qualname()?
            )));
        };
        refuse_process(object, &on, "on")?;
        if self.actors.len() >= self.room as usize {
            return Err(PyRuntimeError::new_err(format!(
                "the simulation has its limit of {} actors; create it with a larger most_actors",
                self.room
            )));
        }
        let address = self.actors.len() as u32;
        if let Some(name) = &name
            && self.names.insert(name.clone(), address).is_some()
        {
            return Err(PyValueError::new_err(format!(
                "there is already an actor '{name}'"
            )));
        }
        let start = object
            .getattr("start")
            .ok()
            .filter(|start| start.is_callable());
        if let Some(start) = &start {
            refuse_process(object, start, "start")?;
        }
        let wants_start = start.is_some();
        if self.model.is_none() {
            self.model = Some(object.get_type().fully_qualified_name()?.to_string());
        }
        self.actors.push(Some(SpawnedActor {
            object: object.clone().unbind(),
            on: on.unbind(),
            start: start.map(Bound::unbind),
            random: None,
            name,
            timers: Vec::new(),
            free: Vec::new(),
        }));
        Ok((address, wants_start))
    }

    pub fn mail(&mut self, message: &Bound<'_, PyAny>) -> PyResult<Mail> {
        Ok(Mail {
            fingerprint: self.classes.fingerprint(message)?,
            body: Some(message.clone().unbind()),
        })
    }

    /// Checks that an actor was given this address.
    pub fn check(&self, address: u32) -> PyResult<()> {
        if (address as usize) < self.actors.len() {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!(
            "there is no actor {address}; {} were spawned",
            self.actors.len()
        )))
    }

    /// Returns the object of an actor that has not ended.
    pub fn object(&self, py: Python<'_>, address: u32) -> PyResult<Py<PyAny>> {
        self.check(address)?;
        let spawned = self.actors.get(address as usize).and_then(Option::as_ref);
        let spawned =
            spawned.ok_or_else(|| PyKeyError::new_err(format!("actor {address} has ended")))?;
        Ok(spawned.object.clone_ref(py))
    }

    /// Returns the addresses of the actors that have not ended.
    pub fn living(&self) -> Vec<u32> {
        let living = (0..).zip(&self.actors).filter(|(_, actor)| actor.is_some());
        living.map(|(address, _)| address).collect()
    }

    pub fn named(&self, name: &str) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub fn spawned(&self) -> usize {
        self.actors.len()
    }

    pub fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (name, count) in self.classes.counts() {
            counts.set_item(name, count)?;
        }
        Ok(counts)
    }

    pub fn counters(&self) -> BTreeMap<String, u64> {
        self.counters.clone()
    }

    /// Returns the observations under a name.
    pub fn observations(&self, name: &str) -> PyResult<Table> {
        let Some((times, values)) = self.observed.get(name) else {
            let names = self.observed.keys().map(String::as_str);
            let meant = match corsair_arch::nearest(name, names.clone()) {
                Some(near) => format!("did you mean {near}?"),
                None => format!("expected one of {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err(PyKeyError::new_err(format!(
                "nothing was observed as '{name}'; {meant}"
            )));
        };
        let column = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
        Table::of(vec![("seconds", column(times)), ("value", column(values))])
    }

    fn current(&self) -> PyResult<Current> {
        self.current.ok_or_else(|| {
            PyRuntimeError::new_err(
                "a context acts while its actor handles a message; use the simulation from outside",
            )
        })
    }

    fn random_bits(&mut self) -> PyResult<u64> {
        let current = self.current()?;
        let actor = self.actor(current.actor);
        let random = actor.and_then(|actor| actor.random.as_mut());
        random
            .map(Random::bits)
            .ok_or_else(|| PyRuntimeError::new_err("the actor has ended"))
    }

    fn draw(&mut self, distribution: Result<Distribution, DistributionError>) -> PyResult<f64> {
        let distribution = distribution.map_err(error::value)?;
        Ok(distribution.draw(self.random_bits()?))
    }

    fn set_timer(&mut self, after: u64, message: Py<PyAny>, again: bool) -> PyResult<u64> {
        let current = self.current()?;
        let Some(actor) = self.actor(current.actor) else {
            return Err(PyRuntimeError::new_err("the actor has ended"));
        };
        let token = match actor.free.pop() {
            Some(token) => token,
            None => {
                actor.timers.push(Timer::default());
                actor.timers.len() as u32 - 1
            }
        };
        let timer = &mut actor.timers[token as usize];
        (timer.message, timer.again, timer.handle) = (Some(message), again, None);
        let id = u64::from(timer.uses) << 32 | u64::from(token);
        self.wishes.push(Wish::Timer {
            token,
            after,
            again,
        });
        Ok(id)
    }
}

/// Returns an error if a handler uses `yield` or is `async`, because calling it would run none of its lines.
fn refuse_process(
    actor: &Bound<'_, PyAny>,
    handler: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<()> {
    let inspect = actor.py().import("inspect")?;
    for (kind, what) in [
        ("isgeneratorfunction", "uses yield"),
        ("iscoroutinefunction", "is async"),
        ("isasyncgenfunction", "is async"),
    ] {
        if inspect.call_method1(kind, (handler,))?.is_truthy()? {
            return Err(PyTypeError::new_err(format!(
                "{}.{name} {what}; a handler returns at once and uses ctx.after to wait, \
                 and corsair.sim has processes that wait",
                actor.get_type().qualname()?
            )));
        }
    }
    Ok(())
}

/// Returns an error if a handler has returned a generator or a coroutine, whose code has not run.
pub fn check_returned(returned: &Bound<'_, PyAny>) -> PyResult<()> {
    if returned.is_none() || !(returned.hasattr("send")? && returned.hasattr("throw")?) {
        return Ok(());
    }
    returned.call_method0("close")?;
    Err(PyTypeError::new_err(format!(
        "the handler has returned a {}, of which nothing has run; call it without yield and await, \
         or use corsair.sim",
        returned.get_type().name()?
    )))
}

/// Converts a delay to nanoseconds. A number of seconds is converted directly; anything else is read as a [`Span`].
fn nanos(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(seconds) = given.cast_exact::<pyo3::types::PyFloat>() {
        let nanos = seconds.value() * 1e9;
        if (0.0..1.8e19).contains(&nanos) {
            return Ok(nanos.round() as u64);
        }
    }
    let Span(time) = given.extract()?;
    Ok(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

#[pymethods]
impl Context {
    /// The address of the actor that handles the message.
    #[getter]
    fn me(&self) -> PyResult<u32> {
        Ok(self.current()?.actor)
    }

    /// The name of the actor, or its number if it has no name.
    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.name_of(self.current()?.actor))
    }

    /// The sender of the message; None if the message came from outside. The sender of a timer's message is the actor
    /// itself.
    #[getter]
    fn sender(&self) -> PyResult<Option<u32>> {
        Ok(self.current()?.sender)
    }

    /// The virtual time in seconds.
    #[getter]
    fn now(&self) -> PyResult<f64> {
        Ok(self.current()?.now as f64 / 1e9)
    }

    /// The virtual time in nanoseconds.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.current()?.now)
    }

    /// Sends a message, which arrives after the simulation's latency plus `delay`.
    #[pyo3(signature = (to, message, delay=None))]
    fn send(
        &mut self,
        to: u32,
        message: &Bound<'_, PyAny>,
        delay: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.current()?;
        self.check(to)?;
        let delay = delay.map_or(Ok(0), nanos)?;
        let mail = self.mail(message)?;
        self.wishes.push(Wish::Send { to, mail, delay });
        Ok(())
    }

    /// Sends this actor a message after a delay, which is exact to the nanosecond. Returns a handle for `cancel`.
    fn after(&mut self, delay: &Bound<'_, PyAny>, message: Py<PyAny>) -> PyResult<u64> {
        let after = nanos(delay)?;
        self.set_timer(after, message, false)
    }

    /// Sends this actor a message periodically, until the timer is cancelled or the actor ends.
    fn every(&mut self, period: &Bound<'_, PyAny>, message: Py<PyAny>) -> PyResult<u64> {
        let period = nanos(period)?;
        if period == 0 {
            return Err(PyValueError::new_err(
                "a period must be at least a nanosecond",
            ));
        }
        self.set_timer(period, message, true)
    }

    /// Cancels a timer. Returns False if the timer has already expired or was cancelled before.
    fn cancel(&mut self, timer: u64) -> PyResult<bool> {
        let current = self.current()?;
        let (token, uses) = (timer as u32, (timer >> 32) as u32);
        let Some(actor) = self.actor(current.actor) else {
            return Ok(false);
        };
        let Some(set) = actor.timers.get_mut(token as usize) else {
            return Ok(false);
        };
        if set.uses != uses || set.message.is_none() {
            return Ok(false);
        }
        set.message = None;
        set.uses = set.uses.wrapping_add(1);
        let handle = set.handle.take();
        match handle {
            Some(handle) => {
                actor.free.push(token);
                self.wishes.push(Wish::Cancel { handle });
            }
            // The timer was set in the same turn, so it is dropped before it is set.
            None => {
                self.wishes
                    .retain(|wish| !matches!(wish, Wish::Timer { token: of, .. } if *of == token));
                if let Some(actor) = self.actor(current.actor) {
                    actor.free.push(token);
                }
            }
        }
        Ok(true)
    }

    /// Spawns an actor and returns its address. If the actor has a method `start(self, ctx)`, the method is called when
    /// the engine's first message reaches the actor, which happens immediately.
    #[pyo3(signature = (actor, name=None))]
    fn spawn(&mut self, actor: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<u32> {
        self.current()?;
        let (address, wants_start) = self.admit(actor, name)?;
        if wants_start {
            let mail = Mail {
                body: None,
                fingerprint: 0,
            };
            self.wishes.push(Wish::Send {
                to: address,
                mail,
                delay: 0,
            });
        }
        Ok(address)
    }

    /// Stops an actor. This actor, which is the default, ends after the current message. Another actor ends when the
    /// request reaches it.
    #[pyo3(signature = (who=None))]
    fn stop(&mut self, who: Option<u32>) -> PyResult<()> {
        let current = self.current()?;
        let who = who.unwrap_or(current.actor);
        self.check(who)?;
        self.wishes.push(Wish::Stop { who });
        Ok(())
    }

    /// A random number from 0 (inclusive) to 1 (exclusive), from this actor's own stream.
    fn random(&mut self) -> PyResult<f64> {
        Ok((self.random_bits()? >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// A random whole number below a bound.
    fn below(&mut self, bound: u32) -> PyResult<u32> {
        if bound == 0 {
            return Err(PyValueError::new_err(
                "the upper bound is 0; give 1 or more",
            ));
        }
        let bits = self.random_bits()?;
        Ok(((u128::from(bits) * u128::from(bound)) >> 64) as u32)
    }

    /// A random element of a sequence.
    fn choice<'py>(&mut self, among: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = among.len()?;
        if count == 0 {
            return Err(PyIndexError::new_err("there is nothing to choose from"));
        }
        let bits = self.random_bits()?;
        let place = ((u128::from(bits) * count as u128) >> 64) as usize;
        among.get_item(place)
    }

    /// A random number, exponentially distributed with this mean.
    fn exponential(&mut self, mean: f64) -> PyResult<f64> {
        self.draw(Distribution::exponential(mean))
    }

    /// A random number between `low` and `high`, uniformly distributed.
    fn uniform(&mut self, low: f64, high: f64) -> PyResult<f64> {
        self.draw(Distribution::uniform(low, high))
    }

    /// A random number, normally distributed.
    fn normal(&mut self, mean: f64, deviation: f64) -> PyResult<f64> {
        self.draw(Distribution::normal(mean, deviation))
    }

    /// A random number whose logarithm is normally distributed.
    fn lognormal(&mut self, median: f64, sigma: f64) -> PyResult<f64> {
        self.draw(Distribution::lognormal(median, sigma))
    }

    /// A random number, Pareto distributed.
    fn pareto(&mut self, least: f64, shape: f64) -> PyResult<f64> {
        self.draw(Distribution::pareto(least, shape))
    }

    /// A random number, Weibull distributed.
    fn weibull(&mut self, scale: f64, shape: f64) -> PyResult<f64> {
        self.draw(Distribution::weibull(scale, shape))
    }

    /// A random number, gamma distributed with the mean `scale * shape`.
    fn gamma(&mut self, scale: f64, shape: f64) -> PyResult<f64> {
        self.draw(Distribution::gamma(scale, shape))
    }

    /// One of these numbers, chosen at random with equal probability.
    fn empirical(&mut self, values: Vec<f64>) -> PyResult<f64> {
        self.draw(Distribution::empirical(&values))
    }

    /// A random number from a distribution with these percentiles, such as [(50, 2.0), (99, 20.0)].
    fn percentiles(&mut self, points: Vec<(f64, f64)>) -> PyResult<f64> {
        self.draw(Distribution::percentiles(&points))
    }

    /// Adds to a counter of the simulation.
    #[pyo3(signature = (name, more=1))]
    fn count(&mut self, name: &str, more: u64) -> PyResult<()> {
        self.current()?;
        match self.counters.get_mut(name) {
            Some(count) => *count = count.saturating_add(more),
            None => {
                self.counters.insert(name.to_owned(), more);
            }
        }
        Ok(())
    }

    /// Records a value with the current time, for `Simulation.observations`.
    fn observe(&mut self, name: &str, value: f64) -> PyResult<()> {
        let now = self.current()?.now as f64 / 1e9;
        if !self.observed.contains_key(name) {
            self.observed.insert(name.to_owned(), Default::default());
        }
        if let Some((times, values)) = self.observed.get_mut(name) {
            times.push(now);
            values.push(value);
        }
        Ok(())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        for actor in self.actors.iter().flatten() {
            visit.call(&actor.object)?;
            visit.call(&actor.on)?;
            visit.call(&actor.start)?;
            for timer in &actor.timers {
                visit.call(&timer.message)?;
            }
        }
        Ok(())
    }

    fn __clear__(&mut self) {
        self.actors.clear();
        self.wishes.clear();
    }
}

impl Context {
    /// Returns true if signals should be handled now. The interpreter handles signals while it runs Python code, but
    /// not while a handler is a built-in function.
    pub fn is_time_for_signals(&mut self) -> bool {
        self.turns += 1;
        self.turns.is_multiple_of(TURNS)
    }
}
