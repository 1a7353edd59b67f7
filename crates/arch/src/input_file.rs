//! Input files, which are read completely, up to a maximum size.

mod gzip;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The maximum size in bytes of definitions, loads and compose files. No valid file is nearly as large.
pub const MOST_BYTES: u64 = 64 << 20;

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// If the file cannot be read or is longer.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_long(most)),
        false => Ok(bytes),
    }
}

fn too_long(most: u64) -> io::Error {
    let said = format!("it has more than {} MiB; give a part of it", most >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, said)
}

/// Reads a file of at most `most` bytes, decompressed if it is gzip.
///
/// # Errors
/// If the file cannot be read, is longer, or is incomplete.
pub fn read_maybe_gzip(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read_bytes(path, most)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(bytes);
    }
    let text = gzip::decompress(&bytes, most as usize + 1)?;
    match text.len() as u64 > most {
        true => Err(too_long(most)),
        false => Ok(text),
    }
}

/// Reads a text of at most [`MOST_BYTES`], without the byte-order mark that some editors write.
///
/// # Errors
/// If the file cannot be read, is longer than [`MOST_BYTES`], or is not UTF-8.
pub fn read_file_text(path: &Path) -> io::Result<String> {
    let bytes = read_bytes(path, MOST_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the text is not UTF-8; save the file as UTF-8",
        )
    })?;
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_ends_is_refused() {
        let said = read_bytes(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(said.kind(), io::ErrorKind::FileTooLarge);
        assert!(said.to_string().contains("more than 1 MiB"), "{said}");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "\u{feff}time").unwrap();
        assert_eq!(read_file_text(file.path()).unwrap(), "time");
        std::fs::write(file.path(), b"\xff\xfe").unwrap();
        assert!(read_file_text(file.path()).is_err());
    }
}
