//! `-a` anything but fsm: an architecture of services, simulated and observed.

pub mod source;
mod summary;

use crate::console::{Console, complain};
use crate::memory;
use crate::options::{self, Options, ServiceOptions};
use crate::workload::{Results, Workload};
use anyhow::{Context, Result, anyhow};
use corsair::{Addr, Report};
use corsair_arch::{KINDS, Plan, SimulateError, Topology, Totals, simulate};
use corsair_observe::{Observed, Recorder, Settings};
use std::borrow::Cow;
use std::sync::Arc;
use summary::{Described, ServicesSummary};

/// An architecture that is ready to run.
#[derive(Debug)]
pub struct Services<'a> {
    options: &'a ServiceOptions,
    topology: Topology,
}

impl<'a> Services<'a> {
    /// Reads what is to be run, and checks that it can be.
    ///
    /// # Errors
    /// The first thing that is wrong, with its flag.
    pub fn new(options: &Options, services: &'a ServiceOptions) -> Result<Services<'a>> {
        let topology = source::topology(options, services)?;
        let connections = corsair_arch::connections(&topology);
        memory::check_architecture(topology.len(), connections).context("-p")?;
        Ok(Services {
            options: services,
            topology,
        })
    }
}

impl Workload for Services<'_> {
    type Results = ServiceResults;

    fn describe(&self, settings: &mut Settings) -> Result<()> {
        settings.arch.clone_from(&self.topology.arch);
        settings.kinds = KINDS;
        settings.guesses = self.topology.guesses();
        settings.flows.clone_from(&self.options.flows);
        settings.times = self.options.collect;
        settings.kafka.clone_from(&self.options.kafka);
        settings.otlp.clone_from(&self.options.otlp);
        settings.zipkin.clone_from(&self.options.zipkin);
        settings.metrics = self.options.metrics;
        Ok(())
    }

    fn run(
        self,
        options: &Options,
        recorder: Recorder,
        console: &Arc<Console>,
    ) -> Result<(Report, ServiceResults)> {
        console.talking(options.duration);
        let plan = Plan {
            duration: options.duration,
            poll: self.options.poll,
            collapse: self.options.collapse,
            recorder,
            ..Plan::default()
        };
        let plan = Plan {
            chat: options.chat.unwrap_or(plan.chat),
            ..plan
        };
        for late in self.topology.faults_after(plan.duration) {
            complain(&late);
        }
        let described = Described::new(options, &self.topology);
        let ran = simulate(options.executor, &options.config, self.topology, &plan);
        let (report, totals) = ran.map_err(|error| match &error {
            SimulateError::Chat(_) => anyhow!("-kv: {error}"),
            SimulateError::Poll(_) => anyhow!("-u: {error}"),
            SimulateError::Run(run) => options::failed(&error, run, console),
            _ => anyhow!("{}", error.to_string().trim_end()),
        })?;
        Ok((report, ServiceResults { described, totals }))
    }
}

/// What services have done.
#[derive(Debug)]
pub struct ServiceResults {
    described: Described,
    totals: Totals,
}

impl Results for ServiceResults {
    type Summary = ServicesSummary;

    fn name(&self, place: usize, _: Addr) -> Cow<'_, str> {
        let name = self.described.actors.get(place);
        name.map_or("unknown".into(), Into::into)
    }

    fn summary(self, report: &Report, observed: &Observed) -> (ServicesSummary, String) {
        let table = corsair_observe::percentile_table(&observed.times);
        let summary = ServicesSummary::new(&self.described, report, &self.totals, observed);
        (summary, table)
    }
}
