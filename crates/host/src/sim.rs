//! A simulation: its hosts, faults and progress.

use crate::actor::{Bodies, Body, Net};
use crate::channel::Channel;
use crate::debug::Debug;
use crate::disk::Disk;
use crate::error::SimError;
use crate::executable;
use crate::fault::{Fault, Kind};
use crate::filesystem::FileSystem;
use crate::heap::{self, Zone};
use crate::links::OwnModels;
use crate::log::Line;
use crate::options::Outcome;
use crate::run::ActiveRun;
use crate::settings::Setting;
use crate::state::{HostId, HostState};
use crate::storage::Medium;
use crate::uplink::Record;
use crate::wire::Wire;
use crate::world::{Executable, HostSpec, Program, World, addresses};
use corsair::Time;
use corsair::network::{Fifo, Jitter, Network};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{ExitCode, Termination};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The virtual time between two checks for failed hosts.
const SLICE: u64 = 100_000_000;

/// A simulation of hosts. Its seed determines everything random: latencies, entropy, the order of threads.
#[derive(Debug)]
pub struct Sim {
    seed: u64,
    workers: NonZeroUsize,
    preemption: u32,
    processor_limit: Duration,
    network: Arc<dyn Network>,
    links: OwnModels,
    environment: Vec<(String, String)>,
    hosts: Vec<HostSpec>,
    bodies: Bodies,
    names: BTreeMap<String, usize>,
    /// The groups of hosts, by index; each group is spawned by one request.
    groups: Vec<Range<usize>>,
    disk: Disk,
    files: Vec<(usize, String, Vec<u8>)>,
    faults: BTreeMap<(u64, usize), Kind>,
    fault_count: usize,
    run: Option<ActiveRun>,
    failure: Option<SimError>,
}

impl Sim {
    /// Creates a simulation without hosts.
    pub(crate) fn new(seed: u64, workers: NonZeroUsize) -> Sim {
        let network = Jitter::new(Duration::from_micros(500), Duration::from_micros(1_000));
        Sim {
            seed,
            workers,
            preemption: 0,
            processor_limit: Duration::from_secs(20),
            network: Arc::new(Fifo(network.expect("the range is not empty"))),
            links: OwnModels::new(),
            environment: vec![],
            hosts: vec![],
            bodies: Bodies::default(),
            names: BTreeMap::new(),
            groups: vec![],
            disk: Disk::new(),
            files: vec![],
            faults: BTreeMap::new(),
            fault_count: 0,
            run: None,
            failure: None,
        }
    }

    /// Returns the seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Adds a host that runs `program`, the main function of a service, in a separate process. It is started at time 0.
    /// The host's name resolves to its addresses.
    ///
    /// When the function returns, the program exits like a real program whose `main` returns: with status 0, with 1
    /// after an error, which is printed, or with an [`ExitCode`]. If it panics, the simulation fails.
    pub fn host<T: Termination>(
        &mut self,
        name: impl Into<String>,
        program: impl Fn() -> T + Send + Sync + 'static,
    ) -> HostId {
        let program = Box::new(move || status(program().report()));
        let program = Channel::new().map(|channel| Program::Main(program, channel));
        let program = program.map_err(|source| SimError::System {
            what: "memory for a host's channel",
            source,
        });
        self.add(name.into(), program, None)
    }

    /// Adds a host that runs a program of this machine. The program can be written in any language; it must be
    /// dynamically linked, for Linux on x86-64 with glibc. `preload` is the path of the shared object with the
    /// simulated kernel, which the package `corsair-host-run` builds. [`Sim::args`] sets the name and the arguments of
    /// the program.
    ///
    /// The program sees the host's disk, and the files of this machine that [`Sim::readable`] names. These files must
    /// include the directories of the shared libraries.
    pub fn executable(
        &mut self,
        name: impl Into<String>,
        path: impl Into<PathBuf>,
        preload: impl Into<PathBuf>,
    ) -> HostId {
        let path: PathBuf = path.into();
        let program = match executable::check(&path) {
            Err(why) => Err(SimError::Settings(why)),
            Ok(()) => Channel::with_file()
                .map(|(channel, channel_fd)| {
                    let executable = Executable {
                        path,
                        preload: preload.into(),
                        readable: vec![],
                        environment: vec![],
                        channel_fd,
                    };
                    Program::File(executable, channel)
                })
                .map_err(|source| SimError::System {
                    what: "memory for a host's channel",
                    source,
                }),
        };
        self.add(name.into(), program, None)
    }

