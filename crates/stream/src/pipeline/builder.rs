//! Pipelines written in Rust.

use super::check::Draft;
use super::{Aggregate, Alert, Buffer, Eval, GroupBy, Join, Pipeline, PipelineError, What};
use crate::expression::Expression;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// Where chains begin.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'p> {
    drafts: &'p RefCell<Vec<Draft>>,
    /// Chains of two pipelines are of two types, so that they cannot be joined.
    pipeline: PhantomData<fn(&'p ()) -> &'p ()>,
}

/// A node to which further ones can be chained, as often as one likes: each of them gets all that it
/// hands on.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'p> {
    stream: Stream<'p>,
    place: usize,
}

/// The begin of a chain: points of any database, policy and measurement, unless they are named.
#[derive(Clone, Copy, Debug)]
pub struct Source<'p>(Chain<'p>);

impl Pipeline {
    /// The pipeline of the chains that `draw` draws.
    ///
    /// ```
    /// use corsair_stream::expression::key;
    /// use corsair_stream::pipeline::{Alert, Pipeline};
    /// use std::time::Duration;
    ///
    /// let pipeline = Pipeline::build(|stream| {
    ///     let m1 = stream.from().measurement("m1");
    ///     let m2 = stream.from().measurement("m2").group_by(["host"]);
    ///     m1.group_by(["host"])
    ///         .join(m2, ["m1", "m2"], Duration::from_secs(1))
    ///         .eval([("ratio", key("m1.value") / key("m2.value"))])
    ///         .alert(Alert::new().crit(key("ratio").gt(0.5)))
    ///         .log("half of it: ");
    /// })?;
    /// assert_eq!(pipeline.nodes().len(), 8);
    /// # Ok::<(), corsair_stream::pipeline::PipelineError>(())
    /// ```
    ///
    /// # Errors
    /// The first node, in the order of writing, that breaks a [`Rule`](super::Rule).
    pub fn build(draw: impl for<'p> FnOnce(Stream<'p>)) -> Result<Pipeline, PipelineError> {
        let drafts = RefCell::default();
        draw(Stream {
            drafts: &drafts,
            pipeline: PhantomData,
        });
        Pipeline::check(drafts.into_inner())
    }
}

impl<'p> Stream<'p> {
    /// Points as they are written.
    pub fn from(self) -> Source<'p> {
        Source(self.push(
            What::From {
                database: None,
                policy: None,
                measurement: None,
            },
            Vec::new(),
        ))
    }

    fn push(self, what: What, inputs: Vec<usize>) -> Chain<'p> {
        let mut drafts = self.drafts.borrow_mut();
        drafts.push(Draft { what, inputs });
        Chain {
            stream: self,
            place: drafts.len() - 1,
        }
    }
}

impl<'p> Source<'p> {
    /// Only those of this database.
    #[must_use]
    pub fn database(self, name: impl Into<Arc<str>>) -> Source<'p> {
        self.set(|what| {
            if let What::From { database, .. } = what {
                *database = Some(name.into());
            }
        })
    }

    /// Only those of this retention policy.
    #[must_use]
    pub fn retention_policy(self, name: impl Into<Arc<str>>) -> Source<'p> {
        self.set(|what| {
            if let What::From { policy, .. } = what {
                *policy = Some(name.into());
            }
        })
    }

    /// Only those of this measurement.
    #[must_use]
    pub fn measurement(self, name: impl Into<Arc<str>>) -> Source<'p> {
        self.set(|what| {
            if let What::From { measurement, .. } = what {
                *measurement = Some(name.into());
            }
        })
    }

    fn set(self, change: impl FnOnce(&mut What)) -> Source<'p> {
        change(&mut self.stream.drafts.borrow_mut()[self.place].what);
        self
    }
}

impl<'p> Deref for Source<'p> {
    type Target = Chain<'p>;

    fn deref(&self) -> &Chain<'p> {
        &self.0
    }
}

impl<'p> From<Source<'p>> for Chain<'p> {
    fn from(begin: Source<'p>) -> Chain<'p> {
        begin.0
    }
}

