//! Rules of pipelines, one by one.
