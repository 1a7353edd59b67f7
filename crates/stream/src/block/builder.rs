//! Building blocks from lines.

use super::column::NONE;
use super::spelling::{Piece, Spelling};
use super::table::Table;
use super::{Block, Origin};
use crate::hash::Seeded;
use crate::line::{LineError, LineErrorKind, Precision, Reader, Role, Span, Tokens};
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Builds blocks from the text of a write, one for each requested measurement.
///
/// Lines are stored directly in columns. A line allocates only when columns grow, for tag values that are new in their
/// block, and for strings that differ from the previous row.
///
/// - Blocks are in the order of their first lines, rows in the order of lines.
/// - A field whose type changes within a block is [`Data::Mixed`](super::Data::Mixed): each value
///   keeps its type, so that integers stay exact.
/// - If a line has a field twice, the last value counts.
/// - Lines of one measurement that have few keys in common are divided into several blocks: a block of more than one
///   row has at most 1024 cells, or four cells for each value.
///
/// ```
/// use corsair_stream::block::{Builder, Origin};
/// use corsair_stream::line::Precision;
/// use std::sync::Arc;
///
/// let mut builder = Builder::new();
/// let text = b"cpu,host=a load=1 10\nmem free=5i\ncpu load=2 20\ncpu load=x";
/// let mut errors = Vec::new();
/// let wanted = |measurement: &str| {
///     (measurement == "cpu").then(|| {
///         Arc::new(Origin {
///             database: "telegraf".into(),
///             policy: "".into(),
///             measurement: measurement.into(),
///         })
///     })
/// };
/// let fed = builder.feed(text, Precision::Seconds, 0, wanted, |error| errors.push(error));
/// assert_eq!((fed.stored, fed.unwanted, fed.bad), (2, 1, 1));
/// assert_eq!(errors[0].line, 4);
/// let blocks = builder.finish();
/// assert_eq!(&*blocks[0].times, [10_000_000_000, 20_000_000_000]);
/// ```
#[derive(Debug)]
pub struct Builder {
    tokens: Tokens,
    hasher: Seeded,
    measurements: Vec<Measurement>,
    index: HashTable<u32>,
    /// The measurement of the previous line.
    last: u32,
    /// Complete blocks, with the numbers of their first lines and, if requested, of all their lines.
    done: Vec<(usize, Block, Vec<u32>)>,
    /// True if line numbers are stored.
    numbered: bool,
    /// The number of lines in blocks.
    stored: usize,
    /// The maximum length of a line in bytes.
    max_line: usize,
    /// The approximate memory of unfinished blocks in bytes.
    bytes: usize,
    /// The memory that `grow` has allowed.
    allowed: usize,
}

/// The numbers of lines in a text; blank lines and comments are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines whose points are in blocks.
    pub stored: usize,
    /// Valid lines of measurements that no task takes.
    pub unwanted: usize,
    /// Invalid lines.
    pub bad: usize,
}

/// The number of measurements, tags and fields whose memory is reused between writes; the rest is freed.
const KEPT: usize = 1024;

#[derive(Debug)]
struct Measurement {
    spelling: Spelling,
    /// The origin of the points; `None` if no task takes the measurement.
    origin: Option<Arc<Origin>>,
    table: Table,
    /// The number of the first line in its table.
    born: usize,
    /// The measurement that followed when this measurement last appeared.
    next: u32,
}

impl LineCounts {
    /// Returns the number of valid lines, whether a task takes them or not.
    pub fn accepted(self) -> usize {
        self.stored + self.unwanted
    }
}

