//! Processes: generators and coroutines that wait for events.

use super::agenda::{NORMAL, URGENT};
use super::attached_cell::AttachedCell;
use super::classes::{Callback, Callbacks, Environment, Event, Process, Value};
use super::event::fresh_exception;
use super::names::Names;
use super::release;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::iterator::PySendResult;
use pyo3::types::{PyDict, PyIterator, PyTuple};
use pyo3::{PyTraverseError, PyVisit, intern};

/// The outcome of one step of a generator: it yields an event to wait for, or returns a value.
enum Step<'py> {
    Waits(Bound<'py, PyAny>),
    Ends(Bound<'py, PyAny>),
}

impl Process {
    fn blank() -> Process {
        Process {
            generator: AttachedCell::new(None),
            stepped: AttachedCell::new(None),
            target: AttachedCell::new(None),
        }
    }

    pub fn new_in<'py>(
        env: &Bound<'py, Environment>,
        generator: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, Process>> {
        let event = PyClassInitializer::from(Event::pending(env));
        let process = Process {
            generator: AttachedCell::new(Some(generator.clone().unbind())),
            stepped: AttachedCell::new(Process::stepped(generator)?),
            target: AttachedCell::new(None),
        };
        let process = Bound::new(env.py(), event.add_subclass(process))?;
        Process::start(&process, env)?;
        Ok(process)
    }

    fn stepped(generator: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyIterator>>> {
        let py = generator.py();
        if let Ok(iterator) = generator.cast::<PyIterator>() {
            if !generator.hasattr(intern!(py, "throw"))? {
                return Err(not_a_generator(generator)?);
            }
            return Ok(Some(iterator.clone().unbind()));
        }
        if !generator.hasattr(intern!(py, "throw"))? {
            return Err(not_a_generator(generator)?);
        }
        let Ok(awaited) = generator.call_method0(intern!(py, "__await__")) else {
            return Ok(None);
        };
        Ok(awaited.cast_into::<PyIterator>().ok().map(Bound::unbind))
    }

    fn start(this: &Bound<'_, Process>, env: &Bound<'_, Environment>) -> PyResult<()> {
        let callbacks = Callbacks::One(Callback::Resume(this.clone().unbind()));
        let event = Event::triggered(env, Value::None, callbacks);
        let start = PyClassInitializer::from(event).add_subclass(Initialize {});
        let start = Bound::new(env.py(), start)?.into_super();
        Environment::schedule_event(env, &start, URGENT, None)?;
        this.get().target.set(env.py(), Some(start.unbind()));
        Ok(())
    }

    fn generator_of<'py>(this: &Bound<'py, Process>) -> PyResult<Bound<'py, PyAny>> {
        this.get().generator.object(this.py()).ok_or_else(|| {
            PyRuntimeError::new_err(
                "the process has no generator; call super().__init__(env, generator) in the __init__ of its class",
            )
        })
    }

    /// Resumes the process with the outcome of an event. The process runs until it waits for an unprocessed event, or
    /// ends.
    pub fn resume<'py>(
        this: &Bound<'py, Process>,
        env: &Bound<'py, Environment>,
        mut event: Bound<'py, Event>,
    ) -> PyResult<()> {
        let py = this.py();
        let stepped = this.get().stepped.object(py);
        Environment::activate(env, Some(this.clone().unbind()));
        let target = loop {
            match Process::advance(this, stepped.as_ref(), &event) {
                Ok(Step::Waits(next)) => {
                    let Ok(next) = next.cast::<Event>() else {
                        return Err(invalid_yield(this, &next)?);
                    };
                    event = next.clone();
                    if Callbacks::push(next, Callback::Resume(this.clone().unbind()))? {
                        break Some(event.unbind());
                    }
                }
                Ok(Step::Ends(value)) => {
                    Process::end(this, env, true, value)?;
                    break None;
                }
                Err(error) => {
                    let exception = error.into_value(py).into_bound(py).into_any();
                    Process::end(this, env, false, exception)?;
                    break None;
                }
            }
        };
        this.get().target.set(py, target);
        Environment::activate(env, None);
        Ok(())
    }

    fn advance<'py>(
        this: &Bound<'py, Process>,
        stepped: Option<&Bound<'py, PyIterator>>,
        event: &Bound<'py, Event>,
    ) -> PyResult<Step<'py>> {
        let py = this.py();
        let ok = event.get().ok.get(py);
        if ok == Some(false) {
            event.get().defused.set(py, true);
        }
        let value = Event::value_now(event);
        let value = value.unwrap_or_else(|| py.None().into_bound(py));
        let called = match (ok, stepped) {
            (Some(true), Some(stepped)) => {
                return Ok(match stepped.send(&value)? {
                    PySendResult::Next(next) => Step::Waits(next),
                    PySendResult::Return(value) => Step::Ends(value),
                });
            }
            (Some(true), None) => {
                Process::generator_of(this)?.call_method1(intern!(py, "send"), (value,))
            }
            (Some(false), _) => {
                let exception = fresh_exception(&value)?;
                Process::generator_of(this)?.call_method1(intern!(py, "throw"), (exception,))
            }
            (None, _) => Err(Event::is_ok(event)
                .err()
                .unwrap_or_else(|| PyRuntimeError::new_err("the event has no outcome"))),
        };
        match called {
            Ok(next) => Ok(Step::Waits(next)),
            Err(error) if error.is_instance_of::<PyStopIteration>(py) => {
                Ok(Step::Ends(error.value(py).getattr(intern!(py, "value"))?))
            }
            Err(error) => Err(error),
        }
    }

    fn end(
        this: &Bound<'_, Process>,
        env: &Bound<'_, Environment>,
        ok: bool,
        value: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let event = this.as_super().get();
        event.ok.set(env.py(), Some(ok));
        event.value.set(env.py(), Value::of(value));
        Environment::schedule_event(env, this.as_super(), NORMAL, None)
    }
}