impl<'p> Chain<'p> {
    fn then(self, what: What) -> Chain<'p> {
        self.stream.push(what, vec![self.place])
    }

    /// `where`: the points for which this is true.
    pub fn filter(self, condition: impl Into<Expression>) -> Chain<'p> {
        self.then(What::Where(condition.into()))
    }

    /// `groupBy`: points separated by the values of these tags.
    pub fn group_by<T: Into<Arc<str>>>(self, tags: impl IntoIterator<Item = T>) -> Chain<'p> {
        self.then(What::GroupBy(GroupBy {
            tags: tags.into_iter().map(Into::into).collect(),
            ..GroupBy::default()
        }))
    }

    /// `window`: the points of `period`, at each multiple of `every`.
    pub fn window(self, period: Duration, every: Duration) -> Chain<'p> {
        self.then(What::Window { period, every })
    }

    /// `window().period(…)`: windows as kapacitor has them.
    pub fn buffer(self, buffer: Buffer) -> Chain<'p> {
        self.then(What::Buffer(buffer))
    }

    /// A point for each window: a function of one field, under a name of its own.
    pub fn aggregate(
        self,
        function: Aggregate,
        field: impl Into<Arc<str>>,
        into: impl Into<Arc<str>>,
    ) -> Chain<'p> {
        self.then(What::Aggregate {
            function,
            field: field.into(),
            into: into.into(),
            point_times: false,
        })
    }

    /// How many points of a window have the field.
    pub fn count(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Count, field, "count")
    }

    /// The sum of a window's values.
    pub fn sum(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Sum, field, "sum")
    }

    /// The mean of a window's values.
    pub fn mean(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Mean, field, "mean")
    }

    /// The smallest of a window's values.
    pub fn min(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Min, field, "min")
    }

    /// The largest of a window's values.
    pub fn max(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        self.aggregate(Aggregate::Max, field, "max")
    }

    /// A percentile of a window's values; `percent` from 0 to 100.
    pub fn percentile(self, field: impl Into<Arc<str>>, percent: f64) -> Chain<'p> {
        self.aggregate(Aggregate::Percentile(percent), field, "percentile")
    }

    /// `eval`: fields, by name, in place of those of the point.
    pub fn eval<N: Into<Arc<str>>, E: Into<Expression>>(
        self,
        fields: impl IntoIterator<Item = (N, E)>,
    ) -> Chain<'p> {
        self.eval_with(Eval::new(fields))
    }

    /// `eval` with its properties.
    pub fn eval_with(self, eval: Eval) -> Chain<'p> {
        self.then(What::Eval(eval))
    }

    /// `derivative`: the change of a field per second, in its place.
    pub fn derivative(self, field: impl Into<Arc<str>>) -> Chain<'p> {
        let field = field.into();
        self.then(What::Derivative {
            into: field.clone(),
            field,
            unit: Duration::from_secs(1),
            non_negative: false,
        })
    }

    /// `stats`: how many points have come in each group, every `interval` of the clock on the wall, at
    /// multiples of it.
    pub fn stats(self, interval: Duration) -> Chain<'p> {
        let align = true;
        self.then(What::Stats { interval, align })
    }

    /// `deadman`: an alert when at most `threshold` points have come in an interval.
    ///
    /// ```
    /// # use corsair_stream::pipeline::{Alert, Pipeline};
    /// # use std::time::Duration;
    /// let pipeline = Pipeline::build(|stream| {
    ///     let hosts = stream.from().measurement("cpu").group_by(["host"]);
    ///     hosts.deadman(0.0, Duration::from_secs(10), Alert::new()).log("silent");
    /// })?;
    /// assert_eq!(pipeline.nodes()[2].name.as_ref(), "stats2");
    /// # Ok::<(), corsair_stream::pipeline::PipelineError>(())
    /// ```
    pub fn deadman(self, threshold: f64, interval: Duration, alert: Alert) -> Chain<'p> {
        let node = format!("{}{}", self.kind_name(), self.place);
        let rate = self.stats(interval).then(What::Derivative {
            field: "emitted".into(),
            into: "emitted".into(),
            unit: interval,
            non_negative: true,
        });
        rate.alert(alert.deadman(&node, threshold, interval))
    }

    fn kind_name(self) -> &'static str {
        self.stream.drafts.borrow()[self.place].what.kind_name()
    }

    /// `join`: this and another, the fields prefixed by these names.
    pub fn join<T: Into<Arc<str>>>(
        self,
        other: impl Into<Chain<'p>>,
        prefixes: [T; 2],
        tolerance: Duration,
    ) -> Chain<'p> {
        self.join_with([other.into()], Join::new(prefixes, tolerance))
    }

    /// `join` of this and others, with its properties.
    pub fn join_with(self, others: impl IntoIterator<Item = Chain<'p>>, join: Join) -> Chain<'p> {
        let inputs = self.with(others);
        self.stream.push(What::Join(join), inputs)
    }

    /// `union`: the points of this and others, in the order of time.
    pub fn union(self, others: impl IntoIterator<Item = Chain<'p>>) -> Chain<'p> {
        let inputs = self.with(others);
        self.stream.push(What::Union { rename: None }, inputs)
    }

    fn with(self, others: impl IntoIterator<Item = Chain<'p>>) -> Vec<usize> {
        let others = others.into_iter().map(|other| other.place);
        std::iter::once(self.place).chain(others).collect()
    }

    /// `alert`: the points that are worth one, and those at which it ends.
    pub fn alert(self, alert: Alert) -> Chain<'p> {
        self.then(What::Alert(Box::new(alert)))
    }

    /// `log`: lines, with this before each. Hands on what it gets.
    pub fn log(self, prefix: impl Into<Arc<str>>) -> Chain<'p> {
        self.then(What::Log {
            prefix: prefix.into(),
        })
    }

    /// `http_out`: the latest of it, to be asked for under this name. Hands on what it gets.
    pub fn http_out(self, endpoint: impl Into<Arc<str>>) -> Chain<'p> {
        self.then(What::HttpOut {
            endpoint: endpoint.into(),
        })
    }

    /// `http_post`: each of it to this URL. Hands on what it gets.
    pub fn http_post(self, url: impl Into<Arc<str>>) -> Chain<'p> {
        self.then(What::HttpPost { url: url.into() })
    }
}
