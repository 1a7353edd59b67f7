//! Experiments: runs that return a value, once or for many seeds.

mod estimate;

pub use estimate::Estimate;

use crate::contract::{AsyncContext, Config, Executor, Message, Report, RunError, Scenario};
use crate::sync::lock;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A scenario whose root returns a value, which is the result of the run.
pub trait Experiment<M: Message>: Send + 'static {
    /// The type of the root's return value.
    type Value: Send + 'static;

    /// The root's body, whose result is the value of the run. When it returns, the run is over.
    fn root<C: AsyncContext<M>>(self, cx: C) -> impl Future<Output = Self::Value> + Send;
}

/// Runs an experiment like [`run`](crate::run()) runs a scenario, and returns the value of its root.
///
/// ```
/// use corsair::{AsyncContext, Config, Executor, Experiment, Message, RunError, measure};
/// use std::time::Duration;
///
/// #[derive(Message)]
/// enum Msg { Ping, Pong }
///
/// /// How long an answer takes.
/// struct RoundTrip;
///
/// impl Experiment<Msg> for RoundTrip {
///     type Value = Duration;
///
///     async fn root<C: AsyncContext<Msg>>(self, mut cx: C) -> Duration {
///         let echo = cx.spawn_one("echo", |mut cx: C| async move {
///             cx.recv().await;
///             let request = cx.envelope().reply_handle();
///             cx.reply(request, Msg::Pong);
///         }).await;
///         let asked = cx.now();
///         let _ = cx.ask(echo, Msg::Ping, Duration::from_secs(1)).await;
///         cx.now().since(asked)
///     }
/// }
///
/// let (took, report) = measure(Executor::Virtual, &Config::default(), RoundTrip)?;
/// assert!(took > Duration::from_millis(2) && took < Duration::from_millis(5));
/// assert_eq!(report.delivered(), 2);
/// # Ok::<(), RunError>(())
/// ```
///
/// # Errors
/// See [`RunError`]; [`RunError::NoValue`] if the run was cancelled or its root was stopped before it returned.
pub fn measure<M: Message, E: Experiment<M>>(
    executor: Executor,
    config: &Config,
    experiment: E,
) -> Result<(E::Value, Report), RunError> {
    let value = Arc::new(Mutex::new(None));
    let scenario = ValueScenario {
        experiment,
        value: Arc::clone(&value),
    };
    let report = crate::run(executor, config, scenario)?;
    match lock(&value).take() {
        Some(value) => Ok((value, report)),
        None => Err(RunError::NoValue {
            report: Box::new(report),
        }),
    }
}

/// An experiment as a scenario, which stores the root's value for the caller.
struct ValueScenario<E, V> {
    experiment: E,
    value: Arc<Mutex<Option<V>>>,
}

impl<M: Message, E: Experiment<M>> Scenario<M> for ValueScenario<E, E::Value> {
    async fn root<C: AsyncContext<M>>(self, cx: C) {
        let value = self.experiment.root(cx).await;
        *lock(&self.value) = Some(value);
    }
}

/// One of the runs of [`replicate`].
#[derive(Clone, Debug)]
pub struct Replication<T> {
    /// The seed of the run.
    pub seed: u64,
    /// The value that the run's root returned.
    pub value: T,
    /// The report of the run.
    pub report: Report,
}

/// A run of [`replicate`] that has failed.
#[derive(Debug, thiserror::Error)]
#[error("the run with seed {seed} failed: {source}")]
pub struct ReplicationError {
    /// The seed of the run.
    pub seed: u64,
    /// The error of that run.
    #[source]
    pub source: RunError,
}

/// Runs an experiment in virtual time with `runs` consecutive seeds, starting with the configured one, and
/// returns the results in the order of seeds.
///
/// Up to [`Config::workers`] runs are executed in parallel, each on one thread. The result does not depend on this
/// number.
///
/// ```
/// use corsair::{AsyncContext, Config, Distribution, Estimate, Experiment, Message, replicate};
///
/// #[derive(Message)]
/// struct Nothing;
///
/// /// The mean of a thousand waits of ten milliseconds.
/// struct Waits;
///
/// impl Experiment<Nothing> for Waits {
///     type Value = f64;
///
///     async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) -> f64 {
///         let wait = Distribution::exponential(0.010).expect("a mean is positive");
///         (0..1000).map(|_| cx.sample(&wait)).sum::<f64>() / 1000.0
///     }
/// }
///
/// let runs = replicate(20, &Config::default(), |_seed| Waits)?;
/// let mean = Estimate::of(runs.iter().map(|run| run.value));
/// assert!(mean.interval(0.999).contains(&0.010), "{mean}");
/// # Ok::<(), corsair::ReplicationError>(())
/// ```
///
/// # Errors
/// Returns the error of the failed run with the lowest seed.
pub fn replicate<M: Message, E: Experiment<M>>(
    runs: u32,
    config: &Config,
    make: impl Fn(u64) -> E + Sync,
) -> Result<Vec<Replication<E::Value>>, ReplicationError> {
    let seed = |number: u32| config.seed.wrapping_add(number.into());
    let one = |number: u32| {
        let config = Config {
            seed: seed(number),
            workers: NonZeroUsize::MIN,
            ..config.clone()
        };
        measure(Executor::Virtual, &config, make(config.seed))
    };
    let (next, failed) = (AtomicU32::new(0), AtomicU32::new(u32::MAX));
    let done = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            // Runs with lower numbers may still fail; runs with higher numbers than a failed one are not needed.
            if number >= runs || number > failed.load(Ordering::Relaxed) {
                return;
            }
            let result = one(number);
            if result.is_err() {
                failed.fetch_min(number, Ordering::Relaxed);
            }
            lock(&done).push((number, result));
        }
    };
    let workers = config.workers.get().min(runs.max(1) as usize);
    std::thread::scope(|scope| {
        for index in 1..workers {
            let thread = std::thread::Builder::new().name(format!("replication {index}"));
            // If a thread cannot be created, the others do its work.
            let _ = thread.spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter()
        .map(|(number, result)| {
            let seed = seed(number);
            match result {
                Ok((value, report)) => Ok(Replication {
                    seed,
                    value,
                    report,
                }),
                Err(source) => Err(ReplicationError { seed, source }),
            }
        })
        .collect()
}
