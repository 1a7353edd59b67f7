//! Draws a violation as a timeline, with a row for each process and a bar for each operation.

use crate::linearizability::{SearchResult, search_one};
use crate::model::join;
use crate::{Limits, Model, Operation};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The maximum number of operations in a timeline.
pub const MOST_OPERATIONS: usize = 500;

/// The longest valid order of a history's operations, and the operation that cannot follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// For each operation, its position in the longest order that the model allows.
    pub places: Vec<Option<usize>>,
    /// The state after that order.
    pub state: String,
    /// The operation that cannot follow, although it had returned.
    pub blocked: Option<usize>,
}

/// Finds the longest order of the operations that the model allows.
pub fn explain<M: Model>(
    model: &M,
    operations: &[Operation<M::Input, M::Output>],
    limits: &Limits,
) -> Explanation {
    let all: Vec<usize> = (0..operations.len()).collect();
    let mut places = vec![None; operations.len()];
    let mut state = model.initial();
    let mut blocked_at = None;
    if let SearchResult::Violation { longest, blocked } =
        search_one(model, operations, &all, limits)
    {
        for (place, index) in longest.iter().enumerate() {
            places[*index] = Some(place);
            let operation = &operations[*index];
            if let Some(next) = model.step(&state, &operation.input, operation.output()) {
                state = next;
            }
        }
        blocked_at = Some(blocked);
    }
    Explanation {
        places,
        state: model.describe_state(&state),
        blocked: blocked_at,
    }
}

/// Writes the operations as lines of text, in the order of their calls.
pub fn text<M: Model>(
    model: &M,
    operations: &[Operation<M::Input, M::Output>],
    explanation: &Explanation,
) -> String {
    let columns = columns(operations);
    let mut text = String::new();
    for (index, operation) in operations.iter().enumerate().take(MOST_OPERATIONS) {
        let (call, returned) = columns.of(operation);
        let until = match operation.completion {
            Some(_) => format!("{:>4}", returned),
            None => "   …".to_owned(),
        };
        let place = match explanation.places[index] {
            Some(place) => format!("#{}", place + 1),
            None if explanation.blocked == Some(index) => "cannot follow".to_owned(),
            None => String::new(),
        };
        let what = model.describe(&operation.input, operation.output());
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{call:>4}–{until}  process {:<4} {what:<40} {place}",
            operation.process
        );
    }
    if operations.len() > MOST_OPERATIONS {
        let _ = writeln!(text, "and {} more", operations.len() - MOST_OPERATIONS);
    }
    let _ = writeln!(
        text,
        "state after the last that fits: {}",
        explanation.state
    );
    text
}

/// The columns of a timeline, which are the ranks of the times, so that a long wait is not drawn wider than a short
/// one.
struct Columns {
    ranks: BTreeMap<u64, usize>,
}

impl Columns {
    /// Returns the columns of the call and the return; an operation without a return ends in the
    /// column after the last.
    fn of<I, O>(&self, operation: &Operation<I, O>) -> (usize, usize) {
        let rank = |time: u64| self.ranks.get(&time).copied();
        let end = self.ranks.len();
        (
            rank(operation.call).unwrap_or(0),
            rank(operation.returned()).unwrap_or(end),
        )
    }
}

fn columns<I, O>(operations: &[Operation<I, O>]) -> Columns {
    let mut ranks = BTreeMap::new();
    for operation in operations {
        ranks.insert(operation.call, 0);
        if operation.completion.is_some() {
            ranks.insert(operation.returned(), 0);
        }
    }
    for (rank, value) in ranks.values_mut().enumerate() {
        *value = rank;
    }
    Columns { ranks }
}

// Colours of `corsair::picture`. This crate does not depend on the engine, so they are repeated here; a test of the command
// verifies that they are equal. The command adds the dark scheme.
const PAPER: &str = "#FFFFFF";
const RULE: &str = "#D8DEE4";
const FAINT: &str = "#6E7781";
const AREA: &str = "#F4F7FA";
const NORMAL: &str = "#0072B2";
const BAD: &str = "#C2410C";
const BAD_AREA: &str = "#FFE7DC";

const ROW: usize = 44;
const LEFT: usize = 110;
const TOP: usize = 48;

/// Draws the operations as an SVG document.
pub fn svg<M: Model>(
    model: &M,
    operations: &[Operation<M::Input, M::Output>],
    explanation: &Explanation,
    title: &str,
) -> String {
    let shown = &operations[..operations.len().min(MOST_OPERATIONS)];
    let columns = columns(shown);
    let labels: Vec<String> = shown
        .iter()
        .map(|operation| model.describe(&operation.input, operation.output()))
        .collect();
    // Wide enough for every label to fit into its bar.
    let column = labels.iter().zip(shown).map(|(label, operation)| {
        let (call, returned) = columns.of(operation);
        (label.chars().count() * 7 + 30).div_ceil((returned - call).max(1))
    });
    let column = column.max().unwrap_or(40).clamp(24, 160);
    let mut rows = BTreeMap::new();
    for operation in shown {
        rows.insert(operation.process, 0);
    }
    for (row, value) in rows.values_mut().enumerate() {
        *value = row;
    }
    let width = LEFT + (columns.ranks.len() + 2) * column + 20;
    let height = TOP + rows.len() * ROW + 40;
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    for (process, row) in &rows {
        let y = TOP + row * ROW + ROW / 2;
        let _ = write!(
            svg,
            "<text x=\"12\" y=\"{}\">process {process}</text>\n\
             <line x1=\"{LEFT}\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\" stroke=\"{RULE}\"/>\n",
            y + 4
        );
    }
    for (index, operation) in shown.iter().enumerate() {
        let (call, returned) = columns.of(operation);
        let y = TOP + rows[&operation.process] * ROW + 6;
        let x = LEFT + call * column;
        let wide = (returned - call).max(1) * column - 4;
        let (fill, stroke) = match explanation.places[index] {
            _ if explanation.blocked == Some(index) => (BAD_AREA, BAD),
            Some(_) => (AREA, NORMAL),
            None => (PAPER, FAINT),
        };
        let dashes = match operation.completion {
            Some(_) => "",
            None => " stroke-dasharray=\"4 3\"",
        };
        let place = match explanation.places[index] {
            Some(place) => format!("{}. ", place + 1),
            None => String::new(),
        };
        let label = escaped(&format!("{place}{}", labels[index]));
        let _ = writeln!(
            svg,
            "<g><title>{label}</title>\
             <rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{}\" rx=\"4\" fill=\"{fill}\" \
             stroke=\"{stroke}\"{dashes}/><text x=\"{}\" y=\"{}\">{label}</text></g>",
            ROW - 12,
            x + 6,
            y + 20,
        );
    }
    let mut notes = vec![format!(
        "state after the last that fits: {}",
        explanation.state
    )];
    if shown.len() < operations.len() {
        let more = operations.len() - shown.len();
        notes.push(format!("{more} later operations are not shown"));
    }
    let note = escaped(&join(&notes, "; "));
    let _ = write!(
        svg,
        "<text x=\"12\" y=\"{}\">{note}</text>\n</svg>\n",
        height - 14
    );
    svg
}

/// Escapes text for XML, and drops characters that XML cannot contain.
fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => result.push_str("&amp;"),
            '<' => result.push_str("&lt;"),
            '>' => result.push_str("&gt;"),
            '"' => result.push_str("&quot;"),
            '\t' => result.push(' '),
            char if char.is_control() || char == '\u{fffe}' || char == '\u{ffff}' => {
                result.push('\u{fffd}');
            }
            char => result.push(char),
        }
    }
    result
}
