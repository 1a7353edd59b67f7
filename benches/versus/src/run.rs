//! The amount of work, and its results.

use std::fmt;
use std::time::Duration;

/// The amount of work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of pirates, at least [`Load::FEWEST`].
    pub pirates: u32,
    /// The seed from which all random numbers are derived.
    pub seed: u64,
}

impl Load {
    /// The smallest number of pirates, because each must know another.
    pub const FEWEST: u32 = 2;
}

/// The result of one contender in one process.
///
/// The process that ran the contender writes it as one line of `name=number` pairs
/// ([`fmt::Display`]); the process that compares contenders reads the line ([`Run::parse`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The time from the first message of the delivery until all of its messages were handled.
    pub delivery: Duration,
    /// Gold given by the FSM.
    pub given: u64,
    /// Gold that came back with the Goodbyes.
    pub returned: u64,
    /// Goodbyes that came back.
    pub goodbyes: u32,
    /// Pirates that saw exactly six messages.
    pub complete: u32,
    /// The peak resident memory of the process in bytes; 0 if it is not known.
    pub peak_memory: u64,
}

/// The reasons why a [`Run`] is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A line that does not describe a run.
    #[error("expected `{name}=<number>` in the result line {line:?}")]
    Unreadable {
        /// The name of the missing number.
        name: &'static str,
        /// The text of the line.
        line: String,
    },
    /// A result that cannot be right.
    #[error("{what}: {found} instead of {expected}")]
    Wrong {
        /// The name of the number.
        what: &'static str,
        /// The expected number.
        expected: u64,
        /// The actual number.
        found: u64,
    },
}

impl Run {
    /// Reads what [`fmt::Display`] has written.
    ///
    /// # Errors
    /// Returns [`RunError::Unreadable`] for the first missing number.
    pub fn parse(line: &str) -> Result<Run, RunError> {
        let field = |name: &'static str| {
            line.split_whitespace()
                .filter_map(|word| word.split_once('='))
                .find(|(key, _)| *key == name)
                .and_then(|(_, value)| value.parse::<u64>().ok())
                .ok_or_else(|| RunError::Unreadable {
                    name,
                    line: line.to_owned(),
                })
        };
        let small = |name| {
            u32::try_from(field(name)?).map_err(|_| RunError::Unreadable {
                name,
                line: line.to_owned(),
            })
        };
        Ok(Run {
            delivery: Duration::from_nanos(field("delivery_ns")?),
            given: field("given")?,
            returned: field("returned")?,
            goodbyes: small("goodbyes")?,
            complete: small("complete")?,
            peak_memory: field("peak_memory")?,
        })
    }

    /// Checks that the whole load was done correctly.
    ///
    /// # Errors
    /// Returns [`RunError::Wrong`] for the first wrong number.
    pub fn check(&self, load: Load) -> Result<(), RunError> {
        let pirates = u64::from(load.pirates);
        let equal = |what, expected, found| {
            if expected == found {
                Ok(())
            } else {
                Err(RunError::Wrong {
                    what,
                    expected,
                    found,
                })
            }
        };
        equal("goodbyes", pirates, self.goodbyes.into())?;
        equal(
            "pirates that saw six messages",
            pirates,
            self.complete.into(),
        )?;
        equal("gold returned", self.given, self.returned)
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Run {
            delivery,
            given,
            returned,
            goodbyes,
            complete,
            peak_memory,
        } = self;
        write!(
            f,
            "delivery_ns={} given={given} returned={returned} goodbyes={goodbyes} \
             complete={complete} peak_memory={peak_memory}",
            delivery.as_nanos()
        )
    }
}
