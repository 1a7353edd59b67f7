//! Faults of links, which affect some messages in one direction, on a schedule.

use super::faults::probability;
use super::latencies::NetworkError;
use super::{Delivery, Network, Route};
use crate::contract::{Addr, Distribution, Random, Time, seconds};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The maximum number of occurrences of a schedule.
const MOST_TIMES: u64 = 100_000;

/// A schedule of a fault: once or periodic, each occurrence with a probability.
///
/// ```
/// use corsair::Time;
/// use corsair::network::Schedule;
/// use std::time::Duration;
///
/// let daily = Schedule { every: Some(Duration::from_secs(86_400)), ..Schedule::once(Time::ZERO) };
/// let end = Time::ZERO.after(Duration::from_secs(7 * 86_400));
/// assert_eq!(daily.times(end, 1).count(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Schedule {
    /// The time of the first occurrence.
    pub first: Time,
    /// The time from one occurrence to the next; `None` if there is only one.
    pub every: Option<Duration>,
    /// The probability of each occurrence, from 0 to 1.
    pub probability: f64,
}

impl Schedule {
    /// Creates a schedule with one certain occurrence.
    pub const fn once(first: Time) -> Schedule {
        Schedule {
            first,
            every: None,
            probability: 1.0,
        }
    }

    /// Returns the times before `end` at which the fault occurs, each with its number in the schedule. The time of a
    /// schedule without `every` is returned even if it is after `end`. At most 100,000 occurrences are considered.
    pub fn times(self, end: Time, seed: u64) -> impl Iterator<Item = (u64, Time)> {
        let [first, end] = [self.first, end].map(Time::as_nanos);
        let every = self.every.map_or(0, |every| nanoseconds(every).max(1));
        let times = match every {
            0 => 1,
            _ => end
                .saturating_sub(first)
                .div_ceil(every)
                .clamp(1, MOST_TIMES),
        };
        let mut random = Random::new(seed ^ 0x5C_4ED0);
        (0..times).filter_map(move |number| {
            let happens = self.probability >= 1.0 || is_drawn(self.probability, random.bits());
            let at = first.saturating_add(number.saturating_mul(every));
            happens.then_some((number, Time::from_nanos(at)))
        })
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns whether an event of this probability happens, decided by 64 random bits.
fn is_drawn(probability: f64, bits: u64) -> bool {
    // Casts of floats saturate, so that 1 is all bits.
    probability > 0.0 && bits <= (probability * 2f64.powi(64)) as u64
}

/// A predicate: true if a fault affects messages from the first actor to the second.
type Applies = Arc<dyn Fn(Addr, Addr) -> bool + Send + Sync>;

/// A fault that affects messages between some actors during some intervals: it may lose, duplicate and delay
/// them.
#[derive(Clone)]
pub struct LinkFault {
    applies: Applies,
    /// The intervals, ordered by their start.
    during: Vec<Range<Time>>,
    loss: f64,
    duplication: f64,
    delay: Option<(Distribution, Duration)>,
}

/// The effect of link faults on a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkEffect {
    /// The message is lost.
    pub is_lost: bool,
    /// The message arrives twice.
    pub is_doubled: bool,
    /// The additional latency.
    pub delay: Duration,
}

impl LinkFault {
    /// Creates a fault that is active in the intervals `during`, for messages for which `applies(from, to)` is true.
    /// The fault has no effect until [`losing`](Self::losing), [`duplicating`](Self::duplicating) or
    /// [`delaying`](Self::delaying) adds one. `applies` must always return the same result for the same two actors.
    /// Where intervals overlap, only the interval that starts last counts.
    pub fn new(
        during: impl IntoIterator<Item = Range<Time>>,
        applies: impl Fn(Addr, Addr) -> bool + Send + Sync + 'static,
    ) -> LinkFault {
        let mut during: Vec<Range<Time>> = during.into_iter().collect();
        during.sort_by_key(|span| span.start);
        LinkFault {
            applies: Arc::new(applies),
            during,
            loss: 0.0,
            duplication: 0.0,
            delay: None,
        }
    }

