//! The load of an entry point: its rate or number of users, and the kinds of requests.

mod curve;
mod files;
mod text;

pub use text::{LoadText, LoadTextError};

pub(crate) use curve::Curve;

use crate::definition::{Arrivals, EntryLoad, Rate};
use crate::distribution::Sampler;
use crate::message::Key;
use crate::script::Endpoints;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// The highest rate, and the highest number of users: a request every microsecond.
const MOST: f64 = 1_000_000.0;

/// The load of an entry point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Load {
    pub(crate) source: Source,
    pub(crate) mix: Mix,
    /// The kinds of requests; reads and writes of storage come first.
    pub(crate) kinds: Arc<[Kind]>,
    /// The number of values among which requests to endpoints choose.
    pub(crate) keys: u32,
    /// The parts that were given explicitly.
    #[serde(skip)]
    given: GivenParts,
}

/// The explicit parts of a load. The other parts are taken from the load that it replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct GivenParts {
    arrivals: bool,
    mix: bool,
    keys: bool,
}

/// A kind of request by its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Kind {
    pub(crate) name: String,
    /// The source of the name, if it differs from the source of the load.
    #[serde(skip)]
    from: Option<String>,
    /// The service and the requested key, once the architecture is known.
    pub(crate) endpoint: Option<(u32, Key)>,
}

/// The arrival of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) enum Source {
    /// An open loop: requests arrive at a rate.
    Open {
        curve: Arc<Curve>,
        arrivals: Arrivals,
    },
    /// A closed loop: users wait for each answer, and then think.
    Closed { users: u32, think: Sampler },
    /// Recorded arrivals, in the order of time.
    Replay(Arc<[Arrival]>),
}

/// A recorded arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Arrival {
    /// The time after the start of the load in nanoseconds.
    pub(crate) at: u64,
    pub(crate) kind: Option<RequestKind>,
}

/// A kind of request, by its index in the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct RequestKind(pub(crate) u16);

impl RequestKind {
    /// A read of a value that may have been put before.
    pub(crate) const READ: RequestKind = RequestKind(1);
    /// A new value.
    pub(crate) const WRITE: RequestKind = RequestKind(2);
    /// The kinds of requests to storage.
    pub(crate) const STORAGE: [&str; 3] = ["common", "read", "write"];
}

/// The names of kinds that a load mentions.
#[derive(Debug)]
struct Kinds(Vec<Kind>);

impl Kinds {
    fn new() -> Kinds {
        let kind = |name: &str| Kind {
            name: name.to_owned(),
            from: None,
            endpoint: None,
        };
        Kinds(RequestKind::STORAGE.map(kind).into())
    }

    /// Returns the kind with this name, which was read from `from` if that differs from the source of the
    /// load.
    fn named(
        &mut self,
        name: &str,
        from: impl FnOnce() -> Option<String>,
    ) -> Result<RequestKind, String> {
        let place = self.0.iter().position(|kind| kind.name == name);
        let place = place.unwrap_or_else(|| {
            self.0.push(Kind {
                name: name.to_owned(),
                from: from(),
                endpoint: None,
            });
            self.0.len() - 1
        });
        let number = u16::try_from(place);
        Ok(RequestKind(
            number.map_err(|_| "there are too many kinds of requests")?,
        ))
    }
}

/// The kinds of requests by weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) enum Mix {
    /// The kinds of spigo, with a third of the requests each.
    Thirds,
    /// Each kind with the upper end of its share of the range of `u64`, in ascending order.
    Weighted(Arc<[(u64, RequestKind)]>),
}

impl Mix {
    /// Chooses the kind of the next request by the random numbers `bits` and `third`; `third` is below three.
    #[inline]
    pub(crate) fn draw<R>(
        &self,
        random: &mut R,
        bits: impl FnOnce(&mut R) -> u64,
        third: impl FnOnce(&mut R) -> u32,
    ) -> RequestKind {
        match self {
            Mix::Thirds => RequestKind(third(random) as u16),
            Mix::Weighted(shares) => {
                let bits = bits(random);
                let place = shares.partition_point(|&(end, _)| end < bits);
                shares[place.min(shares.len() - 1)].1
            }
        }
    }

    fn new(entry: &EntryLoad, kinds: &mut Kinds) -> Result<Mix, String> {
        if entry.requests.is_empty() {
            return Ok(Mix::Thirds);
        }
        let mut weights = Vec::with_capacity(entry.requests.len());
        for (name, &weight) in &entry.requests {
            let kind = kinds.named(name, || None)?;
            if !(weight >= 0.0 && weight.is_finite()) {
                return Err(format!("{name} has a weight of {weight}; give 0 or more"));
            }
            if weight > 0.0 {
                weights.push((weight, kind));
            }
        }
        let total: f64 = weights.iter().map(|(weight, _)| weight).sum();
        if !(total > 0.0 && total.is_finite()) {
            return Err("no kind of request has a weight; give one of them 1".to_owned());
        }
        let mut sum = 0.0;
        let shares = weights.iter().map(|&(weight, kind)| {
            sum += weight;
            // Casts of floats saturate: the last share ends with the highest number.
            ((sum / total * 2f64.powi(64)) as u64, kind)
        });
        Ok(Mix::Weighted(shares.collect()))
    }
}

