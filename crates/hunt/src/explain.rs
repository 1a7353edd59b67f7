//! Explains a failure. An explanation has the messages of the run as a sequence (Lamport) diagram, in text and as SVG;
//! the faults that are necessary for the failure; and the first step at which the run differs from a run that passes.

use crate::network::Choice;
use crate::{Cause, Failure, FaultPlan, HuntError, Step, Subject, Trace, Transmission};
use corsair::picture::{self, BAD, FAINT, INK, NORMAL, PAPER, RULE};
use std::fmt::Write;

/// An explanation of a failure.
///
/// [`Explanation::text`] is for the terminal, [`Explanation::svg`] is the diagram as SVG.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The property that is violated.
    pub property: String,
    /// The number of nodes.
    pub nodes: u32,
    /// The steps of the run, by time.
    pub steps: Vec<Step>,
    /// Each fault, and whether the property holds in the same run without that fault.
    pub faults: Vec<(String, bool)>,
    /// The first step at which the run differs from the run without a necessary fault.
    pub divergence: Option<usize>,
}

/// The maximum number of steps in a diagram; a longer run is shown by its last steps.
pub const MOST_STEPS: usize = 200;
/// The text of a diagram without steps: what was observed at the beginning violates the property.
const NO_STEPS: &str = "no node has taken a step before the violation";
/// Width of a node's column in text.
const COLUMN: usize = 14;

/// Runs a failure again, and once without each of its faults.
///
/// # Errors
/// If a run fails to complete, or the failure does not violate its property.
pub fn explain(subject: &dyn Subject, failure: &Failure) -> Result<Explanation, HuntError> {
    let failing = subject.trace(failure.seed, &failure.plan)?;
    let property = failure.property.clone();
    let fails = |violated: Vec<&str>| violated.contains(&property.as_str());
    if !fails(failing.result.properties.violated()) {
        return Err(HuntError::NotReproduced { property });
    }
    let steps = &failing.steps;
    let (mut faults, mut divergence) = (Vec::new(), None);
    for (fault, without) in without_each(&failure.plan, &failing) {
        let passing = subject.trace(failure.seed, &without)?;
        let is_necessary = !fails(passing.result.properties.violated());
        if is_necessary && divergence.is_none() {
            let same = steps.iter().zip(&passing.steps);
            let same = same.take_while(|(a, b)| a == b).count();
            divergence = Some(same).filter(|index| *index < steps.len());
        }
        faults.push((fault, is_necessary));
    }
    Ok(Explanation {
        property,
        nodes: subject.nodes(),
        steps: failing.steps,
        faults,
        divergence,
    })
}

/// Returns each fault in words, with the plan without it. If the random choices are listed, each of them counts as a
/// fault.
fn without_each(plan: &FaultPlan, failing: &Trace) -> Vec<(String, FaultPlan)> {
    let mut all = Vec::new();
    for (index, fault) in plan.faults.iter().enumerate() {
        if fault.share().is_some() && plan.only.is_some() {
            continue;
        }
        let mut without = plan.clone();
        without.faults.remove(index);
        all.push((fault.to_string(), without));
    }
    for (message, choice) in plan.only.iter().flat_map(|_| &failing.choices) {
        let mut without = plan.clone();
        if let Some(only) = &mut without.only {
            only.retain(|other| other != message);
        }
        let what = match choice {
            Choice::Lost => "is lost",
            Choice::Twice => "arrives twice",
            Choice::Late => "is late",
        };
        let Transmission { sent, from, to } = message;
        let sent = *sent as f64 / 1e6;
        let fault =
            format!("the message sent at {sent:.3} ms from node {from} to node {to} {what}");
        all.push((fault, without));
    }
    all
}

impl Explanation {
    fn shown(&self) -> &[Step] {
        &self.steps[self.steps.len().saturating_sub(MOST_STEPS)..]
    }

    /// Returns the nodes that handle or send a shown message; other nodes have no column.
    fn columns(&self) -> Vec<u32> {
        let sender = |step: &Step| match step.cause {
            Cause::Message { from, .. } => from,
            _ => None,
        };
        let involved = |node: &u32| {
            let mut steps = self.shown().iter();
            steps.any(|step| step.node == *node || sender(step) == Some(*node))
        };
        (0..self.nodes).filter(involved).collect()
    }

    /// Formats the explanation as text: the faults, then a line for each step, with an arrow from the sender's column
    /// to the receiver's.
    pub fn text(&self) -> String {
        let mut text = format!("violated: {}\n", self.property);
        if self.faults.is_empty() {
            text.push_str("no fault is needed\n");
        }
        for (fault, is_necessary) in &self.faults {
            let word = if *is_necessary {
                "necessary"
            } else {
                "not necessary"
            };
            // Writing to a string does not fail.
            let _ = writeln!(text, "fault: {fault} ({word})");
        }
        if self.steps.is_empty() {
            let _ = writeln!(text, "{NO_STEPS}");
            return text;
        }
        let hidden = self.steps.len() - self.shown().len();
        if hidden > 0 {
            let _ = writeln!(text, "{hidden} earlier steps are not shown");
        }
        let _ = write!(text, "\n{:>10}  ", "ms");
        let columns = self.columns();
        for node in &columns {
            let _ = write!(text, "{:<COLUMN$}", format!("node {node}"));
        }
        text.push('\n');
        for (index, step) in (hidden..).zip(self.shown()) {
            if self.divergence == Some(index) {
                text.push_str("            from here on it differs from a run that passes\n");
            }
            let milliseconds = step.at as f64 / 1e6;
            let [before, after] = &step.states;
            let change = if before == after {
                String::new()
            } else {
                format!("  {before} → {after}")
            };
            let line = line(step, &columns);
            let _ = writeln!(text, "{milliseconds:>10.3}  {}{change}", line.trim_end());
        }
        text
    }

