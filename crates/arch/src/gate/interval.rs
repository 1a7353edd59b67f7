//! Confidence intervals, and the verdicts that follow from them.

use super::Verdict;
use crate::capacity::{Slo, SloMeasure};
use crate::experiment::Estimate;

/// The value of an objective in a run, and the number of its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Observed {
    pub(super) value: f64,
    pub(super) requests: u64,
}

/// The maximum number of further runs that is reported.
const MOST_FURTHER: f64 = 100_000.0;
/// The factor by which the estimated number of further runs is increased, because the
/// interval's width is itself uncertain.
const RESERVE: f64 = 1.2;

/// Estimates the value of an objective from runs. Runs without requests do not count.
pub(super) fn estimate(slo: &Slo, runs: &[Observed], level: f64) -> Estimate {
    let values: Vec<f64> = runs.iter().map(|run| run.value).collect();
    let estimate = Estimate::at(&values, level);
    if slo.measure != SloMeasure::Errors {
        return estimate;
    }
    // Rare failures may be absent from all runs: their number is Poisson distributed, and the bound is Chernoff's.
    let requests: f64 = runs.iter().map(|run| run.requests as f64).sum();
    let failed: f64 = (runs.iter())
        .filter(|run| !run.value.is_nan())
        .map(|run| run.value * run.requests as f64)
        .sum();
    let surprise = -(1.0 - level).ln();
    let rare = (surprise + (2.0 * failed * surprise).sqrt()) / requests.max(1.0);
    let within = estimate.within.map(|within| within.max(rare));
    Estimate { within, ..estimate }
}

/// Estimates the value of an objective from runs, and judges it.
pub(super) fn judge(slo: &Slo, runs: &[Observed], level: f64) -> (Estimate, Verdict) {
    let estimate = estimate(slo, runs, level);
    let counted = runs.iter().filter(|run| !run.value.is_nan()).count();
    let Some(within) = estimate.within.filter(|_| !estimate.is_empty()) else {
        return (estimate, Verdict::Undecided(None));
    };
    // The objective allows no failure at all, and no number of runs can prove that.
    let is_flawless = slo.measure == SloMeasure::Errors && slo.most == 0.0 && estimate.mean == 0.0;
    let distance = estimate.mean - slo.most;
    let verdict = if is_flawless || distance <= -within || distance == 0.0 && within == 0.0 {
        Verdict::Met
    } else if distance >= within {
        Verdict::Missed
    } else {
        Verdict::Undecided(further(counted, within, distance))
    };
    (estimate, verdict)
}

/// Returns the number of further runs after which the interval is as narrow as its distance from the limit. The width
/// is inversely proportional to the square root of the number of runs.
fn further(runs: usize, within: f64, distance: f64) -> Option<u64> {
    let ratio = within / distance.abs();
    let wanted = runs as f64 * (ratio * ratio * RESERVE - 1.0);
    (wanted <= MOST_FURTHER).then(|| wanted.ceil().max(1.0) as u64)
}

/// Returns the verdict for all objectives together.
pub(super) fn all(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.fold(Verdict::Met, |sum, next| match (sum, next) {
        (Verdict::Missed, _) | (_, Verdict::Missed) => Verdict::Missed,
        (Verdict::Undecided(a), Verdict::Undecided(b)) => {
            Verdict::Undecided(a.zip(b).map(|(a, b)| a.max(b)))
        }
        (Verdict::Met, next) => next,
        (sum, Verdict::Met) => sum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(slo: &str, values: &[f64], requests: u64) -> Verdict {
        let runs: Vec<Observed> = (values.iter())
            .map(|&value| Observed { value, requests })
            .collect();
        judge(&slo.parse().unwrap(), &runs, 0.95).1
    }

    // Guarantee: arch-21.
    #[test]
    fn an_objective_is_judged_by_its_whole_interval() {
        let slo = "p99 < 100ms";
        assert_eq!(judged(slo, &[0.08, 0.081, 0.079], 1000), Verdict::Met);
        assert_eq!(judged(slo, &[0.12, 0.121, 0.119], 1000), Verdict::Missed);
        let Verdict::Undecided(Some(more)) = judged(slo, &[0.09, 0.10, 0.107], 1000) else {
            panic!("the interval has the limit in it");
        };
        assert!(more > 3, "{more}");
        // If the true value is the limit, no number of runs decides, unless all runs have the same value.
        assert_eq!(judged(slo, &[0.09, 0.11], 1000), Verdict::Undecided(None));
        assert_eq!(judged(slo, &[0.1, 0.1, 0.1], 1000), Verdict::Met);
    }

    #[test]
    fn what_was_not_measured_is_undecided() {
        let slo = "p99 < 100ms";
        assert_eq!(judged(slo, &[f64::NAN; 4], 0), Verdict::Undecided(None));
        assert_eq!(judged(slo, &[0.01, f64::NAN], 10), Verdict::Undecided(None));
        assert_eq!(judged(slo, &[], 0), Verdict::Undecided(None));
    }

    #[test]
    fn the_absence_of_rare_failures_takes_many_requests_to_show() {
        assert_eq!(judged("errors < 1%", &[0.0; 4], 1000), Verdict::Met);
        let Verdict::Undecided(Some(more)) = judged("errors < 0.01%", &[0.0; 4], 1000) else {
            panic!("4,000 requests do not show one failure in 10,000");
        };
        assert!(more > 20, "{more}");
        assert_eq!(judged("errors < 0.01%", &[0.0; 80], 1000), Verdict::Met);
        assert_eq!(judged("errors < 0%", &[0.0; 4], 1000), Verdict::Met);
        assert_eq!(
            judged("errors < 1%", &[0.03, 0.031, 0.029], 9000),
            Verdict::Missed
        );
    }

    #[test]
    fn all_objectives_together_are_as_bad_as_the_worst() {
        use Verdict::{Met, Missed, Undecided};
        assert_eq!(all([Met, Met].into_iter()), Met);
        assert_eq!(
            all([Met, Undecided(Some(3))].into_iter()),
            Undecided(Some(3))
        );
        assert_eq!(
            all([Undecided(Some(3)), Undecided(Some(9)), Met].into_iter()),
            Undecided(Some(9))
        );
        assert_eq!(
            all([Undecided(None), Undecided(Some(9))].into_iter()),
            Undecided(None)
        );
        assert_eq!(all([Undecided(None), Missed, Met].into_iter()), Missed);
    }
}
