//! The definition of a node: its text form, checks, display and construction.
//!
//! Each kind has one file in [`nodes`](crate::nodes), with a [`Definition`] for its properties, a
//! [`Kind`](super::Kind) for its names and its parser, and an [`Operator`] or a [`Sink`] for its work. No other code
//! names a kind of node, so a new kind needs only its file and a line in the list.

use super::counter::Counters;
use super::endpoint::Endpoints;
use super::faults::Faults;
use super::latest::LatestByGroup;
use super::operator::Operator;
use super::post_to::PostTo;
use super::queue::Queue;
use super::series::Limits;
use super::sink::Sink;
use super::spill::SinkDisk;
use crate::expression::Expression;
use crate::pipeline::{Rule, Subscription, Writer};
use corsair::edge::Overflow;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// The properties of one node, and everything that depends on them.
pub(crate) trait Definition: Any + fmt::Debug + Send + Sync + Same {
    /// Returns the name under which the node is displayed.
    fn name(&self) -> &'static str;

    /// True if the node sends windows; `of_windows` is true if its input does.
    fn gives_windows(&self, of_windows: bool) -> bool {
        of_windows
    }

    /// Checks the inputs of the node.
    fn check_inputs(&self, _: &[Input<'_>]) -> Result<(), Rule> {
        Ok(())
    }

    /// Checks the properties of the node, and puts lists into their canonical order.
    fn check(&mut self) -> Result<(), Rule> {
        Ok(())
    }

    /// Returns the expressions, which the pipeline checks.
    fn expressions(&mut self) -> Vec<&mut Expression> {
        Vec::new()
    }

    /// Writes the node's arguments and properties as text that parses to an equal node.
    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result;

    /// Builds the node.
    fn build(&self, context: &Context<'_>) -> Built;

    /// True if the node's expressions may have functions that remember earlier points.
    fn remembers(&self) -> bool {
        false
    }

    /// Returns the points that the node takes from writes, if the node begins a chain.
    fn subscription(&self) -> Option<&Subscription> {
        None
    }

    /// True if the node groups points, so that it receives points of different groups.
    fn regroups(&self) -> bool {
        false
    }

    /// Returns the name under which the node's latest result can be fetched.
    fn endpoint(&self) -> Option<&Arc<str>> {
        None
    }

    /// Returns the receivers to which the node posts.
    fn posts(&self) -> Vec<&PostTo> {
        Vec::new()
    }

    /// Returns the files to which the node appends.
    fn files(&self) -> &[Arc<str>] {
        &[]
    }
}

/// Copies and compares definitions behind `dyn`. It is implemented for all definitions.
pub(crate) trait Same {
    fn copy(&self) -> Box<dyn Definition>;
    fn is_same(&self, other: &dyn Definition) -> bool;
}

impl<T: Definition + Clone + PartialEq> Same for T {
    fn copy(&self) -> Box<dyn Definition> {
        Box::new(self.clone())
    }

    fn is_same(&self, other: &dyn Definition) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref() == Some(self)
    }
}

/// A node that feeds another.
pub(crate) struct Input<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) windows: bool,
}

/// The kind of a node with its properties. See [`Pipeline`](crate::pipeline::Pipeline).
pub struct AnyDefinition(Box<dyn Definition>);

impl AnyDefinition {
    /// Returns the name of the node's kind in the language: `groupBy`, `http_out`, `mean`.
    pub fn kind_name(&self) -> &'static str {
        self.0.name()
    }

    /// True if the node sends windows; all other nodes send points.
    pub fn gives_windows(&self, input_is_windows: bool) -> bool {
        self.0.gives_windows(input_is_windows)
    }

    /// Returns the properties, if the node is of this kind.
    ///
    /// ```
    /// use corsair_stream::pipeline::Log;
    ///
    /// let pipeline = corsair_stream::language::parse("stream | from() | log('seen')")?;
    /// let log = pipeline.nodes()[1].what.get::<Log>().expect("a log node");
    /// assert_eq!(&*log.prefix, "seen");
    /// # Ok::<(), corsair_stream::language::LanguageError>(())
    /// ```
    pub fn get<T: Any>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.0;
        any.downcast_ref()
    }

    pub(crate) fn get_mut<T: Any>(&mut self) -> Option<&mut T> {
        let any: &mut dyn Any = &mut *self.0;
        any.downcast_mut()
    }

    pub(crate) fn definition(&self) -> &dyn Definition {
        &*self.0
    }

    pub(crate) fn definition_mut(&mut self) -> &mut dyn Definition {
        &mut *self.0
    }
}

impl<T: Definition> From<T> for AnyDefinition {
    fn from(definition: T) -> AnyDefinition {
        AnyDefinition(Box::new(definition))
    }
}

impl Clone for AnyDefinition {
    fn clone(&self) -> AnyDefinition {
        AnyDefinition(self.0.copy())
    }
}

impl PartialEq for AnyDefinition {
    fn eq(&self, other: &AnyDefinition) -> bool {
        self.0.is_same(other.definition())
    }
}

impl fmt::Debug for AnyDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The context in which a node is built.
pub(crate) struct Context<'a> {
    pub(crate) task: Arc<str>,
    /// The creation time of the task in nanoseconds since 1970.
    pub(crate) created: i64,
    /// The lengths of files when the task was created, by path.
    pub(crate) file_lengths: &'a BTreeMap<String, u64>,
    /// `task:node`, for logs.
    pub(crate) name: String,
    /// The nodes that feed this node.
    pub(crate) inputs: Vec<&'a AnyDefinition>,
    /// True if the node's input consists of windows.
    pub(crate) of_windows: bool,
    /// True if a node that groups points follows somewhere.
    pub(crate) regrouped: bool,
    pub(crate) limits: Limits,
    pub(crate) faults: Faults,
    pub(crate) delivery: Delivery<'a>,
    /// The runtime of the node's timers and sockets.
    pub(crate) io: &'a Handle,
}

/// The delivery options of sinks.
pub(crate) struct Delivery<'a> {
    /// The time limit of one request.
    pub(crate) timeout: Duration,
    /// The maximum number of bytes in a queue.
    pub(crate) memory: usize,
    /// The overflow policy of the task.
    pub(crate) overflow: Overflow,
    /// The queue of all `log` nodes.
    pub(crate) log: &'a Queue,
    /// The overflow policy of the log.
    pub(crate) log_overflow: Overflow,
    /// Receivers that tasks name.
    pub(crate) endpoints: &'a Endpoints,
    /// The disk buffers of sinks.
    pub(crate) disk: Option<&'a SinkDisk>,
}

/// A node that is ready to run, with the parts that are used outside of the node.
pub(crate) struct Built {
    pub(crate) work: Work,
    pub(crate) counters: Counters,
    /// The latest result; `None` for a node without an endpoint.
    pub(crate) latest: Option<LatestByGroup>,
    /// The queues that only this node fills.
    pub(crate) queues: Vec<Queue>,
}

/// The work of a node.
pub(crate) enum Work {
    Operate(Box<dyn Operator>),
    Deliver(Sink),
}

impl<T: Operator> From<T> for Built {
    fn from(operator: T) -> Built {
        Built {
            counters: operator.counters(),
            queues: operator.queues(),
            latest: None,
            work: Work::Operate(Box::new(operator)),
        }
    }
}

impl From<Sink> for Built {
    fn from(sink: Sink) -> Built {
        Built {
            counters: sink.counters.clone(),
            queues: sink.own_queue().into_iter().collect(),
            latest: None,
            work: Work::Deliver(sink),
        }
    }
}
