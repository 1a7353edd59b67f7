//! A task's graph: nodes, and which of them feeds which.
//!
//! A pipeline that exists is sound: see [`Pipeline`]. There are two ways to one, which share the
//! same check: [`Pipeline::build`] in Rust, and [`language::parse`](crate::language::parse) from
//! text. Its `Display` is text that parses to an equal pipeline.
//!
//! ```
//! use corsair_stream::expression::key;
//! use corsair_stream::pipeline::Pipeline;
//! use std::time::Duration;
//!
//! let seconds = Duration::from_secs;
//! let pipeline = Pipeline::build(|stream| {
//!     let hot = stream.from().measurement("m1").filter(key("value").gt(10));
//!     hot.window(seconds(10), seconds(10)).count("value").http_out("counts");
//! })?;
//! assert_eq!(pipeline.nodes()[3].name.as_ref(), "count3");
//! # Ok::<(), corsair_stream::pipeline::PipelineError>(())
//! ```

mod builder;
mod check;
mod display;
mod error;

pub use builder::{Chain, Source, Stream};
pub(crate) use check::Draft;
pub use error::{PipelineError, Rule};

use crate::expression::Expression;
use std::sync::Arc;
use std::time::Duration;

/// A checked graph of nodes: it has no cycle, every node but `from` has what feeds it, and windows
/// and points meet only nodes that take them. Built by [`Pipeline::build`] or from text by
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
#[derive(Clone, Debug, Default, PartialEq)]
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

impl Pipeline {
    /// Its nodes, each after those that feed it.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Which node feeds which, as places in [`Pipeline::nodes`], ordered by the node that is fed.
    /// The left input of a join comes first. A node that joins with itself is there twice.
    pub fn edges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(to, node)| node.inputs.iter().map(move |from| (*from, to)))
    }

    /// The node of this name. O(nodes).
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| &*node.name == name)
    }
}

impl What {
    /// What such nodes are called in the language: `groupBy`, `http_out`, `mean`.
    pub fn kind_name(&self) -> &'static str {
        match self {
            What::From { .. } => "from",
            What::Where(_) => "where",
            What::GroupBy(_) => "groupBy",
            What::Window { .. } => "window",
            What::Aggregate { function, .. } => function.name(),
            What::Eval(_) => "eval",
            What::Join { .. } => "join",
            What::Alert(_) => "alert",
            What::Log { .. } => "log",
            What::HttpOut { .. } => "http_out",
            What::HttpPost { .. } => "http_post",
        }
    }

    /// Whether it hands on windows; all others hand on points.
    pub fn gives_windows(&self, input_is_windows: bool) -> bool {
        match self {
            What::Window { .. } => true,
            What::Log { .. } | What::HttpOut { .. } | What::HttpPost { .. } => input_is_windows,
            _ => false,
        }
    }
}

impl Aggregate {
    /// What it is called in the language, and its result if nothing else is said.
    pub fn name(self) -> &'static str {
        match self {
            Aggregate::Count => "count",
            Aggregate::Sum => "sum",
            Aggregate::Mean => "mean",
            Aggregate::Min => "min",
            Aggregate::Max => "max",
            Aggregate::Percentile(_) => "percentile",
        }
    }
}

impl Alert {
    /// No condition yet.
    pub fn new() -> Alert {
        Alert::default()
    }

    /// What identifies it.
    #[must_use]
    pub fn id(self, id: impl Into<Arc<str>>) -> Alert {
        let id = Some(id.into());
        Alert { id, ..self }
    }

    /// The condition of the level INFO.
    #[must_use]
    pub fn info(self, condition: impl Into<Expression>) -> Alert {
        let info = Some(condition.into());
        Alert { info, ..self }
    }

    /// The condition of the level WARNING.
    #[must_use]
    pub fn warn(self, condition: impl Into<Expression>) -> Alert {
        let warn = Some(condition.into());
        Alert { warn, ..self }
    }

    /// The condition of the level CRITICAL.
    #[must_use]
    pub fn crit(self, condition: impl Into<Expression>) -> Alert {
        let crit = Some(condition.into());
        Alert { crit, ..self }
    }

    /// Its conditions with what the language calls them, the lowest level first.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let levels = [
            ("info", &self.info),
            ("warn", &self.warn),
            ("crit", &self.crit),
        ];
        levels
            .into_iter()
            .filter_map(|(level, condition)| Some((level, condition.as_ref()?)))
    }
}
