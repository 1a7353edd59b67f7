//! Errors in texts, with their positions.

use super::span::Span;
use crate::expression::{Expression, Function, PatternError};
use crate::pipeline::PipelineError;
use std::fmt;

/// An error in a text with its position, which its `Display` shows.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{problem}\n{excerpt}{}", help(problem))]
pub struct LanguageError {
    problem: Problem,
    excerpt: Box<Excerpt>,
}

/// The kind of error.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Another token was expected.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// The expected token.
        expected: &'static str,
        /// The token that was found.
        found: String,
    },
    /// No token begins with this character.
    #[error("the character `{0}` has no meaning here")]
    Character(char),
    /// A string or a quoted key does not end.
    #[error("the closing {0} is missing")]
    Unterminated(char),
    /// The letters after a number are not a unit.
    #[error("`{0}` is neither a number nor a duration; the units are ns, u, ms, s, m, h, d and w")]
    Unit(String),
    /// A whole number does not fit into 64 bits.
    #[error("`{0}` does not fit into 64 bits")]
    Number(String),
    /// A float exceeds the range of floats.
    #[error("`{0}` is larger than any float")]
    Float(String),
    /// A pattern is not a regular expression.
    #[error("this is not a regular expression: {0}")]
    Pattern(PatternError),
    /// A pattern stands where a value is expected.
    #[error("a regular expression stands behind `=~` or `!~` only")]
    PatternAlone,
    /// The argument of `isPresent` is not a key.
    #[error("`isPresent` is asked for a field or tag: `isPresent(\"value\")`")]
    IsPresent,
    /// A function is unknown.
    #[error("there is no function `{name}`")]
    UnknownFunction {
        /// The name in the text.
        name: String,
        /// The nearest known name.
        like: Option<&'static str>,
    },
    /// A function has too few or too many arguments.
    #[error("`{}` takes {} arguments, not {found}", .function.name(), .function.arguments())]
    Arguments {
        /// The called function.
        function: Function,
        /// The number of arguments in the text.
        found: usize,
    },
    /// A feature of kapacitor is not supported.
    #[error("`{node}` of kapacitor is not here: {instead}")]
    NotHere {
        /// The name of a node, or of a property and its node.
        node: String,
        /// The feature to use instead, as a part of the message.
        instead: &'static str,
    },
    /// A topic of Kafka is not written as brokers and a name.
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Kafka(crate::kafka::KafkaTopicError),
    /// A precision is unknown.
    #[error("'{0}' is not a precision; expected ns, us, ms, s, m or h")]
    Precision(String),
    /// A property of a post precedes the post.
    #[error("`.{property}` belongs to a post: write it after `.post('URL')`")]
    BeforePost {
        /// The name of the property.
        property: &'static str,
    },
    /// A property of a service precedes the service.
    #[error("`.{property}` belongs to a service: write it after the service, such as `.slack()`")]
    BeforeService {
        /// The name of the property.
        property: &'static str,
    },
    /// A service does not have a property.
    #[error("`.{service}()` has no `{property}`")]
    OtherService {
        /// The name of the property.
        property: &'static str,
        /// The name of the service.
        service: &'static str,
    },
    /// The policy of a sink is unknown.
    #[error(
        "'{0}' is not a policy of a full queue; expected 'block', 'drop_oldest' or 'drop_newest'"
    )]
    Overflow(String),
    /// A property has too few or too many values.
    #[error("`{property}` takes {expected} strings, not {found}")]
    Values {
        /// The name of the property.
        property: &'static str,
        /// The number of values that the property takes.
        expected: usize,
        /// The number of values in the text.
        found: usize,
    },
    /// The expression is too deep or too long.
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
    /// A reserved word is used as a key.
    #[error("`{0}` is a word of the language: a key of this name is written \"{0}\"")]
    Reserved(String),
    /// An unknown node after `|`.
    #[error("there is no node `{name}`")]
    UnknownNode {
        /// The name in the text.
        name: String,
        /// The nearest known name.
        like: Option<&'static str>,
    },
    /// An unknown property after `.`.
    #[error("`{node}` has no property `{name}`, and there is no node of this name")]
    UnknownProperty {
        /// The name of the node before the position.
        node: &'static str,
        /// The name in the text.
        name: String,
        /// The nearest known name.
        like: Option<&'static str>,
    },
    /// A property after `|`.
    #[error("`{property}` is a property of `{node}`: it follows a `.`, not a `|`")]
    PropertyAsNode {
        /// The name of the property.
        property: String,
        /// The name of the node that has this property.
        node: &'static str,
    },
    /// No `var` has this name.
    #[error("there is no var `{name}`")]
    UnknownVar {
        /// The name in the text.
        name: String,
        /// The nearest known name.
        like: Option<String>,
    },
    /// `stream` is not followed by `from`.
    #[error("`stream` must be followed by `| from()`")]
    Stream,
    /// `from` is not at the beginning of a chain.
    #[error("`from` stands only at the beginning of a chain: `stream | from()`")]
    From,
    /// A chain has no further nodes.
    #[error("`{0}` alone does nothing: a node should follow, as in `{0} | log()`")]
    Alone(String),
    /// A `var` has a name with another meaning.
    #[error("a var cannot be called `{0}`: it is a word of the language")]
    VarReserved(String),
    /// Two `var`s have the same name.
    #[error("there already is a var `{0}`")]
    VarTwice(String),
    /// A `var` is never used.
    #[error("the var `{0}` is never used: use it, or leave out `var {0} =`")]
    VarUnused(String),
    /// A property is given twice.
    #[error("`{0}` is given twice")]
    Twice(&'static str),
    /// A required part of a node is missing.
    #[error("`{node}` needs {what}")]
    Missing {
        /// The name of the node.
        node: &'static str,
        /// The missing part.
        what: &'static str,
    },
    /// A node has too many arguments.
    #[error("`{node}` takes {takes}")]
    Surplus {
        /// The name of the node or property.
        node: &'static str,
        /// The arguments that it accepts.
        takes: &'static str,
    },
    /// `.as` has more or fewer names than there are results.
    #[error("`as` needs a name for each result: {expected}, not {found}")]
    Names {
        /// The expected number of names.
        expected: usize,
        /// The number of names.
        found: usize,
    },
    /// The nodes do not form a valid pipeline.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
}

