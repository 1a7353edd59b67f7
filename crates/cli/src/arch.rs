//! `-a` with any name except fsm: an architecture of services, simulated and observed.

pub mod saved;
pub mod source;
mod spent;
mod summary;
mod timeline;

use crate::checkpoint;
use crate::console::{Console, complain};
use crate::driver::Driver;
use crate::memory;
use crate::options::{self, Options, ServiceOptions, SessionOptions};
use crate::session;
use crate::workload::{Results, Workload};
use anyhow::{Context, Result, anyhow};
use corsair::{Addr, Report};
use corsair_arch::{KINDS, Plan, SimulateError, Topology, Totals};
use corsair_observe::checkpoint::Checkpoint;
use corsair_observe::{OutputSummary, Recorder, Settings};
use corsair_view::{ExtraCapacity, Make};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use summary::{ServicesReport, SummaryNames};

/// An architecture that is ready to run.
#[derive(Debug)]
pub struct Services<'a> {
    options: &'a ServiceOptions,
    topology: Topology,
    /// The checkpoint from which the run resumes.
    from: Option<Arc<Checkpoint>>,
}

impl<'a> Services<'a> {
    /// Reads and checks the run that the options describe.
    ///
    /// # Errors
    /// Returns the first fault, with its flag.
    pub fn new(options: &Options, services: &'a ServiceOptions) -> Result<Services<'a>> {
        let topology = source::topology(options, services)?;
        if !options.duration.is_zero() {
            source::check_load(&topology).context("-a")?;
        }
        let connections = corsair_arch::connections(&topology);
        memory::check_architecture(topology.len(), connections).context("-p")?;
        Ok(Services {
            options: services,
            topology,
            from: (options.checkpoints.as_ref()).and_then(|saved| saved.from.clone()),
        })
    }
}

impl Services<'_> {
    /// Warns about effects of the options that users may not expect.
    fn warn(&self, options: &Options, plan: &Plan) {
        let sent = [
            &self.options.kafka,
            &self.options.otlp,
            &self.options.zipkin,
        ];
        if sent.iter().any(|sent| sent.is_some()) && summary::is_undated(options) {
            complain(
                "flows are dated from 1970, where a search for the last hours does not look; \
                 --epoch now dates them from now on",
            );
        }
        for remark in self.topology.remarks(plan.duration) {
            complain(&remark);
        }
    }
}

impl Workload for Services<'_> {
    type Results = ServiceResults;

    fn describe(&self, settings: &mut Settings) -> Result<()> {
        settings.arch.clone_from(&self.topology.arch);
        settings.places = Arc::clone(&self.topology.places);
        settings.kinds = KINDS;
        settings.operations = self.topology.operations();
        settings.guesses = self.topology.guesses();
        settings.flows.clone_from(&self.options.flows);
        settings.times = self.options.collect;
        if let Some(neo4j) = &mut settings.neo4j {
            neo4j.flows = self.options.collect;
        }
        settings.kafka.clone_from(&self.options.kafka);
        settings.otlp.clone_from(&self.options.otlp);
        settings.zipkin.clone_from(&self.options.zipkin);
        settings.metrics = self.options.metrics;
        if let Some(from) = &self.from {
            settings.resumed = Some(checkpoint::resumed(from, None));
        }
        Ok(())
    }

    fn run(
        self,
        options: &Options,
        recorder: Recorder,
        console: &Arc<Console>,
        driver: &mut impl Driver,
    ) -> Result<Option<(Report, ServiceResults)>> {
        console.talking(options.duration);
        let options = &options.with_workers(|| corsair_arch::default_workers(&self.topology));
        let plan = plan(options, self.options, recorder);
        let timelines = match driver.is_first() {
            true => {
                self.warn(options, &plan);
                timeline::File::begin_all(&self.options.timelines)?
            }
            false => Vec::new(),
        };
        let mut described = SummaryNames::new(options, &self.topology);
        let mut topology = self.topology;
        let ran = match &options.session {
            Some(held) => {
                let ran = run_held(options, held, &mut topology, &plan, console)?;
                // The session may have added instances.
                described = SummaryNames::new(options, &topology);
                Some(ran)
            }
            None => {
                let from = self.from.as_deref();
                saved::run(options, from, topology.clone(), &plan, console, driver)?
            }
        };
        let Some((report, totals)) = ran else {
            return Ok(None);
        };
        described.utilisations = topology.utilisations(&totals, plan.duration);
        let files = timeline::write_all(timelines, &options.arch, &topology, &totals)?;
        let results = ServiceResults {
            described,
            totals,
            files,
        };
        Ok(Some((report, results)))
    }
}

