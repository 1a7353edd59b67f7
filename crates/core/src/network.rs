//! Networks between actors in virtual time: the latency of messages, and which messages are lost or arrive twice.

mod faults;
mod latencies;
mod links;

pub use faults::{Cutoff, Duplicating, Fifo, Lossy, Partitioned};
pub use latencies::{Constant, Jitter, LognormalLatency, NetworkError, Plane, Table};
pub use links::{FaultyLinks, LinkEffect, LinkFault, Schedule};

use crate::contract::{Addr, Random, Time};
use std::fmt;
use std::time::Duration;

/// The model of a network in virtual time ([`Config::network`](crate::Config::network)).
///
/// A network is a function. Its result for a message depends on the message's route, and on random numbers derived from
/// the seed and the route. So a run is the same for any number of workers. The network is called once for each message,
/// on the thread of the sender's worker.
///
/// A network states its smallest latency, which is the lookahead of the run. A larger lookahead makes wider windows, so
/// workers need fewer barriers.
///
/// ```
/// use corsair::network::{Fifo, Jitter, Lossy, Network};
/// use corsair::*;
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// #[derive(Message)]
/// enum Msg { Ping, Pong }
///
/// /// Asks until there is an answer.
/// struct Patient;
///
/// impl Experiment<Msg> for Patient {
///     type Value = u32;
///
///     async fn root<C: AsyncContext<Msg>>(self, mut cx: C) -> u32 {
///         let echo = cx.spawn_one("echo", |mut cx: C| async move {
///             loop {
///                 cx.recv().await;
///                 let request = cx.envelope().reply_handle();
///                 cx.reply(request, Msg::Pong);
///             }
///         }).await;
///         let mut asked = 1;
///         while cx.ask(echo, Msg::Ping, Duration::from_millis(100)).await.is_err() {
///             asked += 1;
///         }
///         asked
///     }
/// }
///
/// // From 10 to 30 ms, a message in three lost, in order.
/// let ms = Duration::from_millis;
/// let network = Fifo(Lossy::new(Jitter::new(ms(10), ms(30))?, 1.0 / 3.0)?);
/// let config = Config { network: Some(Arc::new(network)), seed: 3, ..Config::default() };
/// let (asked, report) = measure(Executor::Virtual, &config, Patient)?;
/// assert_eq!(report.lost, u64::from(asked) - 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Messages of an actor to itself also have the network's latency, and are never lost; messages of
/// [`Context::send_self`](crate::Context::send_self) take no time. Stops, and notices of an actor's end, are never
/// lost, and have the longest latency, so that no earlier message arrives after them.
pub trait Network: fmt::Debug + Send + Sync + 'static {
    /// Returns a lower bound of all latencies, at least a nanosecond.
    fn least(&self) -> Duration;

    /// Returns an upper bound of all latencies.
    fn most(&self) -> Duration;

    /// Returns the latency of a message; values outside the bounds are clamped.
    fn latency(&self, route: &Route, random: &mut Random) -> Duration;

    /// Returns the outcome of a message.
    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        let _ = (route, random);
        Delivery::Arrives
    }

    /// True if messages from one actor to another keep their order: a message that would overtake an earlier one is
    /// delayed. Otherwise messages are reordered by their latencies.
    fn keeps_order(&self) -> bool {
        false
    }

    /// True if some messages arrive [twice](Delivery::Twice). A run whose messages cannot be
    /// [copied](crate::Message::DUPLICATES) is then refused.
    fn duplicates(&self) -> bool {
        false
    }
}

/// The sender, receiver and send time of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The address of the sender.
    pub from: Addr,
    /// The address of the receiver.
    pub to: Addr,
    /// The send time.
    pub sent: Time,
}

/// The outcome of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Delivery {
    /// The message arrives.
    #[default]
    Arrives,
    /// The message is lost, and neither side is notified; [`Report::lost`](crate::Report::lost) counts it.
    Lost,
    /// The message arrives twice, with two separate latencies, if its type can be [copied](crate::Message::duplicate).
    Twice,
}

/// Returns a number in [0, 1) with 53 bits.
fn unit(random: &mut Random) -> f64 {
    (random.bits() >> 11) as f64 / (1u64 << 53) as f64
}
