//! Pirates in several processes.

use super::watch::{Recorded, Stages};
use super::{PirateResults, Pirates, failed, saved};
use crate::cluster::member::{PartRun, Spread};
use crate::options::Options;
use anyhow::{Context, Result, anyhow};
use corsair::Config;
use corsair::cluster::Saving;
use corsair::fsm::{self, Fsm, Msg, Watch};

impl Spread for Pirates {
    type Message = Msg;

    fn course(&self, options: &Options) -> Result<Vec<u8>> {
        Ok(fsm::course(&options.config, &self.scenario))
    }

    fn run_part(&mut self, run: PartRun<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
        let stages = Stages::new(run.console, &run.recorder, &self.names);
        if let Some(from) = &self.from {
            saved::go_on(&stages, from)?;
        }
        let (form, pirates) = (self.scenario.form, self.scenario.count());
        let (scenario, recorder) = (self.scenario.clone(), run.recorder.clone());
        let (told, tally) = if recorder.wants_graph() || recorder.wants_messages() {
            let watch = stages.with(Recorded(recorder));
            run_watched(run, &scenario.watched_by(watch), &stages)?
        } else {
            run_watched(run, &scenario.watched_by(stages.with(())), &stages)?
        };
        self.done = Some(PirateResults {
            form,
            pirates,
            delivered: stages.delivered(),
            tally,
            names: self.names.clone().at(stages.pirates()),
        });
        Ok((told, Vec::new()))
    }

    fn config(&self, options: &Options) -> Config {
        fsm::config(options.config.clone())
    }

    fn into_results(self, _: &Options, _: &[Vec<u8>]) -> Result<PirateResults> {
        self.done
            .ok_or_else(|| anyhow!("pirates have not been run"))
    }
}

fn run_watched<W: Watch>(
    mut run: PartRun<'_>,
    scenario: &Fsm<W>,
    stages: &Stages,
) -> Result<(Vec<u8>, Option<fsm::Tally>)> {
    let carrier = run.carrier.take().context("a part is run once")?;
    let recorder = run.recorder.clone();
    let outputs = |time| saved::outputs(stages, &recorder, time);
    let keeper = run.keeper(&outputs);
    let saving = keeper.as_ref().map(|keeper| keeper as &dyn Saving);
    let from = run.snapshot.as_ref();
    let ran = fsm::run_part(
        &run.options.config,
        run.part,
        scenario,
        from,
        carrier,
        saving,
    );
    ran.map_err(|error| failed(&error, run.console))
}
