//! The amount of work, and its results.

use std::fmt;
use std::time::Duration;

/// How much there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// How many pirates, at least [`Load::FEWEST`].
    pub pirates: u32,
    /// From which all random numbers derive.
    pub seed: u64,
}

impl Load {
    /// With fewer pirates than two there is no other pirate to know.
    pub const FEWEST: u32 = 2;
}

/// The result of one contender in one process.
///
/// Written by the process that ran it as one line of `name=number` ([`fmt::Display`]), read by
/// the process that compares ([`Run::parse`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// From the first message of the delivery until all of them were handled.
    pub delivery: Duration,
    /// Gold given by the FSM.
    pub given: u64,
    /// Gold that came back with the Goodbyes.
    pub returned: u64,
    /// Goodbyes that came back.
    pub goodbyes: u32,
    /// Pirates that saw exactly six messages.
    pub complete: u32,
    /// The most memory that the process had resident, in bytes; 0 if not known.
    pub peak_memory: u64,
}

/// What is wrong with a [`Run`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A line that does not describe a run.
    #[error("expected `{name}=<number>` in the result line {line:?}")]
    Unreadable {
        /// What is missing.
        name: &'static str,
        /// The line.
        line: String,
    },
    /// A result that cannot be right.
    #[error("{what}: {found} instead of {expected}")]
    Wrong {
        /// What was counted.
        what: &'static str,
        /// What should have come out.
        expected: u64,
        /// What did.
        found: u64,
    },
}

impl Run {
    /// Reads what [`fmt::Display`] has written.
    ///
    /// # Errors
    /// [`RunError::Unreadable`] for the first number that is not there.
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

    /// Whether all of the load was done, and done right.
    ///
    /// # Errors
    /// [`RunError::Wrong`] for the first number that does not fit.
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
