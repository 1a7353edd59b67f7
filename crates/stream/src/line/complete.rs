//! The split position of a text that is read in pieces.

use super::lines::parse;
use super::{LineError, LineErrorKind};

/// Returns the number of bytes at the start of a text that are complete lines, for any text that may follow. The rest
/// is the beginning of a line; it may contain newlines inside an unfinished string. A string of more than `max_line`
/// bytes is treated as unterminated.
///
/// ```
/// use corsair_stream::line::complete;
/// assert_eq!(complete(b"cpu value=1 1\ncpu val", 1000), 14);
/// assert_eq!(complete(b"log text=\"one\ntwo\nth", 1000), 0);
/// ```
///
/// O(bytes); without double quotes, as fast as memory.
pub fn complete(text: &[u8], max_line: usize) -> usize {
    let Some(last) = memchr::memrchr(b'\n', text) else {
        return 0;
    };
    if memchr::memchr(b'"', text).is_none() {
        return last + 1;
    }
    let mut lines = parse(text);
    let mut begin = 0;
    while let Some(line) = lines.next() {
        let endless = |error: LineError| error.kind == LineErrorKind::UnterminatedString;
        if line.is_err_and(endless) && text.len() - begin <= max_line {
            return begin;
        }
        let end = lines.offset();
        if end == text.len() && text.last() != Some(&b'\n') {
            return begin;
        }
        begin = end;
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_open_string_beyond_the_longest_line_is_cut() {
        let mut text = b"log text=\"".to_vec();
        text.extend(b"word\n".repeat(100));
        assert_eq!(complete(&text, 1000), 0);
        assert_eq!(complete(&text, 100), text.len());
    }

    proptest! {
        /// Checks that reading a text in parts gives the same lines as reading it at once.
        #[test]
        fn parts_are_read_as_the_whole(
            pieces in prop::collection::vec(
                prop::sample::select(vec![
                    "m v=1 1\n", "m s=\"a\nb\" 2\n", "# c\n", "\n", "bad\n", "m s=\"\\\"\n\" 3\n", "n,t=a v=2i\n",
                ]),
                0..12,
            ),
            at in 0_usize..200,
        ) {
            let text = pieces.concat().into_bytes();
            let read = |text: &[u8]| -> Vec<String> {
                parse(text).map(|line| match line {
                    Ok(line) => line.as_str().to_string(),
                    Err(error) => error.code().to_string(),
                }).collect()
            };
            let cut = complete(&text[..at.min(text.len())], 1 << 20);
            let mut parts = read(&text[..cut]);
            parts.extend(read(&text[cut..]));
            prop_assert_eq!(parts, read(&text));
        }
    }
}
