//! What comes in at an entry point: how often, or by how many users, and which kinds of requests.

mod curve;
mod files;
mod text;

pub use text::{LoadText, LoadTextError};

pub(crate) use curve::Curve;

use crate::definition::{Arrivals, EntryLoad, Rate};
use crate::distribution::Sampler;
use crate::nearest::did_you_mean;
use std::path::Path;
use std::sync::Arc;

/// Higher rates, and more users, are refused: a request every microsecond.
const MOST: f64 = 1_000_000.0;

/// The load of an entry point, ready to be made.
#[derive(Clone, Debug)]
pub struct Load {
    pub(crate) source: Source,
    pub(crate) mix: Mix,
}

/// When requests come in.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Open loop.
    Open {
        curve: Arc<Curve>,
        arrivals: Arrivals,
    },
    /// Closed loop.
    Closed { users: u32, think: Sampler },
    /// Recorded arrivals, in the order of time.
    Replay(Arc<[Arrival]>),
}

/// A recorded arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// After the load has begun, in nanoseconds.
    pub(crate) at: u64,
    pub(crate) kind: Option<RequestKind>,
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestKind {
    /// For the value that every storage has.
    Common,
    /// For a value that may have been put before.
    Read,
    /// A new value.
    Write,
}

impl RequestKind {
    pub(crate) const ALL: [RequestKind; 3] =
        [RequestKind::Common, RequestKind::Read, RequestKind::Write];

    pub(crate) fn name(self) -> &'static str {
        match self {
            RequestKind::Common => "common",
            RequestKind::Read => "read",
            RequestKind::Write => "write",
        }
    }

    fn named(name: &str) -> Result<RequestKind, String> {
        let mut kinds = RequestKind::ALL.into_iter();
        kinds.find(|kind| kind.name() == name).ok_or_else(|| {
            let names = RequestKind::ALL.map(RequestKind::name);
            let meant = match did_you_mean(name, names) {
                meant if meant.is_empty() => format!("; there are {}", names.join(", ")),
                meant => meant,
            };
            format!("'{}' is no kind of request{meant}", name.escape_debug())
        })
    }
}

/// Which kinds of requests come in, by weight.
#[derive(Clone, Debug)]
pub(crate) enum Mix {
    /// spigo's: one third each.
    Thirds,
    /// Each kind with the upper end of its share of 64 bits, in ascending order.
    Weighted(Arc<[(u64, RequestKind)]>),
}

impl Mix {
    /// The kind of the next request, by what `bits` and `third` (a number below three) draw.
    #[inline]
    pub(crate) fn draw<R>(
        &self,
        random: &mut R,
        bits: impl FnOnce(&mut R) -> u64,
        third: impl FnOnce(&mut R) -> u32,
    ) -> RequestKind {
        match self {
            Mix::Thirds => RequestKind::ALL[third(random) as usize],
            Mix::Weighted(shares) => {
                let bits = bits(random);
                let place = shares.partition_point(|&(end, _)| end < bits);
                shares[place.min(shares.len() - 1)].1
            }
        }
    }

    fn new(entry: &EntryLoad) -> Result<Mix, String> {
        if entry.requests.is_empty() {
            return Ok(Mix::Thirds);
        }
        let mut weights = Vec::with_capacity(entry.requests.len());
        for (name, &weight) in &entry.requests {
            let kind = RequestKind::named(name)?;
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
    /// The load that a definition describes. Paths are relative to `base`.
    pub(crate) fn new(entry: &EntryLoad, base: &Path) -> Result<Load, String> {
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
            (None, None, Some(file)) => Source::Replay(files::arrivals(&base.join(file))?.into()),
            (None, None, None) => {
                return Err("it has neither a rate, nor users, nor a replay; give one".to_owned());
            }
            _ => {
                return Err("a rate, users and a replay exclude each other; give one".to_owned());
            }
        };
        if entry.arrivals.is_some() && entry.rate.is_none() {
            return Err("arrivals belong to a rate; give one, or leave them out".to_owned());
        }
        if entry.think.is_some() && entry.users.is_none() {
            return Err("only users think; give their number, or leave think out".to_owned());
        }
        let mix = Mix::new(entry)?;
        Ok(Load { source, mix })
    }

    /// The same kinds of requests at a constant rate, in an open loop; none if this load is a
    /// closed loop or recorded.
    pub(crate) fn at_rate(&self, rate: f64) -> Option<Load> {
        let Source::Open { arrivals, .. } = self.source else {
            return None;
        };
        Some(Load {
            source: Source::Open {
                curve: Arc::new(Curve::constant(rate)),
                arrivals,
            },
            mix: self.mix.clone(),
        })
    }
}

fn curve(rate: &Rate, base: &Path) -> Result<Curve, String> {
    let check = |rate: f64| {
        if (0.0..=MOST).contains(&rate) {
            Ok(rate)
        } else {
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
        Load::new(&serde_json::from_str(json).unwrap(), Path::new("."))
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
            counts[kind as usize] += 1;
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
                "arrivals belong to a rate; give one, or leave them out",
            ),
            (
                r#"{"rate": 1, "think": "1s"}"#,
                "only users think; give their number, or leave think out",
            ),
            (
                r#"{"rate": 1, "requests": {"reed": 1}}"#,
                "'reed' is no kind of request; did you mean read?",
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
