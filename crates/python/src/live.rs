//! An architecture in virtual time that Python advances step by step.

use crate::arguments::{Arguments, Count, Seed, Span, scale};
use crate::checkpointing::{Owner, not_driven};
use crate::error;
use crate::interrupt::watched;
use crate::recording::Recording;
use crate::run::{self, Job, RunContext, RunResults, job};
use crate::saved::{self, SavedCheckpoint};
use crate::search::settings;
use corsair::{CancelToken, Executor, Progress, Time};
use corsair_arch::live::{Live as World, ResumeError, Sending};
use corsair_arch::{Architecture, Branch, Command, Plan, Setting};
use corsair_observe::checkpoint::RunId;
use corsair_observe::run::{Every, Policy, Workload};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The latest virtual time to which a run can be advanced.
const LATEST: Time = Time::from_nanos(u64::MAX - 1);

/// An architecture in virtual time that is paused between two calls.
#[pyclass(frozen, module = "corsair._corsair")]
pub struct Live {
    world: Mutex<Option<World>>,
    about: Mutex<Option<RunContext>>,
    recording: Mutex<Option<Recording>>,
    run: RunId,
    names: Vec<String>,
    /// The service of each instance.
    services: Vec<String>,
    cancel: CancelToken,
    progress: Progress,
    /// The duration of the load in seconds.
    lasts: f64,
    process: u32,
}

impl Drop for Live {
    /// Ends the run. A forked process does not have the threads of the run, so waiting for them would never end.
    fn drop(&mut self) {
        if self.process != std::process::id()
            && let Ok(world) = self.world.get_mut()
        {
            std::mem::forget(world.take());
            if let Ok(recording) = self.recording.get_mut() {
                std::mem::forget(recording.take());
            }
        }
    }
}

impl Live {
    fn world(&self) -> PyResult<MutexGuard<'_, Option<World>>> {
        if self.process != std::process::id() {
            return Err(PyRuntimeError::new_err(
                "this simulation belongs to the process that made it; make another one after a fork",
            ));
        }
        match self.world.try_lock() {
            Ok(world) => Ok(world),
            Err(TryLockError::Poisoned(world)) => Ok(world.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the simulation is running in another thread",
            )),
        }
    }

    /// Calls a function with the simulation, unless it was finished or closed.
    fn with<T>(&self, act: impl FnOnce(&mut World) -> PyResult<T>) -> PyResult<T> {
        let mut world = self.world()?;
        match world.as_mut() {
            Some(world) => act(world),
            None => Err(over()),
        }
    }

    fn instance(&self, name: &str) -> PyResult<u32> {
        if let Some(place) = self.names.iter().position(|known| known == name) {
            return Ok(place as u32);
        }
        // The name of a service with one instance stands for that instance.
        let mut of_service = (0..)
            .zip(&self.services)
            .filter(|(_, service)| *service == name);
        if let (Some((only, _)), None) = (of_service.next(), of_service.next()) {
            return Ok(only);
        }
        let near = corsair_arch::nearest(name, self.names.iter().map(String::as_str));
        let meant = match near {
            Some(near) => format!("did you mean {near}?"),
            None => "ServiceSimulation.instances lists them".to_owned(),
        };
        Err(PyValueError::new_err(format!(
            "there is no instance '{name}'; {meant}"
        )))
    }
}

/// Returns the branch of a saved run in which some fields, or the load as a percentage, are changed.
fn changed(
    definition: (Python<'_>, &str, &str),
    set: Vec<Setting>,
    arguments: &Arguments<'_, '_>,
) -> PyResult<Branch> {
    let (mut fields, mut load_percent) = (Vec::new(), None);
    for setting in set {
        let percent = setting
            .value
            .as_str()
            .and_then(|text| text.strip_suffix('%'));
        match (setting.path.as_str(), percent) {
            ("load", Some(percent)) => {
                let read = percent.parse().ok().filter(|percent| *percent <= 100_000);
                load_percent = Some(read.ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "load: {percent}% is out of range; give 0% to 100000%"
                    ))
                })?);
            }
            _ => fields.push(setting),
        }
    }
    let topology = run::topology(definition, &fields, arguments, scale(arguments)?)?;
    Ok(Branch {
        topology,
        seed: None,
        load_percent,
        counts_from_here: false,
    })
}

