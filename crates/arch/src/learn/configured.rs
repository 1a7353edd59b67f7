//! Policies and limits from a definition of the same system, which traces do not show.

use super::LearnReport;
use crate::definition::{
    CallPolicy, CheckedDefinition, Definition, DefinitionError, Problem, ServiceDefinition,
    read_text,
};
use crate::input_file::read_file_text;
use std::io;
use std::path::{Path, PathBuf};

/// The reasons why nothing was taken from a definition.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfiguredError {
    /// The file cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The path of the unreadable file.
        file: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not a definition.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// What would be taken from the file makes the learned definition invalid.
    #[error("{} does not fit the traces: {problem}", file.display())]
    Unfit {
        /// The path of the file.
        file: PathBuf,
        /// What would be wrong with the learned definition.
        problem: Box<Problem>,
    },
    /// The file has none of the learned services.
    #[error("{} has none of the learned services, which are {learned}; use these names", file.display())]
    OtherServices {
        /// The path of the file.
        file: PathBuf,
        /// The names of learned services.
        learned: String,
    },
}

impl LearnReport {
    /// Takes policies and limits from a definition of the same system, for example one that `corsair import` has made, where
    /// the traces do not show them: slots, queues, processors, machines, and policies for calls.
    ///
    /// # Errors
    /// See [`ConfiguredError`].
    pub fn take_configured(&mut self, file: &Path) -> Result<(), ConfiguredError> {
        let text = read_file_text(file).map_err(|source| ConfiguredError::Unreadable {
            file: file.to_owned(),
            source,
        })?;
        let configured = read_text(&text, &file.display().to_string())?;
        let mut definition = self.definition.clone();
        let taken = take(&mut definition, &configured);
        if taken.is_empty() {
            let names = self.definition.services.iter().map(|one| one.name.as_str());
            return Err(ConfiguredError::OtherServices {
                file: file.to_owned(),
                learned: names.take(20).collect::<Vec<_>>().join(", "),
            });
        }
        if let Err(error) = read_text(&definition.to_text(), "the learned definition") {
            return Err(match error {
                DefinitionError::Wrong { problem, .. } => ConfiguredError::Unfit {
                    file: file.to_owned(),
                    problem: Box::new(problem),
                },
                other => other.into(),
            });
        }
        self.definition = definition;
        for definition in &mut self.resampled {
            take(definition, &configured);
        }
        let is_known = |caller: &str, called: &str, policy: &str| {
            let service = self
                .definition
                .services
                .iter()
                .find(|one| one.name == caller);
            let of = service.and_then(|one| one.calls.get(called));
            of.is_some_and(|of| has(of, policy))
        };
        for one in &mut self.unseen {
            one.policies
                .retain(|policy| !is_known(&one.caller, &one.called, policy.policy));
        }
        self.unseen.retain(|one| !one.policies.is_empty());
        let taken: Vec<String> = taken.into_iter().flatten().collect();
        self.remarks.push(match taken.is_empty() {
            true => format!(
                "{} says nothing that the traces do not show",
                file.display()
            ),
            false => format!("taken from {}: {}", file.display(), taken.join(", ")),
        });
        Ok(())
    }
}

/// True if a policy has the rule with this name.
fn has(policy: &CallPolicy, rule: &str) -> bool {
    match rule {
        "timeout" => policy.timeout.is_some(),
        "retries" => policy.retries.is_some(),
        "connections" => policy.connections.is_some(),
        "hedge" => policy.hedge.is_some(),
        "rate_limit" => policy.rate_limit.is_some(),
        _ => false,
    }
}

/// Copies rules that are absent, and returns the names of the copied rules for each service that both definitions have.
fn take(learned: &mut Definition, configured: &CheckedDefinition) -> Vec<Vec<String>> {
    let mut taken = Vec::new();
    for service in &mut learned.services {
        let mut others = configured.written().services.iter();
        let Some(other) = others.find(|one| one.name == service.name) else {
            continue;
        };
        if service.regions > 0 {
            let mut of_service = take_service(service, other);
            if service.processors.is_none()
                && service.machine.is_empty()
                && let Some(machine) = configured.written().machines.get(&other.machine)
            {
                service.machine.clone_from(&other.machine);
                let name = other.machine.clone();
                learned.machines.insert(name, machine.clone());
                of_service.push(format!("{} machine", service.name));
            }
            taken.push(of_service);
        }
    }
    taken
}

fn take_service(service: &mut ServiceDefinition, other: &ServiceDefinition) -> Vec<String> {
    let mut taken = Vec::new();
    let mut add = |is_taken: bool, what: &str| {
        if is_taken {
            taken.push(what.to_owned());
        }
    };
    let name = service.name.clone();
    add(
        fill(&mut service.concurrency, &other.concurrency),
        &format!("{name} concurrency"),
    );
    add(
        fill(&mut service.processors, &other.processors),
        &format!("{name} processors"),
    );
    if service.processors.is_some() {
        add(
            fill(&mut service.time_slice, &other.time_slice),
            &format!("{name} time_slice"),
        );
    }
    add(
        fill(&mut service.queue, &other.queue),
        &format!("{name} queue"),
    );
    add(
        fill(&mut service.autoscaler, &other.autoscaler),
        &format!("{name} autoscaler"),
    );
    let called: Vec<String> = service.called().into_iter().map(str::to_owned).collect();
    for to in called {
        let Some(from) = other.calls.get(&to).or_else(|| other.calls.get("*")) else {
            continue;
        };
        let pair = format!("{name} calls {to}");
        let mut policy = service.calls.get(&to).cloned().unwrap_or_default();
        // A hedge and a retry can look alike, so that one that was seen excludes the other.
        add(
            fill(&mut policy.timeout, &from.timeout),
            &format!("{pair} timeout"),
        );
        add(
            fill(&mut policy.retries, &from.retries),
            &format!("{pair} retries"),
        );
        add(
            fill(&mut policy.hedge, &from.hedge),
            &format!("{pair} hedge"),
        );
        add(
            fill(&mut policy.connections, &from.connections),
            &format!("{pair} connections"),
        );
        add(
            fill(&mut policy.deadline, &from.deadline),
            &format!("{pair} deadline"),
        );
        add(
            fill(&mut policy.breaker, &from.breaker),
            &format!("{pair} breaker"),
        );
        add(
            fill(&mut policy.bulkhead, &from.bulkhead),
            &format!("{pair} bulkhead"),
        );
        add(
            fill(&mut policy.rate_limit, &from.rate_limit),
            &format!("{pair} rate_limit"),
        );
        add(
            fill(&mut policy.ejection, &from.ejection),
            &format!("{pair} ejection"),
        );
        add(
            fill(&mut policy.balance, &from.balance),
            &format!("{pair} balance"),
        );
        add(
            fill(&mut policy.hash_bound, &from.hash_bound),
            &format!("{pair} hash_bound"),
        );
        add(
            fill(&mut policy.zone_spill, &from.zone_spill),
            &format!("{pair} zone_spill"),
        );
        if let (Some(retries), Some(known)) = (&mut policy.retries, &from.retries) {
            add(
                fill(&mut retries.budget, &known.budget),
                &format!("{pair} budget"),
            );
        }
        if policy != CallPolicy::default() {
            service.calls.insert(to, policy);
        }
    }
    taken
}

/// Copies a value that is absent; true if it was copied.
fn fill<T: Clone>(value: &mut Option<T>, from: &Option<T>) -> bool {
    let is_taken = value.is_none() && from.is_some();
    if is_taken {
        value.clone_from(from);
    }
    is_taken
}
