//! What is wrong with a text, and where.

use super::lexer::Span;
use crate::expression::{Expression, Function, PatternError};
use crate::pipeline::PipelineError;
use std::fmt;

/// What is wrong with a text, and where. Its `Display` shows the place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{problem}\n{excerpt}{}", help(problem))]
pub struct LanguageError {
    problem: Problem,
    excerpt: Box<Excerpt>,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Something else should stand here.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What should.
        expected: &'static str,
        /// What does.
        found: String,
    },
    /// A character that begins nothing.
    #[error("the character `{0}` has no meaning here")]
    Character(char),
    /// A string or a quoted key without an end.
    #[error("the closing {0} is missing")]
    Unterminated(char),
    /// Digits with letters that are no unit.
    #[error("`{0}` is neither a number nor a duration; the units are ns, u, ms, s, m, h, d and w")]
    Unit(String),
    /// A whole number beyond 64 bits.
    #[error("`{0}` does not fit into 64 bits")]
    Number(String),
    /// A float beyond what floats hold.
    #[error("`{0}` is larger than any float")]
    Float(String),
    /// A pattern that is none.
    #[error("this is not a regular expression: {0}")]
    Pattern(PatternError),
    /// A pattern where a value should be.
    #[error("a regular expression stands behind `=~` or `!~` only")]
    PatternAlone,
    /// `isPresent` of something else than a key.
    #[error("`isPresent` is asked for a field or tag: `isPresent(\"value\")`")]
    IsPresent,
    /// A function that there is not.
    #[error("there is no function `{name}`")]
    UnknownFunction {
        /// What is written.
        name: String,
        /// What it may be meant to be.
        like: Option<&'static str>,
    },
    /// A function with more or fewer arguments than it takes.
    #[error("`{}` takes {} arguments, not {found}", .function.name(), .function.arguments())]
    Arguments {
        /// The function.
        function: Function,
        /// How many there are.
        found: usize,
    },
    /// Something of kapacitor's that is not here.
    #[error("`{node}` of kapacitor is not here: {instead}")]
    NotHere {
        /// A node, or a property with its node.
        node: String,
        /// What to do.
        instead: &'static str,
    },
    /// More than an expression may have.
    #[error(
        "operators are nested more than {} deep, or more than {} follow one another",
        Expression::MAX_DEPTH,
        Expression::MAX_CHAIN
    )]
    Deep,
    /// `a < b < c`
    #[error("comparisons cannot be chained: write `a < b AND b < c`, or use parentheses")]
    Chained,
    /// `a = NOT b`
    #[error("`NOT` must stand in parentheses here: `(NOT …)`")]
    Not,
    /// A word of the language where a key should be.
    #[error("`{0}` is a word of the language: a key of this name is written \"{0}\"")]
    Reserved(String),
    /// After `|`, something unknown.
    #[error("there is no node `{name}`")]
    UnknownNode {
        /// What is written.
        name: String,
        /// What it may be meant to be.
        like: Option<&'static str>,
    },
    /// After `.`, something unknown.
    #[error("`{node}` has no property `{name}`, and there is no node of this name")]
    UnknownProperty {
        /// The node before it.
        node: &'static str,
        /// What is written.
        name: String,
        /// What it may be meant to be.
        like: Option<&'static str>,
    },
    /// After `|`, a property.
    #[error("`{property}` is a property of `{node}`: it follows a `.`, not a `|`")]
    PropertyAsNode {
        /// What is written.
        property: String,
        /// The node that has it.
        node: &'static str,
    },
    /// A name that no `var` has.
    #[error("there is no var `{name}`")]
    UnknownVar {
        /// What is written.
        name: String,
        /// What it may be meant to be.
        like: Option<String>,
    },
    /// `stream` without `from`.
    #[error("`stream` must be followed by `| from()`")]
    Stream,
    /// `from` elsewhere.
    #[error("`from` stands only at the beginning of a chain: `stream | from()`")]
    From,
    /// A chain of which nothing follows.
    #[error("`{0}` alone does nothing: a node should follow, as in `{0} | log()`")]
    Alone(String),
    /// A `var` of a name that has a meaning.
    #[error("a var cannot be called `{0}`: it is a word of the language")]
    VarReserved(String),
    /// Two `var`s of a name.
    #[error("there already is a var `{0}`")]
    VarTwice(String),
    /// A `var` that nothing follows.
    #[error("the var `{0}` is never used: use it, or leave out `var {0} =`")]
    VarUnused(String),
    /// A property given twice.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
    /// A node that lacks something.
    #[error("`{node}` needs {what}")]
    Missing {
        /// The node.
        node: &'static str,
        /// What it lacks.
        what: &'static str,
    },
    /// More in parentheses than a node takes.
    #[error("`{node}` takes {takes}")]
    Surplus {
        /// The node or property.
        node: &'static str,
        /// The arguments that it accepts.
        takes: &'static str,
    },
    /// `.as` with more or fewer names than there are results.
    #[error("`as` needs a name for each result: {expected}, not {found}")]
    Names {
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// The nodes are no pipeline.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
}

