//! `holtWinters`: forecasts the values of a field from a window, as InfluxDB does.
//!
//! The result is a window of the forecasts, whose times are an interval apart. With `holtWintersWithFit`, the fitted
//! values of the window come before the forecasts. A window with fewer than two values, or with fewer values than a
//! season, has no forecast.

mod fit;

use super::moments::{Moment, Moments, Results};
use crate::batch::{Batch, Window};
use crate::block::{Cells, Column, Data};
use crate::expression::as_float;
use crate::language::{Call, Parsed, Program, set};
use crate::node::definition::AnyDefinition;
use crate::node::faults::Faults;
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Field, Rule, Time, Writer, distinct, positive};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["holtWinters", "holtWintersWithFit"],
    properties: &["as", "usePointTimes"],
    parse,
};

/// The most intervals between the first and the last point of a window, and the most forecasts.
const MOST_VALUES: u64 = 2_000;
/// The most values of a season.
const LONGEST_SEASON: u64 = 100;

/// Forecasts the values of a field.
///
/// ```
/// use corsair_stream::pipeline::HoltWinters;
///
/// let text = "stream | from('cpu') | window(1h) | holtWinters(usage, 3, 12, 5m)";
/// let pipeline = corsair_stream::language::parse(text)?;
/// let forecast = pipeline.nodes()[2].what.get::<HoltWinters>().expect("a holtWinters node");
/// assert_eq!((forecast.horizon, forecast.season), (3, 12));
/// # Ok::<(), corsair_stream::language::LanguageError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct HoltWinters {
    /// The field whose values are forecast.
    pub field: Arc<str>,
    /// The number of forecasts.
    pub horizon: u64,
    /// The number of values in a season; below 2 there are no seasons.
    pub season: u64,
    /// The interval between two values.
    pub interval: Duration,
    /// True if the fitted values of the window come first.
    pub with_fit: bool,
    /// The name of the forecasts.
    pub into: Arc<str>,
}

impl<'p> Chain<'p> {
    /// Adds a `holtWinters`.
    pub fn holt_winters(self, forecast: HoltWinters) -> Chain<'p> {
        self.then(forecast)
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let parser = &mut program.parser;
    let comma = "`,`, as in `holtWinters('value', 3, 0, 1m)`: forecasts, values of a season, interval";
    let (field, horizon, season, interval) = parser.argument(|parser| {
        let field = parser.field()?;
        parser.expect(",", comma)?;
        let horizon = parser.count()?;
        parser.expect(",", comma)?;
        let season = parser.count()?;
        parser.expect(",", comma)?;
        Ok((field, horizon, season, parser.duration()?))
    })?;
    let mut into = None;
    while let Some((property, span)) = parser.property(KIND.properties)? {
        match property {
            "as" => set(&mut into, parser.one_name(span)?, "as", span)?,
            // Forecasts have times of their own anyway.
            _ => parser.nothing()?,
        }
    }
    Ok(AnyDefinition::from(HoltWinters {
        field,
        horizon,
        season,
        interval,
        with_fit: call.name == KIND.names[1],
        into: into.unwrap_or_else(|| KIND.names[0].into()),
    }))
}

impl Definition for HoltWinters {
    fn name(&self) -> &'static str {
        KIND.names[usize::from(self.with_fit)]
    }

    fn gives_windows(&self, _: bool) -> bool {
        true
    }

    fn check(&mut self) -> Result<(), Rule> {
        for (property, count, most) in [
            ("forecasts", self.horizon, MOST_VALUES),
            ("season", self.season, LONGEST_SEASON),
        ] {
            if count > most {
                return Err(Rule::TooMany { property, count, most });
            }
        }
        positive("interval", self.interval)?;
        distinct([&self.into])
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[&Field(&self.field), &self.horizon, &self.season, &Time(self.interval)])?;
        match &*self.into == KIND.names[0] {
            true => Ok(()),
            false => out.text("as", Some(&self.into)),
        }
    }

    fn build(&self, context: &Context<'_>) -> Built {
        Built::from(Moments::new(self.clone(), Duration::ZERO, context))
    }
}

impl Moment for HoltWinters {
    const RESULTS: Results = Results::OfWindows;

    fn result(&self, window: &Window, faults: &Faults) -> Option<Batch> {
        let points = self.points(window, faults);
        let (&(first, _), &(last, _)) = (points.first()?, points.last()?);
        let season = usize::try_from(self.season).ok()?;
        if points.len() < 2 || (season > 1 && points.len() < season) || self.horizon == 0 {
            return None;
        }
        let interval = i64::try_from(self.interval.as_nanos()).ok()?;
        let count = rounded(last, interval).saturating_sub(rounded(first, interval)) / interval;
        if count <= 0 {
            return None;
        }
        if count as u64 > MOST_VALUES {
            let why = format!("a window of {count} intervals is longer than the longest, {MOST_VALUES}");
            faults.add(points.len(), &why);
            return None;
        }
        let values = spaced(&points, interval);
        if values.len() < 2 || values.len() < season {
            return None;
        }
        let horizon = usize::try_from(self.horizon).ok()?;
        let forecast = fit::forecast(&values, horizon, season);
        let (skipped, begin) = match self.with_fit {
            true => (0, first),
            false => (values.len(), last.saturating_add(interval)),
        };
        let timed = (0i64..).map(|at| begin.saturating_add(interval.saturating_mul(at)));
        let timed = timed.zip(forecast.into_iter().skip(skipped));
        let (times, values): (Vec<i64>, Vec<f64>) = timed.filter(|(_, value)| !value.is_nan()).unzip();
        let present = None;
        let result = Column {
            name: self.into.clone(),
            data: Arc::new(Data::Float(Cells { values, present })),
        };
        (!times.is_empty()).then(|| window.batches[0].of_group(times.into(), vec![result]))
    }
}

impl HoltWinters {
    /// Returns the times and values of the field.
    fn points(&self, window: &Window, faults: &Faults) -> Vec<(i64, f64)> {
        let mut points = Vec::new();
        for batch in &window.batches {
            let mut columns = batch.block.fields();
            let Some(column) = columns.find(|column| column.name == self.field) else {
                continue;
            };
            for row in batch.rows.iter() {
                let Some(value) = column.data.get(row) else {
                    continue;
                };
                match as_float(&value) {
                    Some(value) => points.push((batch.block.times[row], value)),
                    None => {
                        let why = format!("`{}` is a {}, and not a number", self.field, value.kind());
                        faults.add(1, &why);
                    }
                }
            }
        }
        points
    }
}

/// Returns the nearest multiple of the interval, towards zero if both are as near.
fn rounded(time: i64, interval: i64) -> i64 {
    let (whole, rest) = (time / interval, time % interval);
    (whole + i64::from(rest > interval / 2)).saturating_mul(interval)
}

/// Returns a value for each interval; NaN where there is none.
fn spaced(points: &[(i64, f64)], interval: i64) -> Vec<f64> {
    let mut values = vec![points[0].1];
    let mut time = rounded(points[0].0, interval);
    for &(at, value) in &points[1..] {
        let at = rounded(at, interval);
        if at <= time {
            continue;
        }
        time += interval;
        while time != at {
            values.push(f64::NAN);
            time += interval;
        }
        values.push(value);
    }
    values
}
