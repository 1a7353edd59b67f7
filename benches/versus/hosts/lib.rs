//! The bench `hosts` has its program in `main.rs`; this library exists because a package needs a target.
