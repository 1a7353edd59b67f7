//! Fork-join, in both forms.

mod actors;
mod bulk;
mod closures;
mod futures;
mod scope;