impl Load {
    /// Reads the load of a definition. Paths are relative to `base`.
    pub(crate) fn new(entry: &EntryLoad, base: &Path) -> Result<Load, String> {
        let mut kinds = Kinds::new();
        let source = match (&entry.rate, entry.users, &entry.replay) {
            (Some(rate), None, None) => Source::Open {
                curve: Arc::new(curve(rate, base)?),
                arrivals: entry.arrivals.unwrap_or_default(),
            },
            (None, Some(users), None) => Source::Closed {
                users: (1..=MOST as i64)
                    .contains(&users)
                    .then_some(users as u32)
                    .ok_or_else(|| format!("{users} users are not possible; give 1 to {MOST}"))?,
                think: (entry.think.as_ref()).map_or(Sampler::constant(0), |think| think.sampler()),
            },
            (None, None, Some(file)) => {
                Source::Replay(files::arrivals(&base.join(file), &mut kinds)?.into())
            }
            (None, None, None) => {
                return Err("it has neither a rate, nor users, nor a replay; give one".to_owned());
            }
            _ => {
                return Err("a rate, users and a replay exclude each other; give one".to_owned());
            }
        };
        if entry.arrivals.is_some() && entry.rate.is_none() {
            return Err("arrivals need a rate; give one, or leave arrivals out".to_owned());
        }
        if entry.think.is_some() && entry.users.is_none() {
            return Err("think needs users; give their number, or leave think out".to_owned());
        }
        let mix = Mix::new(entry, &mut kinds)?;
        let keys = match entry.keys {
            None => 1_000_000,
            Some(keys) if (1..=i64::from(u32::MAX)).contains(&keys) => keys as u32,
            Some(keys) => {
                return Err(format!(
                    "{keys} keys are not possible; give 1 to {}",
                    u32::MAX
                ));
            }
        };
        Ok(Load {
            source,
            mix,
            kinds: kinds.0.into(),
            keys,
            given: GivenParts {
                arrivals: entry.arrivals.is_some(),
                mix: !entry.requests.is_empty(),
                keys: entry.keys.is_some(),
            },
        })
    }

    /// Returns the names of the kinds of requests.
    pub(crate) fn kind_names(&self) -> impl Iterator<Item = &str> {
        let all = match &self.mix {
            Mix::Thirds => None,
            Mix::Weighted(shares) => Some(shares),
        };
        let is_in = move |place: usize| match all {
            None => place < RequestKind::STORAGE.len(),
            Some(shares) => shares.iter().any(|(_, kind)| usize::from(kind.0) == place),
        };
        let kinds = self.kinds.iter().enumerate();
        kinds
            .filter(move |(place, _)| is_in(*place))
            .map(|(_, kind)| kind.name.as_str())
    }

    /// Returns this load as a replacement of `old`, from which parts that were not given are taken: a rate
    /// changes only the rate.
    pub(crate) fn instead_of(&self, old: &Load) -> Result<Load, String> {
        let mut load = self.clone();
        load.given.arrivals |= old.given.arrivals;
        load.given.mix |= old.given.mix;
        load.given.keys |= old.given.keys;
        if !self.given.keys {
            load.keys = old.keys;
        }
        if let (
            false,
            Source::Open { arrivals, .. },
            Source::Open {
                arrivals: before, ..
            },
        ) = (self.given.arrivals, &mut load.source, &old.source)
        {
            *arrivals = *before;
        }
        if let (false, Mix::Weighted(shares)) = (self.given.mix, &old.mix) {
            let mut kinds = Kinds(load.kinds.to_vec());
            let mut translated = Vec::with_capacity(shares.len());
            for &(end, kind) in shares.iter() {
                let name = &old.kinds[usize::from(kind.0)].name;
                translated.push((end, kinds.named(name, || None)?));
            }
            load.kinds = kinds.0.into();
            load.mix = Mix::Weighted(translated.into());
        }
        Ok(load)
    }

