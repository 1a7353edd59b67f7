//! The line protocol: what is a line, and what becomes of it.

mod blocks;
mod comparison;
mod properties;
mod rules;
