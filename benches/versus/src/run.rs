//! The load of a run, and its results.

use std::fmt;
use std::time::Duration;

/// The load of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of pirates; at least [`Load::FEWEST`].
    pub pirates: u32,
    /// The seed from which all random numbers are derived.
    pub seed: u64,
}

impl Load {
    /// The smallest number of pirates, because each pirate must know another one.
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
    /// The gold that the FSM gave.
    pub given: u64,
    /// The gold that came back with the Goodbyes.
    pub returned: u64,
    /// The number of Goodbyes that came back.
    pub goodbyes: u32,
    /// The number of pirates that received exactly six messages.
    pub complete: u32,
    /// The peak resident memory of the process in bytes; 0 if it is not known.
    pub peak_memory: u64,
}

/// The reasons why a [`Run`] is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A line from which a number is missing.
    #[error("expected `{name}=<number>` in the result line {line:?}")]
    Unreadable {
        /// The name of the missing number.
        name: &'static str,
        /// The text of the line.
        line: String,
    },
    /// A number that differs from the expected one.
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
    /// Parses a line that [`fmt::Display`] has written.
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

    /// Checks that the result is complete and correct for this load.
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
