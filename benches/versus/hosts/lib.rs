//! An empty library: the benchmark `hosts` is in `main.rs`, but cargo requires a target.
