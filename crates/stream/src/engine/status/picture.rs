//! Draws the graph of a task as SVG: a box for each node with its counters, and an arrow for each edge with its counts.
//!
//! A node is to the right of its inputs. If possible, it is in the same row as its first input. The SVG has no styles
//! and scripts, so any content security policy allows it; its colours are those of [`corsair::picture`], whose style
//! sheet is a part of the page's.

use super::{EdgeStatus, NodeStatus, TaskState, TaskStatus};
use corsair::picture::{AREA, BAD, FAINT, NORMAL, PAPER};
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The width of a letter.
const WIDTH: usize = 7;
const LINE: usize = 16;
/// The margin around the words in a box, and around the picture.
const MARGIN: usize = 8;
/// The space between two boxes in a column.
const BETWEEN: usize = 24;

/// A box of the picture: a node, or the writes.
struct Shape<'s> {
    lines: Vec<String>,
    hint: &'s str,
    color: &'static str,
    column: usize,
    row: usize,
}

impl TaskStatus {
    /// Returns the graph as SVG, with the counts of each edge. O(nodes + edges).
    pub fn svg(&self) -> String {
        let places: FxHashMap<&str, usize> = (1..)
            .zip(&self.nodes)
            .map(|(place, node)| (&*node.name, place))
            .collect();
        let place = |name: &str| places.get(name).copied().unwrap_or(0);
        let edges: Vec<(usize, usize, &EdgeStatus)> = self
            .edges
            .iter()
            .map(|edge| (place(&edge.from), place(&edge.to), edge))
            .collect();
        let shapes = self.shapes(&edges);
        let columns = 1 + shapes.iter().map(|shape| shape.column).max().unwrap_or(0);
        let rows = 1 + shapes.iter().map(|shape| shape.row).max().unwrap_or(0);
        // Columns are as wide as their widest box, and as far apart as the longest label between them.
        let (mut widths, mut gaps) = (vec![0; columns], vec![0; columns]);
        let mut heights = vec![0; rows];
        for shape in &shapes {
            let letters = shape.lines.iter().map(|line| line.chars().count()).max();
            let width = &mut widths[shape.column];
            *width = (*width).max(letters.unwrap_or(0) * WIDTH + 2 * MARGIN);
            heights[shape.row] = heights[shape.row].max(shape.lines.len() * LINE + MARGIN);
        }
        for (from, _, edge) in &edges {
            let gap = &mut gaps[shapes[*from].column];
            *gap = (*gap).max(label(edge).chars().count() * WIDTH + 3 * MARGIN);
        }
        let mut lefts = vec![MARGIN];
        for column in 0..columns {
            lefts.push(lefts[column] + widths[column] + gaps[column]);
        }
        let mut tops = vec![MARGIN];
        for row in 0..rows {
            tops.push(tops[row] + heights[row] + BETWEEN);
        }
        let (width, height) = (lefts[columns] + MARGIN, tops[rows] - BETWEEN + MARGIN);

        let mut svg = String::new();
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" font-family=\"monospace\" font-size=\"12\" class=\"corsair\" role=\"img\">\n\
             <title>{}</title>\n\
             <desc>{}</desc>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>\n\
             <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"{FAINT}\"/></marker></defs>",
            escaped(&format!("task {}: {}", self.name, self.state.word())),
            escaped(&format!(
                "{} nodes and the edges between them, with their counts.",
                self.nodes.len()
            ))
        );
        let middle = |shape: &Shape<'_>| tops[shape.row] + (shape.lines.len() * LINE + MARGIN) / 2;
        for (from, to, edge) in &edges {
            let (from, to) = (&shapes[*from], &shapes[*to]);
            let (x1, y1) = (lefts[from.column] + widths[from.column], middle(from));
            let (x2, y2) = (lefts[to.column], middle(to));
            let gap = gaps[from.column];
            let half = x1 + gap / 2;
            let color = match edge.statistics.dropped_by_overflow {
                0 => FAINT,
                _ => BAD,
            };
            let _ = writeln!(
                svg,
                "<g><title>{}</title><path d=\"M{x1} {y1}C{half} {y1} {half} {y2} {} {y2}H{x2}\" fill=\"none\" stroke=\"{color}\" marker-end=\"url(#tip)\"/>\
                 <text x=\"{half}\" y=\"{}\" text-anchor=\"middle\" fill=\"{color}\">{}</text></g>",
                escaped(&hint(edge)),
                (x1 + gap).min(x2),
                (y1 + y2) / 2 - 4,
                escaped(&label(edge)),
            );
        }
        for shape in &shapes {
            let (x, y) = (lefts[shape.column], tops[shape.row]);
            let (width, height) = (widths[shape.column], shape.lines.len() * LINE + MARGIN);
            let _ = write!(
                svg,
                "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"4\" fill=\"{AREA}\" stroke=\"{}\"/>",
                escaped(shape.hint),
                shape.color
            );
            for (at, line) in shape.lines.iter().enumerate() {
                let weight = if at == 0 { " font-weight=\"bold\"" } else { "" };
                let (x, y) = (x + MARGIN, y + (at + 1) * LINE);
                let _ = write!(
                    svg,
                    "<text x=\"{x}\" y=\"{y}\"{weight}>{}</text>",
                    escaped(line)
                );
            }
            svg.push_str("</g>\n");
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Returns a shape for the writes and for each node, with their positions.
    fn shapes(&self, edges: &[(usize, usize, &EdgeStatus)]) -> Vec<Shape<'_>> {
        let writes = Shape {
            lines: vec!["stream".into()],
            hint: "the writes",
            color: FAINT,
            column: 0,
            row: 0,
        };
        let mut shapes = vec![writes];
        // The first free row of each column.
        let mut free: Vec<usize> = vec![1];
        let mut edges = edges.iter().peekable();
        for (place, node) in (1..).zip(&self.nodes) {
            let (mut column, mut first) = (0, None);
            // Edges are ordered by their receiving node, and each node follows its inputs.
            while let Some((from, _, _)) = edges.next_if(|(_, to, _)| *to == place) {
                column = column.max(shapes[*from].column + 1);
                first.get_or_insert(shapes[*from].row);
            }
            if column >= free.len() {
                free.resize(column + 1, 0);
            }
            let row = free[column].max(first.unwrap_or(0));
            free[column] = row + 1;
            let failed =
                matches!(&self.state, TaskState::Failed { node: at, .. } if *at == node.name);
            shapes.push(Shape {
                lines: lines(node),
                hint: &node.text,
                color: if failed { BAD } else { NORMAL },
                column,
                row,
            });
        }
        shapes
    }
}

/// Returns the name of a node, and its counters that are not zero.
fn lines(node: &NodeStatus) -> Vec<String> {
    let counted = node.counters.iter().filter(|(_, count)| *count > 0);
    let counted = counted.map(|(name, count)| format!("{name} {count}"));
    std::iter::once(node.name.clone()).chain(counted).collect()
}

fn label(edge: &EdgeStatus) -> String {
    let s = &edge.statistics;
    match s.dropped_by_overflow {
        0 => format!("{} of {}", s.received, s.sent),
        dropped => format!("{} of {}, {dropped} dropped", s.received, s.sent),
    }
}

fn hint(edge: &EdgeStatus) -> String {
    let mut hint = format!("{} to {}, in points", edge.from, edge.to);
    for (name, count) in edge.counters() {
        let _ = write!(hint, "\n{name} {count}");
    }
    hint
}

/// Escapes text for XML and HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            // XML cannot contain these characters.
            letter if letter.is_control() || "\u{fffe}\u{ffff}".contains(letter) => {
                escaped.push('\u{fffd}');
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}