    /// Loses this fraction of the messages.
    ///
    /// # Errors
    /// If `part` is not a probability.
    pub fn losing(self, part: f64) -> Result<LinkFault, NetworkError> {
        let loss = probability(part)?;
        Ok(LinkFault { loss, ..self })
    }

    /// Delivers this fraction of the messages twice.
    ///
    /// # Errors
    /// If `part` is not a probability.
    pub fn duplicating(self, part: f64) -> Result<LinkFault, NetworkError> {
        let duplication = probability(part)?;
        Ok(LinkFault {
            duplication,
            ..self
        })
    }

    /// Delays messages by a number of seconds drawn from the distribution, but at most by `most`.
    pub fn delaying(self, by: Distribution, most: Duration) -> LinkFault {
        let delay = Some((by, most));
        LinkFault { delay, ..self }
    }

    /// True if the fault may affect a message with this route.
    pub fn concerns(&self, route: &Route) -> bool {
        let started = (self.during).partition_point(|span| span.start <= route.sent);
        let last = started.checked_sub(1).map(|last| &self.during[last]);
        last.is_some_and(|span| route.sent < span.end) && (self.applies)(route.from, route.to)
    }

    /// Adds the effect on a message of this route. `bits` returns random bits; a fault that does not affect
    /// the message draws none.
    pub fn apply(&self, route: &Route, effect: &mut LinkEffect, mut bits: impl FnMut() -> u64) {
        if !self.concerns(route) {
            return;
        }
        effect.is_lost |= self.loss > 0.0 && is_drawn(self.loss, bits());
        effect.is_doubled |= self.duplication > 0.0 && is_drawn(self.duplication, bits());
        if let Some((by, most)) = &self.delay {
            let delay = match by.as_constant() {
                Some(delay) => delay,
                None => by.draw(bits()),
            };
            effect.delay = effect.delay.saturating_add(seconds(delay).min(*most));
        }
    }
}

impl fmt::Debug for LinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkFault")
            .field("during", &self.during)
            .field("loss", &self.loss)
            .field("duplication", &self.duplication)
            .field("delay", &self.delay)
            .finish_non_exhaustive()
    }
}

/// A network with link faults.
///
/// ```
/// use corsair::network::{Constant, FaultyLinks, LinkFault};
/// use corsair::{Addr, Distribution, Time};
/// use std::time::Duration;
///
/// let ms = Duration::from_millis;
/// // From the second on, whatever the first ten actors send takes about 5 ms longer. Answers do not.
/// let from = Time::ZERO.after(Duration::from_secs(1));
/// let slow = LinkFault::new([from..Time::MAX], |from: Addr, _| from.as_u32() < 10)
///     .delaying(Distribution::exponential(0.005)?, ms(100));
/// let network = FaultyLinks::new(Constant::new(ms(1))?, vec![slow]);
/// # let _ = network;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultyLinks<N> {
    inner: N,
    faults: Vec<LinkFault>,
    /// The sum of the inner network's longest latency and the longest delays of the faults.
    most: Duration,
}

impl<N: Network> FaultyLinks<N> {
    /// Wraps `inner` with `faults`. A fault affects messages that are sent during its intervals.
    pub fn new(inner: N, faults: Vec<LinkFault>) -> FaultyLinks<N> {
        let delays = faults.iter().filter_map(|fault| fault.delay.as_ref());
        let most = delays.fold(inner.most(), |sum, (_, most)| sum.saturating_add(*most));
        FaultyLinks {
            inner,
            faults,
            most,
        }
    }

    fn effect(&self, route: &Route, random: &mut Random) -> LinkEffect {
        let mut effect = LinkEffect::default();
        for fault in &self.faults {
            fault.apply(route, &mut effect, || random.bits());
        }
        effect
    }
}

impl<N: Network> Network for FaultyLinks<N> {
    fn least(&self) -> Duration {
        self.inner.least()
    }

    fn most(&self) -> Duration {
        self.most
    }

    fn latency(&self, route: &Route, random: &mut Random) -> Duration {
        let latency = self.inner.latency(route, random);
        latency.saturating_add(self.effect(route, random).delay)
    }

