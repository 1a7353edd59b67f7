//! The subcommands. Each one is a file with its arguments and its `run`, and an entry in [`SUBCOMMANDS`].

mod capacity;
mod check;
mod compare;
mod compose;
mod diff;
mod fork;
mod hunt;
mod learn;
mod marshal;
mod plan;
mod resume;
mod sum;
mod sweep;
mod usl;
mod variants;
mod view;

use anyhow::Result;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::process::ExitCode;

/// A subcommand of `corsair`.
pub struct Subcommand {
    /// Its name on the command line.
    pub name: &'static str,
    about: &'static str,
    augment: fn(Command) -> Command,
    /// Runs it with the parsed arguments; the second argument is the whole command line.
    pub run: fn(&ArgMatches, &[OsString]) -> Result<ExitCode>,
}

impl Subcommand {
    /// Its parser.
    pub fn command(&self) -> Command {
        // Afterwards: a doc comment of the arguments would take the place of the help.
        (self.augment)(Command::new(self.name)).about(self.about)
    }
}

/// The entry of a subcommand with these arguments, whose `run` takes them.
macro_rules! entry {
    ($name:literal, $about:literal, $module:ident::$args:ident) => {
        Subcommand {
            name: $name,
            about: $about,
            augment: <$module::$args as Args>::augment_args,
            run: |matches, _| $module::run(&$module::$args::from_arg_matches(matches)?).exit_code(),
        }
    };
}

/// All subcommands with arguments of their own, in the order of the help.
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
        "hunt",
        "Find the faults that break the budgets of an architecture",
        hunt::HuntArgs
    ),
    entry!(
        "compare",
        "Compare two architectures, loads or policies, seed by seed",
        compare::CompareArgs
    ),
    Subcommand {
        name: "sweep",
        about: "Run an architecture over a grid of values of its fields",
        augment: sweep::augment,
        run: |matches, _| sweep::run_or_merge(matches).exit_code(),
    },
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
        "compose2arch",
        "Convert a docker-compose file to a definition",
        compose::ComposeArgs
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
    Subcommand {
        name: "resume",
        about: "Resume a saved run (--checkpoint-every)",
        augment: resume::ResumeArgs::augment_args,
        run: |matches, line| resume::run(&resume::ResumeArgs::from_arg_matches(matches)?, line),
    },
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
