//! The text form of a load: `poisson 200/s`, `100/s, 10s 500/s, 20s..30s 100/s`, `users 50 think 1s`, or the path of a
//! file.

use super::Load;
use crate::definition::{Arrivals, EntryLoad, Rate, RatePoint};
use crate::distribution::Distribution;
use crate::duration_text::TimeSpan;
use crate::input_file::read_file_text;
use crate::nearest::did_you_mean;
use crate::package::Package;
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::path::Path;

/// A validated load for the entry points of an architecture.
#[derive(Clone, Debug)]
pub struct LoadText {
    /// The loads by entry point; an entry without a name applies to all of them.
    loads: Vec<(Option<String>, Load)>,
}

/// The reason why a text is not a load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadTextError(String);

impl LoadText {
    /// Reads a load: a text such as `poisson 200/s`, the JSON of a definition's load for all entry points or
    /// by their names, or the path of a file with such JSON (`.json`) or with recorded arrivals (`.csv`).
    ///
    /// # Errors
    /// A sentence with the fault.
    pub fn read(text: &str) -> Result<LoadText, LoadTextError> {
        read(text).map_err(LoadTextError)
    }

    /// Sets the load of a topology's entry points. Parts that the text leaves out (kinds of requests, arrivals, keys)
    /// stay unchanged.
    ///
    /// # Errors
    /// If a name is not an entry point.
    pub fn apply(&self, topology: &mut Topology) -> Result<(), LoadTextError> {
        let services = topology.services.iter();
        let entries: Vec<String> = services
            .filter(|service| service.package == Package::Denominator)
            .map(|service| service.name.clone())
            .collect();
        for (name, load) in &self.loads {
            if let Some(name) = name.as_ref().filter(|name| !entries.contains(name)) {
                let meant = did_you_mean(name, entries.iter().map(String::as_str));
                return Err(LoadTextError(format!(
                    "'{}' is not an entry point{meant}",
                    name.escape_debug()
                )));
            }
            for place in 0..topology.services.len() {
                let service = &topology.services[place];
                let is_meant = name.as_ref().is_none_or(|name| *name == service.name);
                if service.package == Package::Denominator && is_meant {
                    let reached = topology.reached_from(place);
                    let load = match &service.load {
                        Some(old) => load.instead_of(old).map_err(LoadTextError)?,
                        None => load.clone(),
                    };
                    let load = load.resolve(&topology.endpoints, &reached);
                    topology.services[place].load = Some(load.map_err(LoadTextError)?);
                }
            }
        }
        Ok(())
    }
}

fn read(text: &str) -> Result<LoadText, String> {
    let text = text.trim();
    let all = |load: Load| LoadText {
        loads: vec![(None, load)],
    };
    if text.starts_with('{') {
        return json(text, Path::new("."), "the load");
    }
    let is_file = |ending: &str| {
        let path = Path::new(text);
        path.extension()
            .is_some_and(|known| known.eq_ignore_ascii_case(ending))
    };
    if is_file("json") {
        let path = Path::new(text);
        let read = read_file_text(path).map_err(|error| format!("cannot read {text}: {error}"))?;
        return json(&read, path.parent().unwrap_or(Path::new(".")), text);
    }
    let entry = if is_file("csv") {
        EntryLoad {
            replay: Some(text.to_owned()),
            ..EntryLoad::default()
        }
    } else {
        words(text)?
    };
    Ok(all(Load::new(&entry, Path::new("."))?))
}

/// Parses the load of all entry points, or of each by its name.
fn json(text: &str, base: &Path, file: &str) -> Result<LoadText, String> {
    const KEYS: [&str; 7] = [
        "rate", "arrivals", "users", "think", "replay", "requests", "keys",
    ];
    let wrong = |error: serde_json::Error| {
        let said = error.to_string();
        let end = said.rfind(" at line ").unwrap_or(said.len());
        format!("{file}:{}: {}", error.line().max(1), &said[..end])
    };
    let keys: BTreeMap<String, &serde_json::value::RawValue> =
        serde_json::from_str(text).map_err(wrong)?;
    if keys.is_empty() || keys.keys().any(|key| KEYS.contains(&key.as_str())) {
        let entry: EntryLoad = serde_json::from_str(text).map_err(wrong)?;
        let load = Load::new(&entry, base).map_err(|what| format!("{file}: {what}"))?;
        return Ok(LoadText {
            loads: vec![(None, load)],
        });
    }
    let entries: BTreeMap<String, EntryLoad> = serde_json::from_str(text).map_err(wrong)?;
    let loads = entries.into_iter().map(|(name, entry)| {
        let load = Load::new(&entry, base);
        let load = load.map_err(|what| format!("{file}: the load of '{name}': {what}"))?;
        Ok((Some(name), load))
    });
    Ok(LoadText {
        loads: loads.collect::<Result<_, String>>()?,
    })
}

