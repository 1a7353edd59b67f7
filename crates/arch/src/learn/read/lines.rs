//! Large files with one value per line, read in chunks of whole lines that several threads parse.

use super::{SpanSet, WrongText};
use serde::de::IgnoredAny;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

/// The size of a chunk in bytes. Shorter files are read as a whole.
const CHUNK: usize = 4 << 20;

/// The maximum length of a line in bytes.
const MOST_LINE: usize = super::MOST_BYTES as usize;

/// The maximum number of threads that parse.
const MOST_THREADS: usize = 4;

/// The reason why a file was not read in chunks.
#[derive(Debug)]
pub(super) enum ChunkError {
    Unreadable(io::Error),
    Wrong(WrongText),
}

/// A part of a file that ends with a line.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    /// The number of lines before it.
    lines: usize,
}

/// A file that is read in chunks.
#[derive(Debug)]
pub(super) struct Chunks {
    file: File,
    pub(super) file_bytes: u64,
    /// The beginning of the next chunk.
    rest: Vec<u8>,
    lines: usize,
}

impl Chunks {
    /// Opens a file; `None` if it is short, compressed, or its first line is not a JSON value.
    pub(super) fn open(path: &Path) -> io::Result<Option<Chunks>> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if !about.is_file() || about.len() <= CHUNK as u64 {
            return Ok(None);
        }
        let mut chunks = Chunks {
            file,
            file_bytes: about.len(),
            rest: Vec::new(),
            lines: 0,
        };
        let Some(chunk) = chunks.next()? else {
            return Ok(None);
        };
        let line = chunk.bytes.split(|&byte| byte == b'\n').next();
        let line = line.unwrap_or_default();
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if serde_json::from_slice::<IgnoredAny>(line).is_err() {
            return Ok(None);
        }
        // The first chunk is read again, with those that follow.
        chunks.rest.splice(..0, chunk.bytes);
        chunks.lines = 0;
        Ok(Some(chunks))
    }

    /// Reads the next chunk; `None` at the end of the file, or if a line is too long.
    fn next(&mut self) -> io::Result<Option<Chunk>> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut searched = 0;
        loop {
            let mut part = (&mut self.file).take(CHUNK as u64);
            let is_end = part.read_to_end(&mut bytes)? == 0;
            let newline = bytes[searched..].iter().rposition(|&byte| byte == b'\n');
            let newline = newline.map(|at| searched + at);
            if is_end || newline.is_some() {
                let end = newline.filter(|_| !is_end).map_or(bytes.len(), |at| at + 1);
                self.rest = bytes.split_off(end);
                break;
            }
            searched = bytes.len();
            if searched > MOST_LINE {
                let said = "a line has more than 256 MiB; write each trace on a line of its own";
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, said));
            }
        }
        let lines = self.lines;
        self.lines += bytes.iter().filter(|&&byte| byte == b'\n').count();
        Ok((!bytes.is_empty()).then_some(Chunk { bytes, lines }))
    }
}

impl SpanSet {
    /// Parses the chunks of a file in parallel, and adds their spans in order.
    pub(super) fn read_chunks(&mut self, chunks: &mut Chunks) -> Result<(), ChunkError> {
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        loop {
            let mut next = Vec::new();
            for _ in 0..threads.min(MOST_THREADS) {
                next.extend(chunks.next().map_err(ChunkError::Unreadable)?);
            }
            if next.is_empty() {
                return Ok(());
            }
            let key = self.key.clone();
            for (chunk, parsed) in next.iter().zip(parse(&next, key.as_deref())) {
                let wrong = |mut at: WrongText| {
                    at.line += chunk.lines;
                    ChunkError::Wrong(at)
                };
                let at = |what| WrongText { line: 1, what };
                let added = parsed.map_err(wrong)?;
                self.append(added).map_err(|what| wrong(at(what)))?;
            }
        }
    }
}

/// Parses each chunk on its own thread.
fn parse(chunks: &[Chunk], key: Option<&str>) -> Vec<Result<SpanSet, WrongText>> {
    let parse = |chunk: &Chunk| {
        let mut spans = SpanSet::with_key(key);
        spans.read_bytes(&chunk.bytes).map(|()| spans)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = chunks
            .iter()
            .map(|chunk| scope.spawn(move || parse(chunk)))
            .collect();
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(parsed) => parsed,
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect()
    })
}