    fn executable_of(&mut self, host: &HostId) -> Option<&mut Executable> {
        match &mut self.hosts.get_mut(host.0)?.program {
            Program::File(executable, _) => Some(executable),
            _ => None,
        }
    }

    /// Lets a host's [executable](Sim::executable) read a file or a directory of this machine at the same path, but not
    /// write it.
    pub fn readable(&mut self, host: &HostId, path: impl Into<PathBuf>) {
        if let Some(executable) = self.executable_of(host) {
            executable.readable.push(path.into());
        }
    }

    /// Sets an environment variable of one host's [executable](Sim::executable).
    pub fn env_of(&mut self, host: &HostId, name: &str, value: &str) {
        if let Some(executable) = self.executable_of(host) {
            let entry = (name.to_string(), value.to_string());
            executable.environment.push(entry);
        }
    }

    /// Adds a host to the group that begins at an index, or as a separate group.
    fn add(
        &mut self,
        name: String,
        program: Result<Program, SimError>,
        group: Option<usize>,
    ) -> HostId {
        let index = self.hosts.len();
        let is_valid = (1..64).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && self
                .names
                .insert(name.to_ascii_lowercase(), index)
                .is_none();
        if !is_valid {
            self.failure.get_or_insert(SimError::Name(name.clone()));
        }
        if self.run.is_some() {
            self.failure.get_or_insert(SimError::TooLate(name));
            return HostId(index);
        }
        match program {
            Ok(program) => self.hosts.push(HostSpec {
                name,
                addresses: addresses(index),
                program,
                arguments: vec![],
            }),
            Err(error) => {
                self.failure.get_or_insert(error);
                return HostId(index);
            }
        }
        match self.groups.last_mut() {
            Some(last) if group == Some(last.start) => last.end += 1,
            _ => self.groups.push(index..index + 1),
        }
        HostId(index)
    }

    /// Adds a host that runs a body, like [`Sim::add`].
    fn add_actor(&mut self, name: String, body: Body, group: Option<usize>) -> HostId {
        let host = self.add(name, Ok(Program::Actor), group);
        if self.run.is_none() {
            self.bodies.0.insert(host.0, body);
        }
        host
    }

    /// Adds `count` hosts named `<name>-0`, `<name>-1` and so on; each program receives its number.
    pub fn hosts<T: Termination>(
        &mut self,
        name: &str,
        count: usize,
        program: impl Fn(usize) -> T + Clone + Send + Sync + 'static,
    ) -> Vec<HostId> {
        let add = |number| {
            let program = program.clone();
            self.host(format!("{name}-{number}"), move || program(number))
        };
        (0..count).map(add).collect()
    }

    /// Adds a host that is not a process, but an async function (its body) that the engine runs. Such a host is a cheap
    /// client, load generator or stub of a service. The body uses the sockets of [`Net`].
    ///
    /// If the body returns an error or panics, the simulation fails. A [kill](Fault::kill), a [power
    /// loss](Fault::power_loss) and a [start](Fault::start) work as for programs; signals and disks do not.
    ///
    /// ```ignore
    /// sim.actor("client", |net| async move {
    ///     let mut server = net.connect("server:7").await?;
    ///     server.write_all(b"hello").await?;
    ///     let mut answer = [0; 5];
    ///     server.read_exact(&mut answer).await?;
    ///     Ok::<(), std::io::Error>(())
    /// });
    /// ```
    pub fn actor<B>(
        &mut self,
        name: impl Into<String>,
        body: impl Fn(Net) -> B + Send + Sync + 'static,
    ) -> HostId
    where
        B: Future<Output: Outcome> + Send + 'static,
    {
        self.add_actor(name.into(), actor(body), None)
    }

