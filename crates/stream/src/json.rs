//! Points as JSON: series of rows, in the format in which InfluxDB answers queries.
//!
//! ```json
//! {"series":[{"name":"cpu","tags":{"host":"a"},"columns":["time","count"],"values":[[1000000000,4]]}]}
//! ```
//! Times are nanoseconds since 1970; columns are ordered by name. All tags of a single point are under `tags`. In
//! windows and batches, only the tags of the group are under `tags`; the other tags are columns, like fields.

use crate::Value;
use crate::batch::{Batch, Flow};
use rustc_hash::FxHashSet;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::sync::Arc;

/// Formats flows as JSON.
pub(crate) fn json(flows: &[Flow]) -> String {
    serde_json::to_string(&Document { flows }).expect("strings and numbers are always written")
}

/// The JSON document of flows.
#[derive(Clone, Copy, Debug)]
struct Document<'a> {
    /// The flows, each of which becomes a series.
    flows: &'a [Flow],
}

struct Series<'a> {
    flow: &'a Flow,
    columns: Vec<&'a Arc<str>>,
}

struct Values<'a>(&'a Series<'a>);

struct Row<'a> {
    series: &'a Series<'a>,
    batch: &'a Batch,
    row: usize,
}

impl Serialize for Document<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(1))?;
        let series: Vec<_> = self.flows.iter().map(Series::new).collect();
        map.serialize_entry("series", &series)?;
        map.end()
    }
}

impl<'a> Series<'a> {
    fn new(flow: &'a Flow) -> Series<'a> {
        let single = single(flow);
        let grouped = |name: &Arc<str>| flow.group().tags.iter().any(|(tag, _)| tag == name);
        let mut columns: Vec<&Arc<str>> = Vec::new();
        let mut seen = FxHashSet::default();
        for batch in flow.batches() {
            for column in &batch.block.columns {
                let told = column.is_tag() && (single.is_some() || grouped(&column.name));
                let present = || batch.rows.iter().any(|row| column.data.get(row).is_some());
                if !told && !seen.contains(&column.name) && present() {
                    seen.insert(&column.name);
                    columns.push(&column.name);
                }
            }
        }
        columns.sort();
        Series { flow, columns }
    }

    /// Returns the tags of the group, or those of the point if there is only one.
    fn tags(&self) -> Vec<(Arc<str>, Arc<str>)> {
        let mut tags = self.flow.group().tags.clone();
        if let Some((batch, row)) = single(self.flow) {
            for column in batch.block.tags() {
                let known = tags.iter().any(|(name, _)| *name == column.name);
                if let Some(Value::Text(value)) = column.data.get(row)
                    && !known
                {
                    tags.push((column.name.clone(), value));
                }
            }
            tags.sort();
        }
        tags
    }
}

/// Returns the point, if there is only one and it belongs to no window.
fn single(flow: &Flow) -> Option<(&Batch, usize)> {
    match flow {
        Flow::Points(batch) if batch.rows.len() == 1 => Some((batch, batch.rows.get(0))),
        _ => None,
    }
}

impl Serialize for Series<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        let first = self.flow.batches().first();
        map.serialize_entry("name", first.map_or("", |b| &*b.block.origin.measurement))?;
        let tags = self.tags();
        if !tags.is_empty() {
            map.serialize_entry("tags", &Tags(&tags))?;
        }
        let time = std::iter::once("time");
        let columns: Vec<&str> = time
            .chain(self.columns.iter().map(|name| &***name))
            .collect();
        map.serialize_entry("columns", &columns)?;
        map.serialize_entry("values", &Values(self))?;
        map.end()
    }
}

struct Tags<'a>(&'a [(Arc<str>, Arc<str>)]);

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (&**name, &**value)))
    }
}

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut rows = to.serialize_seq(Some(self.0.flow.points()))?;
        for batch in self.0.flow.batches() {
            for row in batch.rows.iter() {
                rows.serialize_element(&Row {
                    series: self.0,
                    batch,
                    row,
                })?;
            }
        }
        rows.end()
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let block = &self.batch.block;
        let mut cells = to.serialize_seq(Some(self.series.columns.len() + 1))?;
        cells.serialize_element(&block.times[self.row])?;
        for name in &self.series.columns {
            let value = block
                .column(name)
                .and_then(|column| column.data.get(self.row));
            match value {
                None => cells.serialize_element(&None::<()>)?,
                Some(Value::Float(value)) => cells.serialize_element(&value)?,
                Some(Value::Integer(value)) => cells.serialize_element(&value)?,
                Some(Value::Unsigned(value)) => cells.serialize_element(&value)?,
                Some(Value::Text(value)) => cells.serialize_element(&*value)?,
                Some(Value::Boolean(value)) => cells.serialize_element(&value)?,
            }
        }
        cells.end()
    }
}
