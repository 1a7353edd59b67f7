//! Checkers of recorded histories, for any system that can record its operations.
//!
//! A *history* is a list of operations with their call and return times. [`check`] decides whether
//! it is *linearizable*: whether every operation can be given one instant between its call and its
//! return such that, executed in the order of those instants, all results agree with a sequential
//! [`Model`]. [`deliveries::check`] decides whether messages were lost, duplicated or reordered.
//!
//! Time and memory are bounded by [`Limits`]; a check that reaches a bound returns [`Verdict::Unknown`] with the bound,
//! and reports the work that was done.
//!
//! ```
//! use corsair_check::models::{Register, RegisterInput};
//! use corsair_check::{Limits, Operation, Verdict, check};
//!
//! let write = |value: u32| RegisterInput::Write(value.into());
//! let history = vec![
//!     Operation::completed(0, write(1), 0, 10, true.into()),
//!     Operation::completed(1, write(2), 20, 30, true.into()),
//!     // A stale read: it begins after 2 has been written.
//!     Operation::completed(0, RegisterInput::Read, 40, 50, 1.into()),
//! ];
//! let report = check(&Register, &history, &Limits::default());
//! assert!(matches!(report.verdict, Verdict::Violation(_)));
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod deliveries;
mod history;
mod linearizability;
mod minimize;
mod model;
pub mod models;
pub mod read;
pub mod timeline;
mod value;

pub use history::{Operation, Outcome, Record};
pub use linearizability::{Bound, Limits, Progress, Report, Verdict, Violation, check};
pub use minimize::smallest_violation;
pub use model::Model;
pub use value::Value;