/// A failure of the parser.
pub(crate) type Failure = (Problem, Span);

impl LanguageError {
    pub(crate) fn new(text: &str, (problem, span): Failure) -> LanguageError {
        let excerpt = Box::new(Excerpt::of(text, span));
        LanguageError { problem, excerpt }
    }

    /// Returns the kind of error.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// Returns the line of the error, from 1.
    pub fn line(&self) -> usize {
        self.excerpt.line
    }

    /// Returns the first character of the error within its line, from 1.
    pub fn column(&self) -> usize {
        self.excerpt.column
    }
}

/// Returns a suggestion of the word most similar to an unknown word.
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

/// The number of characters of a long line that are shown on either side of the position.
const AROUND: usize = 60;

/// A line of the text with a mark below a part of it.
#[derive(Clone, Debug, PartialEq)]
struct Excerpt {
    line: usize,
    column: usize,
    /// The shown part of the line.
    shown: String,
    /// The text before the mark.
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
            // Tabs are repeated, so that the mark is aligned with the line above.
            indent: left
                .chars()
                .map(|c| if c == '\t' { c } else { ' ' })
                .collect(),
            marked: offending.chars().count().clamp(1, AROUND),
        }
    }
}

/// Replaces control characters, which could harm a terminal.
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

/// Returns the candidate most similar to the text, if one differs by at most two typing errors, or only in
/// case.
pub(crate) fn nearest<'a>(
    written: &str,
    among: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A name this long is not a typing error, and comparing takes time proportional to the product of the lengths.
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
