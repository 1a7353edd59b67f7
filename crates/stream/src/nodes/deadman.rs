//! `deadman`: an alert on groups that fall silent.
//!
//! It is a shorthand for three nodes: the `stats` of its input, their `derivative`, and an `alert`
//! on the result.

use super::alert::{self, Alert};
use super::derivative::Derivative;
use super::stats::Stats;
use crate::expression::{Expression, key};
use crate::language::{Call, Parsed, Parser, Program};
use crate::node::Kind;
use crate::node::definition::AnyDefinition;
use crate::pipeline::{Chain, written_duration};
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["deadman"],
    properties: alert::KIND.properties,
    parse,
};

impl<'p> Chain<'p> {
    /// Adds a `deadman`: an alert if at most `threshold` points arrive in an interval.
    ///
    /// ```
    /// # use corsair_stream::pipeline::{Alert, Pipeline};
    /// # use std::time::Duration;
    /// let pipeline = Pipeline::build(|stream| {
    ///     let hosts = stream.from().measurement("cpu").group_by(["host"]);
    ///     hosts.deadman(0.0, Duration::from_secs(10), Alert::new()).log("silent");
    /// })?;
    /// assert_eq!(pipeline.nodes()[2].name.as_ref(), "stats2");
    /// # Ok::<(), corsair_stream::pipeline::PipelineError>(())
    /// ```
    pub fn deadman(self, threshold: f64, interval: Duration, alert: Alert) -> Chain<'p> {
        let node = self.name();
        let rate = self.stats(interval).then(rate(interval));
        rate.alert(with_defaults(alert, &node, threshold, interval))
    }
}

fn parse(program: &mut Program<'_>, call: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let input = call.inputs[0];
    let node = program.drafts[input].name(input);
    let (threshold, interval, others) = program.parser.argument(|parser| {
        let threshold = parser.number()?;
        parser.expect(",", "`,` and an interval, such as `10s`")?;
        let interval = parser.duration()?;
        let mut others = Vec::new();
        while parser.eat(",") {
            others.push(Parser::condition(parser)?);
        }
        Ok((threshold, interval, others))
    })?;
    let mut alert = alert::properties(&mut program.parser)?;
    alert.levels[2].get_or_insert_with(|| {
        let dead = key("emitted").le(threshold);
        others.into_iter().fold(dead, Expression::and)
    });
    let align = true;
    let stats = program.push(Stats { interval, align }, vec![input], call.span);
    call.inputs[0] = program.push(rate(interval), vec![stats], call.span);
    Ok(AnyDefinition::from(with_defaults(alert, &node, threshold, interval)))
}

/// Returns the node that computes points per interval from the counts of a `stats`.
fn rate(interval: Duration) -> Derivative {
    Derivative {
        field: "emitted".into(),
        into: "emitted".into(),
        unit: interval,
        non_negative: true,
    }
}

/// Sets the properties that the alert leaves open, like Kapacitor; `node` is the node that must
/// send points.
fn with_defaults(mut alert: Alert, node: &str, threshold: f64, interval: Duration) -> Alert {
    let id = || format!("{{{{ .Group }}}}:{node} for task '{{{{ .TaskName }}}}'").into();
    let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
    let message = || {
        let interval = written_duration(interval);
        let state = r#"{{ if eq .Level "OK" }}alive{{ else }}dead{{ end }}"#;
        let points = r#"{{ index .Fields "emitted" | printf "%0.3f" }}"#;
        format!("{{{{ .ID }}}} is {state}: {points} points/{interval}.").into()
    };
    alert.id.get_or_insert_with(id);
    alert.message.get_or_insert_with(message);
    alert.levels[2].get_or_insert_with(|| key("emitted").le(threshold));
    alert
}
