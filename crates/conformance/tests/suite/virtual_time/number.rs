//! Messages that are numbers, with a latency of one millisecond.

use corsair::{AsyncContext, Config, Latency, Message, Report, RunError, Scenario};
use std::num::NonZeroUsize;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Message)]
pub struct Number(pub u64);

pub type Body = Number;

pub const MS: Duration = Duration::from_millis(1);

pub fn config(workers: usize) -> Config {
    Config {
        workers: NonZeroUsize::new(workers).unwrap(),
        latency: Latency::constant(MS),
        ..Config::default()
    }
}

pub fn run(config: &Config, scenario: impl Scenario<Number>) -> Result<Report, RunError> {
    corsair::simulate(config, scenario)
}

/// Answers each request with the number nine.
pub async fn nine<C: AsyncContext<Number>>(mut cx: C) {
    loop {
        cx.recv().await;
        let reply_handle = cx.envelope().reply_handle();
        cx.reply(reply_handle, Number(9));
    }
}
