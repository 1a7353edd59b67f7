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
mod properties;
mod template;

pub use builder::{Chain, Source, Stream};
pub(crate) use check::Draft;
pub use error::{PipelineError, Rule};
pub use properties::{Added, Alert, Buffer, Eval, Fill, GroupBy, Join, Keep};
pub use template::Template;
pub(crate) use template::{Place, written_duration};

use crate::Value;
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
    /// The places of the nodes that feed it: none for `from`, several for `join` and `union`, else one.
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
    /// Separates points by the values of tags.
    GroupBy(GroupBy),
    /// Collects points as kapacitor does: `window().period(…).every(…)`.
    Buffer(Buffer),
    /// Collects points of `period`, ending at each multiple of `every`, by the points' time:
    /// `window(…)`. The one being filled when the stream ends is handed on as it is.
    Window {
        /// How far a window reaches back.
        period: Duration,
        /// How far windows are apart.
        every: Duration,
    },
    /// One point for a window, or for points of one time: a function of one field.
    Aggregate {
        /// Which function.
        function: Aggregate,
        /// Of which field.
        field: Arc<str>,
        /// The name of the resulting field.
        into: Arc<str>,
        /// Whether the result of a selector has the time of the point, and not that of the window.
        point_times: bool,
    },
    /// Makes fields that are computed from others.
    Eval(Eval),
    /// Gives values to fields and tags that a point does not have.
    Default {
        /// By name.
        fields: Vec<(Arc<str>, Value)>,
        /// By name.
        tags: Vec<(Arc<str>, Arc<str>)>,
    },
    /// The change of a field from point to point, per unit of time.
    Derivative {
        /// Of which field.
        field: Arc<str>,
        /// The name of the result.
        into: Arc<str>,
        /// Per which time.
        unit: Duration,
        /// Whether a change below zero, a counter that began anew, gives nothing.
        non_negative: bool,
    },
    /// How many points have come in each group, as a point of the measurement `stats` with the field
    /// `emitted`, by the clock on the wall.
    Stats {
        /// How often.
        interval: Duration,
        /// Whether at multiples of it.
        align: bool,
    },
    /// The points of all inputs, in the order of time.
    Union {
        /// The measurement of the points; `None`: their own.
        rename: Option<Arc<str>>,
    },
    /// Joins the points of its inputs whose times lie in the same multiple of `tolerance`.
    Join(Join),
    /// Passes on points that are worth an alert, and those at which it ends.
    Alert(Box<Alert>),
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
    /// The value at this share (percent, 0 to 100) of them, as InfluxDB counts: of n values in order the
    /// one with the number n · percent / 100, rounded; none, if that is 0.
    Percentile(f64),
    /// That of the first point.
    First,
    /// That of the last point.
    Last,
    /// The one in the middle, or the mean of both.
    Median,
    /// The largest less the smallest.
    Spread,
    /// The standard deviation of a sample.
    Stddev,
    /// Each value once, a point each.
    Distinct,
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

    /// Which of its nodes hand on windows. O(nodes).
    pub fn windows(&self) -> Vec<bool> {
        let mut windows: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let of_windows = node.inputs.iter().any(|&input| windows[input]);
            windows.push(node.what.gives_windows(of_windows));
        }
        windows
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
            What::Window { .. } | What::Buffer(_) => "window",
            What::Default { .. } => "default",
            What::Derivative { .. } => "derivative",
            What::Stats { .. } => "stats",
            What::Union { .. } => "union",
            What::Aggregate { function, .. } => function.name(),
            What::Eval(_) => "eval",
            What::Join(_) => "join",
            What::Alert(_) => "alert",
            What::Log { .. } => "log",
            What::HttpOut { .. } => "http_out",
            What::HttpPost { .. } => "http_post",
        }
    }

    /// Whether it hands on windows; all others hand on points.
    pub fn gives_windows(&self, input_is_windows: bool) -> bool {
        match self {
            What::Window { .. } | What::Buffer(_) => true,
            What::Aggregate { function, .. } => *function == Aggregate::Distinct,
            What::From { .. } | What::Stats { .. } | What::Join(_) => false,
            _ => input_is_windows,
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
            Aggregate::First => "first",
            Aggregate::Last => "last",
            Aggregate::Median => "median",
            Aggregate::Spread => "spread",
            Aggregate::Stddev => "stddev",
            Aggregate::Distinct => "distinct",
        }
    }

    /// Whether its result is one of the points, with its tags and other fields.
    pub fn selects(self) -> bool {
        matches!(
            self,
            Aggregate::Min
                | Aggregate::Max
                | Aggregate::Percentile(_)
                | Aggregate::First
                | Aggregate::Last
        )
    }
}
