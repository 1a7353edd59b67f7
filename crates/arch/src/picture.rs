//! Results as SVG pictures.

mod capacity;
mod compared;
mod gate;
mod stability;
pub mod style;
mod timeline;

pub use capacity::capacity;
pub use compared::compared;
pub use gate::{objectives, services};
pub use stability::stability;
pub use timeline::timeline;

/// A picture could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("the picture cannot be drawn: {0}")]
pub struct PictureError(String);

impl PictureError {
    fn new(error: impl std::fmt::Display) -> PictureError {
        PictureError(error.to_string())
    }
}