const EXAMPLES: &str = "write for example \"poisson 200/s\", \"100/s, 10s 500/s, 20s..30s 100/s\", \"users 50 think 1s\", or the path of a .json or .csv file";

fn words(text: &str) -> Result<EntryLoad, String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let unclear = || format!("'{}' is not a load; {EXAMPLES}", text.escape_debug());
    match words.as_slice() {
        ["users", users] => closed(users, None),
        ["users", users, "think", think] => closed(users, Some(think)),
        [] => Err(unclear()),
        [first, ..] => {
            let arrivals = match *first {
                "poisson" => Some(Arrivals::Poisson),
                "uniform" => Some(Arrivals::Uniform),
                "constant" => Some(Arrivals::Constant),
                _ => None,
            };
            if arrivals.is_some() {
                words.remove(0);
            }
            let rate = profile(&words.join(" ")).ok_or_else(unclear)?;
            Ok(EntryLoad {
                rate: Some(rate),
                arrivals,
                ..EntryLoad::default()
            })
        }
    }
}

fn closed(users: &str, think: Option<&str>) -> Result<EntryLoad, String> {
    let number = users.parse();
    let users = number.map_err(|_| {
        format!(
            "'{}' is not a number of users; expected a whole number",
            users.escape_debug()
        )
    })?;
    let think = think.map(str::parse::<TimeSpan>).transpose()?;
    Ok(EntryLoad {
        users: Some(users),
        think: think.map(Distribution::Constant),
        ..EntryLoad::default()
    })
}

/// Parses a profile such as `100/s, 10s 500/s, 20s..30s 100/s`. A rate applies from the start, or from a time on, or it
/// changes linearly between two times.
fn profile(text: &str) -> Option<Rate> {
    let mut points: Vec<RatePoint> = Vec::new();
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    for part in &parts {
        let (when, rate) = match part.rsplit_once(' ') {
            Some((when, rate)) => (when.trim(), rate),
            None if points.is_empty() => ("0s", *part),
            None => return None,
        };
        let rate: f64 = rate.strip_suffix("/s").unwrap_or(rate).parse().ok()?;
        let (from, to) = match when.split_once("..") {
            Some((from, to)) => (Some(from.trim()), to.trim()),
            None => (None, when),
        };
        if let Some(from) = from {
            let before = points.last().map_or(0.0, |point| point.rate);
            points.push(RatePoint {
                at: from.parse().ok()?,
                rate: before,
                ramp: false,
            });
        }
        points.push(RatePoint {
            at: to.parse().ok()?,
            rate,
            ramp: from.is_some(),
        });
    }
    match points.as_slice() {
        [only] if parts.len() == 1 && only.at.0.is_zero() => Some(Rate::Constant(only.rate)),
        _ => Some(Rate::Profile(points)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_typed_in_a_few_words() {
        let rate = |text: &str| words(text).unwrap().rate.unwrap();
        assert_eq!(rate("200/s"), Rate::Constant(200.0));
        assert_eq!(rate("poisson 0.5"), Rate::Constant(0.5));
        assert_eq!(
            words("uniform 5/s").unwrap().arrivals,
            Some(Arrivals::Uniform)
        );
        let Rate::Profile(points) = rate("poisson 100/s, 10s 500/s, 20s..30s 100/s") else {
            panic!("no profile");
        };
        let shown: Vec<(u64, f64, bool)> = points
            .iter()
            .map(|point| (point.at.0.as_secs(), point.rate, point.ramp))
            .collect();
        assert_eq!(
            shown,
            [
                (0, 100.0, false),
                (10, 500.0, false),
                (20, 500.0, false),
                (30, 100.0, true)
            ]
        );
        let closed = words("users 50 think 1s").unwrap();
        assert_eq!(closed.users, Some(50));
        assert!(closed.think.is_some());
    }

    #[test]
    fn texts_that_are_no_load_are_refused_with_examples() {
        for text in ["", "fast", "poisson", "10/s 20/s 30/s", "100/s, 500/s"] {
            let said = read(text).unwrap_err();
            assert!(
                said.contains("is not a load; write for example"),
                "{text}: {said}"
            );
        }
        let said = read("nowhere.csv").unwrap_err();
        assert!(said.starts_with("cannot read ./nowhere.csv: "), "{said}");
        let said = read(r#"{"rate": "fast"}"#).unwrap_err();
        assert!(
            said.starts_with("the load:1: invalid type: string \"fast\""),
            "{said}"
        );
        let said = read(r#"{"www": {"rats": 1}}"#).unwrap_err();
        assert!(
            said.starts_with("the load:1: unknown field `rats`"),
            "{said}"
        );
    }
}
