//! The flags of checkpoints: `--checkpoint-every`, `--checkpoint-at` and `--checkpoint-dir`.

use super::{Options, WorkloadOptions};
use crate::config_file;
use crate::flags::Group;
use crate::flags::values::Values;
use crate::text;
use anyhow::{Result, bail};
use corsair::fsm::Form;
use corsair::{Executor, Time};
use corsair_arch::Setting;
use corsair_observe::checkpoint::{Checkpoint, RunId};
use corsair_observe::run::{Every, Policy};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The options of saving and resuming.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    /// The interval between checkpoints.
    pub every: Option<Every>,
    /// The points of virtual time at which to save the run, in order.
    pub at: Vec<Time>,
    /// The directory that contains the checkpoints.
    pub directory: PathBuf,
    /// The flags of the run, which are saved with it.
    pub flags: Map<String, Value>,
    /// The checkpoint from which the run resumes.
    pub from: Option<Arc<Checkpoint>>,
    /// The identity of the run, if it is a branch.
    pub branch: Option<RunId>,
    /// The time at which to stop, if it is before the end of the run.
    pub until: Option<Time>,
    /// The seed of a branch that draws its random numbers from another seed after the checkpoint.
    pub reseed: Option<u64>,
    /// The fields of the definition that are changed at the checkpoint.
    pub set: Vec<Setting>,
}

impl Checkpoints {
    /// Returns the identity of the run that is saved. `run_inputs` contains everything that determines the result of a run
    /// from its beginning.
    pub fn run(&self, run_inputs: &[u8]) -> RunId {
        let resumed = self.from.as_ref().map(|from| from.manifest.run);
        self.branch
            .or(resumed)
            .unwrap_or_else(|| RunId::of(run_inputs))
    }

    /// Returns the times and the directory of checkpoints.
    pub fn policy(&self) -> Policy {
        Policy {
            every: self.every,
            at: self.at.clone(),
            directory: self.directory.clone(),
        }
    }

    /// Returns true if `--set` changes fields of the definition. A checkpoint contains the state but not the
    /// definition, so such a run cannot be saved again.
    pub fn has_changed_fields(&self) -> bool {
        // `--set load=` becomes a command, and commands are part of the state.
        self.set.iter().any(|setting| setting.path != "load")
    }
}

/// Parses an interval such as `10s` or `1GB`.
fn every(text: &str) -> Result<Every, String> {
    const UNITS: [(&str, u64); 6] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
    ];
    for (unit, bytes) in UNITS {
        if let Some(number) = text.strip_suffix(unit) {
            let number = text::whole(number.trim(), 1, 1_000_000)?;
            return Ok(Every::Bytes(number * bytes));
        }
    }
    match text::duration(text)? {
        Duration::ZERO => Err("the period is zero; give 1s or more".to_owned()),
        time => Ok(Every::Time(time)),
    }
}

/// Flags about saving and sessions, which are not saved with the run.
const KEPT_OUT: [&str; 6] = ["config", "saveconfig", "ui", "open", "replay", "cpuprofile"];

/// Reads the options of saving.
///
/// # Errors
/// Returns the first value that is invalid, or that requests a run that cannot be saved.
pub fn read(values: &Values, options: &Options) -> Result<Option<Checkpoints>> {
    let every = values.read("checkpoint-every", every)?;
    let at = values.read("checkpoint-at", times)?.unwrap_or_default();
    let asked = ["checkpoint-every", "checkpoint-at", "checkpoint-dir"];
    let Some(flag) = asked.into_iter().find(|name| values.given(name).is_some()) else {
        return Ok(None);
    };
    refuse(options, flag)?;
    if let Some(Every::Bytes(_)) = every
        && !writes(options)
    {
        bail!(
            "--checkpoint-every {}: the size counts the graph and the flows, and this run writes none; add -j or -c, or give a time",
            values.text("checkpoint-every")
        );
    }
    Ok(Some(Checkpoints {
        every,
        at,
        directory: PathBuf::from(values.text("checkpoint-dir")),
        flags: config_file::as_json(values, &options.arch, |flag| {
            !KEPT_OUT.contains(&flag.name) && flag.group != Group::Processes
        }),
        from: None,
        branch: None,
        until: None,
        reseed: None,
        set: Vec::new(),
    }))
}

/// Returns true if the run writes to files while it runs.
fn writes(options: &Options) -> bool {
    let flows = match &options.what {
        WorkloadOptions::Services(services) => !services.flows.is_empty(),
        WorkloadOptions::Pirates(_) => false,
    };
    options.graph_json || flows
}

/// Refuses runs that cannot be saved.
fn refuse(options: &Options, flag: &str) -> Result<()> {
    if options.executor != Executor::Virtual {
        bail!("--{flag} needs virtual time, which can be saved and resumed; leave out --executor");
    }
    match &options.what {
        WorkloadOptions::Pirates(pirates) if pirates.form == Form::Async => {
            bail!(
                "--{flag}: async bodies cannot be saved; leave out --form async, the result is the same"
            )
        }
        WorkloadOptions::Pirates(_) => {}
        WorkloadOptions::Services(services) => {
            let sent = [
                (services.kafka.is_some(), "-k"),
                (services.otlp.is_some(), "--otlp"),
                (services.zipkin.is_some(), "--zipkin"),
            ];
            if let Some((_, output)) = sent.iter().find(|(asked, _)| *asked) {
                bail!(
                    "--{flag} and {output} do not go together: a resumed run would send the same flows again; leave one of them out, or write a file with -c"
                );
            }
        }
    }
    let outputs = [
        (options.neo4j.is_some(), "-n"),
        (options.profile.is_some(), "-cpuprofile"),
    ];
    if let Some((_, output)) = outputs.iter().find(|(asked, _)| *asked) {
        bail!(
            "--{flag} and {output} do not go together: {output} cannot continue after a checkpoint; leave one of them out"
        );
    }
    Ok(())
}

/// Parses times such as `10s` or `10s,20s`, in order.
fn times(given: &str) -> Result<Vec<Time>, String> {
    let times = given.split(',').map(|one| {
        let time = text::duration(one.trim())?;
        Ok(Time::ZERO.after(time))
    });
    let mut times = times.collect::<Result<Vec<_>, String>>()?;
    times.sort_unstable();
    Ok(times)
}
