//! Expressions and pipelines: what they mean, how they are written, and how they are refused.

mod bad_nodes;
mod bad_programs;
mod blocks;
mod builder;
mod evaluation;
mod expressions;
mod limits;
mod programs;
mod random;
mod reference;
mod round_trip;
mod writing;
