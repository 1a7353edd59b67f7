//! The subcommands. Each one is a file with its arguments and its `run`, and an entry in [`SUBCOMMANDS`].

mod capacity;
mod check;
mod compare;
mod compose;
mod demo;
mod diff;
mod fork;
mod gate;
mod host;
mod hunt;
mod import;
mod learn;
mod maelstrom;
mod marshal;
mod patch;
mod plan;
mod resume;
mod stability;
mod sum;
mod sweep;
mod usl;
mod variants;
mod view;
mod why;

use anyhow::Result;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;

/// A subcommand of `corsair`.
pub struct Subcommand {
    /// The name on the command line.
    pub name: &'static str,
    about: &'static str,
    augment: fn(Command) -> Command,
    /// Runs the subcommand with the parsed arguments; the second argument is the complete command line.
    pub run: fn(&ArgMatches, &[OsString]) -> Result<ExitCode>,
}

impl Subcommand {
    /// Returns the parser of the subcommand. The arguments are added only when the subcommand is used, because most
    /// runs use none.
    pub fn command(&self) -> Command {
        Command::new(self.name)
            .about(self.about)
            .defer(self.augment)
    }
}

/// Creates the entry of a subcommand from its arguments, or from the function that adds them, and its `run`.
macro_rules! entry {
    ($name:literal, $about:literal, $module:ident::$args:ident) => {
        entry!($name, $about, $module::$args::augment_args, |matches, _| {
            $module::run(&$module::$args::from_arg_matches(matches)?).exit_code()
        })
    };
    ($name:literal, $about:literal, $augment:expr, $run:expr) => {
        Subcommand {
            name: $name,
            about: $about,
            // The help text is set again, because the doc comment of the arguments has replaced it.
            augment: |command| $augment(command).about($about),
            run: $run,
        }
    };
}

/// All subcommands that have arguments, in the order of the help.
pub const SUBCOMMANDS: &[Subcommand] = &[
    entry!(
        "capacity",
        "Find the highest load that an architecture sustains, by simulation",
        capacity::CapacityArgs
    ),
    entry!(
        "check",
        "Check a recorded history for consistency",
        check::CheckArgs
    ),
    entry!(
        "host",
        "Run programs of this machine in a simulation (corsair-host)",
        host::HostArgs
    ),
    entry!(
        "hunt",
        "Find the faults that break the budgets of an architecture",
        hunt::HuntArgs
    ),
    entry!(
        "maelstrom",
        "Run a workload of Maelstrom against nodes of any language",
        maelstrom::MaelstromArgs
    ),
    entry!(
        "compare",
        "Compare two architectures, loads or policies, seed by seed",
        compare::CompareArgs
    ),
    entry!(
        "sweep",
        "Run an architecture over a grid of values of its fields",
        sweep::augment,
        |matches, _| sweep::run_or_merge(matches).exit_code()
    ),
    entry!(
        "plan",
        "Estimate the speed of a run over several machines (--features mpi)",
        plan::PlanArgs
    ),
    entry!(
        "learn",
        "Learn a definition from recorded traces",
        learn::LearnArgs
    ),
    entry!(
        "import",
        "Convert manifests to a definition: Kubernetes, Istio, Envoy, docker-compose, k6",
        import::ImportArgs
    ),
    entry!(
        "gate",
        "Judge a change of manifests or of a definition by objectives, for a pull request",
        gate::GateArgs
    ),
    entry!(
        "patch",
        "Write what a definition says of replicas, limits, retries and time-outs as patches of manifests",
        patch::PatchArgs
    ),
    entry!(
        "stability",
        "Map where an architecture recovers from a trigger, over load and another quantity",
        stability::StabilityArgs
    ),
    entry!(
        "why",
        "Explain a percentile: what slow requests spend their time on, and which change helps most",
        why::WhyArgs
    ),
    entry!(
        "compose2arch",
        "Convert a docker-compose file to a definition",
        compose::ComposeArgs
    ),
    entry!(
        "demo",
        "Watch a system saturate, fail and recover in two minutes",
        demo::DemoArgs
    ),
    entry!(
        "diff",
        "Compare two recorded runs and report their first difference",
        diff::DiffArgs
    ),
    entry!(
        "view",
        "Show the files of a finished run in the browser (--features ui)",
        view::ViewArgs
    ),
    entry!(
        "resume",
        "Resume a saved run (--checkpoint-every)",
        resume::ResumeArgs::augment_args,
        |matches, line| resume::run(&resume::ResumeArgs::from_arg_matches(matches)?, line)
    ),
    entry!(
        "fork",
        "Run many branches of a saved run and compare them",
        fork::ForkArgs
    ),
    entry!(
        "usl",
        "Fit the universal scalability law to measured throughputs",
        usl::UslArgs
    ),
    entry!(
        "sum",
        "Measure fork-join by adding up a range of numbers",
        sum::SumArgs
    ),
    entry!(
        "marshal",
        "Measure the strategies of bulk marshalling",
        marshal::MarshalArgs
    ),
];

/// The result of a subcommand's `run`.
trait Outcome {
    fn exit_code(self) -> Result<ExitCode>;
}

impl Outcome for Result<()> {
    fn exit_code(self) -> Result<ExitCode> {
        self.map(|()| ExitCode::SUCCESS)
    }
}

impl Outcome for Result<ExitCode> {
    fn exit_code(self) -> Result<ExitCode> {
        self
    }
}
