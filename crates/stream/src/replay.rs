//! Replays a recording: writes lines from a file to an engine, as fast as possible or with their original timing.

use crate::engine::{BadLine, Engine, Write, WriteError, WriteReport};
use crate::line::{self, Precision};
use flate2::read::MultiGzDecoder;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// As fast as the engine accepts lines.
    Fast,
    /// At the original speed of the timestamps, multiplied by this factor.
    Own(f64),
}

/// The result of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// The number of accepted lines.
    pub accepted: usize,
    /// The number of invalid lines.
    pub rejected: usize,
    /// The errors of the first invalid lines, at most [`WriteReport::MOST_ERRORS`].
    pub errors: Vec<BadLine>,
    /// The number of bytes that were read.
    pub bytes: u64,
}

/// The reasons why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The recording could not be read.
    #[error("reading the recording failed: {0}")]
    Read(#[from] io::Error),
    /// The engine refused a write.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The number of bytes that are read at once.
const CHUNK: usize = 1 << 18;

/// Writes all lines of `from` to the engine. At most one chunk of 256 KiB, or the longest line, is in memory.
///
/// # Errors
/// See [`ReplayError`]; lines that were written before the error stay written.
pub async fn replay(
    engine: &Engine,
    to: &Write,
    mut from: impl Read,
    pace: Pace,
) -> Result<ReplayReport, ReplayError> {
    let mut replayed = ReplayReport::default();
    let mut buffer: Vec<u8> = Vec::new();
    let mut lines_before = 0;
    let mut clock = Clock::new(pace);
    loop {
        let kept = buffer.len();
        // For a line longer than a chunk, the buffer is doubled before each attempt.
        let wanted = CHUNK.max(kept) as u64;
        let read = from.by_ref().take(wanted).read_to_end(&mut buffer)?;
        replayed.bytes += read as u64;
        let whole = if read == 0 {
            buffer.len()
        } else {
            line::complete(&buffer, engine.options().max_line)
        };
        replayed
            .write(engine, to, &buffer[..whole], &mut clock, lines_before)
            .await?;
        lines_before += memchr::memchr_iter(b'\n', &buffer[..whole]).count();
        buffer.drain(..whole);
        if read == 0 {
            return Ok(replayed);
        }
    }
}

/// The longest line of a kapacitor recording.
const MOST: u64 = 64 << 20;

/// Writes all points of a kapacitor recording of a stream (`.srpl`, plain or gzip). Each point has three lines: its
/// database, its retention policy, and the point.
///
/// # Errors
/// See [`ReplayError`]; points that were written before the error stay written.
pub async fn replay_recording(
    engine: &Engine,
    precision: Precision,
    from: impl Read,
    pace: Pace,
) -> Result<ReplayReport, ReplayError> {
    let mut from = BufReader::with_capacity(CHUNK, from);
    let packed = from.fill_buf()?.starts_with(&[0x1f, 0x8b]);
    let mut from: Box<dyn BufRead> = match packed {
        true => Box::new(BufReader::new(MultiGzDecoder::new(from))),
        false => Box::new(from),
    };
    let mut replayed = ReplayReport::default();
    let mut clock = Clock::new(pace);
    let mut to: Option<Write> = None;
    // The points of one database and policy, and the number of lines of the recording before these points.
    let (mut points, mut first, mut count) = (Vec::new(), 0, 0);
    loop {
        let mut read = [Vec::new(), Vec::new(), Vec::new()];
        for line in &mut read {
            replayed.bytes += from.by_ref().take(MOST).read_until(b'\n', line)? as u64;
        }
        let [database, policy, point] = read;
        let name = |line: &[u8]| Arc::<str>::from(String::from_utf8_lossy(line.trim_ascii()));
        let next = (!point.is_empty()).then(|| Write {
            database: name(&database),
            policy: Some(name(&policy)),
            precision,
        });
        let same = |one: &Write, other: &Write| {
            (&one.database, &one.policy) == (&other.database, &other.policy)
        };
        let goes_on = matches!((&to, &next), (Some(to), Some(next)) if same(to, next));
        if let Some(to) = to.as_ref().filter(|_| !goes_on || points.len() >= CHUNK) {
            replayed
                .write_points(engine, to, &points, &mut clock, first)
                .await?;
            points.clear();
        }
        if points.is_empty() {
            first = count;
        }
        let Some(next) = next else {
            return Ok(replayed);
        };
        to = Some(next);
        count += 1;
        points.extend_from_slice(point.trim_ascii_end());
        points.push(b'\n');
    }
}

impl ReplayReport {
    /// Writes lines when they are due.
    async fn write(
        &mut self,
        engine: &Engine,
        to: &Write,
        mut lines: &[u8],
        clock: &mut Clock,
        mut lines_before: usize,
    ) -> Result<(), ReplayError> {
        while !lines.is_empty() {
            let due = clock.until_due(lines, to).await;
            let (now, later) = lines.split_at(due);
            let written = engine.write(to, now).await?;
            self.add(written, lines_before);
            lines_before += memchr::memchr_iter(b'\n', now).count();
            lines = later;
        }
        Ok(())
    }

    /// Writes the points of a recording that has three lines per point. An error names the third line of its point.
    async fn write_points(
        &mut self,
        engine: &Engine,
        to: &Write,
        points: &[u8],
        clock: &mut Clock,
        points_before: usize,
    ) -> Result<(), ReplayError> {
        let known = self.errors.len();
        self.write(engine, to, points, clock, points_before).await?;
        for error in &mut self.errors[known..] {
            error.line *= 3;
        }
        Ok(())
    }

    fn add(&mut self, written: WriteReport, lines_before: usize) {
        self.accepted += written.accepted;
        self.rejected += written.rejected;
        let room = WriteReport::MOST_ERRORS - self.errors.len();
        let errors = written.errors.into_iter().take(room);
        self.errors.extend(errors.map(|error| BadLine {
            line: error.line + lines_before,
            ..error
        }));
    }
}

/// The times at which lines are due.
struct Clock {
    pace: Pace,
    /// The first timestamp, and the time at which it was replayed.
    origin: Option<(i64, Instant)>,
}

/// The maximum wait, which is practically forever, but cannot overflow an instant.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Lines that are due within this time of each other are written together.
const TOGETHER: Duration = Duration::from_millis(1);

impl Clock {
    fn new(pace: Pace) -> Clock {
        Clock { pace, origin: None }
    }

    /// Waits until the first of these lines is due, and returns the number of bytes of the lines that are due at that
    /// time.
    async fn until_due(&mut self, lines: &[u8], to: &Write) -> usize {
        let Pace::Own(speed) = self.pace else {
            return lines.len();
        };
        let mut waited = None;
        let mut parsed = line::parse(lines);
        let mut begin = 0;
        while let Some(line) = parsed.next() {
            let end = parsed.offset();
            // Invalid lines, and lines without a timestamp, are due with the previous line.
            let time = line
                .ok()
                .and_then(|line| to.precision.nanoseconds(line.time?));
            if let Some(time) = time {
                let due = self.due(time, speed);
                match waited {
                    None => {
                        sleep_until(due).await;
                        waited = Some(due);
                    }
                    Some(waited) if due > waited + TOGETHER => return begin,
                    Some(_) => {}
                }
            }
            begin = end;
        }
        lines.len()
    }

    fn due(&mut self, time: i64, speed: f64) -> Instant {
        let (first, begun) = *self.origin.get_or_insert_with(|| (time, Instant::now()));
        let after = Duration::from_nanos(time.saturating_sub(first).max(0) as u64);
        let after = Duration::try_from_secs_f64(after.as_secs_f64() / speed);
        begun + after.unwrap_or(YEAR).min(YEAR)
    }
}