#[pymethods]
impl Live {
    /// Begins a run, or resumes a saved one: unchanged, or as a branch with another seed or other fields.
    #[new]
    #[pyo3(signature = (text, file, arguments, saved, reseed, set=Vec::new()))]
    fn new(
        py: Python<'_>,
        text: &str,
        file: &str,
        arguments: &Bound<'_, PyDict>,
        saved: Option<&SavedCheckpoint>,
        reseed: Option<Seed>,
        set: Vec<(String, String)>,
    ) -> PyResult<Live> {
        let Job {
            config,
            topology,
            plan,
        } = job(py, text, file, &Arguments(arguments))?;
        let recording = Recording::new(&Arguments(arguments), &topology, &config, saved)?;
        let plan = Plan {
            recorder: recording.recorder(),
            ..plan
        };
        let about = RunContext::new(&topology, &plan);
        let names = (0..topology.len())
            .map(|instance| topology.label(instance))
            .collect();
        let services = topology.instances.iter();
        let services =
            services.map(|instance| topology.services[instance.service as usize].name.clone());
        let services = services.collect();
        let reseed = reseed.map(|Seed(seed)| seed);
        let run = match saved {
            Some(saved) => saved.run(reseed, &set),
            None => {
                let begun = Architecture::new(Executor::Virtual, &config, topology.clone(), &plan);
                RunId::of(&begun.map_err(|e| error::simulate(&e))?.run_inputs())
            }
        };
        let (cancel, progress) = (config.cancel.clone(), config.progress.clone());
        let lasts = plan.duration.as_secs_f64();
        let world = match saved {
            None => World::new(&config, topology, &plan).map_err(|e| error::simulate(&e))?,
            Some(saved) => {
                let resumed = if set.is_empty() {
                    let snapshot = saved.snapshot(reseed)?;
                    World::resume(&config, topology, &plan, &snapshot)
                } else {
                    let mut branch =
                        changed((py, text, file), settings(set)?, &Arguments(arguments))?;
                    branch.seed = reseed;
                    let snapshot = saved.snapshot(None)?;
                    let branched =
                        Architecture::branch(&config, &topology, &branch, &plan, &snapshot);
                    branched.and_then(|(branch, snapshot)| World::hold(branch, snapshot))
                };
                resumed.map_err(|e| match e {
                    ResumeError::Simulate(e) => error::simulate(&e),
                    other => error::value(other),
                })?
            }
        };
        Ok(Live {
            world: Mutex::new(Some(world)),
            about: Mutex::new(Some(about)),
            recording: Mutex::new(Some(recording)),
            run,
            names,
            services,
            cancel,
            progress,
            lasts,
            process: std::process::id(),
        })
    }

    /// The current time in seconds.
    #[getter]
    fn now(&self) -> PyResult<f64> {
        self.with(|world| Ok(world.now().elapsed().as_secs_f64()))
    }

    #[getter]
    fn is_over(&self) -> PyResult<bool> {
        self.with(|world| Ok(world.is_over()))
    }

    /// The start and end of the load in seconds.
    #[getter]
    fn load(&self) -> PyResult<(f64, f64)> {
        self.with(|world| {
            let (begins, ends) = world.load();
            Ok((begins.elapsed().as_secs_f64(), ends.elapsed().as_secs_f64()))
        })
    }

    #[getter]
    fn instances(&self) -> Vec<String> {
        self.names.clone()
    }

    /// The digest of all events so far.
    #[getter]
    fn digest(&self) -> PyResult<String> {
        self.with(|world| Ok(format!("{:016x}", world.simulation().digest())))
    }

    /// The number of delivered messages.
    #[getter]
    fn messages(&self) -> PyResult<u64> {
        self.with(|world| Ok(world.simulation().report().delivered()))
    }

    /// Runs until a time. Returns false if the run has ended.
    fn run_until(&self, py: Python<'_>, time: Span) -> PyResult<bool> {
        let until = Time::ZERO.after(time.0);
        self.with(|world| {
            let run = || world.simulation().run_until(until);
            watched(py, &self.cancel, None, || 0.0, run)
        })
    }

