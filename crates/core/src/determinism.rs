//! Checks whether a scenario is deterministic, and otherwise finds the first difference.

use crate::contract::{Addr, Config, Message, Report, RunError, Scenario, Time};
use crate::virtual_time::{LoggedEvent, LoggedKind, Simulation};
use std::fmt;
use std::num::NonZeroUsize;

/// Runs a scenario twice in virtual time, with one worker and with several, and compares all events and the reports.
/// Returns the report if they are equal.
///
/// The executor itself is deterministic, so a difference means that the scenario depends on something other than its
/// context. The usual reason is the order of a `HashMap`:
///
/// ```
/// use corsair::{AsyncContext, Config, Message, NotDeterministic, Scenario, Spawn, check_determinism};
/// use std::collections::HashMap;
///
/// #[derive(Message)]
/// struct Bill(u32);
///
/// struct Waiter;
///
/// impl Scenario<Bill> for Waiter {
///     async fn root<C: AsyncContext<Bill>>(self, mut cx: C) {
///         let guests = cx.spawn(Spawn::many(20, "guest", ""), |mut cx, _| async move {
///             cx.recv().await;
///         }).await;
///         let bills: HashMap<u32, u32> = (0..20).map(|guest| (guest, guest * 7)).collect();
///         for (guest, amount) in bills {
///             cx.send(guests.get(guest), Bill(amount)); // in another order each time
///         }
///         cx.settle().await;
///     }
/// }
///
/// match check_determinism(&Config::default(), || Waiter) {
///     Err(NotDeterministic::Differs(difference)) => {
///         // With 1 worker the first event that differs: at 0.00…s guest3 got Bill …
///         println!("{difference}");
///     }
///     other => panic!("{other:?}"),
/// }
/// ```
///
/// # Errors
/// [`NotDeterministic::Differs`] with the first event that differs; [`NotDeterministic::Failed`] if
/// both runs fail in the same way.
pub fn check_determinism<M: Message, S: Scenario<M>>(
    config: &Config,
    make: impl Fn() -> S,
) -> Result<Report, NotDeterministic> {
    let more = NonZeroUsize::new(config.workers.get().max(2)).unwrap_or(NonZeroUsize::MIN);
    let run = |workers| {
        let config = Config {
            workers,
            ..config.clone()
        };
        let mut simulation = Simulation::new(&config, make()).map_err(NotDeterministic::Failed)?;
        simulation.record();
        Ok(simulation)
    };
    let mut runs = [run(NonZeroUsize::MIN)?, run(more)?];
    loop {
        let ends = runs.each_ref().map(Simulation::end_of_next_window);
        let Some(next) = ends.into_iter().flatten().min() else {
            break;
        };
        let on = runs.each_mut().map(|run| run.run_until(next));
        let trails = runs.each_mut().map(Simulation::take_trail);
        if trails[0] != trails[1] || on[0] != on[1] {
            let difference = first_difference(runs, &trails);
            return Err(NotDeterministic::Differs(Box::new(difference)));
        }
        if !on[0] {
            break;
        }
    }
    let [one, two] = runs.map(Simulation::finish);
    match (one, two) {
        (Ok(report), Ok(other)) => match difference_of(&report, &other) {
            None => Ok(report),
            Some(difference) => Err(NotDeterministic::Differs(Box::new(difference))),
        },
        (Err(error), Err(other)) if error.to_string() == other.to_string() => {
            Err(NotDeterministic::Failed(error))
        }
        (one, two) => {
            let time = |result: &Result<Report, RunError>| {
                let report = result.as_ref().map_or_else(RunError::report, Some);
                report.map_or(Time::ZERO, |report| report.time)
            };
            let time = time(&one).min(time(&two));
            let say = |result: Result<Report, RunError>| {
                Some(result.map_or_else(
                    |error| format!("it ended with: {error}"),
                    |report| format!("it ended at {}", report.time),
                ))
            };
            let happened = [say(one), say(two)];
            Err(NotDeterministic::Differs(Box::new(Difference {
                time,
                happened,
                last_common: None,
            })))
        }
    }
}

/// The reason why a scenario is not known to be deterministic.
#[derive(Debug, thiserror::Error)]
pub enum NotDeterministic {
    /// Two runs differ.
    #[error("{0}")]
    Differs(Box<Difference>),
    /// Both runs failed.
    #[error(transparent)]
    Failed(RunError),
}

/// The first event in which two runs of a scenario differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The time of the difference: the earlier one if the times in the two runs differ.
    pub time: Time,
    /// The event in the first run, with one worker, and the event in the second run. `None` if the run had no further
    /// event in the window.
    pub happened: [Option<String>; 2],
    /// The last common event before the difference in the same window; `None` if there was none in that window.
    pub last_common: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, two] = self
            .happened
            .each_ref()
            .map(|what| what.as_deref().unwrap_or("nothing more happened"));
        write!(
            f,
            "two runs of one scenario differ at {}: in the first, {one}; in the second, {two}. ",
            self.time
        )?;
        if let Some(last) = &self.last_common {
            write!(f, "The last common event: {last}. ")?;
        }
        f.write_str("An actor's behaviour depends on something other than its context, such as the order of a HashMap, a clock, or a shared variable")
    }
}