    /// Adds `count` actors named `<name>-0`, `<name>-1` and so on; each body receives its number. A simulation can have
    /// ten thousand actors.
    pub fn actors<B>(
        &mut self,
        name: &str,
        count: usize,
        body: impl Fn(usize, Net) -> B + Clone + Send + Sync + 'static,
    ) -> Vec<HostId>
    where
        B: Future<Output: Outcome> + Send + 'static,
    {
        let first = self.hosts.len();
        let add = |number| {
            let body = body.clone();
            let body = actor(move |net| body(number, net));
            self.add_actor(format!("{name}-{number}"), body, Some(first))
        };
        (0..count).map(add).collect()
    }

    /// Schedules `fault` at the time `after` since the start of the simulation. At one instant, faults happen in the
    /// order in which they were added.
    pub fn at(&mut self, after: Duration, fault: Fault) {
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        self.faults.insert((nanos, self.fault_count), fault.0);
        self.fault_count += 1;
    }

    /// Sets the network between hosts. By default latencies are 0.5 to 1 ms, in order and without loss.
    pub fn network(&mut self, network: impl Network) {
        self.network = Arc::new(network);
    }

    /// Sets the network between two hosts, in both directions. Whether packets arrive in order depends on the [network
    /// of all hosts](Sim::network).
    pub fn link(&mut self, one: &HostId, other: &HostId, network: impl Network) {
        let pair = (one.0.min(other.0) as u32, one.0.max(other.0) as u32);
        self.links.insert(pair, Arc::new(network));
    }

    /// Sets the properties of all disks. [`Fault::disk`] changes the disk of one host later.
    pub fn disk(&mut self, disk: Disk) {
        self.disk = disk;
    }

    /// Puts a file on the disk of a host before the start. The directories of its path are created.
    pub fn file(&mut self, host: &HostId, path: &str, contents: impl Into<Vec<u8>>) {
        self.files.push((host.0, path.to_string(), contents.into()));
    }

    /// Returns the contents of a file as the host's programs currently see it; `None` if there is no such file. The
    /// path is absolute and has no symbolic links.
    pub fn read_file(&self, host: &HostId, path: &str) -> Option<Vec<u8>> {
        let medium = self.run.as_ref()?.world.medium.of_host(host.0)?;
        let files = FileSystem::open(medium, 0).ok()?;
        Some(files.contents(files.find(path)?))
    }

    /// Sets the arguments of a host's program for `std::env::args`; the first one is its name. By default the program
    /// has only the name of its host.
    ///
    /// With arguments, the real `main` of a program can run as a host:
    /// ```ignore
    /// let node = sim.host("node", my_program::main);
    /// sim.args(&node, ["my-program", "serve", "--listen", "0.0.0.0:80"]);
    /// ```
    pub fn args<T: Into<String>>(&mut self, host: &HostId, arguments: impl IntoIterator<Item = T>) {
        let arguments: Vec<String> = arguments.into_iter().map(Into::into).collect();
        if arguments.len() > crate::arguments::MOST {
            self.failure.get_or_insert(SimError::Settings(format!(
                "a program has {} arguments, and at most {} are simulated",
                arguments.len(),
                crate::arguments::MOST
            )));
        } else if let Some(host) = self.hosts.get_mut(host.0) {
            host.arguments = arguments;
        }
    }

