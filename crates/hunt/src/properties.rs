//! Properties of a run, stated in the code of actors and checked on every executor.
//!
//! They are counters of the run ([`Context::count`](corsair::Context::count)), so they work in any
//! actor and cost as much as a counter.

use corsair::Report;
use std::fmt;

/// States that a condition holds whenever this line is reached.
///
/// ```
/// use corsair::{AsyncContext, Config, Message, RunError, Scenario, simulate};
/// use corsair_hunt::{Properties, always, sometimes};
///
/// #[derive(Message)]
/// struct Nothing;
///
/// struct Root;
/// impl Scenario<Nothing> for Root {
///     async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
///         for number in 0..10u32 {
///             always!(cx, number < 9, "numbers are below nine");
///             sometimes!(cx, number == 3, "three is reached");
///             sometimes!(cx, number == 30, "thirty is reached");
///         }
///     }
/// }
///
/// let properties = Properties::of(&simulate(&Config::default(), Root)?);
/// assert_eq!(properties.violated(), ["numbers are below nine"]);
/// assert_eq!(properties.never_reached(), ["thirty is reached"]);
/// # Ok::<(), RunError>(())
/// ```
#[macro_export]
macro_rules! always {
    ($cx:expr, $condition:expr, $name:literal) => {
        match $condition {
            true => $cx.count(concat!("always held: ", $name), 1),
            false => $cx.count(concat!("always violated: ", $name), 1),
        }
    };
}

/// States that a condition holds at least once when this line is reached, in some run. This detects tests that never
/// reach their interesting states.
#[macro_export]
macro_rules! sometimes {
    ($cx:expr, $condition:expr, $name:literal) => {
        $cx.count(concat!("sometimes: ", $name), u64::from($condition))
    };
}

/// States that this line is never reached.
#[macro_export]
macro_rules! never {
    ($cx:expr, $name:literal) => {
        $cx.count(concat!("always violated: ", $name), 1)
    };
}

/// States that a condition holds at least once in each run when this line is reached. This is a liveness property. With
/// [`Machine::is_calm`](crate::Machine::is_calm) it states that the system makes progress when faults have stopped.
///
/// ```
/// use corsair::{AsyncContext, Config, Message, RunError, Scenario, simulate};
/// use corsair_hunt::{Properties, eventually};
///
/// #[derive(Message)]
/// struct Nothing;
///
/// struct Root;
/// impl Scenario<Nothing> for Root {
///     async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
///         for number in 0..10u32 {
///             eventually!(cx, number == 3, "three is reached");
///             eventually!(cx, number == 30, "thirty is reached");
///         }
///     }
/// }
///
/// let properties = Properties::of(&simulate(&Config::default(), Root)?);
/// assert_eq!(properties.violated(), ["thirty is reached"]);
/// # Ok::<(), RunError>(())
/// ```
#[macro_export]
macro_rules! eventually {
    ($cx:expr, $condition:expr, $name:literal) => {
        $cx.count(concat!("eventually: ", $name), u64::from($condition))
    };
}

/// True in some of the cases in which this line is reached; the fraction is given in thousandths. It marks a place
/// where code does something rare but allowed, such as a time-out that fires early. Without the feature `buggify` the
/// value is the constant `false`, which costs nothing.
///
/// ```
/// use corsair::{AsyncContext, Config, Message, RunError, Scenario, simulate};
/// use corsair_hunt::{BUGGIFY, Properties, buggify, sometimes};
///
/// #[derive(Message)]
/// struct Nothing;
///
/// struct Root;
/// impl Scenario<Nothing> for Root {
///     async fn root<C: AsyncContext<Nothing>>(self, mut cx: C) {
///         for _ in 0..100 {
///             let is_rare = buggify!(cx, 500);
///             sometimes!(cx, is_rare, "the rare path is taken");
///         }
///     }
/// }
///
/// let properties = Properties::of(&simulate(&Config::default(), Root)?);
/// assert_eq!(properties.never_reached().is_empty(), BUGGIFY);
/// # Ok::<(), RunError>(())
/// ```
#[macro_export]
macro_rules! buggify {
    ($cx:expr, $thousandths:expr) => {
        $crate::BUGGIFY && $cx.below(1_000) < $thousandths
    };
}

