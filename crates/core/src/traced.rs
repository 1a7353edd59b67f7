//! Events of the crate `tracing` with virtual time and actor.

use crate::contract::{Addr, Time};
use crate::sync::lock;
use crate::virtual_time::running;
use std::fmt;
use std::sync::{Arc, Mutex};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

/// Returns the virtual time and the actor whose code is running on this thread; `None` outside of virtual
/// time.
pub fn here() -> Option<(Time, Addr)> {
    running()
}

/// An event, or the beginning of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// The virtual time and the actor; `None` outside of virtual time.
    pub here: Option<(Time, Addr)>,
    /// The level of the event or span.
    pub level: Level,
    /// The span's name, or `None` for an event.
    pub span: Option<&'static str>,
    /// The message; empty for a span.
    pub message: String,
    /// The other fields.
    pub fields: Vec<(&'static str, String)>,
    /// The names of the enclosing spans, the outermost first.
    pub within: Vec<&'static str>,
}

/// A layer for tests, which stores events and spans, each with the virtual time and the actor. [`take`](Self::take)
/// returns the records in the order of (time, actor), regardless of the workers on which the actors ran. Clones share
/// their records.
///
/// ```
/// use corsair::traced::TestLayer;
/// use corsair::*;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// #[derive(Message)]
/// struct Job(u32);
///
/// struct Root;
///
/// impl Scenario<Job> for Root {
///     async fn root<C: AsyncContext<Job>>(self, mut cx: C) {
///         let worker = cx.spawn_one("worker", |mut cx: C| async move {
///             if let Event::Message { body: Job(number), .. } = cx.recv().await {
///                 tracing::info!(number, "a job");
///             }
///         }).await;
///         cx.send(worker, Job(7));
///         cx.settle().await;
///     }
/// }
///
/// let layer = TestLayer::new();
/// let subscriber = tracing_subscriber::registry().with(layer.clone());
/// let config = Config { workers: std::num::NonZeroUsize::MIN, ..Config::default() };
/// tracing::subscriber::with_default(subscriber, || run(Executor::Virtual, &config, Root))?;
///
/// let traced = layer.take();
/// assert_eq!(traced[0].message, "a job");
/// assert_eq!(traced[0].fields, [("number", "7".to_owned())]);
/// let (time, worker) = traced[0].here.expect("it was in an actor's code");
/// assert!(time > Time::ZERO && worker != Addr::NONE);
/// # Ok::<(), RunError>(())
/// ```
#[derive(Clone, Default)]
pub struct TestLayer(Arc<Mutex<Vec<TraceRecord>>>);

impl TestLayer {
    /// Creates a layer without records.
    pub fn new() -> TestLayer {
        TestLayer::default()
    }

    /// Takes the records, in the order of time and actor; records from outside of virtual time come first.
    pub fn take(&self) -> Vec<TraceRecord> {
        let mut all = std::mem::take(&mut *lock(&self.0));
        all.sort_by_key(|traced| traced.here);
        all
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for TestLayer {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut said = Fields::default();
        event.record(&mut said);
        let scope = context.event_scope(event);
        let within = scope.map(|scope| scope.from_root().map(|span| span.name()).collect());
        lock(&self.0).push(TraceRecord {
            here: here(),
            level: *event.metadata().level(),
            span: None,
            message: said.message,
            fields: said.fields,
            within: within.unwrap_or_default(),
        });
    }

    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut said = Fields::default();
        attributes.record(&mut said);
        let mut within: Vec<_> = context
            .span_scope(id)
            .map(|scope| scope.from_root().map(|span| span.name()).collect())
            .unwrap_or_default();
        // The last one is the span itself.
        within.pop();
        lock(&self.0).push(TraceRecord {
            here: here(),
            level: *attributes.metadata().level(),
            span: Some(attributes.metadata().name()),
            message: said.message,
            fields: said.fields,
            within,
        });
    }
}

impl fmt::Debug for TestLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestLayer")
            .field("traced", &lock(&self.0).len())
            .finish()
    }
}

/// The fields of an event or a span.
#[derive(Default)]
struct Fields {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message = value.to_owned();
        } else {
            self.fields.push((field.name(), value.to_owned()));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
