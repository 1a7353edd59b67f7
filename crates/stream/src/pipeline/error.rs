//! The reasons why a list of nodes is not a valid pipeline.

use crate::expression::Expression;
use std::sync::Arc;
use std::time::Duration;

/// The reasons why a list of nodes is not a valid pipeline.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PipelineError {
    /// The pipeline has no nodes.
    #[error("there is no `from`: a pipeline begins with `stream | from()`")]
    Empty,
    /// A node violates a [`Rule`].
    #[error("{node}: {rule}")]
    Node {
        /// The name of the node.
        node: Arc<str>,
        /// The index of the node, from 0, in the order of writing.
        place: usize,
        /// The violated rule.
        rule: Rule,
    },
}

/// The maximum number of overlapping windows.
pub(super) const MAX_WINDOWS: u128 = 10_000;

/// The maximum number of points in the arguments of `top`, `movingAverage` and `window`.
pub(crate) const MAX_COUNT: u64 = 1_000_000;

/// The minimum interval of a clock.
pub(crate) const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// A rule that a node violates.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Rule {
    /// The input of a window consists of windows, not points.
    #[error("`{input}` already gives windows: a window cannot be put into another")]
    WindowOfWindows {
        /// The name of the input node.
        input: Arc<str>,
    },
    /// An input of a join consists of windows, not points.
    #[error(
        "`{input}` gives windows, and only points can be joined: join before the `window`, or after an aggregate of it"
    )]
    JoinOfWindows {
        /// The name of the input node.
        input: Arc<str>,
    },
    /// The length of a window, or the distance between windows, is zero.
    #[error("`{property}` must be longer than nothing")]
    NotPositive {
        /// The name of the property: `period` or `every`.
        property: &'static str,
    },
    /// Too many windows overlap; a point is stored in every window that contains it.
    #[error(
        "a point would be in {windows} windows, and at most {MAX_WINDOWS} overlap: make `every` longer or `period` shorter"
    )]
    Overlap {
        /// The number of overlapping windows.
        windows: u128,
    },
    /// A duration exceeds 64 bits of nanoseconds.
    #[error("`{property}` is {duration:?}, and the longest duration is 292 years")]
    TooLong {
        /// The name of the property: `period`, `every` or `tolerance`.
        property: &'static str,
        /// The given duration.
        duration: Duration,
    },
    /// A clock would tick too often.
    #[error("`{property}` is {duration:?}, and the shortest is {MIN_INTERVAL:?}: make it longer")]
    TooShort {
        /// The name of the property: `interval`.
        property: &'static str,
        /// The given duration.
        duration: Duration,
    },
    /// A percentage is out of range.
    #[error("a percentile lies between 0 and 100, and this is {0}")]
    Percentile(f64),
    /// A name is given twice.
    #[error("the name '{0}' is there twice")]
    DuplicateName(Arc<str>),
    /// A name is empty.
    #[error("a name must not be empty")]
    EmptyName,
    /// An `eval` has no expressions.
    #[error("it needs at least one expression: `eval(value * 2).as('double')`")]
    NoExpressions,
    /// A `default` has no values.
    #[error("it needs a field or a tag: `.field('value', 0.0)` or `.tag('host', 'none')`")]
    NoDefaults,
    /// No result has this name.
    #[error("it has no result '{0}'")]
    NoResult(Arc<str>),
    /// The numbers of inputs and names differ.
    #[error("`as` needs a name for each input: {inputs}, not {names}")]
    JoinNames {
        /// The number of inputs.
        inputs: usize,
        /// The number of names.
        names: usize,
    },
    /// A template contains a placeholder that alerts do not fill.
    #[error(
        "alerts fill no `{0}`: there are .ID, .Name, .TaskName, .Group, .Level, .Time, .Duration, index .Tags \"…\", index .Fields \"…\", printf of these, and if eq or ne … else … end"
    )]
    Template(String),
    /// A window by count has too many points.
    #[error("`{property}` is {count}, and a window holds at most {most} points")]
    TooMany {
        /// The name of the property: `periodCount` or `everyCount`.
        property: &'static str,
        /// The given number.
        count: u64,
        /// The largest valid number.
        most: u64,
    },
    /// An input of a union consists of windows, not points.
    #[error("`{input}` gives windows, and a union is of points: unite before the `window`")]
    UnionOfWindows {
        /// The name of the input node.
        input: Arc<str>,
    },
    /// An alert has no condition.
    #[error("it needs a condition: `.info(…)`, `.warn(…)` or `.crit(…)`")]
    NoCondition,
    /// Two outputs have the same address.
    #[error("`{other}` already has the endpoint '{endpoint}': a task's endpoints must differ")]
    DuplicateEndpoint {
        /// The address that both outputs have.
        endpoint: Arc<str>,
        /// The node that already has this address.
        other: Arc<str>,
    },
    /// An endpoint cannot be a segment of a URL.
    #[error(
        "the endpoint '{0}' cannot be part of a URL; use letters, digits, `-`, `_`, `.` and `~`"
    )]
    Endpoint(Arc<str>),
    /// An address is not a URL that accepts a POST.
    #[error("'{0}' is not a URL to post to; expected 'http://host/path' or 'https://host/path'")]
    Url(Arc<str>),
    /// An expression is so deep that its evaluation would overflow the stack.
    #[error(
        "operators are nested more than {} deep, or more than {} follow one another",
        Expression::MAX_DEPTH,
        Expression::MAX_CHAIN
    )]
    TooDeep,
    /// A receiver has a URL and an endpoint.
    #[error("the endpoint '{0}' has a URL already: leave out the URL or the endpoint")]
    TwoReceivers(Arc<str>),
    /// A header cannot be sent.
    #[error("'{0}' is not the name of a header, or its value is not one line of text")]
    Header(Arc<str>),
    /// A function that remembers points is in a node that cannot have it.
    #[error(
        "only `eval` and `where` have count(), sigma() and spread(): compute a field, as in `eval(sigma(value)).as('sigma').keep()`, and use it here"
    )]
    Remembers,
    /// A float is infinite or NaN.
    #[error("a number in an expression must be finite")]
    NotFinite,
}