    /// Draws the diagram as SVG: a vertical line for each node, and for each message an arrow from its send time to its
    /// arrival.
    pub fn svg(&self) -> String {
        const ACROSS: f64 = 150.0;
        const DOWN: f64 = 22.0;
        let shown = self.shown();
        let columns = self.columns();
        let x = |node: u32| 90.0 + columns.partition_point(|column| *column < node) as f64 * ACROSS;
        let row = |index: usize| 60.0 + index as f64 * DOWN;
        let (width, height) = (x(u32::MAX).max(480.0), row(shown.len()) + 20.0);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"11\">\n<defs><marker id=\"head\" \
             markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"3\" orient=\"auto\">\
             <path d=\"M0,0 L7,3 L0,6 z\" fill=\"{FAINT}\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n<text x=\"10\" y=\"16\" \
             font-size=\"14\">violated: {}</text>\n",
            escaped(&self.property)
        );
        for &node in &columns {
            let at = x(node);
            let _ = writeln!(
                svg,
                "<text x=\"{at}\" y=\"40\" text-anchor=\"middle\">node {node}</text>\
                 <line x1=\"{at}\" y1=\"46\" x2=\"{at}\" y2=\"{height}\" stroke=\"{RULE}\"/>"
            );
        }
        if shown.is_empty() {
            let _ = writeln!(svg, "<text x=\"10\" y=\"40\">{NO_STEPS}</text>");
        }
        let hidden = self.steps.len() - shown.len();
        for (index, step) in shown.iter().enumerate() {
            let (at, y) = (x(step.node), row(index));
            let color = match self.divergence.is_some_and(|from| index + hidden >= from) {
                true => BAD,
                false => NORMAL,
            };
            let milliseconds = step.at as f64 / 1e6;
            let _ = write!(
                svg,
                "<text x=\"6\" y=\"{y}\" fill=\"{FAINT}\">{milliseconds:.3}</text>"
            );
            let label = match &step.cause {
                Cause::Timer(name) => format!("timer {name}"),
                Cause::Crash => "crash".to_owned(),
                Cause::Restart => "restart".to_owned(),
                Cause::Message { from, sent, kind } => {
                    // The arrow begins beside the last step before the message was sent.
                    let began = shown.partition_point(|other| other.at <= *sent).min(index);
                    let _ = write!(
                        svg,
                        "<line x1=\"{}\" y1=\"{}\" x2=\"{at}\" y2=\"{y}\" stroke=\"{color}\" \
                         marker-end=\"url(#head)\"/>",
                        from.map_or(at - ACROSS / 3.0, x),
                        row(began) - DOWN / 2.0
                    );
                    (*kind).to_owned()
                }
            };
            let [before, after] = &step.states;
            let change = if before == after {
                String::new()
            } else {
                format!(": {before} → {after}")
            };
            let text = escaped(&format!("{label}{change}"));
            let beside = at + 6.0;
            let _ = writeln!(
                svg,
                "<circle cx=\"{at}\" cy=\"{y}\" r=\"3\" fill=\"{color}\"/>\
                 <text x=\"{beside}\" y=\"{y}\" fill=\"{INK}\">{text}</text>"
            );
        }
        svg.push_str("</svg>\n");
        let description = format!(
            "{} steps of {} nodes that violate {}.",
            shown.len(),
            self.nodes,
            self.property
        );
        let title = format!("violated: {}", self.property);
        picture::finish(&svg, &title, &description)
    }
}

/// Formats the columns of a step.
fn line(step: &Step, columns: &[u32]) -> String {
    let mut cells = vec![' '; COLUMN * columns.len()];
    for column in 0..columns.len() {
        cells[column * COLUMN] = '│';
    }
    let place = |node: u32| columns.partition_point(|column| *column < node) * COLUMN;
    let to = place(step.node);
    let mut label = |at: usize, label: &str| {
        for (cell, letter) in cells.iter_mut().skip(at).zip(label.chars()) {
            *cell = letter;
        }
    };
    match &step.cause {
        Cause::Timer(name) => label(to, &format!("● timer {name}")),
        Cause::Crash => label(to, "✗ crash"),
        Cause::Restart => label(to, "○ restart"),
        Cause::Message { from, kind, .. } => match from.map(place) {
            Some(from) if from != to => {
                let (left, right) = (from.min(to), from.max(to));
                label(left, &"─".repeat(right - left));
                let kind: String = kind.chars().take(COLUMN - 4).collect();
                label(left + 2, &kind);
                label(from, "├");
                label(to, "▶");
                if from > to {
                    label(from, "┤");
                    label(to, "◀");
                }
            }
            _ => label(to, &format!("▶ {kind}")),
        },
    }
    cells.into_iter().collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_violation_before_the_first_step_has_a_sentence_instead_of_a_diagram() {
        let explanation = Explanation {
            property: "replicas agree".to_owned(),
            nodes: 3,
            steps: Vec::new(),
            faults: Vec::new(),
            divergence: None,
        };
        let text = explanation.text();
        assert!(text.ends_with(&format!("{NO_STEPS}\n")), "{text}");
        assert!(explanation.svg().contains(NO_STEPS));
    }
}
