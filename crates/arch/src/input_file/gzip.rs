//! The gzip container (RFC 1952); `miniz_oxide` inflates the contents.

use miniz_oxide::inflate::stream::{InflateState, inflate};
use miniz_oxide::{DataFormat, MZError, MZFlush, MZStatus};
use std::io;

/// Flags of a member's header.
const HAS_CHECKSUM: u8 = 2;
const HAS_EXTRA: u8 = 4;
const HAS_NAME: u8 = 8;
const HAS_COMMENT: u8 = 16;

/// The number of bytes that are inflated in one step.
const STEP: usize = 1 << 18;

fn wrong() -> io::Error {
    let said = "it begins like gzip, but is not gzip; decompress it first";
    io::Error::new(io::ErrorKind::InvalidData, said)
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the gzip file is cut off")
}

/// Decompresses all members of a file, up to a total of `most` bytes.
///
/// # Errors
/// If the input is not gzip, is truncated, or has a wrong checksum.
pub(super) fn decompress(mut bytes: &[u8], most: usize) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    // Zeros after the last member are padding.
    while bytes.iter().any(|&byte| byte != 0) && text.len() < most {
        bytes = body(bytes)?;
        let begins = text.len();
        bytes = &bytes[inflate_member(bytes, &mut text, most)?..];
        if text.len() >= most {
            break;
        }
        let Some((trailer, rest)) = bytes.split_at_checked(8) else {
            return Err(cut_off());
        };
        let sum = crc32fast::hash(&text[begins..]).to_le_bytes();
        if trailer[..4] != sum {
            let said = "the checksum of the gzip file is wrong; the file is damaged";
            return Err(io::Error::new(io::ErrorKind::InvalidData, said));
        }
        bytes = rest;
    }
    Ok(text)
}

/// Returns the bytes after the header of a member.
fn body(bytes: &[u8]) -> io::Result<&[u8]> {
    let Some((&[0x1f, 0x8b, method, flags, ..], mut rest)) = bytes.split_first_chunk::<10>() else {
        let is_begun = bytes.starts_with(&[0x1f, 0x8b]);
        return Err(if is_begun { cut_off() } else { wrong() });
    };
    if method != 8 || flags & 0xe0 != 0 {
        return Err(wrong());
    }
    if flags & HAS_EXTRA != 0 {
        let (length, after) = rest.split_first_chunk::<2>().ok_or_else(cut_off)?;
        let length = usize::from(u16::from_le_bytes(*length));
        rest = after.get(length..).ok_or_else(cut_off)?;
    }
    for flag in [HAS_NAME, HAS_COMMENT] {
        if flags & flag != 0 {
            let end = rest
                .iter()
                .position(|&byte| byte == 0)
                .ok_or_else(cut_off)?;
            rest = &rest[end + 1..];
        }
    }
    if flags & HAS_CHECKSUM != 0 {
        rest = rest.get(2..).ok_or_else(cut_off)?;
    }
    Ok(rest)
}

/// Inflates a member and returns the number of its compressed bytes.
fn inflate_member(bytes: &[u8], text: &mut Vec<u8>, most: usize) -> io::Result<usize> {
    let mut state = InflateState::new_boxed(DataFormat::Raw);
    let mut taken = 0;
    loop {
        let begins = text.len();
        text.resize(begins + STEP, 0);
        let done = inflate(
            &mut state,
            &bytes[taken..],
            &mut text[begins..],
            MZFlush::None,
        );
        taken += done.bytes_consumed;
        text.truncate(begins + done.bytes_written);
        match done.status {
            Ok(MZStatus::StreamEnd) => return Ok(taken),
            _ if text.len() >= most => return Ok(taken),
            Ok(_) if done.bytes_written > 0 => {}
            Ok(_) | Err(MZError::Buf) => return Err(cut_off()),
            Err(_) => return Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn compress(text: &[u8]) -> Vec<u8> {
        let builder = flate2::GzBuilder::new()
            .filename("a")
            .comment("b")
            .extra(vec![1, 2]);
        let mut gzip = builder.write(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn all_members_are_read_up_to_a_limit_and_damage_is_reported() {
        let text: Vec<u8> = (0..1_000_000u32).map(|n| (n / 7) as u8).collect();
        let mut file = compress(&text);
        file.extend(compress(b"more"));
        let whole = [text.as_slice(), b"more"].concat();
        assert_eq!(decompress(&file, usize::MAX).unwrap(), whole);
        let begun = decompress(&file, 1_000).unwrap();
        assert!(begun.len() >= 1_000 && begun.len() < 1_000_000 && whole.starts_with(&begun));
        for length in [2, 9, 12, 100, file.len() - 3] {
            let said = decompress(&file[..length], usize::MAX)
                .unwrap_err()
                .to_string();
            assert!(said.contains("cut off"), "{length}: {said}");
        }
        let end = compress(&text).len() - 6;
        file[end] ^= 1;
        let said = decompress(&file, usize::MAX).unwrap_err().to_string();
        assert!(said.contains("damaged"), "{said}");
    }
}
