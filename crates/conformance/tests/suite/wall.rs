//! What only the wall-clock executors promise.

mod faults;
mod guest;
mod overflow;
