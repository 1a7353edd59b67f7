//! An architecture in several processes.

use super::summary::Described;
use super::timeline::{File, write_all};
use super::{ServiceResults, Services, saved};
use crate::cluster::member::{PartRun, Spread};
use crate::options::Options;
use anyhow::{Context, Result, anyhow};
use corsair::cluster::Saving;
use corsair_arch::{Msg, Start, Totals};
use corsair_observe::Recorder;
use std::path::Path;

impl Spread for Services<'_> {
    type Message = Msg;

    fn course(&self, options: &Options) -> Result<Vec<u8>> {
        let plan = super::plan(options, self.options, Recorder::off());
        let course = corsair_arch::course(&options.config, self.topology.clone(), &plan);
        course.map_err(|error| anyhow!("{error}"))
    }

    fn run_part(&mut self, mut run: PartRun<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
        let options = run.options;
        let plan = super::plan(options, self.options, run.recorder.clone());
        if run.part.process == 0 {
            run.console.talking(options.duration);
            self.warn(options, &plan);
        }
        let timelines = match run.part.process {
            0 => File::begin_all(&self.options.timelines)?,
            _ => Vec::new(),
        };
        self.spread = Some((Described::new(options, &self.topology), timelines));
        if let Some(from) = &self.from {
            saved::check(options, from, &self.topology)?;
        }
        let checkpoints = options.checkpoints.as_ref();
        let branch = checkpoints.filter(|_| run.snapshot.is_some());
        let branch = branch.map(|saved| saved::asked_branch(options, saved, &self.topology));
        let branch = branch.transpose()?.flatten();
        let start = match (&run.snapshot, &branch) {
            (None, _) => Start::Beginning,
            (Some(snapshot), None) => Start::Saved(snapshot),
            (Some(snapshot), Some(branch)) => Start::Branch(snapshot, branch),
        };
        let carrier = run.carrier.take().context("a part is run once")?;
        let details = saved::details(&self.topology)?;
        let outputs = |time| Ok((details.clone(), run.recorder.save(time)?));
        let keeper = run.keeper(&outputs);
        let ran = corsair_arch::run_part(
            &options.config,
            run.part,
            self.topology.clone(),
            &plan,
            start,
            carrier,
            keeper.as_ref().map(|keeper| keeper as &dyn Saving),
        );
        let (told, totals) = ran.map_err(|error| {
            let from = self.from.as_ref();
            let directory = from.map_or(Path::new(""), |from| &from.directory);
            saved::failed(error, directory, run.console)
        })?;
        Ok((told, serde_json::to_vec(&totals)?))
    }

    fn into_results(self, options: &Options, beside: &[Vec<u8>]) -> Result<ServiceResults> {
        let mut sum: Option<Totals> = None;
        for told in beside {
            let totals: Totals =
                serde_json::from_slice(told).context("what a process has done makes no sense")?;
            match &mut sum {
                None => sum = Some(totals),
                Some(sum) => sum.merge(totals),
            }
        }
        let (totals, (mut described, timelines)) = sum
            .zip(self.spread)
            .ok_or_else(|| anyhow!("services have not been run"))?;
        described.utilisations = self.topology.utilisations(&totals, options.duration);
        Ok(ServiceResults {
            described,
            files: write_all(timelines, &options.arch, &self.topology, &totals)?,
            totals,
        })
    }
}
