//! `-a fsm`: the pirates.

mod names;
mod network;
mod saved;
mod summary;
mod watch;

use crate::checkpoint;
use crate::console::Console;
use crate::driver::{Driver, Failure};
use crate::memory;
use crate::options::{self, Options, PirateOptions, SessionOptions};
use crate::session;
use crate::workload::{Results, Workload};
use anyhow::{Context, Result, anyhow};
use corsair::fsm::{Form, Fsm, FsmError, Msg, Tally, Watch};
use corsair::{Addr, Message, Report};
use corsair_observe::checkpoint::Checkpoint;
use corsair_observe::run::{Finished, Pirates as Scenario};
use corsair_observe::{OutputSummary, Recorder, Settings};
use corsair_view::Make;
use names::Names;
use std::borrow::Cow;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use summary::{Delivery, PiratesSummary};
use watch::{RecordingWatch, Stages};

/// Pirates that are ready to run.
#[derive(Debug)]
pub struct Pirates {
    scenario: Fsm,
    names: Names,
    /// The checkpoint from which the pirates resume.
    from: Option<Arc<Checkpoint>>,
}

/// The results of pirates.
#[derive(Debug)]
pub struct PirateResults {
    form: Form,
    pirates: u32,
    delivered: Option<Delivery>,
    tally: Option<Tally>,
    names: Names,
}

impl Pirates {
    /// Reads and checks the run that the options describe, for one of `machines` machines that run equal parts of it.
    ///
    /// # Errors
    /// Returns the first fault, with its flag.
    pub fn new(options: &Options, pirates: &PirateOptions, machines: u32) -> Result<Pirates> {
        let network = options.reload.as_deref().map(network::read).transpose()?;
        let listed = network.as_ref().map(|network| Arc::clone(network.names()));
        let scenario = Fsm {
            arch: options.arch.clone(),
            population: pirates.population,
            talk: options.duration,
            form: pirates.form,
            network,
            chat: options.chat,
            watch: (),
        };
        scenario.check().map_err(|wrong| match wrong {
            FsmError::Chat(_) => anyhow!("-kv: {wrong}"),
            _ => anyhow!("-p: {wrong}"),
        })?;
        let here = scenario.count().div_ceil(machines);
        memory::check(options.executor, here).context("-p")?;
        Ok(Pirates {
            names: Names::new(&options.arch, listed),
            scenario,
            from: (options.checkpoints.as_ref()).and_then(|saved| saved.from.clone()),
        })
    }
}

/// The minimum number of pirates for each default worker. With fewer pirates, the barriers of a second worker cost as
/// much as the worker saves (`cargo bench --bench fsm --bench chat`).
const PIRATES_OF_A_WORKER: NonZeroU32 = NonZeroU32::new(500_000).expect("not 0");

/// Returns the default number of workers: one for each core, but fewer for few pirates.
fn default_workers(pirates: u32) -> NonZeroUsize {
    corsair::worthwhile_workers(pirates, PIRATES_OF_A_WORKER)
}

impl Workload for Pirates {
    type Results = PirateResults;

    fn describe(&self, settings: &mut Settings) -> Result<()> {
        settings.kinds = Msg::KINDS;
        if let Some(from) = &self.from {
            let population = Arc::new(self.names.clone());
            settings.resumed = Some(checkpoint::resumed(from, Some(population)));
        }
        Ok(())
    }

    fn run(
        self,
        options: &Options,
        recorder: Recorder,
        console: &Arc<Console>,
        driver: &mut impl Driver,
    ) -> Result<Option<(Report, PirateResults)>> {
        let Pirates {
            scenario,
            names,
            from,
        } = self;
        let (pirates, form) = (scenario.count(), scenario.form);
        let options = &options.with_workers(|| default_workers(pirates));
        let stages = Stages::new(console, &recorder, &names);
        let stage = Stage {
            options,
            from: from.as_deref(),
            stages: &stages,
            recorder: &recorder,
            console,
        };
        let ran = if stage.is_recorded() {
            let watch = stages.with(RecordingWatch(recorder.clone()));
            stage.run(scenario.watched_by(watch), driver)?
        } else {
            stage.run(scenario.watched_by(stages.with(())), driver)?
        };
        let Some(Finished { report, totals }) = ran else {
            return Ok(None);
        };
        let results = PirateResults {
            form,
            pirates,
            delivered: stages.delivered(),
            tally: totals,
            names: names.at(stages.pirates()),
        };
        Ok(Some((report, results)))
    }
}

/// The parameters of a run of pirates, independent of the observer.
struct Stage<'a> {
    options: &'a Options,
    from: Option<&'a Checkpoint>,
    stages: &'a Stages,
    recorder: &'a Recorder,
    console: &'a Arc<Console>,
}

impl Stage<'_> {
    /// Returns true if the events of each pirate are recorded.
    fn is_recorded(&self) -> bool {
        self.recorder.wants_graph() || self.recorder.wants_messages()
    }

    fn run<W: Watch>(
        &self,
        scenario: Fsm<W>,
        driver: &mut impl Driver,
    ) -> Result<Option<Finished<Option<Tally>>>> {
        let (options, console) = (self.options, self.console);
        if let Some(held) = &options.session {
            let (report, totals) = self.hold(held, scenario)?;
            return Ok(Some(Finished { report, totals }));
        }
        let scenario = Scenario::new(&options.config, scenario);
        let scenario = scenario.map_err(|error| failed(&error, console))?;
        let reseed = options.checkpoints.as_ref().and_then(|saved| saved.reseed);
        let snapshot = match self.from {
            Some(from) => {
                saved::restore_addresses(self.stages, from)?;
                Some(saved::snapshot(from, reseed)?)
            }
            None => None,
        };
        let details = || saved::details(self.stages);
        let ran = driver.drive(scenario, snapshot, &details);
        ran.map_err(|failure| match (failure, self.from) {
            (Failure::Workload(FsmError::Saved(error)), Some(from)) => {
                anyhow!(error).context(from.directory.display().to_string())
            }
            (Failure::Workload(error), _) => failed(&error, console),
            (Failure::Other(error), _) => error,
        })
    }

    /// Runs pirates in a session. The session can be rewound if no files are written.
    fn hold<W: Watch>(
        &self,
        held: &SessionOptions,
        scenario: Fsm<W>,
    ) -> Result<(Report, Option<Tally>)> {
        let (options, console) = (self.options, self.console);
        let config = options.config.clone();
        let make = move || corsair_view::Pirates::new(&config, scenario.clone());
        let world = make().map_err(|error| failed(&error, console))?;
        let again: Option<Make<_>> = match self.is_recorded() {
            true => None,
            false => Some(Box::new(move |_| make().map_err(|error| error.to_string()))),
        };
        let ended = session::run(options, held, world, again, console)?;
        ended.finish().map_err(|error| failed(&error, console))
    }
}

/// Describes the failure of a run.
fn failed(error: &FsmError, console: &Console) -> anyhow::Error {
    match error {
        FsmError::Run(run) => options::failed(error, run, console),
        _ => anyhow!("{error}"),
    }
}

impl Results for PirateResults {
    type Summary = PiratesSummary;

    fn name(&self, _: usize, actor: Addr) -> Cow<'_, str> {
        self.names.of(actor)
    }

    fn summary(self, report: &Report, _: &OutputSummary) -> (PiratesSummary, String) {
        let summary =
            PiratesSummary::new(self.form, self.pirates, report, self.delivered, self.tally);
        (summary, String::new())
    }
}
