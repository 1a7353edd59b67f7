//! What-if branches: a saved run resumes with an architecture that differs in some fields.

use crate::faults::{Effect, Occurrence};
use crate::load::{Load, Source};
use crate::message::Command;
use crate::model::{LEAST_TRAVEL, Model, Turn};
use crate::plan::{Plan, prepare};
use crate::resume_error::{ChangeError, ResumeError};
use crate::script::{Operation, Script};
use crate::topology::Topology;
use crate::workload::Architecture;
use corsair::{Config, Executor, Snapshot, Time};
use std::mem::discriminant;
use std::sync::Arc;

/// A branch of a saved run.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The architecture of the branch.
    pub topology: Topology,
    /// The seed of random numbers of the branch.
    pub seed: Option<u64>,
    /// The load of the branch, as a percentage.
    pub load_percent: Option<u32>,
    /// True if only requests after the branch point are counted, so that branches can be compared.
    pub counts_from_here: bool,
}

impl Architecture {
    /// Creates a branch of a saved run, and the snapshot from which it resumes. `saved` is the topology of the saved
    /// run; `plan` is the plan with which that run began.
    ///
    /// New faults act like commands; faults that have begun end as scheduled.
    ///
    /// # Errors
    /// [`ResumeError::Change`] if the state cannot continue with the branch's topology.
    pub fn branch(
        base: &Config,
        saved: &Topology,
        branch: &Branch,
        plan: &Plan,
        snapshot: &Snapshot,
    ) -> Result<(Architecture, Snapshot), ResumeError> {
        let now = snapshot.time()?;
        can_follow(&branch.topology, saved)?;
        let (config, before, _) = prepare(Executor::Virtual, base, saved.clone(), plan)?;
        let (_, mut model, parameters) =
            prepare(Executor::Virtual, base, branch.topology.clone(), plan)?;
        let changed = Arc::get_mut(&mut model).expect("it is not shared yet");
        let mut commands = changed.follow(&before, now.as_nanos())?;
        changed.turn = Some(Turn {
            at: now.as_nanos(),
            seed: branch.seed,
            counts: branch.counts_from_here,
            loads: other_loads(&branch.topology, saved),
        });
        if branch.counts_from_here {
            changed.count_from = now.as_nanos();
        }
        let just_after = now.as_nanos() + 1;
        let revised = revised(&changed.topology, &before.topology);
        commands.extend(revised.map(|instance| (just_after, instance, Command::Revise)));
        if let Some(percent) = branch.load_percent {
            if !(model.load_at..model.load_ends).contains(&now.as_nanos()) {
                return Err(ChangeError::NoLoad.into());
            }
            let entries = (0..model.topology.len()).filter(|&i| model.is_entry_point(i));
            commands.extend(entries.map(|i| (just_after, i, Command::Load(percent))));
        }
        commands.sort_by_key(|&(at, instance, _)| (at, instance));
        let commands = commands.into_iter().map(|(at, instance, command)| {
            let at = Time::from_nanos(at.max(just_after));
            (at, instance, command)
        });
        let mut snapshot = snapshot.clone();
        if let Some(seed) = branch.seed {
            snapshot.reseed(seed)?;
        }
        let architecture = Architecture {
            config,
            model,
            parameters,
            commands: commands.collect(),
        };
        Ok((architecture, snapshot))
    }
}

/// Returns the instances for whose work or queues other rules hold.
fn revised(new: &Topology, saved: &Topology) -> impl Iterator<Item = u32> {
    let rules = |topology: &Topology, instance: u32| {
        let costs = &topology.service_of(instance).costs;
        let sharing = (costs.processors, costs.time_slice);
        (costs.concurrency, costs.queue, sharing)
    };
    (0..new.len()).filter(move |&instance| rules(new, instance) != rules(saved, instance))
}

/// Returns the services whose load differs.
fn other_loads(new: &Topology, saved: &Topology) -> Vec<u32> {
    let services = new.services.iter().zip(&saved.services);
    let loads = (0..).zip(services);
    loads
        .filter(|(_, (new, saved))| new.load != saved.load)
        .map(|(service, _)| service)
        .collect()
}

/// Checks that the state of one topology is valid in another.
fn can_follow(new: &Topology, saved: &Topology) -> Result<(), ChangeError> {
    let refused = |what: &str| Err(ChangeError::State(what.to_owned()));
    let names = |topology: &Topology| -> Vec<String> {
        let services = topology.services.iter();
        services.map(|service| service.name.clone()).collect()
    };
    if names(new) != names(saved) {
        return refused("the set of services");
    }
    if new.instances != saved.instances || new.edges != saved.edges {
        return refused("the number and places of instances");
    }
    if new.regions != saved.regions || new.places != saved.places {
        return refused("regions and zones");
    }
    if new.least_latency(LEAST_TRAVEL) < saved.least_latency(LEAST_TRAVEL) {
        return refused("the shortest latency, if the new one is shorter,");
    }
    for (new, saved) in new.services.iter().zip(&saved.services) {
        let refused = |what: &str| Err(ChangeError::State(format!("{what} of {}", saved.name)));
        if new.package != saved.package {
            return refused("the package");
        }
        if new.dependencies != saved.dependencies {
            return refused("the dependencies");
        }
        if new.costs.processors.is_some() != saved.costs.processors.is_some() {
            return refused("the sharing of processors");
        }
        let pools = new.policies.iter().zip(&saved.policies);
        let mut pools = pools.map(|(new, saved)| [new, saved].map(|p| p.connections.is_some()));
        if new.policies.len() != saved.policies.len() || pools.any(|[new, saved]| new != saved) {
            return refused("the presence of a connection limit");
        }
        if new.script.as_deref().map(shape) != saved.script.as_deref().map(shape) {
            return refused("the steps of the endpoints");
        }
        if new.scaler.is_some() != saved.scaler.is_some()
            || new.health_check.is_some() != saved.health_check.is_some()
        {
            return refused("the presence of an autoscaler or a health check");
        }
        if !same_form(new.load.as_ref(), saved.load.as_ref()) {
            return refused("the form of the load and its kinds of requests");
        }
    }
    Ok(())
}

