//! The points that a `from` takes, and their times.

use std::sync::Arc;
use std::time::Duration;

/// The points that a `from` takes from writes. `None` stands for any.
///
/// ```
/// use corsair_stream::pipeline::Subscription;
///
/// let pipeline = corsair_stream::language::parse("stream | from('cpu') | log()")?;
/// let from = pipeline.nodes()[0].what.get::<Subscription>().expect("a from node");
/// assert_eq!(from.measurement.as_deref(), Some("cpu"));
/// assert_eq!(from.database, None);
/// # Ok::<(), corsair_stream::language::LanguageError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Subscription {
    /// `.database('…')`
    pub database: Option<Arc<str>>,
    /// `.retentionPolicy('…')`
    pub policy: Option<Arc<str>>,
    /// `.measurement('…')`
    pub measurement: Option<Arc<str>>,
    /// The unit to whose multiples times are truncated; zero leaves times unchanged.
    pub truncate: Duration,
    /// The unit to whose multiples times are then rounded; zero leaves times unchanged.
    pub round: Duration,
}

impl Subscription {
    /// Returns the subscription without the properties that change points.
    pub(crate) fn selection(&self) -> Subscription {
        Subscription {
            truncate: Duration::ZERO,
            round: Duration::ZERO,
            ..self.clone()
        }
    }

    /// Returns the given keys (database, policy, measurement) as bits; the database is the lowest
    /// bit.
    pub(crate) fn shape(&self) -> usize {
        usize::from(self.database.is_some())
            | usize::from(self.policy.is_some()) << 1
            | usize::from(self.measurement.is_some()) << 2
    }
}