/// True if [`buggify!`](crate::buggify) is in effect, which the feature `buggify` decides.
pub const BUGGIFY: bool = cfg!(feature = "buggify");

/// A property, with the number of times that it was evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The name of the property.
    pub name: String,
    /// True for [`sometimes!`](crate::sometimes), false for [`always!`](crate::always) and
    /// [`never!`](crate::never).
    pub is_sometimes: bool,
    /// The number of times that the condition held.
    pub held: u64,
    /// The number of times that the condition did not hold; 0 for `sometimes!`.
    pub violated: u64,
}

/// The results of the properties of one or more runs.
///
/// `Display` writes one line for each property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// All properties that were reached, by name.
    pub properties: Vec<Property>,
}

impl Properties {
    /// Collects the properties of a complete run.
    pub fn of(report: &Report) -> Properties {
        let mut all = Properties::of_part(report);
        for (name, count) in &report.probes.counters {
            if let Some(name) = name.strip_prefix("eventually: ") {
                all.add(name, false, *count, u64::from(*count == 0));
            }
        }
        all
    }

    /// Collects the properties of a run that was ended early, without [`eventually!`](crate::eventually), which such a
    /// run cannot decide.
    pub fn of_part(report: &Report) -> Properties {
        let counters = report.probes.counters.iter();
        Properties::of_counters(counters.map(|(name, count)| (*name, *count)))
    }

    /// Collects the properties of counters, such as those of real programs in a simulation of hosts, without
    /// [`eventually!`](crate::eventually).
    pub fn of_counters<'a>(counters: impl IntoIterator<Item = (&'a str, u64)>) -> Properties {
        let mut all = Properties::default();
        for (name, count) in counters {
            if let Some(name) = name.strip_prefix("always held: ") {
                all.add(name, false, count, 0);
            } else if let Some(name) = name.strip_prefix("always violated: ") {
                all.add(name, false, 0, count);
            } else if let Some(name) = name.strip_prefix("sometimes: ") {
                all.add(name, true, count, 0);
            }
        }
        all
    }

    /// Adds the results of another run.
    pub fn merge(&mut self, other: &Properties) {
        for property in &other.properties {
            let Property {
                name,
                is_sometimes,
                held,
                violated,
            } = property;
            self.add(name, *is_sometimes, *held, *violated);
        }
    }

    /// Returns the names of the violated properties.
    pub fn violated(&self) -> Vec<&str> {
        self.names(|property| property.violated > 0)
    }

    /// Returns the names of the `sometimes!` conditions that never held.
    pub fn never_reached(&self) -> Vec<&str> {
        self.names(|property| property.is_sometimes && property.held == 0)
    }

    pub(crate) fn violate(&mut self, name: &str) {
        self.state(name, 0, 1);
    }

    /// Adds a property that has to hold always.
    pub(crate) fn state(&mut self, name: &str, held: u64, violated: u64) {
        self.add(name, false, held, violated);
    }

    fn names(&self, which: impl Fn(&Property) -> bool) -> Vec<&str> {
        let chosen = self.properties.iter().filter(|property| which(property));
        chosen.map(|property| property.name.as_str()).collect()
    }

    fn add(&mut self, name: &str, is_sometimes: bool, held: u64, violated: u64) {
        let key = |property: &Property| (property.is_sometimes, property.name.clone());
        let index = self
            .properties
            .binary_search_by_key(&(is_sometimes, name.to_owned()), key);
        match index {
            Ok(index) => {
                self.properties[index].held += held;
                self.properties[index].violated += violated;
            }
            Err(index) => {
                let name = name.to_owned();
                self.properties.insert(
                    index,
                    Property {
                        name,
                        is_sometimes,
                        held,
                        violated,
                    },
                );
            }
        }
    }
}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for property in &self.properties {
            let Property {
                name,
                is_sometimes,
                held,
                violated,
            } = property;
            match (is_sometimes, held, violated) {
                (true, 0, _) => writeln!(f, "sometimes  {name}: NEVER REACHED")?,
                (true, held, _) => writeln!(f, "sometimes  {name}: {held} times")?,
                (false, held, 0) => writeln!(f, "always     {name}: held {held} times")?,
                (false, held, violated) => {
                    writeln!(
                        f,
                        "always     {name}: VIOLATED {violated} of {} times",
                        held + violated
                    )?;
                }
            }
        }
        Ok(())
    }
}
