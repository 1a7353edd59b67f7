//! The load of entry points in definitions.

use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use serde::de::{self, MapAccess, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The load of an entry point: exactly one of a rate, users and recorded arrivals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EntryLoad {
    /// Open loop: requests per second, independent of the response time. Default: none. Example: `200`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// With a rate: the distribution of the times between requests. Default: `"constant"`. Example: `"poisson"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
    /// Closed loop: the number of users, each of whom waits for an answer, thinks, and sends the next request. Default:
    /// none. Example: `40`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub users: Option<i64>,
    /// With users: the think time. Default: `"0s"`. Example: `{"exponential": "5s"}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Distribution>,
    /// A CSV file of recorded arrivals with a column `time` and optionally `kind`; the path is relative to the
    /// definition. Default: none. Example: `"arrivals.csv"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// The weights of the kinds of requests: common, read, write, and endpoints of services. Default: common, read and
    /// write, one third each. Example: `{"cart.list": 9, "cart.buy": 1}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, f64>,
    /// The number of equally likely keys of requests to endpoints. Default: `1000000`. Example: `1000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<i64>,
}

/// The distribution of the times between requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Equal times.
    #[default]
    Constant,
    /// Exponentially distributed times, so requests are independent of each other.
    Poisson,
    /// Uniformly distributed times between zero and twice the mean.
    Uniform,
}

impl Arrivals {
    /// Returns the distribution of the times between requests, in units of their mean.
    pub(crate) fn gaps(self) -> corsair::Distribution {
        let gaps = match self {
            Arrivals::Constant => corsair::Distribution::constant(1.0),
            Arrivals::Poisson => corsair::Distribution::exponential(1.0),
            Arrivals::Uniform => corsair::Distribution::uniform(0.0, 2.0),
        };
        gaps.expect("the parameters are finite and in their ranges")
    }
}

/// A rate in requests per second.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Rate {
    /// A constant rate.
    Constant(f64),
    /// A profile: no requests before the first point, and the last point's rate after the last point.
    Profile(Vec<RatePoint>),
    /// A curve from a CSV file with the columns `time` and `rate`, interpolated linearly between rows.
    Curve {
        /// The path of the file, relative to the definition. Example: `"curve.csv"`.
        csv: String,
    },
}

/// A point of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RatePoint {
    /// The time of the point, from the start of the load. Example: `"10s"`.
    pub at: TimeSpan,
    /// Requests per second from this time on. Example: `500`.
    pub rate: f64,
    /// True: the rate changes linearly from the previous point to this one. False: it changes at once. Default: `false`.
    /// Example: `true`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ramp: bool,
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        deserializer.deserialize_any(RateVisitor)
    }
}

struct RateVisitor;

impl<'de> de::Visitor<'de> for RateVisitor {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "requests per second: a number, a list of points such as {\"at\": \"10s\", \"rate\": 500}, or {\"csv\": \"curve.csv\"}",
        )
    }

    fn visit_f64<E: de::Error>(self, rate: f64) -> Result<Rate, E> {
        Ok(Rate::Constant(rate))
    }

    fn visit_u64<E: de::Error>(self, rate: u64) -> Result<Rate, E> {
        Ok(Rate::Constant(rate as f64))
    }

    fn visit_i64<E: de::Error>(self, rate: i64) -> Result<Rate, E> {
        Ok(Rate::Constant(rate as f64))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Rate, A::Error> {
        let mut points = Vec::new();
        while let Some(point) = list.next_element()? {
            points.push(point);
        }
        Ok(Rate::Profile(points))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Rate, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Curve {
            csv: String,
        }
        let curve = Curve::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Rate::Curve { csv: curve.csv })
    }
}
