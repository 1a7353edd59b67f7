//! `corsair gate`: decides for a pull request whether a system still meets its objectives after a change of its
//! manifests or its definition.

use crate::arch::source;
use crate::commands::variants::{self, flagged};
use crate::console::Console;
use crate::format::Format;
use crate::interrupt;
use crate::progress::{Bar, Measure};
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair_arch::summary::GateSummary;
use corsair_arch::{
    DefinitionText, GateReport, GateRules, GateSide, ImportOptions, Plan, Scale, Setting, Setup,
    Slo, Topology, Verdict, changes, gate, picture, reason,
};
use corsair_observe::Replacement;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// The exit code if an objective is missed.
const MISSED: u8 = 1;
/// The exit code if more runs are needed.
const UNDECIDED: u8 = 3;

/// The flags of `corsair gate`.
#[derive(Debug, Args)]
pub struct GateArgs {
    /// The changed system: a definition (a name or a file), or manifests (files and directories)
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The system before the change: a definition, or manifests; may be repeated. Changed manifests replace fields of
    /// a definition; all other fields keep the definition's values
    #[arg(long, value_name = "FILE")]
    base: Vec<PathBuf>,
    /// Objective, as of `corsair capacity`: 'p95 < 80ms', 'cart.list mean < 20ms', 'errors < 1%'; may be repeated
    /// [default: the thresholds of k6 scripts among the manifests]
    #[arg(long = "slo", value_name = "SLO")]
    slos: Vec<Slo>,
    /// Set a field of the changed system, for example services.web.count=4; may be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = variants::setting)]
    set: Vec<Setting>,
    /// Load of both systems [default: the load of their definitions]
    #[arg(long, value_name = "LOAD")]
    load: Option<String>,
    /// Length of each run, in virtual seconds [default: 10, and longer if a steady load has too few requests]
    #[arg(long, short, value_name = "SECONDS", value_parser = text::seconds)]
    duration: Option<Duration>,
    /// Maximum number of runs of each system
    #[arg(long, value_name = "N", default_value_t = 32)]
    runs: usize,
    /// First seed of the random numbers; further runs use the seeds after it
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Number of runs in parallel [default: one per core]
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Directory of definitions, NAME_arch.json
    #[arg(long, value_name = "DIR", default_value = "json_arch")]
    arch_dir: PathBuf,
    /// Processor time of a request at each service that manifests describe, exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = text::duration)]
    work: Duration,
    /// Requests per second at each entry point of manifests, unless a k6 script says
    #[arg(long, value_name = "N", default_value_t = 50.0)]
    rate: f64,
    /// A call that no field of the manifests states, for example reviews=ratings; may be repeated
    #[arg(long = "call", value_name = "FROM=TO", value_parser = super::import::call)]
    calls: Vec<(String, String)>,
    /// Write a report in Markdown to this file, and its pictures beside it
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Output: text, or one JSON object
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// A system of the gate: its definition with changed fields, and its topology.
struct Side {
    side: GateSide,
    topology: Topology,
}

/// Judges a change and prints the verdict. The exit code is 0 if all objectives are met, 1 if one is missed, and 3 if
/// more runs are needed.
///
/// # Errors
/// If a flag, a system or the report is invalid.
pub fn run(args: &GateArgs) -> Result<ExitCode> {
    super::import::check(args.rate, args.work)?;
    let base_name = base_name(&args.base);
    let base = match args.base.is_empty() {
        true => None,
        false => Some(read(args, &args.base, None, &[]).context("--base")?),
    };
    let below = base.as_ref().zip(base_name.as_deref());
    let below = below.map(|(base, name)| (&base.side, name));
    let changed = read(args, &args.files, below, &args.set)?;
    let rules = rules(args, &changed.side)?;
    let report = args.report.as_deref().map(Report::begin).transpose()?;
    let config = variants::seeded(args.seed, args.workers);
    interrupt::on_ctrl_c(config.cancel.clone());
    let plan = plan(args)?;
    let console = Arc::new(Console::new(args.format == Format::Text));
    let bar = Bar::begin(&console, Measure::Clock);
    let before = base.as_ref().map(|base| &base.topology);
    let judged = gate(&config, &changed.topology, before, &plan, &rules, |_| {});
    drop(bar);
    let result = judged.map_err(|error| anyhow!("{error}"))?;
    let Some(result) = result else {
        bail!("stopped before all runs were made");
    };
    let fields = match &base {
        Some(base) => changes(&base.side.definition, &changed.side.definition),
        None => Vec::new(),
    };
    let shown = GateReport {
        result: &result,
        base: base_name.as_deref(),
        changes: &fields,
        notes: &changed.side.notes,
        pictures: None,
        command: &command(args),
    };
    if let Some(report) = report {
        report.write(&shown)?;
    }
    print(&console, args, &shown);
    for said in changed.topology.remarks(plan.duration) {
        console.line(format_args!("  note: {said}"));
    }
    Ok(match result.verdict {
        Verdict::Met => ExitCode::SUCCESS,
        Verdict::Missed => ExitCode::from(MISSED),
        Verdict::Undecided(_) => ExitCode::from(UNDECIDED),
    })
}

/// Returns the name of the base in reports.
fn base_name(base: &[PathBuf]) -> Option<String> {
    let name = base.first()?.file_name()?;
    Some(name.to_string_lossy().into_owned())
}

/// Reads a system, and sets fields of it.
fn read(
    args: &GateArgs,
    files: &[PathBuf],
    base: Option<(&GateSide, &str)>,
    fields: &[Setting],
) -> Result<Side> {
    if let [only] = files
        && ["fsm", "migration"]
            .iter()
            .any(|name| only == Path::new(name))
    {
        return Err(source::no_services(&only.to_string_lossy()));
    }
    let options = ImportOptions {
        work: args.work,
        rate: args.rate,
        calls: args.calls.clone(),
        ..ImportOptions::default()
    };
    let side = GateSide::read(files, &args.arch_dir, &options, base);
    let mut side = side.map_err(|error| anyhow!("{error}"))?;
    if !fields.is_empty() {
        let checked = side.text.with(fields).map_err(|error| anyhow!("{error}"))?;
        side.definition = checked.written().clone();
        side.text = DefinitionText::new(side.definition.to_text(), side.text.file());
    }
    let setup = Setup {
        scale: Scale::default(),
        duration: Duration::from_secs(10),
        warm_up: None,
        load: args.load.clone(),
        sized: true,
    };
    let topology = setup.topology(&side.text, &[], None).map_err(flagged)?;
    Ok(Side { side, topology })
}

/// Returns the rules with the given objectives or, if none are given, with the objectives of the load tests. Errors
/// always have a limit, because requests that fail at once are fast.
fn rules(args: &GateArgs, changed: &GateSide) -> Result<GateRules> {
    let mut slos = args.slos.clone();
    if slos.is_empty() {
        for objective in &changed.objectives {
            slos.push(objective.parse()?);
        }
    }
    let limits_errors = |slo: &Slo| slo.kind.is_none() && !slo.is_time();
    if !slos.is_empty() && !slos.iter().any(limits_errors) {
        slos.extend(
            Slo::usual(Duration::ZERO, 0.01)
                .into_iter()
                .filter(limits_errors),
        );
    }
    Ok(GateRules {
        most_runs: args.runs,
        is_fixed: args.duration.is_some(),
        ..GateRules::new(slos)
    })
}

fn plan(args: &GateArgs) -> Result<Plan> {
    let duration = args.duration.unwrap_or(Duration::from_secs(10));
    if duration.is_zero() {
        bail!("--duration: 0 seconds have no load; give 1 second or more");
    }
    Ok(Plan {
        duration,
        warm_up: duration / 10,
        ..Plan::default()
    })
}

/// Returns the command line, for the report.
fn command(args: &GateArgs) -> String {
    let mut words = vec!["corsair gate".to_owned()];
    words.extend(args.files.iter().map(|file| file.display().to_string()));
    words.extend(args.slos.iter().map(|slo| format!("--slo '{slo}'")));
    for base in &args.base {
        words.push(format!("--base {}", base.display()));
    }
    words.extend((args.set.iter()).map(|set| format!("--set {}={}", set.path, set.typed())));
    words.join(" ")
}

fn print(console: &Console, args: &GateArgs, shown: &GateReport) {
    match args.format {
        Format::Text => {
            console.line(format_args!(
                "corsair: {}",
                reason(shown.result, shown.base)
            ));
            console.print(|out| out.write_all(shown.lines().as_bytes()));
        }
        Format::Json => console.print(|out| {
            let summary = GateSummary::new(shown);
            serde_json::to_writer(&mut *out, &summary).map_err(io::Error::from)?;
            writeln!(out)
        }),
    }
}

/// The files of a report.
struct Report {
    file: Replacement,
    pictures: [(Replacement, String); 2],
}

impl Report {
    /// Opens the files before the runs begin.
    fn begin(path: &Path) -> Result<Report> {
        let picture = |what: &str| -> Result<(Replacement, String)> {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{stem}-{what}.svg");
            let file = Replacement::begin(&path.with_file_name(&name)).context("--report")?;
            Ok((file, name))
        };
        Ok(Report {
            file: Replacement::begin(path).context("--report")?,
            pictures: [picture("objectives")?, picture("services")?],
        })
    }

    fn write(self, shown: &GateReport) -> Result<()> {
        let Report { file, pictures } = self;
        let [(objectives, first), (services, second)] = pictures;
        let names = [first.replace(' ', "%20"), second.replace(' ', "%20")];
        let shown = GateReport {
            pictures: Some([&names[0], &names[1]]),
            ..*shown
        };
        let drawn = |drawn: Result<String, picture::PictureError>| {
            drawn.map_err(|error| anyhow!("--report: {error}"))
        };
        let texts = [
            (file, shown.markdown()),
            (objectives, drawn(picture::objectives(shown.result))?),
            (services, drawn(picture::services(shown.result))?),
        ];
        for (mut file, text) in texts {
            let written = file.writer().write_all(text.as_bytes());
            written.map_err(|error| anyhow!(file.failed(error)))?;
            file.finish().context("--report")?;
        }
        Ok(())
    }
}
