//! What only the wall-clock executors promise.

mod crowds;
mod faults;
mod guest;
mod hostile;
mod overflow;