    /// Sets an environment variable of all programs. They do not see the machine's variables, except those for
    /// backtraces and logs (`RUST_BACKTRACE`, `RUST_LOG`).
    pub fn env(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_string(), value.to_string()));
    }

    /// Switches to another thread before `per_thousand` of 1,000 calls of a program; the seed chooses these calls. This
    /// finds races between threads. By default (0), threads are switched only when a thread waits.
    pub fn preemption(&mut self, per_thousand: u32) {
        self.preemption = per_thousand;
    }

    /// Sets the processor time that a program may use between two system calls, to within a second; 20 s by default. A
    /// program that computes for longer is [`HostState::Stuck`], for example in a loop that never ends.
    pub fn processor_limit(&mut self, limit: Duration) {
        self.processor_limit = limit;
    }

    /// Returns the host's IPv4 address.
    pub fn address(&self, host: &HostId) -> IpAddr {
        addresses(host.0)[0]
    }

    /// Runs until `time` since the start, or until all programs have ended and no fault is scheduled.
    ///
    /// # Errors
    /// If a program panics, crashes, deadlocks, exits with a status other than 0 or makes a call that is not
    /// simulated, or if the simulation cannot begin. The error has the log of all hosts.
    pub fn run_until(&mut self, time: Duration) -> Result<(), SimError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut run = match self.run.take() {
            Some(run) => run,
            None => self.begin()?,
        };
        let until = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX - 1);
        let result = self.advance(&mut run, until);
        run.write_packets()?;
        self.run = Some(run);
        result
    }

    /// Starts the processes and the engine.
    fn begin(&mut self) -> Result<ActiveRun, SimError> {
        // From here on, this process allocates memory for the engine.
        heap::enter(Zone::Process);
        let names: Vec<&str> = self.hosts.iter().map(|host| &host.name[..]).collect();
        let debug = Debug::read(&names)?;
        let medium = Medium::new().map_err(|source| SimError::System {
            what: "memory for disks",
            source,
        })?;
        let world = Box::leak(Box::new(World {
            seed: self.seed,
            preemption: self.preemption,
            processor_limit: self.processor_limit,
            environment: std::mem::take(&mut self.environment),
            hosts: std::mem::take(&mut self.hosts),
            names: std::mem::take(&mut self.names),
            debug,
            medium,
            disk: self.disk,
            settings: self.initial_settings(),
            files: std::mem::take(&mut self.files),
            readable: vec![],
        }));
        let bodies = Box::leak(Box::new(std::mem::take(&mut self.bodies)));
        let groups = std::mem::take(&mut self.groups);
        let own_models = std::mem::take(&mut self.links);
        let network = Arc::clone(&self.network);
        ActiveRun::begin(world, bodies, groups, self.workers, network, own_models)
    }

    /// Takes the changes of settings at time 0, which apply before the programs start.
    fn initial_settings(&mut self) -> Vec<(usize, Setting)> {
        let at_once = |time: u64, kind: &Kind| match kind {
            Kind::Setting(host, setting) if time == 0 => Some((host.0, *setting)),
            _ => None,
        };
        let settings = self.faults.iter();
        let settings = settings
            .filter_map(|(&(time, _), kind)| at_once(time, kind))
            .collect();
        self.faults
            .retain(|&(time, _), kind| at_once(time, kind).is_none());
        settings
    }

    fn advance(&mut self, run: &mut ActiveRun, until: u64) -> Result<(), SimError> {
        loop {
            let now = run.simulation.now().as_nanos();
            if now >= until {
                return Ok(());
            }
            let fault = self.faults.first_key_value().map(|(&(at, _), _)| at);
            let mut next = until.min(now - now % SLICE + SLICE);
            if let Some(at) = fault.filter(|&at| at <= next) {
                if at <= now || at <= now + 1 {
                    self.happen(run, now + 1)?;
                    continue;
                }
                // Faults are injected as messages of that instant, so the run pauses before it.
                next = at - 1;
            }
            run.simulation.run_until(Time::from_nanos(next));
            self.check(run)?;
            let over = (0..run.world.hosts.len()).all(|host| run.state(host) != HostState::Running);
            if over && self.faults.is_empty() {
                return Ok(());
            }
        }
    }

    /// Lets the next scheduled fault happen, at its time in the future.
    fn happen(&mut self, run: &mut ActiveRun, at: u64) -> Result<(), SimError> {
        let Some((_, fault)) = self.faults.pop_first() else {
            return Ok(());
        };
        let at = Time::from_nanos(at);
        let numbers = |group: Vec<HostId>| group.iter().map(|host| host.0 as u32).collect();
        match fault {
            Kind::Cut(one, other, both_ways) => {
                run.links.cut(at, [numbers(one), numbers(other)], both_ways);
            }
            Kind::Heal(one, other) => run.links.heal(at, [numbers(one), numbers(other)]),
            Kind::Host(host, power) => run.inject(at, host, Wire::Power(power))?,
            Kind::Signal(host, signal) => run.inject(at, host, Wire::Signal(signal))?,
            Kind::Setting(host, setting) => run.inject(at, host, Wire::Setting(setting))?,
        }
        Ok(())
    }

    /// Returns the error of a failed host, if there is one.
    fn check(&self, run: &ActiveRun) -> Result<(), SimError> {
        let failed = (0..run.world.hosts.len()).find(|&host| run.state(host).is_failure());
        let Some(host) = failed else { return Ok(()) };
        Err(SimError::Host {
            host: run.world.hosts[host].name.clone(),
            state: run.state(host),
            seed: self.seed,
            time: run.simulation.now(),
            log: run.log() + &run.last_calls(host),
        })
    }

    /// Returns the hosts of the running simulation. Before the start, returns the hosts that were added so far.
    pub(crate) fn specs(&self) -> &[HostSpec] {
        self.run
            .as_ref()
            .map_or(&self.hosts[..], |run| &run.world.hosts[..])
    }

    pub(crate) fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// Returns the simulation after its start.
    pub(crate) fn active(&self) -> Option<&ActiveRun> {
        self.run.as_ref()
    }

    /// Returns the records of all hosts; none before the start.
    pub(crate) fn records(&self) -> &[Mutex<Record>] {
        self.run.as_ref().map_or(&[], |run| &run.records[..])
    }

    /// Returns the state of a host.
    pub fn state(&self, host: &HostId) -> HostState {
        self.run
            .as_ref()
            .map_or(HostState::Off, |run| run.state(host.0))
    }

    /// Returns the output of all programs so far, by time and host.
    pub fn lines(&self) -> Vec<Line> {
        self.run.as_ref().map_or(vec![], ActiveRun::lines)
    }

    /// Returns the log as text, one line per entry, with time and host.
    pub fn log(&self) -> String {
        self.run.as_ref().map_or(String::new(), ActiveRun::log)
    }

    /// Returns the current virtual time.
    pub fn now(&self) -> Time {
        self.run
            .as_ref()
            .map_or(Time::ZERO, |run| run.simulation.now())
    }

    /// Returns a digest of the run. It covers every packet, every call of every program with its result and time, and
    /// the log.
    pub fn digest(&mut self) -> u64 {
        let Some(run) = &mut self.run else { return 0 };
        let mut digest = run.simulation.digest();
        let mut add = |number: u64| {
            digest = (digest.rotate_left(9) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        };
        for (host, record) in run.records.iter().enumerate() {
            let record = record.lock().unwrap_or_else(PoisonError::into_inner);
            add(record.trace);
            let channel = run.world.hosts[host].channel();
            add(channel.map_or(0, |channel| channel.totals().2));
            for line in record.lines.finished() {
                add(line.time.as_nanos());
                line.text.bytes().for_each(|byte| add(byte.into()));
            }
        }
        digest
    }

    /// Returns the numbers of simulated calls and thread switches of all programs so far.
    pub fn totals(&self) -> (u64, u64) {
        let Some(run) = &self.run else { return (0, 0) };
        let each = run
            .records
            .iter()
            .zip(&run.world.hosts)
            .map(|(record, host)| {
                let record = record.lock().unwrap_or_else(PoisonError::into_inner);
                let (calls, switches, _) = host.channel().map_or((0, 0, 0), Channel::totals);
                (record.calls + calls, record.switches + switches)
            });
        each.fold((0, 0), |(a, b), (x, y)| (a + x, b + y))
    }
}

/// Creates the body of a host that is an actor.
fn actor<B>(body: impl Fn(Net) -> B + Send + Sync + 'static) -> Body
where
    B: Future<Output: Outcome> + Send + 'static,
{
    Box::new(move |net| {
        let body = body(net);
        Box::pin(async move { body.await.failure() })
    })
}

/// Returns the status of an exit code; `ExitCode` has no method that returns it.
fn status(code: ExitCode) -> u8 {
    (0..=u8::MAX)
        .find(|&status| ExitCode::from(status) == code)
        .unwrap_or(1)
}