    /// Looks up the endpoints of the load in the architecture's `endpoints`. `reached` are the services
    /// that requests of the entry point can reach.
    pub(crate) fn resolve(&self, endpoints: &Endpoints, reached: &[u32]) -> Result<Load, String> {
        let mut kinds = self.kinds.to_vec();
        for kind in &mut kinds[RequestKind::STORAGE.len()..] {
            let place = |what: String| match &kind.from {
                Some(from) => format!("{from}: {what}"),
                None => what,
            };
            let (service, key) = endpoints.named(&kind.name).map_err(place)?;
            if key.as_endpoint().is_none() {
                return Err(place(format!("'{}' has no endpoints", kind.name)));
            }
            if !reached.contains(&service) {
                return Err(place(format!(
                    "requests for '{}' do not reach that service; let the entry point depend on it, or on a load balancer in front of it",
                    kind.name
                )));
            }
            kind.endpoint = Some((service, key));
        }
        Ok(Load {
            kinds: kinds.into(),
            ..self.clone()
        })
    }

    /// True if the load does not change: a constant rate, or users.
    pub(crate) fn is_steady(&self) -> bool {
        match &self.source {
            Source::Open { curve, .. } => curve.is_constant(),
            Source::Closed { .. } => true,
            Source::Replay(_) => false,
        }
    }

    /// Returns the same kinds of requests at a constant rate in an open loop; `None` for a closed loop or
    /// recorded arrivals.
    pub(crate) fn at_rate(&self, rate: f64) -> Option<Load> {
        let Source::Open { arrivals, .. } = self.source else {
            return None;
        };
        Some(Load {
            source: Source::Open {
                curve: Arc::new(Curve::constant(rate)),
                arrivals,
            },
            ..self.clone()
        })
    }
}

fn curve(rate: &Rate, base: &Path) -> Result<Curve, String> {
    let check = |rate: f64| {
        if (0.0..=MOST).contains(&rate) {
            Ok(rate)
        } else {
            // `to_string` would print 300 digits of a very large number.
            let rate = match rate.abs() {
                ..1e15 => rate.to_string(),
                _ => format!("{rate:e}"),
            };
            Err(format!(
                "a rate of {rate} is not possible; give 0 to {MOST}"
            ))
        }
    };
    match rate {
        Rate::Constant(rate) => Ok(Curve::constant(check(*rate)?)),
        Rate::Profile(points) => {
            let mut knots = Vec::with_capacity(points.len());
            for point in points {
                knots.push((
                    point.at.nanos() as f64 / 1e9,
                    check(point.rate)?,
                    point.ramp,
                ));
            }
            Curve::new(&knots)
        }
        Rate::Curve { csv } => {
            let mut knots = Vec::new();
            for (time, rate) in files::rates(&base.join(csv))? {
                knots.push((time, check(rate)?, !knots.is_empty()));
            }
            Curve::new(&knots)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(json: &str) -> Result<Load, String> {
        let load = Load::new(&serde_json::from_str(json).unwrap(), Path::new("."));
        load.and_then(|load| load.resolve(&Endpoints::default(), &[]))
    }

    fn refusal(json: &str) -> String {
        load(json).unwrap_err()
    }

    #[test]
    fn weights_are_the_shares_of_the_kinds() {
        let load =
            load(r#"{"rate": 1, "requests": {"read": 3, "write": 1, "common": 0}}"#).unwrap();
        let mut random = corsair::Random::new(7);
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            let kind = load.mix.draw(&mut random, |r| r.bits(), |_| 0);
            counts[usize::from(kind.0)] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!((7_300..7_700).contains(&counts[1]), "{counts:?}");
    }

    #[test]
    fn loads_that_make_no_sense_are_refused_in_a_sentence() {
        for (json, said) in [
            (
                "{}",
                "it has neither a rate, nor users, nor a replay; give one",
            ),
            (
                r#"{"rate": 1, "users": 2}"#,
                "a rate, users and a replay exclude each other; give one",
            ),
            (
                r#"{"users": 0}"#,
                "0 users are not possible; give 1 to 1000000",
            ),
            (
                r#"{"rate": -1}"#,
                "a rate of -1 is not possible; give 0 to 1000000",
            ),
            (
                r#"{"users": 1, "arrivals": "poisson"}"#,
                "arrivals need a rate; give one, or leave arrivals out",
            ),
            (
                r#"{"rate": 1, "think": "1s"}"#,
                "think needs users; give their number, or leave think out",
            ),
            (
                r#"{"rate": 1, "requests": {"reed": 1}}"#,
                "'reed' is not a kind of request; did you mean read?",
            ),
            (
                r#"{"rate": 1, "keys": 0}"#,
                "0 keys are not possible; give 1 to 4294967295",
            ),
            (
                r#"{"rate": 1, "requests": {"read": 0}}"#,
                "no kind of request has a weight; give one of them 1",
            ),
            (
                r#"{"rate": [{"at": "2s", "rate": 1}, {"at": "1s", "rate": 2}]}"#,
                "the profile goes back in time at 1s; give its points in order",
            ),
            (
                r#"{"rate": []}"#,
                "the profile has no points; give at least one",
            ),
        ] {
            assert_eq!(refusal(json), said);
        }
    }
}
