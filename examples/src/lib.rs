//! Examples of corsair are in `examples/`, each by itself: `cargo run -p corsair-examples --example hello`.
