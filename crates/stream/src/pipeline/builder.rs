//! Pipelines written in Rust.

use super::check::Draft;
use super::{Pipeline, PipelineError};
use crate::node::definition::AnyDefinition;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Deref;

/// The beginning of all chains of a pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Stream<'p> {
    drafts: &'p RefCell<Vec<Draft>>,
    /// A marker that gives chains of different pipelines different types, so that they cannot be joined.
    pipeline: PhantomData<fn(&'p ()) -> &'p ()>,
}

/// A node to which others can be chained. Each chained node receives everything that this node sends.
///
/// Every kind of node adds its own method.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'p> {
    stream: Stream<'p>,
    place: usize,
}

/// The beginning of a chain: the points of all writes, unless the database, policy or measurement is restricted.
#[derive(Clone, Copy, Debug)]
pub struct Source<'p>(pub(crate) Chain<'p>);

impl Pipeline {
    /// Builds a pipeline from the chains that `draw` creates.
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
    pub(crate) fn push(self, what: AnyDefinition, inputs: Vec<usize>) -> Chain<'p> {
        let mut drafts = self.drafts.borrow_mut();
        drafts.push(Draft { what, inputs });
        Chain {
            stream: self,
            place: drafts.len() - 1,
        }
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
    /// Adds a node that follows this one.
    pub(crate) fn then(self, what: impl Into<AnyDefinition>) -> Chain<'p> {
        self.then_with([], what)
    }

    /// Adds a node that follows this one and others.
    pub(crate) fn then_with(
        self,
        others: impl IntoIterator<Item = Chain<'p>>,
        what: impl Into<AnyDefinition>,
    ) -> Chain<'p> {
        let others = others.into_iter().map(|other| other.place);
        let inputs = std::iter::once(self.place).chain(others).collect();
        self.stream.push(what.into(), inputs)
    }

    /// Changes the last node.
    pub(crate) fn change(self, change: impl FnOnce(&mut AnyDefinition)) {
        change(&mut self.stream.drafts.borrow_mut()[self.place].what);
    }

    /// Returns the name that the last node will have.
    pub(crate) fn name(self) -> String {
        self.stream.drafts.borrow()[self.place].name(self.place)
    }
}
