//! The positions of structural bytes, found 64 bytes at a time.
//!
//! A block of 64 bytes is compared with all structural bytes at once. The next stage iterates over
//! set bits instead of bytes, so it costs the same for short and long names (the first stage of
//! Langdale, Lemire: "Parsing Gigabytes of JSON per Second", VLDB Journal 28, 2019).

/// Bytes of a block.
const BLOCK: usize = 64;

/// Walks over the structural bytes of a text: newline, space, comma, equals sign, double quote and
/// backslash. The end of the text counts as a newline.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// The start of the current block: a multiple of [`BLOCK`].
    block: usize,
    /// A bit for each remaining structural byte of the block.
    ahead: u64,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at `at`.
    pub fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        let mut cursor = Cursor {
            bytes,
            block: 0,
            ahead: 0,
        };
        cursor.seek(at);
        cursor
    }

    /// Returns the whole text.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the byte at this position; a newline at and after the end.
    #[inline(always)]
    pub fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(b'\n')
    }

    /// Moves to `at`, or to the end if that is earlier.
    pub fn seek(&mut self, at: usize) {
        let at = at.min(self.bytes.len());
        self.block = at - at % BLOCK;
        self.ahead = structural(self.bytes, self.block) & (u64::MAX << (at % BLOCK));
    }

    /// Moves past the next structural byte and returns its position; the end, if there is none.
    #[inline(always)]
    pub fn next(&mut self) -> usize {
        while self.ahead == 0 {
            if self.bytes.len() - self.block < BLOCK {
                return self.bytes.len();
            }
            self.block += BLOCK;
            self.ahead = structural(self.bytes, self.block);
        }
        let at = self.block + self.ahead.trailing_zeros() as usize;
        self.ahead &= self.ahead - 1;
        at
    }
}

/// Returns a bit for each structural byte of the block that begins at `from`, and a bit for the end
/// of the text.
#[inline(never)]
fn structural(bytes: &[u8], from: usize) -> u64 {
    let rest = &bytes[from..];
    match rest.first_chunk::<BLOCK>() {
        Some(block) => compare(block),
        None => {
            let mut block = [b'.'; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            block[rest.len()] = b'\n';
            compare(&block)
        }
    }
}

/// Returns a bit for each structural byte of a block. Compilers turn the first loop into SIMD.
#[inline]
fn compare(block: &[u8; BLOCK]) -> u64 {
    let mut marks = [0_u8; BLOCK];
    for (mark, &byte) in marks.iter_mut().zip(block) {
        // The space and the quote differ in only one bit.
        let blank_or_quote = byte | (b' ' ^ b'"') == b'"';
        let separator = (byte == b',') | (byte == b'=');
        let other = (byte == b'\n') | (byte == b'\\');
        *mark = u8::from(blank_or_quote | separator | other);
    }
    let mut mask = 0;
    for (place, marks) in marks.as_chunks::<8>().0.iter().enumerate() {
        // Gathers the lowest bits of eight bytes in the top byte, the first one lowest.
        let bits = u64::from_le_bytes(*marks).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= bits << (8 * place);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_structural(byte: u8) -> bool {
        b"\n ,=\"\\".contains(&byte)
    }

    #[test]
    fn each_byte_is_known_at_each_place() {
        for byte in 0..=u8::MAX {
            for filler in [0, b'.', 0x7f, 0x80, 0xff] {
                for place in 0..BLOCK {
                    let mut block = [filler; BLOCK];
                    block[place] = byte;
                    let expected = u64::from(is_structural(byte)) << place;
                    assert_eq!(compare(&block), expected, "{byte:#x} at {place}");
                }
            }
        }
        assert_eq!(compare(&[b'='; BLOCK]), u64::MAX);
    }

    proptest! {
        #[test]
        fn every_structural_byte_is_found_from_anywhere_and_then_the_end(
            text in "[a =,\"\\\\\n]{0,200}",
            from in 0_usize..250,
        ) {
            let from = from.min(text.len());
            let mut cursor = Cursor::new(text.as_bytes(), from);
            for (at, byte) in text.bytes().enumerate().skip(from) {
                if is_structural(byte) {
                    prop_assert_eq!(cursor.next(), at);
                }
            }
            prop_assert_eq!(cursor.next(), text.len());
            prop_assert_eq!(cursor.next(), text.len());
        }
    }
}
