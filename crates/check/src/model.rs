//! The interface of sequential models.

use std::fmt::{Debug, Display};
use std::hash::Hash;

/// A sequential specification: what each operation returns if operations run one after another.
///
/// ```
/// use corsair_check::{Limits, Model, Operation, Verdict, check};
///
/// /// A counter: `Some(n)` adds n, `None` reads.
/// struct Counter;
///
/// impl Model for Counter {
///     type State = i64;
///     type Input = Option<i64>;
///     type Output = i64;
///     type Key = ();
///
///     fn initial(&self) -> i64 {
///         0
///     }
///
///     fn step(&self, state: &i64, input: &Option<i64>, output: Option<&i64>) -> Option<i64> {
///         match input {
///             Some(add) => Some(state + add),
///             None => output.is_none_or(|read| read == state).then_some(*state),
///         }
///     }
/// }
///
/// let history = [
///     Operation::completed(0, Some(5), 0, 10, 0),
///     Operation::completed(1, None, 5, 6, 5),
///     Operation::completed(2, None, 7, 8, 0), // after a read of 5, too old
/// ];
/// let report = check(&Counter, &history, &Limits::default());
/// assert!(matches!(report.verdict, Verdict::Violation(_)));
/// ```
pub trait Model: Sync {
    /// The state of the object.
    type State: Clone + Eq + Hash + Debug + Send;
    /// The type of calls.
    type Input: Clone + Eq + Hash + Debug + Sync;
    /// The type of results.
    type Output: Clone + PartialEq + Debug + Sync;
    /// The type that identifies independent objects: operations with different keys cannot affect
    /// each other.
    type Key: Clone + Ord + Debug + Send + Sync;

    /// Returns the state before the first operation.
    fn initial(&self) -> Self::State;

    /// Returns the state after the operation, or `None` if the operation cannot return this output
    /// in this state. `None` as output allows any output.
    fn step(
        &self,
        state: &Self::State,
        input: &Self::Input,
        output: Option<&Self::Output>,
    ) -> Option<Self::State>;

    /// True if the operation never changes the state, whatever the state is. Such operations are
    /// checked faster, and minimization removes them.
    fn is_read(&self, _input: &Self::Input, _output: Option<&Self::Output>) -> bool {
        false
    }

    /// Returns the object of the operation, or `None` if it may concern all objects; then the
    /// history is checked as one.
    fn key(&self, _input: &Self::Input, _output: Option<&Self::Output>) -> Option<Self::Key> {
        None
    }

    /// Returns the group of the operation. Operations of one group can be left out of a history
    /// together: if the remaining history is not linearizable, neither is the complete history.
    /// `None` if the operation has no group.
    fn group(&self, _input: &Self::Input, _output: Option<&Self::Output>) -> Option<u64> {
        None
    }

    /// Returns false only if no sequence of the calls in `others` leads from the state to a state
    /// in which the operation can return this output. A model that implements this lets the search
    /// abandon orders early.
    fn is_reachable(
        &self,
        _state: &Self::State,
        _input: &Self::Input,
        _output: &Self::Output,
        _others: &mut dyn Iterator<Item = &Self::Input>,
    ) -> bool {
        true
    }

    /// Returns the heap memory of a state in bytes.
    fn state_bytes(&self, _state: &Self::State) -> usize {
        0
    }

    /// Describes the operation in words, for timelines.
    fn describe(&self, input: &Self::Input, output: Option<&Self::Output>) -> String {
        match output {
            Some(output) => format!("{input:?} → {output:?}"),
            None => format!("{input:?} → ?"),
        }
    }

    /// Describes the state in words.
    fn describe_state(&self, state: &Self::State) -> String {
        format!("{state:?}")
    }

    /// Describes the key in words.
    fn describe_key(&self, key: &Self::Key) -> String {
        format!("{key:?}")
    }
}

/// Joins values with a separator.
pub(crate) fn join<T: Display>(values: impl IntoIterator<Item = T>, separator: &str) -> String {
    let texts: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    texts.join(separator)
}
