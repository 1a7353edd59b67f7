//! The engine as its users meet it: lines in by HTTP, tasks, what they show.

mod ends;
mod http;
mod limits;
mod nodes;
mod post;
mod program;
mod routing;
mod tasks;
mod terminal;