/// The properties of a script on which saved positions of tasks depend.
#[derive(PartialEq)]
struct Shape {
    first: u16,
    endpoints: Vec<u32>,
    operations: Vec<[u32; 4]>,
    branches: Vec<u32>,
    caches: usize,
    routes: Vec<u32>,
}

fn shape(script: &Script) -> Shape {
    let operation = |operation: &Operation| match *operation {
        Operation::Work(_) => [0, 0, 0, 0],
        Operation::Chance { skip, .. } => [1, skip, 0, 0],
        Operation::Call { fallback, .. } => [2, fallback, 0, 0],
        Operation::Send { .. } => [3, 0, 0, 0],
        Operation::Fork {
            first,
            branches,
            fallback,
            ..
        } => [4, first, branches, fallback],
        Operation::Cache { number, found } => [5, number.into(), found, 0],
        Operation::Jump(to) => [6, to, 0, 0],
        Operation::End => [7, 0, 0, 0],
    };
    Shape {
        first: script.first,
        endpoints: script.endpoints.iter().map(|&(begins, _)| begins).collect(),
        operations: script.operations.iter().map(operation).collect(),
        branches: script.branches.clone(),
        caches: script.caches.len(),
        routes: script.routes.clone(),
    }
}

/// True if a run that was saved with one load can resume with the other. Both need the same kinds of requests, because
/// counters are kept by kind, and the same form of load, because the state of users and timers has no meaning in
/// another form.
fn same_form(new: Option<&Load>, saved: Option<&Load>) -> bool {
    let (Some(new), Some(saved)) = (new, saved) else {
        return new.is_none() && saved.is_none();
    };
    let names =
        |load: &Load| -> Vec<String> { load.kinds.iter().map(|kind| kind.name.clone()).collect() };
    let is_same_source = match (&new.source, &saved.source) {
        (Source::Replay(new), Source::Replay(saved)) => new == saved,
        (new, saved) => discriminant(new) == discriminant(saved),
    };
    is_same_source && names(new) == names(saved)
}

/// A command to an instance at a time in nanoseconds.
type Order = (u64, u32, Command);

impl Model {
    /// Adopts the state of the model with which a run was saved: times and faults that have been drawn already stay as
    /// they are. Returns the commands to instances for faults that only this model has. Returns an error if such a
    /// fault should have begun before `now`, in nanoseconds.
    fn follow(&mut self, before: &Model, now: u64) -> Result<Vec<Order>, ChangeError> {
        self.settled = before.settled;
        self.introduced = before.introduced;
        self.load_at = before.load_at;
        self.load_ends = before.load_ends;
        self.count_from = before.count_from;
        let mut orders = Vec::new();
        for instance in 0..self.topology.len() {
            let (new, old) = (self.faults(instance), before.faults(instance));
            let mut left: Vec<Occurrence> = new.to_vec();
            let mut revoked = Vec::new();
            for (number, fault) in (0..).zip(old) {
                match left.iter().position(|other| other == fault) {
                    Some(place) => drop(left.swap_remove(place)),
                    None => revoked.push((instance, number)),
                }
            }
            for fault in left {
                let begins = self.load_at.saturating_add(fault.at);
                if begins <= now {
                    return Err(ChangeError::Past {
                        instance: self.topology.short_name(instance),
                        at: std::time::Duration::from_nanos(fault.at),
                    });
                }
                let [begin, end] = as_commands(fault.effect);
                orders.push((begins, instance, begin));
                if let Some(lasting) = fault.lasting {
                    orders.push((begins.saturating_add(lasting), instance, end));
                }
            }
            self.revoked.extend(revoked);
        }
        // The saved timers refer to faults by their position in the saved model, so this model takes over the saved faults.
        self.keep_faults_of(before);
        Ok(orders)
    }
}

/// Returns the commands that are equivalent to the start and the end of a fault.
fn as_commands(effect: Effect) -> [Command; 2] {
    match effect {
        Effect::Kill => [Command::Kill, Command::Revive],
        Effect::Pause => [Command::Pause, Command::Resume],
        Effect::Slow(factor) => [Command::Slow((factor * 100.0) as u32), Command::Slow(100)],
        Effect::Partition => [Command::Partition, Command::Rejoin],
        Effect::Leave => [Command::Serve(false), Command::Serve(true)],
    }
}
