//! Converts a tree of calls and work to the steps of a definition.

use super::tree::{Block, Series};
use super::{Relations, Target};
use crate::definition::{StepDefinition, Targets};
use crate::learn::fit;
use std::collections::BTreeMap;

/// Work below this time, in nanoseconds, is ignored, because it is the error of clocks that count microseconds.
const NO_WORK: u64 = 2_000;

/// The frequency above which a step is treated as one that always runs. A step with a frequency below one minus this
/// value is treated as one that never runs.
const ALWAYS: f64 = 0.995;

pub(super) struct Writer<'a> {
    pub(super) relations: &'a Relations,
    pub(super) name: &'a dyn Fn(Target) -> String,
}

impl Writer<'_> {
    /// Converts a list of steps, which was run `begun` times, to steps of a definition.
    pub(super) fn series(&self, mut series: Series, begun: u64) -> Vec<StepDefinition> {
        series.share();
        let mut steps: Vec<StepDefinition> = Vec::new();
        for (block, gap) in series.blocks.into_iter().zip(&mut series.gaps) {
            let before = steps.len();
            steps.extend(self.work(gap));
            let has_worked = steps.len() > before;
            let step = self.block(block, begun);
            match steps.last_mut() {
                Some(last) if !has_worked && is_repeated(last, &step) => {
                    last.times = Some(last.times.unwrap_or(1) + step.times.unwrap_or(1));
                }
                _ => steps.push(step),
            }
        }
        if let Some(last) = series.gaps.last_mut() {
            steps.extend(self.work(last));
        }
        steps
    }

    /// Returns the work with these durations.
    fn work(&self, samples: &mut Vec<u64>) -> Option<StepDefinition> {
        let all = samples.len();
        samples.retain(|&nanos| nanos > NO_WORK);
        let part = samples.len() as f64 / all.max(1) as f64;
        if part < 1.0 - ALWAYS {
            return None;
        }
        let fit = fit::fit(samples)?;
        Some(StepDefinition {
            work: Some(fit.distribution),
            probability: probability(part),
            ..StepDefinition::default()
        })
    }

    fn block(&self, block: Block, begun: u64) -> StepDefinition {
        let made = match &block {
            Block::Call(calls) => calls.iter().map(|&c| self.relations.counts[c]).sum(),
            // Each run of a parallel step makes at least one of its calls.
            Block::Parallel(_) => {
                let calls = block.calls().into_iter();
                calls.map(|c| self.relations.counts[c]).max().unwrap_or(0)
            }
        };
        let part = made as f64 / begun.max(1) as f64;
        let mut step = match block {
            Block::Call(calls) => self.call(&calls),
            Block::Parallel(branches) => self.parallel(branches, made),
        };
        step.probability = probability(part);
        step
    }

    /// Returns a call of one of several targets.
    fn call(&self, calls: &[usize]) -> StepDefinition {
        let relations = self.relations;
        let name = |call: usize| (self.name)(relations.calls[call].target);
        let targets = match calls {
            [only] => Targets::One(name(*only)),
            several => {
                let mut weights: BTreeMap<String, f64> = BTreeMap::new();
                for &call in several {
                    *weights.entry(name(call)).or_default() += relations.counts[call] as f64;
                }
                Targets::Weighted(weights)
            }
        };
        let count = |of: &[u64]| calls.iter().map(|&call| of[call]).sum::<u64>();
        let (failed, forgiven) = (count(&relations.failed), count(&relations.forgiven));
        let one_way = relations.calls[calls[0]].one_way;
        let targets = Some(targets);
        StepDefinition {
            call: targets.clone().filter(|_| !one_way),
            send: targets.filter(|_| one_way),
            // An empty fallback ignores the failure.
            fallback: (!one_way && failed > 0 && 2 * forgiven > failed).then(Vec::new),
            ..StepDefinition::default()
        }
    }

    fn parallel(&self, branches: Vec<Series>, begun: u64) -> StepDefinition {
        let is_list = branches.len() == 1;
        let branches = branches.into_iter();
        let mut lists: Vec<Vec<StepDefinition>> =
            branches.map(|branch| self.series(branch, begun)).collect();
        // A list of one step is that step.
        if let [list] = &mut lists[..]
            && let [step] = &mut list[..]
            && is_list
            && step.probability.is_none()
        {
            return std::mem::take(step);
        }
        let mut times = None;
        if let [first, others @ ..] = &lists[..]
            && !others.is_empty()
            && others.iter().all(|other| other == first)
        {
            times = Some(lists.len() as i64);
            lists.truncate(1);
        }
        StepDefinition {
            parallel: Some(lists),
            times,
            ..StepDefinition::default()
        }
    }
}

/// True if the step repeats the previous call with certainty.
fn is_repeated(last: &StepDefinition, step: &StepDefinition) -> bool {
    let plain = |step: &StepDefinition| StepDefinition {
        times: None,
        ..step.clone()
    };
    step.parallel.is_none()
        && step.work.is_none()
        && step.probability.is_none()
        && plain(last) == plain(step)
}

/// Returns a probability with four digits; `None` for a step that always runs.
fn probability(part: f64) -> Option<f64> {
    (part <= ALWAYS).then(|| ((part * 1e4).round() / 1e4).max(1e-4))
}