    /// Runs until a time or to the end, and saves the run on the way. Returns the requested checkpoint times, in seconds,
    /// that the run did not reach; `None` if the run continues after `until`.
    fn drive(
        &self,
        py: Python<'_>,
        until: Option<Span>,
        saving: (Option<Span>, Vec<Span>, PathBuf),
        about: &str,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Vec<f64>>> {
        let (every, at, directory) = saving;
        let policy = Policy {
            every: every.map(|Span(time)| Every::Time(time)),
            at: at.iter().map(|Span(at)| Time::ZERO.after(*at)).collect(),
            directory,
        };
        let owner = Owner::new(about, &self.recording, self.cancel.clone());
        let recorder = owner.recorder();
        let until = until.map(|Span(until)| Time::ZERO.after(until));
        let so_far = || (self.progress.time().elapsed().as_secs_f64() / self.lasts).min(1.0);
        self.with(|world| {
            let held = world.held();
            let run = || match policy.every.is_some() || !policy.at.is_empty() {
                true => held.drive(until, &policy, &owner, self.run, recorder),
                false => Ok(!held.simulation.run_until(until.unwrap_or(LATEST))),
            };
            let driven = watched(py, &self.cancel, progress, so_far, run)?;
            let missed = owner.finish()?;
            let is_over = driven.map_err(|e| not_driven(&e))?;
            Ok(is_over.then_some(missed))
        })
    }

    /// Saves the run below a directory, and returns the directory of the checkpoint.
    fn checkpoint(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        about: &str,
        asked: bool,
    ) -> PyResult<PathBuf> {
        self.with(|world| {
            let snapshot = py.detach(|| world.simulation().snapshot());
            let snapshot = snapshot.map_err(error::failed)?;
            let time = world.now();
            py.detach(|| {
                let recording = self.recording.lock();
                let recording = recording.unwrap_or_else(PoisonError::into_inner);
                let recorded = recording.as_ref().map(|recording| recording.save(time));
                let recorded = recorded.transpose()?.unwrap_or_default();
                saved::write(&directory, self.run, time, snapshot, recorded, about, asked)
            })
        })
    }

    fn step(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(|world| {
            let simulation = world.simulation();
            Ok(py.detach(|| simulation.step()))
        })
    }

    /// The state of an instance in numbers as JSON; None before the instance has begun and after it has ended.
    fn state(&self, instance: &str) -> PyResult<Option<String>> {
        self.with(|world| {
            let instance = self.instance(instance)?;
            let state = world.state(instance);
            let state = state.map(|state| serde_json::to_string(&state));
            state.transpose().map_err(error::failed)
        })
    }

    /// All details of an instance as JSON.
    fn details(&self, instance: &str) -> PyResult<Option<String>> {
        self.with(|world| {
            let instance = self.instance(instance)?;
            let details = world.details(instance);
            let details = details.map(|details| serde_json::to_string(&details));
            details.transpose().map_err(error::failed)
        })
    }

    /// Sends a command to an instance.
    fn command(
        &self,
        instance: &str,
        what: &str,
        value: Option<Count>,
        at: Option<Span>,
    ) -> PyResult<()> {
        let percent = value.map_or(100, |Count(value)| value);
        let command = match what {
            "kill" => Command::Kill,
            "revive" => Command::Revive,
            "pause" => Command::Pause,
            "resume" => Command::Resume,
            "slow" => Command::Slow(percent),
            "partition" => Command::Partition,
            "rejoin" => Command::Rejoin,
            "load" => Command::Load(percent),
            other => {
                return Err(PyValueError::new_err(format!("'{other}' is not a command")));
            }
        };
        self.with(|world| {
            let instance = self.instance(instance)?;
            let at = moment(world, at);
            world.command(at, instance, command).map_err(error::value)
        })
    }

    /// Sends an instance a request for an endpoint, or for the value that all instances have, or puts a value.
    fn send(
        &self,
        instance: &str,
        endpoint: Option<&str>,
        put: Option<Count>,
        at: Option<Span>,
    ) -> PyResult<u64> {
        self.with(|world| {
            let instance = self.instance(instance)?;
            let what = match (endpoint, put) {
                (Some(_), Some(_)) => {
                    return Err(PyValueError::new_err(
                        "a message is a request for an endpoint or a value to put, not both",
                    ));
                }
                (Some(endpoint), None) => {
                    Sending::Request(Some(world.endpoint(endpoint).map_err(error::value)?))
                }
                (None, Some(Count(number))) => Sending::Put(number),
                (None, None) => Sending::Request(None),
            };
            let at = moment(world, at);
            world.send(at, instance, what).map_err(error::value)
        })
    }

    /// Runs to the end and returns the results. If `here` is true, ends the run at its current time instead.
    fn finish(&self, py: Python<'_>, here: bool) -> PyResult<RunResults> {
        let world = self.world()?.take();
        let about = self.about.lock().ok().and_then(|mut about| about.take());
        let (Some(world), Some(about)) = (world, about) else {
            return Err(over());
        };
        if here {
            self.cancel.cancel();
        }
        let finished = watched(py, &self.cancel, None, || 0.0, || world.finish())?;
        let (report, totals) = finished.map_err(|e| error::simulate(&e))?;
        let recording = self.recording.lock();
        let recording = recording.unwrap_or_else(PoisonError::into_inner).take();
        let recorded = recording.map(|recording| py.detach(|| recording.finish()));
        about.leave(
            py,
            &report,
            totals,
            recorded.transpose()?.unwrap_or_default(),
        )
    }

    /// Closes the run without results.
    fn close(&self) -> PyResult<()> {
        drop(self.world()?.take());
        let recording = self.recording.lock();
        drop(recording.unwrap_or_else(PoisonError::into_inner).take());
        Ok(())
    }
}

/// Returns the error for a simulation that has been finished or closed.
fn over() -> PyErr {
    error::failed("the simulation was finished or closed")
}

/// Returns the given time if it is in the future, or else the next possible time.
fn moment(world: &World, at: Option<Span>) -> Time {
    match at {
        Some(Span(at)) => Time::ZERO.after(at),
        None => Time::from_nanos(world.now().as_nanos() + 1),
    }
}
