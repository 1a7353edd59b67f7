//! Examples are in `examples/`.