fn not_a_generator(given: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(PyValueError::new_err(format!(
        "{} is not a generator.",
        given.str()?
    )))
}

fn invalid_yield(process: &Bound<'_, Process>, value: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let py = process.py();
    let generator = Process::generator_of(process)?;
    let message = Names::get(py)?
        .invalid_yield
        .bind(py)
        .call1((generator, value))?;
    Ok(PyRuntimeError::new_err(message.unbind()))
}

#[pymethods]
impl Process {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyClassInitializer<Process> {
        PyClassInitializer::from(Event::blank()).add_subclass(Process::blank())
    }

    fn __init__(
        this: &Bound<'_, Self>,
        env: &Bound<'_, Environment>,
        generator: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let stepped = Process::stepped(generator)?;
        let (py, process) = (env.py(), this.get());
        process.generator.set(py, Some(generator.clone().unbind()));
        process.stepped.set(py, stepped);
        let event = this.as_super().get();
        event.env.set(py, Some(env.clone().unbind()));
        Process::start(this, env)
    }

    /// The event that the process waits for; None if it has ended.
    #[getter(target)]
    fn get_target<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, Event>> {
        this.get().target.object(this.py())
    }

    #[getter(_target)]
    fn get_raw_target<'py>(this: &Bound<'py, Self>) -> Option<Bound<'py, Event>> {
        Process::get_target(this)
    }

    #[getter(_generator)]
    fn get_generator<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Process::generator_of(this)
    }

    /// The name of the function that made the generator.
    #[getter(name)]
    fn get_name<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Process::generator_of(this)?.getattr(intern!(this.py(), "__name__"))
    }

    /// True until the generator has returned or raised.
    #[getter(is_alive)]
    fn get_is_alive(this: &Bound<'_, Self>) -> bool {
        !Event::is_triggered(this.as_super())
    }

    /// Raises `Interrupt` with a cause in the process, at the current time and before all other events.
    ///
    /// Raises RuntimeError if the process has ended, or would interrupt itself.
    #[pyo3(signature = (cause=None))]
    fn interrupt(this: &Bound<'_, Self>, cause: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        Interruption::schedule(this, cause)
    }

    fn _resume<'py>(this: &Bound<'py, Self>, event: Bound<'py, Event>) -> PyResult<()> {
        let env = Event::environment(this.as_super())?;
        Process::resume(this, &env, event)
    }

    fn _desc(this: &Bound<'_, Self>) -> PyResult<String> {
        let name = Process::get_name(this)?;
        Ok(format!("{}({})", this.get_type().name()?, name.str()?))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.generator.visit(|generator| visit.call(generator))?;
        self.stepped.visit(|stepped| visit.call(stepped))?;
        self.target.visit(|target| visit.call(target))
    }

    fn __clear__(&self) {
        Python::attach(|py| {
            self.generator.set(py, None);
            self.stepped.set(py, None);
            self.target.set(py, None);
        });
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stepped.get_mut().take());
        if let Some(generator) = self.generator.get_mut().take() {
            release::later(generator);
        }
        if let Some(target) = self.target.get_mut().take() {
            release::later(target.into_any());
        }
    }
}

