//! `-a fsm`: pirates, simulated and told of.

mod names;
mod network;
mod saved;
#[cfg(feature = "cluster")]
mod spread;
mod summary;
mod watch;

use crate::checkpoint;
use crate::console::Console;
use crate::memory;
use crate::options::{self, Options, PirateOptions, SessionOptions};
use crate::session;
use crate::workload::{Results, Workload};
use anyhow::{Context, Result, anyhow};
use corsair::fsm::{self, Form, Fsm, FsmError, Msg, Tally, Watch};
use corsair::{Addr, Message, Report};
use corsair_observe::checkpoint::Checkpoint;
use corsair_observe::{Observed, Recorder, Settings};
use corsair_view::Make;
use names::Names;
use std::borrow::Cow;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use summary::{Delivery, PiratesSummary};
use watch::{Recorded, Stages};

/// Pirates that are ready to run.
#[derive(Debug)]
pub struct Pirates {
    scenario: Fsm,
    names: Names,
    /// Where they go on from.
    from: Option<Arc<Checkpoint>>,
    /// What they have done in this process, of several.
    #[cfg(feature = "cluster")]
    done: Option<PirateResults>,
}

/// What pirates have done.
#[derive(Debug)]
pub struct PirateResults {
    form: Form,
    pirates: u32,
    delivered: Option<Delivery>,
    tally: Option<Tally>,
    names: Names,
}

impl Pirates {
    /// Reads what is to be run, and checks that it can be.
    ///
    /// # Errors
    /// The first thing that is wrong, with its flag.
    pub fn new(options: &Options, pirates: &PirateOptions) -> Result<Pirates> {
        Pirates::new_shared(options, pirates, 1)
    }

    /// Reads what is to be run, of which this machine has one of `machines` equal parts.
    ///
    /// # Errors
    /// The first thing that is wrong, with its flag.
    pub fn new_shared(
        options: &Options,
        pirates: &PirateOptions,
        machines: u32,
    ) -> Result<Pirates> {
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
            #[cfg(feature = "cluster")]
            done: None,
        })
    }
}

/// Without `--workers`, each worker has at least this many pirates. With fewer, a second worker costs as
/// much in meetings, while they talk, as it takes off the first, which has the FSM (`cargo bench --bench fsm --bench chat`).
const PIRATES_OF_A_WORKER: NonZeroU32 = NonZeroU32::new(500_000).expect("not 0");

/// How many workers run pirates by default: one for each core, but fewer for few pirates.
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
    ) -> Result<(Report, PirateResults)> {
        let Pirates {
            scenario, names, ..
        } = self;
        let (pirates, form) = (scenario.count(), scenario.form);
        let options = &options.with_workers(|| default_workers(pirates));
        let (executor, config) = (options.executor, &options.config);
        let stages = Stages::new(console, &recorder, &names);
        let ran = if let Some(checkpoints) = &options.checkpoints {
            if recorder.wants_graph() || recorder.wants_messages() {
                let watch = stages.with(Recorded(recorder.clone()));
                saved::run(
                    options,
                    checkpoints,
                    scenario.watched_by(watch),
                    &stages,
                    &recorder,
                )?
            } else {
                let watch = stages.with(());
                saved::run(
                    options,
                    checkpoints,
                    scenario.watched_by(watch),
                    &stages,
                    &recorder,
                )?
            }
        } else if let Some(held) = &options.session {
            let writes = recorder.wants_graph() || recorder.wants_messages();
            if writes {
                let watch = stages.with(Recorded(recorder));
                run_held(options, held, scenario.watched_by(watch), false, console)?
            } else {
                run_held(
                    options,
                    held,
                    scenario.watched_by(stages.with(())),
                    true,
                    console,
                )?
            }
        } else if recorder.wants_graph() || recorder.wants_messages() {
            let watch = stages.with(Recorded(recorder));
            fsm::run(executor, config, scenario.watched_by(watch))
        } else {
            fsm::run(executor, config, scenario.watched_by(stages.with(())))
        };
        let (report, tally) = ran.map_err(|error| failed(&error, console))?;
        let results = PirateResults {
            form,
            pirates,
            delivered: stages.delivered(),
            tally,
            names: names.at(stages.pirates()),
        };
        Ok((report, results))
    }
}

/// Runs pirates in a session, which may go back if nothing is written.
fn run_held<W: Watch>(
    options: &Options,
    held: &SessionOptions,
    scenario: Fsm<W>,
    goes_back: bool,
    console: &Arc<Console>,
) -> Result<Result<(Report, Option<Tally>), FsmError>> {
    let config = options.config.clone();
    let make = move || corsair_view::Pirates::new(&config, scenario.clone());
    let world = make().map_err(|error| failed(&error, console))?;
    let again: Option<Make<_>> = match goes_back {
        true => Some(Box::new(move |_| make().map_err(|error| error.to_string()))),
        false => None,
    };
    Ok(session::run(options, held, world, again, console)?.finish())
}

/// How the run failed.
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

    fn summary(self, report: &Report, _: &Observed) -> (PiratesSummary, String) {
        let summary =
            PiratesSummary::new(self.form, self.pirates, report, self.delivered, self.tally);
        (summary, String::new())
    }
}