    fn delivery(&self, route: &Route, random: &mut Random) -> Delivery {
        let effect = self.effect(route, random);
        if effect.is_lost {
            return Delivery::Lost;
        }
        match self.inner.delivery(route, random) {
            Delivery::Arrives if effect.is_doubled => Delivery::Twice,
            delivery => delivery,
        }
    }

    fn duplicates(&self) -> bool {
        self.inner.duplicates() || self.faults.iter().any(|fault| fault.duplication > 0.0)
    }

    fn keeps_order(&self) -> bool {
        self.inner.keeps_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Constant;

    const MS: u64 = 1_000_000;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn route(from: u32, to: u32, sent: u64) -> Route {
        Route {
            from: Addr(from),
            to: Addr(to),
            sent: at(sent),
        }
    }

    #[test]
    fn a_schedule_repeats_until_the_end_as_likely_as_it_says() {
        let times = |every: Option<u64>, probability, end| {
            let schedule = Schedule {
                first: at(10),
                every: every.map(Duration::from_nanos),
                probability,
            };
            let times = schedule.times(at(end), 7);
            times.map(|(_, at)| at.as_nanos()).collect::<Vec<_>>()
        };
        assert_eq!(times(None, 1.0, 100), [10]);
        assert_eq!(times(Some(30), 1.0, 100), [10, 40, 70]);
        assert_eq!(times(Some(30), 1.0, 101), [10, 40, 70, 100]);
        assert!(times(Some(1), 0.0, 1000).is_empty());
        let some = times(Some(1), 0.3, 10_010).len();
        assert!((2_850..3_150).contains(&some), "{some}");
    }

    #[test]
    fn a_fault_concerns_one_direction_during_its_spans() {
        let spans = [at(10)..at(20), at(40)..at(50)];
        let fault = LinkFault::new(spans, |from, _| from.0 == 1);
        for sent in 0..60 {
            let is_now = (10..20).contains(&sent) || (40..50).contains(&sent);
            assert_eq!(fault.concerns(&route(1, 2, sent)), is_now, "{sent}");
            assert!(!fault.concerns(&route(2, 1, sent)));
        }
    }

    #[test]
    fn a_faulty_link_loses_doubles_and_delays_as_it_says_and_others_do_not() {
        let inner = Constant::new(Duration::from_millis(1)).unwrap();
        let faulty = LinkFault::new([Time::ZERO..Time::MAX], |from, _| from.0 == 1)
            .losing(0.25)
            .unwrap()
            .duplicating(0.5)
            .unwrap()
            .delaying(
                Distribution::exponential(0.002).unwrap(),
                Duration::from_millis(50),
            );
        let network = FaultyLinks::new(inner, vec![faulty]);
        assert_eq!(network.most(), Duration::from_millis(51));
        let mut random = Random::new(3);
        let (mut lost, mut twice, mut delays) = (0, 0, 0);
        let count = 20_000u32;
        for sent in 0..u64::from(count) {
            match network.delivery(&route(1, 2, sent), &mut random) {
                Delivery::Lost => lost += 1,
                Delivery::Twice => twice += 1,
                Delivery::Arrives => {}
            }
            delays += network.latency(&route(1, 2, sent), &mut random).as_nanos() as u64 - MS;
            assert_eq!(
                network.delivery(&route(2, 1, sent), &mut random),
                Delivery::Arrives
            );
            let other = network.latency(&route(2, 1, sent), &mut random);
            assert_eq!(other, Duration::from_millis(1));
        }
        let part = |n: u32| f64::from(n) / f64::from(count);
        assert!((part(lost) - 0.25).abs() < 0.015, "{lost}");
        // Half of the messages that are not lost.
        assert!((part(twice) - 0.375).abs() < 0.015, "{twice}");
        let mean = delays as f64 / f64::from(count) / MS as f64;
        assert!((mean - 2.0).abs() < 0.07, "{mean}");
        assert!(LinkFault::new([], |_, _| true).losing(1.5).is_err());
    }
}