/// The event that starts a process.
#[pyclass(frozen, extends = Event, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Initialize {}

/// The event that interrupts a process.
#[pyclass(frozen, extends = Event, module = "corsair.sim.events")]
#[derive(Debug)]
pub struct Interruption {
    process: Py<Process>,
}

impl Interruption {
    fn schedule(process: &Bound<'_, Process>, cause: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let py = process.py();
        if Event::is_triggered(process.as_super()) {
            return Err(PyRuntimeError::new_err(format!(
                "{} has terminated and cannot be interrupted.",
                process.str()?
            )));
        }
        let env = Event::environment(process.as_super())?;
        if env.borrow().is_active(process) {
            return Err(PyRuntimeError::new_err(
                "A process is not allowed to interrupt itself.",
            ));
        }
        let exception = Names::get(py)?.interrupt.bind(py).call1((cause,))?;
        let event = Event::triggered(
            &env,
            Value::of(exception),
            Callbacks::One(Callback::Interrupt),
        );
        event.ok.set(py, Some(false));
        event.defused.set(py, true);
        let interruption = PyClassInitializer::from(event).add_subclass(Interruption {
            process: process.clone().unbind(),
        });
        let interruption = Bound::new(py, interruption)?.into_super();
        Environment::schedule_event(&env, &interruption, URGENT, None)
    }

    /// Removes the process from the event that it waits for, and raises the exception in the process. Does nothing if
    /// the process has ended.
    pub fn interrupt(this: &Bound<'_, Interruption>, env: &Bound<'_, Environment>) -> PyResult<()> {
        let py = this.py();
        let process = this.get().process.bind(py).clone();
        if Event::is_triggered(process.as_super()) {
            return Ok(());
        }
        let target = process.get().target.take(py);
        if let Some(target) = target {
            let resume = Callback::Resume(process.clone().unbind());
            if !Callbacks::remove(target.bind(py), &resume)? {
                return Err(PyValueError::new_err(format!(
                    "{} no longer resumes the interrupted process; leave its callbacks in place",
                    target.bind(py).str()?
                )));
            }
        }
        Process::resume(&process, env, this.as_super().clone())
    }
}

#[pymethods]
impl Interruption {
    /// The process that is interrupted.
    #[getter(process)]
    fn get_process<'py>(this: &Bound<'py, Self>) -> Bound<'py, Process> {
        this.get().process.bind(this.py()).clone()
    }

    fn _interrupt(this: &Bound<'_, Self>, _event: &Bound<'_, Event>) -> PyResult<()> {
        let env = Event::environment(this.as_super())?;
        Interruption::interrupt(this, &env)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.process)
    }
}
