//! Pipelines as text.