/// What stops the parser.
pub(crate) type Failure = (Problem, Span);

impl LanguageError {
    pub(crate) fn new(text: &str, (problem, span): Failure) -> LanguageError {
        let excerpt = Box::new(Excerpt::of(text, span));
        LanguageError { problem, excerpt }
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The line where it is, from 1.
    pub fn line(&self) -> usize {
        self.excerpt.line
    }

    /// The character in this line at which it begins, from 1.
    pub fn column(&self) -> usize {
        self.excerpt.column
    }
}

/// Words like those that are unknown.
fn help(problem: &Problem) -> String {
    let like = match problem {
        Problem::UnknownNode { like, .. }
        | Problem::UnknownProperty { like, .. }
        | Problem::UnknownFunction { like, .. } => *like,
        Problem::UnknownVar { like, .. } => like.as_deref(),
        _ => None,
    };
    like.map(|like| format!("\n  = did you mean `{like}`?"))
        .unwrap_or_default()
}

/// How many characters of a long line are shown on either side of the place.
const AROUND: usize = 60;

/// A line of the text with a mark under a part of it.
#[derive(Clone, Debug, PartialEq)]
struct Excerpt {
    line: usize,
    column: usize,
    /// What is shown of the line.
    shown: String,
    /// What is shown before the mark.
    indent: String,
    marked: usize,
}

impl Excerpt {
    fn of(text: &str, span: Span) -> Excerpt {
        let before = &text[..span.start];
        let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = &text[span.start..];
        let end = span.start + rest.find('\n').unwrap_or(rest.len());
        let (left, right) = (&text[begin..span.start], &text[span.start..end]);
        let right = right.strip_suffix('\r').unwrap_or(right);

        let column = left.chars().count() + 1;
        let cut = column.saturating_sub(AROUND + 1);
        let dots = |cut: bool| if cut { "…" } else { "" };
        let left: String = dots(cut > 0)
            .chars()
            .chain(left.chars().skip(cut))
            .collect();
        let more = right.chars().nth(AROUND).is_some();
        let right: String = right.chars().take(AROUND).collect();
        let offending = text[span.start..span.end]
            .lines()
            .next()
            .unwrap_or_default();
        Excerpt {
            line: before.matches('\n').count() + 1,
            column,
            shown: plain(&left) + &plain(&right) + dots(more),
            // Tabs are as wide as those above them.
            indent: left
                .chars()
                .map(|c| if c == '\t' { c } else { ' ' })
                .collect(),
            marked: offending.chars().count().clamp(1, AROUND),
        }
    }
}

/// Control characters could do anything to a terminal.
fn plain(text: &str) -> String {
    let visible = |c: char| {
        if c.is_control() && c != '\t' {
            '\u{FFFD}'
        } else {
            c
        }
    };
    text.chars().map(visible).collect()
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        let carets = "^".repeat(self.marked);
        let (line, column) = (self.line, self.column);
        let (shown, indent) = (&self.shown, &self.indent);
        writeln!(f, "{margin}--> line {line}, column {column}")?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {shown}")?;
        write!(f, "{margin} | {indent}{carets}")
    }
}

/// The candidate most like what was written, if one differs by a slip or two, or in its letters'
/// case.
pub(crate) fn nearest<'a>(
    written: &str,
    among: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Names that long are no slips, and comparing takes the product of the lengths.
    if written.len() > 64 {
        return None;
    }
    let written = written.to_lowercase();
    let slips = |name: &&str| strsim::osa_distance(&written, &name.to_lowercase());
    among
        .into_iter()
        .min_by_key(slips)
        .filter(|name| slips(name) <= (written.chars().count() / 3).max(1))
}
