//! External logs from which points are read, such as the partitions of a Kafka topic, and the positions up to which
//! they have been read.
//!
//! The position after the last write of a source is stored in the same log entry, and in the same checkpoint, as the
//! points of the write. So after a crash, reading continues at the first lost write, and no write is processed twice.

use super::Engine;
use super::report::{Write, WriteError, WriteReport};

impl Engine {
    /// Writes lines from a source, like [`Engine::write`], and records that the source continues at `next`.
    ///
    /// # Errors
    /// See [`WriteError`]; in that case nothing was accepted, and the position of the source is unchanged.
    pub async fn write_from(
        &self,
        source: &str,
        next: i64,
        to: &Write,
        lines: &[u8],
    ) -> Result<WriteReport, WriteError> {
        let mut parsed = self.parse_plain(to, lines);
        parsed.source = Some((source.into(), next));
        self.deliver(parsed).await
    }

    /// Returns the position at which a source continues; `None` if nothing was read from the source.
    pub fn source_position(&self, source: &str) -> Option<i64> {
        self.shared.sources.lock().get(source).copied()
    }
}
