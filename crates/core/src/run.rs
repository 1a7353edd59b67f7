//! One way to run a scenario on any executor.

use crate::{AsyncContext, Config, Executor, Message, Report, RunError};

/// A run's beginning: the body of its root actor, for any executor.
///
/// The root spawns the others. When it returns, the run is over.
pub trait Scenario<M: Message>: Send + 'static {
    /// The root's body.
    fn root<C: AsyncContext<M>>(self, cx: C) -> impl Future<Output = ()> + Send;
}

/// Runs a scenario on an executor and reports what it did.
///
/// # Errors
/// See [`RunError`]. A cut run is no error ([`Outcome::Cut`](crate::Outcome::Cut)).
pub fn run<M: Message>(
    executor: Executor,
    config: &Config,
    scenario: impl Scenario<M>,
) -> Result<Report, RunError> {
    config.check()?;
    match executor {
        Executor::Virtual => crate::virtual_time::run(config, scenario),
        Executor::Tokio => crate::wall::tokio::run(config, scenario),
        Executor::Threads => crate::wall::threads::run(config, scenario),
        Executor::Pool => crate::wall::pool::run(config, scenario),
    }
}