/// Returns the first event that happened in only one of the two runs, and the end of a run that ended at that point.
fn first_difference<M: Message>(
    runs: [Simulation<M>; 2],
    trails: &[Vec<LoggedEvent>; 2],
) -> Difference {
    let [one, two] = trails;
    let same = one.iter().zip(two).take_while(|(a, b)| a == b).count();
    let events = [one.get(same), two.get(same)];
    let times = events.into_iter().flatten().map(|noted| noted.time);
    let time = times.min().map_or(runs[0].now(), Time::from_nanos);
    let mut runs = runs;
    let mut describe_at = |index: usize, noted: Option<&LoggedEvent>| {
        let run: &mut Simulation<M> = &mut runs[index];
        noted.map(|noted| describe::<M>(noted, |who| run.name(who)))
    };
    let last_common = describe_at(0, same.checked_sub(1).and_then(|last| one.get(last)));
    let mut happened = [describe_at(0, events[0]), describe_at(1, events[1])];
    for (happened, run) in happened.iter_mut().zip(runs) {
        let failed = run.is_over().then(|| run.finish()).and_then(Result::err);
        if let Some(error) = failed {
            let before = happened.take().map(|what| format!("{what}, and then "));
            *happened = Some(format!(
                "{}the run ended with: {error}",
                before.unwrap_or_default()
            ));
        }
    }
    Difference {
        time,
        happened,
        last_common,
    }
}

/// Returns a difference of the reports of runs with equal events.
fn difference_of(one: &Report, two: &Report) -> Option<Difference> {
    // Compares the reports as text, in which NaN equals itself.
    let values = |report: &Report| {
        let probes = &report.probes;
        let counters = probes.counters.iter();
        let counters =
            counters.map(|(name, value)| (format!("the counter `{name}`"), format!("{value}")));
        let gauges = probes.gauges.iter();
        let gauges =
            gauges.map(|(name, value)| (format!("the gauge `{name}`"), format!("{value:?}")));
        let histograms = probes.histograms.iter();
        let histograms = histograms
            .map(|(name, value)| (format!("the histogram `{name}`"), format!("{value:?}")));
        let series = probes.series.iter();
        let series =
            series.map(|(name, value)| (format!("the series `{name}`"), format!("{value:?}")));
        let others = [
            ("the number of actors spawned", report.spawned.to_string()),
            ("the number of actors ended", report.ended.to_string()),
            ("the number of messages lost", report.lost.to_string()),
            (
                "the number of messages duplicated",
                report.duplicated.to_string(),
            ),
            ("the time of the end", report.time.to_string()),
            ("the panics", format!("{:?}", report.panics)),
            ("who still waited", format!("{:?}", report.waiting)),
            ("the totals of actors", format!("{:?}", report.per_actor)),
        ];
        let others = others.map(|(what, value)| (what.to_owned(), value));
        let all = counters.chain(gauges).chain(histograms).chain(series);
        others.into_iter().chain(all).collect::<Vec<_>>()
    };
    let [values_of_one, values_of_two] = [one, two].map(values);
    let missing = |what: &String, of: &[(String, String)]| {
        let value = of.iter().find(|(name, _)| name == what);
        value.map_or_else(
            || "is missing".to_owned(),
            |(_, value)| format!("was {value}"),
        )
    };
    let all = values_of_one.iter().chain(&values_of_two);
    let mut named = all.map(|(what, _)| what);
    let what = named.find(|what| missing(what, &values_of_one) != missing(what, &values_of_two))?;
    let say = |of: &[(String, String)]| Some(format!("{what} {}", missing(what, of)));
    Some(Difference {
        time: one.time.max(two.time),
        happened: [say(&values_of_one), say(&values_of_two)],
        last_common: None,
    })
}

fn describe<M: Message>(noted: &LoggedEvent, mut name: impl FnMut(Addr) -> String) -> String {
    let time = Time::from_nanos(noted.time);
    let to = name(Addr(noted.to));
    let (number, contents) = (noted.sequence, noted.contents);
    let mut from = || name(Addr(noted.from));
    let what = match noted.what {
        LoggedKind::Message(kind) => {
            let (kind, from) = (M::KINDS[kind], from());
            format!(
                "{to} got {kind} from {from}, its message {number}, with the fingerprint {contents:x}"
            )
        }
        LoggedKind::DeadLetter(kind) => {
            let (kind, from) = (M::KINDS[kind], from());
            format!(
                "{kind} from {from}, its message {number}, found that {to} had ended or did not exist"
            )
        }
        LoggedKind::Timer if contents >= 1 << 31 => format!("a wait of {to} was over"),
        LoggedKind::Timer => format!("{to} got timer {contents}"),
        LoggedKind::Start => format!("{to} began"),
        LoggedKind::Stop => format!("{to} was stopped by {}", from()),
        LoggedKind::Spawned => {
            let (first, count) = (Addr((contents >> 32) as u32), contents as u32);
            format!("{to} got the addresses of {count} actors spawned for it, from {first} on")
        }
        LoggedKind::Down => format!("{to} was notified that {} has ended", from()),
        LoggedKind::Unanswered => format!("{to} was notified that {} will not answer", from()),
        LoggedKind::Returned => format!("{to} got a dead letter for {}", from()),
    };
    format!("at {time} {what}")
}
