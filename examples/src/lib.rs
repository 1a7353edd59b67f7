//! The examples of corsair are in `examples/`, and each can be run separately: `cargo run -p corsair-examples --example
//! hello`.