/// Converts a timestamp to nanoseconds, if InfluxDB accepts it. InfluxDB gives the first two and the last of the
/// 64-bit values special meanings, and no window can contain them.
fn in_range(time: i64, unit: i64) -> Option<i64> {
    let nanos = time.checked_mul(unit)?;
    (i64::MIN + 2..i64::MAX).contains(&nanos).then_some(nanos)
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// The number of bytes of additional memory after which [`Builder::feed_while`] calls `grow` again.
    pub(crate) const STEP: usize = 64 << 10;

    /// Creates a builder without lines. Lines may have any length.
    pub fn new() -> Builder {
        Builder {
            tokens: Tokens::default(),
            hasher: Seeded::default(),
            measurements: Vec::new(),
            index: HashTable::new(),
            last: 0,
            done: Vec::new(),
            numbered: false,
            stored: 0,
            max_line: usize::MAX,
            bytes: 0,
            allowed: 0,
        }
    }

    /// Sets the maximum length of a line in bytes.
    pub fn max_line(mut self, bytes: usize) -> Builder {
        self.max_line = bytes;
        self
    }

    /// Stores line numbers of rows for [`Builder::finish_numbered`].
    pub(crate) fn numbered(mut self, numbered: bool) -> Builder {
        self.numbered = numbered;
        self
    }

    /// Takes the lines of a text.
    ///
    /// Timestamps are in `precision`; lines without a timestamp have the time `now`, in nanoseconds. `wanted` returns
    /// the origin of a measurement. It returns `None` if no task takes the points of the measurement; such points are
    /// checked but not stored. `wanted` is called once for each measurement until [`Builder::finish`], even if all
    /// lines of the measurement turn out to be bad. `bad` is called for each bad line; all other lines are accepted.
    /// Errors count lines from the beginning of this text.
    ///
    /// Takes time linear in the length of the text, whatever the text contains.
    pub fn feed(
        &mut self,
        text: &[u8],
        precision: Precision,
        now: i64,
        wanted: impl FnMut(&str) -> Option<Arc<Origin>>,
        bad: impl FnMut(LineError),
    ) -> LineCounts {
        let (fed, _) = self.feed_while(text, precision, now, wanted, bad, |_| true);
        fed
    }

    /// Takes lines like [`Builder::feed`], but calls `grow` before it uses [`Builder::STEP`] more bytes of memory, and
    /// stops if `grow` returns false. Returns true if the whole text was read.
    pub(crate) fn feed_while(
        &mut self,
        text: &[u8],
        precision: Precision,
        now: i64,
        mut wanted: impl FnMut(&str) -> Option<Arc<Origin>>,
        mut bad: impl FnMut(LineError),
        mut grow: impl FnMut(usize) -> bool,
    ) -> (LineCounts, bool) {
        let mut fed = LineCounts::default();
        let mut reader = Reader::new(text);
        let mut tokens = std::mem::take(&mut self.tokens);
        let unit = precision.unit();
        let mut keep = false;
        while let Some(read) = reader.line(&mut tokens, |region, name| {
            keep = self.select(region, name, &mut wanted);
            keep
        }) {
            let time = match (read, tokens.time) {
                (Ok(end), _) if end - tokens.measurement.from > self.max_line => {
                    Err(reader.error(tokens.measurement.from, LineErrorKind::LineTooLong))
                }
                (Ok(_), None) => Ok(now),
                (Ok(_), Some(time)) => in_range(time, unit).ok_or_else(|| {
                    reader.error(tokens.time_at, LineErrorKind::TimestampOutOfRange)
                }),
                (Err(error), _) => Err(error),
            };
            while self.bytes > self.allowed {
                if !grow(Builder::STEP) {
                    self.tokens = tokens;
                    return (fed, false);
                }
                self.allowed += Builder::STEP;
            }
            match time {
                Ok(time) if keep => {
                    self.push(reader.region(), &tokens, time);
                    fed.stored += 1;
                }
                Ok(_) => fed.unwanted += 1,
                Err(error) => {
                    fed.bad += 1;
                    bad(error);
                }
            }
        }
        self.tokens = tokens;
        (fed, true)
    }

    /// Returns the blocks of all lines since the last call, and resets the builder. The builder keeps as much memory as
    /// ordinary writes need.
    pub fn finish(&mut self) -> Vec<Block> {
        let blocks = self.finish_numbered().into_iter();
        blocks.map(|(block, _)| block).collect()
    }

    /// Returns the blocks like [`Builder::finish`], and the line number of each row, if line numbers are stored. They
    /// are counted from 0 over all lines in blocks.
    pub(crate) fn finish_numbered(&mut self) -> Vec<(Block, Vec<u32>)> {
        let mut done = std::mem::take(&mut self.done);
        for mut measurement in self.measurements.drain(..) {
            if let Some(origin) = measurement.origin
                && measurement.table.rows() > 0
            {
                let (block, numbers) = measurement.table.finish(origin);
                done.push((measurement.born, block, numbers));
            }
        }
        self.index.clear();
        if self.measurements.capacity() > KEPT {
            self.measurements = Vec::new();
            self.index = HashTable::new();
        }
        if self
            .tokens
            .tags
            .capacity()
            .max(self.tokens.fields.capacity())
            > KEPT
        {
            self.tokens = Tokens::default();
        }
        self.last = 0;
        self.stored = 0;
        self.bytes = 0;
        self.allowed = 0;
        done.sort_unstable_by_key(|(born, ..)| *born);
        done.into_iter()
            .map(|(_, block, numbers)| (block, numbers))
            .collect()
    }

    /// Selects the measurement of the current line; true if a task takes it.
    #[inline]
    fn select(
        &mut self,
        region: &str,
        name: Span,
        wanted: impl FnMut(&str) -> Option<Arc<Origin>>,
    ) -> bool {
        let name = Piece::new(region, name);
        let get = |place: u32| self.measurements.get(place as usize);
        let is = |place: u32| get(place).is_some_and(|known| known.spelling.is(name));
        // Consecutive lines of a write often have the same measurement, or repeat a sequence.
        self.last = match get(self.last).map(|last| last.next) {
            Some(_) if is(self.last) => self.last,
            Some(next) if is(next) => next,
            _ => self.find(name, wanted),
        };
        self.measurements[self.last as usize].origin.is_some()
    }

    /// Returns the index of a measurement that is not the expected one.
    #[inline(never)]
    fn find(
        &mut self,
        name: Piece<'_>,
        mut wanted: impl FnMut(&str) -> Option<Arc<Origin>>,
    ) -> u32 {
        let known = &mut self.measurements;
        let entry = self.index.entry(
            self.hasher.hash_one(name.bytes()),
            |&place| known[place as usize].spelling.is(name),
            |&place| self.hasher.hash_one(known[place as usize].spelling.bytes()),
        );
        let place = match entry {
            hashbrown::hash_table::Entry::Occupied(entry) => *entry.get(),
            hashbrown::hash_table::Entry::Vacant(entry) => {
                let origin = wanted(&name.meaning(Role::Measurement));
                let place = known.len() as u32;
                entry.insert(place);
                self.bytes += 2 * size_of::<Measurement>() + name.bytes().len();
                known.push(Measurement {
                    spelling: name.keep(),
                    origin,
                    table: Table::default(),
                    born: 0,
                    next: NONE,
                });
                place
            }
        };
        if let Some(last) = self.measurements.get_mut(self.last as usize) {
            last.next = place;
        }
        place
    }

    /// Stores the current line. The function is not inlined, because it would use registers that the parser needs.
    #[inline(never)]
    fn push(&mut self, region: &str, tokens: &Tokens, time: i64) {
        let measurement = &mut self.measurements[self.last as usize];
        let Some(origin) = &measurement.origin else {
            return;
        };
        let table = &mut measurement.table;
        if table.is_sparse_with(tokens) && table.rows() > 0 {
            let (block, numbers) = table.finish(origin.clone());
            self.done.push((measurement.born, block, numbers));
        }
        if table.rows() == 0 {
            measurement.born = self.stored;
        }
        self.bytes += table.push(region, tokens, time, &self.hasher);
        if self.numbered {
            table.number(self.stored as u32);
        }
        self.stored += 1;
    }
}
