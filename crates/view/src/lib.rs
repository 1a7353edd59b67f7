//! The live view. Users can watch, pause, query and change a running simulation, and replay the session bit by bit. The
//! manual:
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod clock;
mod command;
mod condition;
mod drawn;
mod frame;
mod history;
mod layout;
mod pirates;
mod recording;
mod replay;
mod series;
#[cfg(feature = "server")]
mod server;
mod services;
mod session;
mod world;

pub use command::{Action, Command};
pub use condition::{Condition, Measure};
pub use drawn::{DrawnError, OutputView};
pub use frame::{EdgeState, Frame, Level, NodeState};
pub use layout::{Area, Layout, LayoutNode, layout};
pub use pirates::{Pirates, PiratesInView};
pub use recording::{Recording, RecordingError};
pub use replay::{ReplayError, replay};
pub use series::{Point, Series};
#[cfg(feature = "server")]
pub use server::{ServeError, Server};
pub use services::Services;
pub use session::{
    CheckpointInfo, Control, Handle, Make, Session, SessionRequest, Status, StepBy, Until, Watching,
};
pub use world::{ExtraCapacity, GroupSample, Mark, Sample, Scene, SceneNode, World};
