//! The tests are the contents.
