//! From text to values: lines of the line protocol, and tasks.

mod language;
mod lines;
