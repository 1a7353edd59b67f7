//! Why nodes are no pipeline.

use crate::expression::Expression;
use std::sync::Arc;
use std::time::Duration;

/// Why nodes are no pipeline.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PipelineError {
    /// There is nothing.
    #[error("there is no `from`: a pipeline begins with `stream | from()`")]
    Empty,
    /// A node breaks a rule.
    #[error("{node}: {rule}")]
    Node {
        /// Its name.
        node: Arc<str>,
        /// Its place among the nodes, from 0, in the order in which they were written.
        place: usize,
        /// What is wrong.
        rule: Rule,
    },
}

/// The most windows that may overlap.
pub(super) const MAX_WINDOWS: u128 = 10_000;

/// The most points of a window that is given by their number.
pub(crate) const MAX_COUNT: u64 = 1_000_000;

/// The shortest time between two strikes of a clock.
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// What a node must heed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rule {
    /// Windows hold points.
    #[error("`{input}` already gives windows: a window cannot be put into another")]
    WindowOfWindows {
        /// The node that feeds it.
        input: Arc<str>,
    },
    /// Joins are of points.
    #[error(
        "`{input}` gives windows, and only points can be joined: join before the `window`, or after an aggregate of it"
    )]
    JoinOfWindows {
        /// The node that feeds it.
        input: Arc<str>,
    },
    /// Windows have a length and a distance.
    #[error("`{property}` must be longer than nothing")]
    NotPositive {
        /// `period` or `every`.
        property: &'static str,
    },
    /// A point goes into every window that reaches back to it.
    #[error(
        "a point would be in {windows} windows, and at most {MAX_WINDOWS} overlap: make `every` longer or `period` shorter"
    )]
    Overlap {
        /// How many `every` a `period` has.
        windows: u128,
    },
    /// 64 bits of nanoseconds.
    #[error("`{property}` is {duration:?}, and the longest duration is 292 years")]
    TooLong {
        /// `period`, `every` or `tolerance`.
        property: &'static str,
        /// What it is.
        duration: Duration,
    },
    /// A clock that would strike all the time.
    #[error("`{property}` is {duration:?}, and the shortest is {MIN_INTERVAL:?}: make it longer")]
    TooShort {
        /// `interval`.
        property: &'static str,
        /// What it is.
        duration: Duration,
    },
    /// Percent.
    #[error("a percentile lies between 0 and 100, and this is {0}")]
    Percentile(f64),
    /// A name for two things.
    #[error("the name '{0}' is there twice")]
    DuplicateName(Arc<str>),
    /// A name of no letters.
    #[error("a name must not be empty")]
    EmptyName,
    /// Nothing to compute.
    #[error("it needs at least one expression: `eval(value * 2).as('double')`")]
    NoExpressions,
    /// Nothing to give.
    #[error("it needs a field or a tag: `.field('value', 0.0)` or `.tag('host', 'none')`")]
    NoDefaults,
    /// A name that no result has.
    #[error("it has no result '{0}'")]
    NoResult(Arc<str>),
    /// Inputs and names that are not as many.
    #[error("`as` needs a name for each input: {inputs}, not {names}")]
    JoinNames {
        /// How many inputs there are.
        inputs: usize,
        /// How many names.
        names: usize,
    },
    /// A place of a text that alerts do not fill.
    #[error(
        "alerts fill no `{0}`: there are .ID, .Name, .TaskName, .Group, .Level, .Time, .Duration, index .Tags \"…\", index .Fields \"…\", printf of these, and if eq or ne … else … end"
    )]
    Template(String),
    /// A list of points that is too long.
    #[error("`{property}` is {count}, and a window holds at most {most} points")]
    TooMany {
        /// `periodCount` or `everyCount`.
        property: &'static str,
        /// What it is.
        count: u64,
        /// What it may be.
        most: u64,
    },
    /// Unions are of points.
    #[error("`{input}` gives windows, and a union is of points: unite before the `window`")]
    UnionOfWindows {
        /// The node that feeds it.
        input: Arc<str>,
    },
    /// An alert that can never be.
    #[error("it needs a condition: `.info(…)`, `.warn(…)` or `.crit(…)`")]
    NoCondition,
    /// Two outputs at one address.
    #[error("`{other}` already has the endpoint '{endpoint}': a task's endpoints must differ")]
    DuplicateEndpoint {
        /// The address.
        endpoint: Arc<str>,
        /// The node that has it.
        other: Arc<str>,
    },
    /// An endpoint that cannot be a segment of a URL.
    #[error(
        "the endpoint '{0}' cannot be part of a URL; use letters, digits, `-`, `_`, `.` and `~`"
    )]
    Endpoint(Arc<str>),
    /// An address that cannot be posted to.
    #[error("'{0}' is not a URL to post to; expected 'http://host/path' or 'https://host/path'")]
    Url(Arc<str>),
    /// An expression on which evaluation would run out of stack.
    #[error(
        "operators are nested more than {} deep, or more than {} follow one another",
        Expression::MAX_DEPTH,
        Expression::MAX_CHAIN
    )]
    TooDeep,
    /// A float that is infinite or not a number.
    #[error("a number in an expression must be finite")]
    NotFinite,
}
