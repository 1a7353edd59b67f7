//! Values as rows of the index: encoded, with a checksum that binds them to their keys.
//!
//! A damaged row, or a row that is stored under a wrong key, gives an error and never a wrong
//! answer.

use redb::Error;
use serde::{Deserialize, Serialize};

/// The length of the checksum in bytes.
const CHECK: usize = 4;

/// A number with its checksum.
pub(super) type Number = (u64, u32);

/// Returns a number with its checksum, for the row with this key.
pub(super) fn number(key: &[u64], value: u64) -> Number {
    (value, number_check(key, value))
}

/// Checks and returns the number that [`number`] has stored under this key.
pub(super) fn checked(what: &str, key: &[u64], (value, check): Number) -> Result<u64, Error> {
    match number_check(key, value) == check {
        true => Ok(value),
        false => Err(Error::Corrupted(format!(
            "a row of the index is damaged: {what} {key:?}"
        ))),
    }
}

fn number_check(key: &[u64], value: u64) -> u32 {
    u32::from_le_bytes(checksum(key, &value.to_le_bytes()))
}

/// Encodes a value into a buffer that is reused.
pub(super) fn encode<'s, T: Serialize>(
    key: &[u64],
    value: &T,
    scratch: &'s mut Vec<u8>,
) -> &'s [u8] {
    scratch.clear();
    scratch.extend_from_slice(&[0; CHECK]);
    let memory = std::mem::take(scratch);
    *scratch = postcard::to_extend(value, memory).expect("memory takes everything");
    let check = checksum(key, &scratch[CHECK..]);
    scratch[..CHECK].copy_from_slice(&check);
    scratch
}

/// Decodes the result of [`encode`] under this key. `what` names the table.
pub(super) fn decode<'r, T: Deserialize<'r>>(
    what: &str,
    key: &[u64],
    bytes: &'r [u8],
) -> Result<T, Error> {
    let damaged = |reason: &str| {
        Error::Corrupted(format!(
            "a row of the index is damaged: {what} {key:?}{reason}"
        ))
    };
    let (check, row) = bytes.split_at_checked(CHECK).ok_or_else(|| damaged(""))?;
    if checksum(key, row) != *check {
        return Err(damaged(""));
    }
    postcard::from_bytes(row).map_err(|error| damaged(&format!(": {error}")))
}

fn checksum(key: &[u64], row: &[u8]) -> [u8; CHECK] {
    let mut hasher = crc32fast::Hasher::new();
    for part in key {
        hasher.update(&part.to_le_bytes());
    }
    hasher.update(row);
    hasher.finalize().to_le_bytes()
}

/// Returns the key of a session in the form that checksums use.
pub(super) fn session_key(id: [u8; 16]) -> [u64; 2] {
    let bits = u128::from_le_bytes(id);
    [bits as u64, (bits >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_only_as_it_was_written_and_where() {
        let (value, check) = number(&[3], 17);
        assert_eq!(checked("place", &[3], (value, check)).unwrap(), 17);
        for wrong in [(16, check), (value, check ^ 1)] {
            assert!(checked("place", &[3], wrong).is_err());
        }
        assert!(checked("place", &[4], (value, check)).is_err());
    }

    #[test]
    fn a_row_is_read_only_as_it_was_written_and_where() {
        let mut scratch = Vec::new();
        let row = encode(&[3, 5], &"ahoy", &mut scratch).to_vec();
        assert_eq!(decode::<&str>("message", &[3, 5], &row).unwrap(), "ahoy");
        assert!(decode::<&str>("message", &[3, 6], &row).is_err());
        for place in 0..row.len() {
            let mut damaged = row.clone();
            damaged[place] ^= 4;
            let said = decode::<&str>("message", &[3, 5], &damaged).unwrap_err();
            assert!(said.to_string().contains("message [3, 5]"), "{said}");
            assert!(decode::<&str>("message", &[3, 5], &row[..place]).is_err());
        }
    }
}
