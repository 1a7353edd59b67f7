//! The colours and the width of the terminal. If stdout is a pipe or a file, output is plain text with all columns.
//! With `NO_COLOR`, output on a terminal is plain, but still fits the terminal's width.

use std::fmt::Write as _;
use std::io::IsTerminal;

/// The range of terminal widths that tables support.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=200;

/// The meaning of a part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The item has failed, or is too much.
    Bad,
    /// The item differs, or deserves attention.
    Notable,
    /// The item is a result.
    Result,
}

/// Returns a text in the colour of its meaning. The text is plain if stdout is not a terminal or `NO_COLOR` is set.
pub fn paint(text: &str, meaning: Meaning) -> String {
    let wants = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if text.is_empty() || is_dumb || !wants("NO_COLOR") || !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    let style = ::console::Style::new().force_styling(true);
    let style = match meaning {
        Meaning::Bad => style.red(),
        Meaning::Notable => style.yellow(),
        Meaning::Result => style.bold(),
    };
    style.apply_to(text).to_string()
}

/// Returns the number of columns of stdout; `None` if stdout is not a terminal.
pub fn width() -> Option<usize> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    let (_, columns) = ::console::Term::stdout().size_checked()?;
    Some(usize::from(columns).clamp(*WIDTHS.start(), *WIDTHS.end()))
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    width: usize,
    /// The order in which cells are left out: highest rank first. A cell with rank 0 always stays.
    rank: u8,
    is_left: bool,
}

impl Cell {
    /// Creates a cell that is aligned to the right.
    pub fn right(text: impl Into<String>, width: usize, rank: u8) -> Cell {
        let text = text.into();
        Cell {
            text,
            width,
            rank,
            is_left: false,
        }
    }

    /// Creates a cell that is aligned to the left.
    pub fn left(text: impl Into<String>, width: usize, rank: u8) -> Cell {
        Cell {
            is_left: true,
            ..Cell::right(text, width, rank)
        }
    }
}

/// Returns a row of cells, separated by two spaces, without the cells that do not fit into `width` columns.
pub fn row(cells: &[Cell], width: Option<usize>) -> String {
    let mut rank = u8::MAX;
    let fits = |rank: u8| {
        let shown = cells.iter().filter(|cell| cell.rank <= rank);
        let all: usize = shown.map(|cell| cell.width + 2).sum();
        width.is_none_or(|width| all <= width + 2)
    };
    while rank > 0 && !fits(rank) {
        let lower = cells.iter().map(|cell| cell.rank).filter(|&one| one < rank);
        rank = lower.max().unwrap_or(0);
    }
    let mut row = String::new();
    for cell in cells.iter().filter(|cell| cell.rank <= rank) {
        if !row.is_empty() {
            row.push_str("  ");
        }
        let Cell { text, width, .. } = cell;
        let _ = match cell.is_left {
            true => write!(row, "{text:<width$}"),
            false => write!(row, "{text:>width$}"),
        };
    }
    row.trim_end().to_owned()
}

/// Returns a text as lines that fit the terminal (or 100 columns, if there is no terminal), each indented by `indent`
/// spaces.
pub fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let most = width().unwrap_or(100).saturating_sub(indent).max(20);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > most {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    let lines = lines.into_iter();
    lines.map(|line| format!("{:indent$}{line}", "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_leaves_out_what_does_not_fit() {
        let cells = [
            Cell::left("a", 4, 0),
            Cell::right("1.5", 6, 2),
            Cell::right("7 ms", 6, 1),
        ];
        assert_eq!(row(&cells, None), "a        1.5    7 ms");
        assert_eq!(row(&cells, Some(20)), "a        1.5    7 ms");
        assert_eq!(row(&cells, Some(19)), "a       7 ms");
        assert_eq!(row(&cells, Some(3)), "a");
    }

    #[test]
    fn what_is_not_a_terminal_gets_plain_text() {
        assert_eq!(paint("too much", Meaning::Bad), "too much");
        assert_eq!(width(), None);
        let text = wrapped(&"word ".repeat(40), 8);
        assert!(
            text.len() == 3
                && text
                    .iter()
                    .all(|line| line.len() <= 100 && line.starts_with("        word"))
        );
    }
}
