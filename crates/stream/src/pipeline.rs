//! A task's graph: nodes, and which of them feeds which.

use crate::expression::Expression;
use std::sync::Arc;
use std::time::Duration;

/// A checked graph of nodes: it has no cycle, every node but `from` has what feeds it, and windows
/// and points meet only nodes that take them. Built by [`Pipeline::builder`] or from text by
/// [`language::parse`](crate::language::parse).
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// In an order in which every node comes after those that feed it.
    pub(crate) nodes: Vec<Node>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in its pipeline: its kind and its place, such as `window2`.
    pub name: Arc<str>,
    /// What it does.
    pub what: What,
    /// The places of the nodes that feed it: none for `from`, two for `join`, else one.
    pub inputs: Vec<usize>,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Lets in the points of a database, policy and measurement; `None`: of any.
    From {
        /// `.database('…')`
        database: Option<Arc<str>>,
        /// `.retentionPolicy('…')`
        policy: Option<Arc<str>>,
        /// `.measurement('…')`
        measurement: Option<Arc<str>>,
    },
    /// Passes on the points for which this is true.
    Where(Expression),
    /// Separates points by the values of these tags, ordered by name.
    GroupBy(Vec<Arc<str>>),
    /// Collects points of `period`, ending at each multiple of `every`, by the points' time.
    Window {
        /// How far a window reaches back.
        period: Duration,
        /// How far windows are apart.
        every: Duration,
    },
    /// One point for a window: a function of one field.
    Aggregate {
        /// Which function.
        function: Aggregate,
        /// Of which field.
        field: Arc<str>,
        /// The name of the resulting field.
        into: Arc<str>,
    },
    /// Adds fields that are computed from others.
    Eval(Vec<(Arc<str>, Expression)>),
    /// Joins the points of two inputs whose times lie in the same multiple of `tolerance`.
    Join {
        /// What stands before the names of the fields of either side: `<prefix>.<field>`.
        prefixes: [Arc<str>; 2],
        /// Zero: equal times.
        tolerance: Duration,
    },
    /// Passes on points at which the level of their group changes.
    Alert(Alert),
    /// Writes points as lines to the log.
    Log {
        /// Stands before each.
        prefix: Arc<str>,
    },
    /// Shows the latest window or batch of every group at `GET /tasks/{task}/{endpoint}`.
    HttpOut {
        /// The last part of the URL.
        endpoint: Arc<str>,
    },
    /// Posts each window or batch to this URL.
    HttpPost {
        /// http or https.
        url: Arc<str>,
    },
}

/// A function of the values of one field in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// How many points have it.
    Count,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The smallest value that at least this share of them (percent, 0 to 100) does not exceed: the
    /// nearest-rank definition.
    Percentile(f64),
}

/// When a point is worth an alert. The highest level whose condition is true counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    /// What identifies it; default: the task's and the node's name.
    pub id: Option<Arc<str>>,
    /// Condition of the level INFO.
    pub info: Option<Expression>,
    /// Condition of the level WARNING.
    pub warn: Option<Expression>,
    /// Condition of the level CRITICAL.
    pub crit: Option<Expression>,
}
