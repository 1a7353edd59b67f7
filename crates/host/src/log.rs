//! The output of programs on stdout and stderr: one log of all hosts, in virtual time.

use crate::packet::Reader;
use corsair::Time;
use std::collections::BTreeMap;
use std::fmt;

/// A line that a host's program has written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The time at which the end of the line was written.
    pub time: Time,
    /// The host's index.
    pub host: usize,
    /// The thread's number in the order in which the program has started its threads; the first is 0.
    pub thread: u32,
    /// True for standard error.
    pub is_error: bool,
    /// The text, without the line feed.
    pub text: String,
}

/// The number of the stream of counters. Standard output and standard error are streams 1 and 2.
pub(crate) const COUNTERS: u8 = 3;

/// Returns the bytes that add to a counter, for the stream of counters.
pub(crate) fn counter(name: &str, count: u64) -> Vec<u8> {
    let mut bytes = count.to_le_bytes().to_vec();
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

/// Passes a record of bytes that a thread has written to `append`.
pub(crate) fn write_record(
    now: u64,
    thread: u32,
    stream: u8,
    bytes: &[u8],
    append: impl FnOnce(&[u8]),
) {
    let mut record = Vec::with_capacity(bytes.len() + 17);
    record.extend(now.to_le_bytes());
    record.extend(thread.to_le_bytes());
    record.push(stream);
    record.extend((bytes.len() as u32).to_le_bytes());
    record.extend_from_slice(bytes);
    append(&record);
}

/// Joins the output of a host into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// Unfinished lines by thread and stream, with the time of the last write.
    open: BTreeMap<(u32, u8), (u64, Vec<u8>)>,
    finished: Vec<Line>,
    counters: BTreeMap<String, u64>,
}

impl Lines {
    /// Adds records of a host.
    pub(crate) fn take(&mut self, host: usize, records: &[u8]) {
        let mut reader = Reader(records);
        while let Some((time, thread, stream, bytes)) = record(&mut reader) {
            if stream == COUNTERS {
                self.count(bytes);
                continue;
            }
            for part in bytes.split_inclusive(|&byte| byte == b'\n') {
                let open = self.open.entry((thread, stream)).or_default();
                open.0 = time;
                match part.strip_suffix(b"\n") {
                    Some(end) => {
                        open.1.extend_from_slice(end);
                        self.finish(host, (thread, stream));
                    }
                    None => open.1.extend_from_slice(part),
                }
            }
        }
    }

    /// Adds to the counter that [`counter`] has encoded.
    fn count(&mut self, bytes: &[u8]) {
        let mut reader = Reader(bytes);
        if let Some(count) = reader.u64() {
            let name = String::from_utf8_lossy(reader.0).into_owned();
            let counter = self.counters.entry(name).or_default();
            *counter = counter.saturating_add(count);
        }
    }

    /// Returns the counters of the host's programs.
    pub(crate) fn counters(&self) -> &BTreeMap<String, u64> {
        &self.counters
    }

    fn finish(&mut self, host: usize, key: (u32, u8)) {
        if let Some((time, text)) = self.open.remove(&key) {
            self.finished.push(Line {
                time: Time::from_nanos(time),
                host,
                thread: key.0,
                is_error: key.1 == 2,
                text: String::from_utf8_lossy(&text).into_owned(),
            });
        }
    }

    /// Completes the last line of a process that has ended.
    pub(crate) fn finish_all(&mut self, host: usize) {
        let keys: Vec<_> = self.open.keys().copied().collect();
        for key in keys {
            self.finish(host, key);
        }
    }

    /// Returns the complete lines.
    pub(crate) fn finished(&self) -> &[Line] {
        &self.finished
    }
}

fn record<'a>(reader: &mut Reader<'a>) -> Option<(u64, u32, u8, &'a [u8])> {
    let (time, thread, stream) = (reader.u64()?, reader.u32()?, reader.u8()?);
    let count = reader.u32()? as usize;
    Some((time, thread, stream, reader.bytes(count)?))
}

/// Lines of several hosts with the hosts' names, for printing.
#[derive(Debug)]
pub(crate) struct NamedLines<'a> {
    pub lines: &'a [Line],
    pub names: Vec<&'a str>,
}

impl fmt::Display for NamedLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.names.iter().map(|name| name.len()).max().unwrap_or(0);
        for line in self.lines {
            let seconds = line.time.as_nanos() as f64 / 1e9;
            let name = self.names.get(line.host).unwrap_or(&"?");
            writeln!(f, "[{seconds:>12.6} {name:<width$}] {}", line.text)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_a_thread_are_joined_into_lines() {
        let mut records = vec![];
        let mut write = |now, thread, text: &str| {
            write_record(now, thread, 1, text.as_bytes(), |record| {
                records.extend_from_slice(record)
            });
        };
        write(1, 0, "one ");
        write(2, 1, "other\n");
        write(3, 0, "line\n\nlast");
        let mut lines = Lines::default();
        lines.take(4, &records);
        lines.finish_all(4);
        let texts: Vec<_> = lines
            .finished()
            .iter()
            .map(|line| (line.time.as_nanos(), line.thread, line.text.as_str()))
            .collect();
        assert_eq!(
            texts,
            [
                (2, 1, "other"),
                (3, 0, "one line"),
                (3, 0, ""),
                (3, 0, "last")
            ]
        );
    }
}
