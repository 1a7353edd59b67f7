//! A simulation that has begun: the engine, the actors of its hosts, and their processes.

use crate::actor::{Bodies, Native};
use crate::channel::Channel;
use crate::error::SimError;
use crate::fault::Power;
use crate::links::{Links, OwnModels};
use crate::log::{Line, NamedLines};
use crate::machine::Machine;
use crate::setup;
use crate::state::{HostId, HostState};
use crate::uplink::{Directory, Record, Uplink};
use crate::wire::Wire;
use crate::world::World;
use crate::zygote::Zygote;
use corsair::network::Network;
use corsair::{AsyncContext, Config, Scenario, Simulation, Spawn, Time};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The state of a simulation from the first `run_until` on.
pub(crate) struct ActiveRun {
    pub simulation: Simulation<Wire>,
    pub world: &'static World,
    pub records: Arc<Vec<Mutex<Record>>>,
    pub links: Links,
    directory: Arc<OnceLock<Directory>>,
    /// The zygote; hosts die with it.
    _zygote: Arc<Zygote>,
}

impl std::fmt::Debug for ActiveRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActiveRun")
            .field("simulation", &self.simulation)
            .finish_non_exhaustive()
    }
}

/// The actor that spawns the hosts: processes one by one, so that they are spread over all workers, and actors in the
/// groups in which they were added.
struct Root {
    /// The uplink of the first host.
    uplink: Uplink,
    bodies: &'static Bodies,
    groups: Vec<Range<usize>>,
    zygote: Arc<Zygote>,
}

impl Scenario<Wire> for Root {
    async fn root<C: AsyncContext<Wire>>(self, mut cx: C) {
        let mut actors = vec![];
        for group in self.groups {
            let hosts = &self.uplink.world.hosts;
            let uplink = self.uplink.clone();
            let at = move |index: u32| Uplink {
                host: group.start + index as usize,
                ..uplink.clone()
            };
            let spawned = match hosts[group.start].channel() {
                Some(channel) => {
                    let zygote = Arc::clone(&self.zygote);
                    let machine =
                        move |index| Machine::new(at(index), channel, Arc::clone(&zygote));
                    cx.spawn_actors(Spawn::one(hosts[group.start].name.clone()), machine)
                        .await
                }
                None => {
                    let names = hosts[group.clone()].iter().map(|host| host.name.clone());
                    let names = Spawn::named(names.collect());
                    cx.spawn_actors(names, move |index| Native::new(at(index), self.bodies))
                        .await
                }
            };
            actors.extend(group.zip(0..).map(|(_, index)| spawned.get(index)));
        }
        let _ = self.uplink.directory.set(Directory::new(actors));
        // Never returns, because the simulation is paused and dropped, never finished.
        loop {
            cx.recv().await;
        }
    }
}

impl ActiveRun {
    /// Starts the processes and the engine. Hosts are in groups, each of which has one kind of program.
    pub(crate) fn begin(
        world: &'static World,
        bodies: &'static Bodies,
        groups: Vec<Range<usize>>,
        workers: NonZeroUsize,
        network: Arc<dyn Network>,
        own_models: OwnModels,
    ) -> Result<ActiveRun, SimError> {
        let zygote = Zygote::fork(world).map_err(|source| SimError::System {
            what: "starting the process from which hosts are forked",
            source,
        })?;
        setup::end();
        let zygote = Arc::new(zygote);
        let records = world.hosts.iter().map(|_| Mutex::new(Record::new()));
        let records: Arc<Vec<_>> = Arc::new(records.collect());
        let directory = Arc::new(OnceLock::new());
        let links = Links::new(network, own_models, Arc::clone(&directory));
        let config = Config {
            seed: world.seed,
            workers,
            network: Some(Arc::new(links.clone())),
            traces: false,
            ..Config::default()
        };
        let uplink = Uplink {
            world,
            host: 0,
            directory: Arc::clone(&directory),
            records: Arc::clone(&records),
        };
        let root = Root {
            uplink,
            bodies,
            groups,
            zygote: Arc::clone(&zygote),
        };
        let settings = |error: &dyn std::fmt::Display| SimError::Settings(error.to_string());
        let mut simulation = Simulation::new(&config, root).map_err(|error| settings(&error))?;
        simulation.run_while(|_| directory.get().is_none());
        let actors = directory
            .get()
            .map_or(&[][..], |directory| &directory.actors);
        let start = simulation.now().after(Duration::from_nanos(1));
        for &actor in actors {
            simulation
                .inject(start, actor, Wire::Power(Power::Start))
                .map_err(|error| settings(&error))?;
        }
        simulation.run_until(start);
        Ok(ActiveRun {
            simulation,
            world,
            records,
            links,
            directory,
            _zygote: zygote,
        })
    }

    /// Injects a message to a host.
    pub(crate) fn inject(&mut self, at: Time, host: HostId, message: Wire) -> Result<(), SimError> {
        let actors = self.directory.get().map(|directory| &directory.actors[..]);
        let Some(&actor) = actors.and_then(|actors| actors.get(host.0)) else {
            return Ok(());
        };
        self.simulation
            .inject(at, actor, message)
            .map(drop)
            .map_err(|error| SimError::Settings(error.to_string()))
    }

    pub(crate) fn state(&self, host: usize) -> HostState {
        self.records[host]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .state
    }

    pub(crate) fn lines(&self) -> Vec<Line> {
        let mut lines = vec![];
        for record in self.records.iter() {
            let record = record.lock().unwrap_or_else(PoisonError::into_inner);
            lines.extend(record.lines.finished().iter().cloned());
        }
        lines.sort_by_key(|line| (line.time, line.host));
        lines
    }

    /// Writes the packets of all hosts to the file in the variable `PCAP`.
    pub(crate) fn write_packets(&self) -> Result<(), SimError> {
        let Some(path) = &self.world.debug.packets else {
            return Ok(());
        };
        let records = self
            .records
            .iter()
            .map(|record| record.lock().unwrap_or_else(PoisonError::into_inner));
        let records: Vec<_> = records.collect();
        let mut packets: Vec<_> = records
            .iter()
            .flat_map(|record| record.packets.iter().map(|(time, packet)| (*time, packet)))
            .collect();
        packets.sort_by_key(|&(time, _)| time);
        let file = std::fs::File::create(path);
        let written = file.and_then(|file| {
            let mut file = std::io::BufWriter::new(file);
            crate::pcap::write(&mut file, packets.into_iter())
        });
        written.map_err(|source| SimError::System {
            what: "writing the file that PCAP names",
            source,
        })
    }

    /// Returns the last calls of a host's most recent process.
    pub(crate) fn last_calls(&self, host: usize) -> String {
        let calls = self.world.hosts[host].channel().map(Channel::calls);
        let calls = calls.unwrap_or_default();
        if calls.is_empty() {
            return String::new();
        }
        let name = &self.world.hosts[host].name;
        format!(
            "last calls of {name}:\n{}",
            crate::calls::last_calls(&calls)
        )
    }

    pub(crate) fn log(&self) -> String {
        let names = self
            .world
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .collect();
        NamedLines {
            lines: &self.lines(),
            names,
        }
        .to_string()
    }
}
