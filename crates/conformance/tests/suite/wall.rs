//! Tests of guarantees that only the wall-clock executors give.

mod crowds;
mod faults;
mod guest;
mod hostile;
mod overflow;