/// Returns the plan of a run: duration, load and recorder.
pub fn plan(options: &Options, services: &ServiceOptions, recorder: Recorder) -> Plan {
    let plan = Plan::default();
    let slice = services.interval.unwrap_or(slice_of(options.duration));
    Plan {
        duration: options.duration,
        chat: options.chat.unwrap_or(plan.chat),
        poll: services.poll,
        collapse: services.collapse,
        interval: (!services.timelines.is_empty()).then_some(slice),
        recorder,
        ..plan
    }
}

/// Runs an architecture in a session, with the topology that the session has changed.
fn run_held(
    options: &Options,
    held: &SessionOptions,
    topology: &mut Topology,
    plan: &Plan,
    console: &Arc<Console>,
) -> Result<(Report, Totals)> {
    let (config, plan) = (options.config.clone(), plan.clone());
    let recorder = &plan.recorder;
    let writes = recorder.wants_graph()
        || recorder.wants_flows()
        || recorder.wants_times()
        || recorder.wants_messages();
    let defined = topology.clone();
    let make = move |room: &ExtraCapacity| {
        let mut topology = defined.clone();
        topology
            .add_extra_capacity(room)
            .map_err(|error| anyhow!("{error}"))?;
        corsair_view::Services::new(&config, topology, &plan).map_err(|error| anyhow!(error))
    };
    let recorded = held.replay.as_ref();
    let world = match make(
        &recorded
            .map(|replay| replay.room.clone())
            .unwrap_or_default(),
    ) {
        Ok(world) => world,
        Err(error) => {
            return Err(match error.downcast() {
                Ok(error) => failed(&error, console),
                Err(error) => error.context("--replay"),
            });
        }
    };
    let again: Option<Make<_>> = match writes {
        true => None,
        false => Some(Box::new(move |room| {
            make(room).map_err(|error| error.to_string())
        })),
    };
    let ran = session::run(options, held, world, again, console)?;
    topology.clone_from(ran.topology());
    ran.finish().map_err(|error| failed(&error, console))
}

/// Describes the failure of a run, with the flag that caused it.
fn failed(error: &SimulateError, console: &Console) -> anyhow::Error {
    match error {
        SimulateError::Chat(_) => anyhow!("-kv: {error}"),
        SimulateError::Poll(_) => anyhow!("-u: {error}"),
        SimulateError::Interval(_) => anyhow!("--interval: {error}"),
        SimulateError::Latency(_) => anyhow!("--latency, or the network: {error}"),
        SimulateError::Run(run) => options::failed(error, run, console),
        _ => anyhow!("{}", error.to_string().trim_end()),
    }
}

/// Returns the default length of the slices of a timeline.
fn slice_of(duration: Duration) -> Duration {
    (duration / 100).max(Duration::from_millis(1))
}

/// The totals of services.
#[derive(Debug)]
pub struct ServiceResults {
    described: SummaryNames,
    totals: Totals,
    files: Vec<String>,
}

impl Results for ServiceResults {
    type Summary = ServicesReport;

    fn name(&self, place: usize, _: Addr) -> Cow<'_, str> {
        let name = self.described.actors.get(place);
        name.map_or("unknown".into(), Into::into)
    }

    fn files(&self) -> Vec<String> {
        self.files.clone()
    }

    fn summary(self, report: &Report, observed: &OutputSummary) -> (ServicesReport, String) {
        let table = corsair_observe::percentile_table(&observed.times);
        let summary = ServicesReport::new(&self.described, report, &self.totals, observed);
        (summary, table)
    }
}
