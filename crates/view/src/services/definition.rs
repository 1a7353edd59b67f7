//! Converts the commands of a session to parts of a definition: its `faults` and its `load`.

use super::Services;
use crate::command::{Action, Command};
use corsair_arch::{Package, PlaceFault, TimeSpan, Topology};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The faults so far, and notes about commands that a definition cannot express.
struct Parts<'a> {
    topology: &'a Topology,
    /// The faults, each with the name of its target and whether it is permanent.
    faults: Vec<(String, bool, PlaceFault)>,
    notes: Vec<String>,
}

impl Services {
    /// Returns the commands as a definition with `faults`, `load`, and the differences in
    /// `x-notes`.
    pub(super) fn definition(&self, commands: &[Command]) -> Result<Value, String> {
        let (load_at, _) = self.live.load();
        let mut parts = Parts {
            topology: self.live.topology(),
            faults: Vec::new(),
            notes: Vec::new(),
        };
        let mut sorted: Vec<&Command> = commands.iter().collect();
        sorted.sort_by_key(|command| command.at);
        let mut loads: Vec<(Duration, Option<&str>, u32)> = Vec::new();
        for command in sorted {
            let at = command.time().since(load_at);
            if command.time() < load_at {
                parts
                    .notes
                    .push(format!("{} was done before the load began", command.what));
            }
            match &command.what {
                Action::Kill { who } => parts.begin("kill", who, at, None)?,
                Action::Pause { who } => parts.begin("pause", who, at, None)?,
                Action::Partition { who } => parts.begin("partition", who, at, None)?,
                Action::Revive { who } => parts.end("kill", who, at),
                Action::Resume { who } => parts.end("pause", who, at),
                Action::Rejoin { who } => parts.end("partition", who, at),
                Action::Slow { who, percent } => {
                    parts.end_if_any("slow", who, at);
                    if *percent != 100 {
                        parts.begin("slow", who, at, Some(f64::from(*percent) / 100.0))?;
                    }
                }
                Action::Load { percent, who } => loads.push((at, who.as_deref(), *percent)),
                Action::Scale { .. } | Action::Send { .. } => {
                    let what = &command.what;
                    parts
                        .notes
                        .push(format!("a definition cannot say: {what} at {at:?}"));
                }
            }
        }
        let load = self.changed_load(&loads, &mut parts.notes);
        let faults: Vec<PlaceFault> = parts.faults.into_iter().map(|(.., fault)| fault).collect();
        Ok(json!({ "faults": faults, "load": load, "x-notes": parts.notes }))
    }

    /// Returns the load of each entry point whose load was changed, as a profile.
    fn changed_load(
        &self,
        changes: &[(Duration, Option<&str>, u32)],
        notes: &mut Vec<String>,
    ) -> Map<String, Value> {
        let mut loads = Map::new();
        for service in &self.live.topology().services {
            let mine: Vec<_> = changes
                .iter()
                .filter(|(_, who, _)| who.is_none_or(|who| who == service.name))
                .collect();
            if service.package != Package::Denominator || mine.is_empty() {
                continue;
            }
            if service.load.is_some() {
                notes.push(format!(
                    "the load of {} was changed by per cent; change its own in the definition",
                    service.name
                ));
                continue;
            }
            let rate = service.instances.len() as f64 / self.chat.as_secs_f64();
            let point = |at: Duration, rate: f64| json!({ "at": TimeSpan(at), "rate": rate });
            let mut points = vec![point(Duration::ZERO, rate)];
            points.extend(
                mine.iter()
                    .map(|(at, _, percent)| point(*at, rate * f64::from(*percent) / 100.0)),
            );
            loads.insert(service.name.clone(), json!({ "rate": points }));
        }
        for (at, who, _) in changes {
            if let Some(who) = who.filter(|who| !loads.contains_key(*who)) {
                notes.push(format!("the load of {who} was changed at {at:?}"));
            }
        }
        loads
    }
}

impl Parts<'_> {
    /// Adds a fault that begins at this time.
    fn begin(
        &mut self,
        kind: &str,
        who: &str,
        at: Duration,
        factor: Option<f64>,
    ) -> Result<(), String> {
        let mut fault = self.place(who);
        fault.insert("kind".to_owned(), kind.into());
        fault.insert("at".to_owned(), json!(TimeSpan(at)));
        if let Some(factor) = factor {
            fault.insert("factor".to_owned(), factor.into());
        }
        let fault = serde_json::from_value(Value::Object(fault)).map_err(|e| e.to_string())?;
        self.faults.push((format!("{kind} {who}"), true, fault));
        Ok(())
    }

    /// Ends a fault.
    fn end(&mut self, kind: &str, who: &str, at: Duration) {
        if !self.end_if_any(kind, who, at) {
            self.notes.push(format!(
                "{who} was brought back at {at:?} from a {kind} that was not asked for by that name"
            ));
        }
    }

    fn end_if_any(&mut self, kind: &str, who: &str, at: Duration) -> bool {
        let key = format!("{kind} {who}");
        let mut found = false;
        for (other, lasts, fault) in &mut self.faults {
            if *lasts && *other == key {
                *lasts = false;
                fault.lasting = Some(TimeSpan(at.saturating_sub(fault.at.0)));
                found = true;
            }
        }
        found
    }

    /// Returns the target that a name refers to, in the format of faults.
    fn place(&mut self, who: &str) -> Map<String, Value> {
        let topology = self.topology;
        let mut place = Map::new();
        let mut put = |key: &str, value: Value| place.insert(key.to_owned(), value);
        let label = (0..topology.len()).find(|&i| topology.label(i) == who);
        if topology.services.iter().any(|service| service.name == who) {
            put("services", json!([who]));
        } else if let Some(instance) = label {
            let service = topology.service_of(instance);
            let at = topology.instances[instance as usize].at;
            put("services", json!([service.name]));
            if at.region.is_some() {
                put("region", at.region_name(&topology.places).into());
            }
            if at.zone.is_some() {
                put("zone", at.zone_name(&topology.places).into());
            }
            let here = service.instances.clone();
            let here = here
                .filter(|&i| topology.instances[i as usize].at == at)
                .count();
            if here > 1 {
                put("share", json!(1.0 / here as f64));
                self.notes.push(format!(
                    "instead of {who}, one of the {here} instances of {} in its zone is drawn",
                    service.name
                ));
            }
        } else {
            let (region, zone) = who.split_once('.').unwrap_or((who, ""));
            put("region", region.into());
            if !zone.is_empty() {
                put("zone", zone.into());
            }
        }
        place
    }
}
