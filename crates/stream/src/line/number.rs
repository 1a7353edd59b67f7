//! Values that are not strings.

use super::error::LineErrorKind;
use super::raw::RawValue;

/// Powers of ten that floats represent exactly, enough for numbers of fewer than [`DIGITS`] digits.
const POWERS: [f64; 20] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19,
];

/// The limit up to which floats represent every integer.
const EXACT: u64 = 1 << 53;

/// The number of decimal digits that always fit into 64 bits.
const DIGITS: usize = 19;

/// Parses the number or boolean at `from..to`. The next byte cannot be part of a value. Linear in its length.
#[inline(always)]
pub(super) fn unquoted(bytes: &[u8], from: usize, to: usize) -> Result<RawValue, LineErrorKind> {
    match bytes.get(from) {
        Some(b'0'..=b'9' | b'-' | b'.') => number(bytes, from, to),
        _ => boolean(&bytes[from..to]),
    }
}

fn boolean(text: &[u8]) -> Result<RawValue, LineErrorKind> {
    match text {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => Ok(RawValue::Boolean(true)),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => Ok(RawValue::Boolean(false)),
        [] => Err(LineErrorKind::MissingFieldValue),
        _ => Err(no_value(text)),
    }
}

/// Parses an integer, an unsigned integer or a float. If all digits of a float fit into 53 bits and the power of ten is
/// exact, one division rounds once and is therefore correct (Clinger: "How to Read Floating Point Numbers Accurately",
/// PLDI 1990).
#[inline(always)]
fn number(bytes: &[u8], from: usize, to: usize) -> Result<RawValue, LineErrorKind> {
    let negative = bytes[from] == b'-';
    let begin = from + usize::from(negative);
    let (mut size, mut end) = digits(bytes, begin, 0);
    let mut count = end - begin;
    let mut decimals = 0;
    if bytes.get(end) == Some(&b'.') {
        let point = end;
        (size, end) = digits(bytes, point + 1, size);
        decimals = end - point - 1;
        count += decimals;
    }
    if count > DIGITS || count == 0 {
        return slow(&bytes[from..to]);
    }
    if end == to && size <= EXACT {
        let size = size as f64 / POWERS[decimals];
        return Ok(RawValue::Float(if negative { -size } else { size }));
    }
    let whole = end == begin + count && end + 1 == to;
    match bytes.get(end) {
        Some(b'i') if whole => match signed(size, negative) {
            Some(value) => Ok(RawValue::Integer(value)),
            None => Err(LineErrorKind::IntegerOutOfRange),
        },
        Some(b'u') if whole && !negative => Ok(RawValue::Unsigned(size)),
        _ => slow(&bytes[from..to]),
    }
}

/// Parses the timestamp at `from..to`.
#[inline(always)]
pub(super) fn time(bytes: &[u8], from: usize, to: usize) -> Result<i64, LineErrorKind> {
    let negative = bytes.get(from) == Some(&b'-');
    let begin = from + usize::from(negative);
    let (size, end) = digits(bytes, begin, 0);
    if end == to && (1..=DIGITS).contains(&(end - begin)) {
        return signed(size, negative).ok_or(LineErrorKind::TimestampOutOfRange);
    }
    match many_digits(&bytes[begin.min(to)..to]) {
        Some(Some(size)) => signed(size, negative).ok_or(LineErrorKind::TimestampOutOfRange),
        Some(None) => Err(LineErrorKind::TimestampOutOfRange),
        None => Err(LineErrorKind::BadTimestamp),
    }
}

#[inline(always)]
fn signed(size: u64, negative: bool) -> Option<i64> {
    if negative {
        0_i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    }
}

/// Appends the digits from `at` on to `value`, and returns their end. Overflow is ignored, so there must be at most
/// [`DIGITS`] digits. The function reads eight digits at a time: it combines pairs, then groups of four, then all eight
/// (Lemire: "Quickly parsing eight digits", 2018).
#[inline(always)]
fn digits(bytes: &[u8], mut at: usize, mut value: u64) -> (u64, usize) {
    const SHIFTS: [u64; 9] = [
        1,
        10,
        100,
        1_000,
        10_000,
        100_000,
        1_000_000,
        10_000_000,
        100_000_000,
    ];
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    loop {
        // Bytes that are digits become 0 to 9.
        let word = eight_bytes(bytes, at) ^ (0x30 * ONES);
        let others = (((word & (0x7f * ONES)) + (0x76 * ONES)) | word) & (0x80 * ONES);
        let count = others.trailing_zeros() as usize / 8;
        // Missing leading digits become zeros.
        let word = word.unbounded_shl(64 - 8 * count as u32);
        let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
        let fours = |pairs: u64, high: u64, low: u64| {
            (pairs & 0xff_0000_00ff).wrapping_mul(high + (low << 32))
        };
        let part = fours(pairs, 100, 1_000_000).wrapping_add(fours(pairs >> 16, 1, 10_000)) >> 32;
        value = value.wrapping_mul(SHIFTS[count]).wrapping_add(part);
        at += count;
        if count < 8 {
            return (value, at);
        }
    }
}

/// Returns the next eight bytes, with zeros after the end.
#[inline(always)]
fn eight_bytes(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    }
}

/// Parses a number with an exponent or many digits, or fails.
#[cold]
fn slow(text: &[u8]) -> Result<RawValue, LineErrorKind> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if let [digits @ .., b'i'] = digits
        && let Some(size) = many_digits(digits)
    {
        let value = size.and_then(|size| signed(size, negative));
        let value = value.map(RawValue::Integer);
        return value.ok_or(LineErrorKind::IntegerOutOfRange);
    }
    if let [digits @ .., b'u'] = digits
        && !negative
        && let Some(size) = many_digits(digits)
    {
        let value = size.map(RawValue::Unsigned);
        return value.ok_or(LineErrorKind::UnsignedOutOfRange);
    }
    // The standard library also reads words and a leading plus sign.
    let of_numbers = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    let value = std::str::from_utf8(text)
        .ok()
        .filter(|_| text.iter().all(of_numbers))
        .and_then(|text| text.parse::<f64>().ok());
    match value {
        Some(value) if value.is_finite() => Ok(RawValue::Float(value)),
        Some(_) => Err(LineErrorKind::FloatOutOfRange),
        None => Err(no_value(text)),
    }
}

/// Parses any number of digits: `Some(None)` if they exceed 64 bits, `None` if they are not digits.
fn many_digits(text: &[u8]) -> Option<Option<u64>> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |value: u64, byte: &u8| value.checked_mul(10)?.checked_add(u64::from(byte - b'0'));
    Some(text.iter().try_fold(0, add))
}

/// Returns the reason why this text is not a value.
#[cold]
fn no_value(text: &[u8]) -> LineErrorKind {
    let word = text.strip_prefix(b"-").unwrap_or(text);
    let word = word.strip_prefix(b"+").unwrap_or(word);
    let words: [&[u8]; 3] = [b"nan", b"inf", b"infinity"];
    if words.iter().any(|known| word.eq_ignore_ascii_case(known)) {
        LineErrorKind::NotFinite
    } else {
        LineErrorKind::BadFieldValue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Compares with the standard library, bit by bit.
    fn assert_float(text: &str) {
        // The number within a text, and at the end of a text.
        for whole in [format!("{text},1234567890"), text.to_owned()] {
            let expected = text.parse::<f64>().unwrap();
            match unquoted(whole.as_bytes(), 0, text.len()) {
                Ok(RawValue::Float(value)) => {
                    assert_eq!(value.to_bits(), expected.to_bits(), "{text}")
                }
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn floats_around_the_limits_of_exact_division_are_right() {
        for mantissa in [
            EXACT - 1,
            EXACT,
            EXACT + 1,
            EXACT + 2,
            999_999_999_999_999,
            u64::MAX,
        ] {
            let digits = mantissa.to_string();
            for place in 0..=digits.len() {
                let (whole, rest) = digits.split_at(place);
                assert_float(&format!("{whole}.{rest}"));
                assert_float(&format!("-{whole}.{rest}"));
            }
            assert_float(&digits);
        }
        assert_float("0.0000000000000000001");
        assert_float("0.000000000000000000");
        assert_float("-0.0");
    }

    proptest! {
        #[test]
        fn floats_of_any_length_are_right(text in "-?([0-9]{1,25}|[0-9]{0,25}\\.[0-9]{1,25})(e-?[0-9]{1,2})?") {
            assert_float(&text);
        }

        #[test]
        fn integers_of_any_length_are_right(zeros in 0_usize..30, value: i64, size: u64) {
            let zeros = "0".repeat(zeros);
            let sign = if value < 0 { "-" } else { "" };
            let text = format!("{sign}{zeros}{}i", value.unsigned_abs());
            prop_assert_eq!(unquoted(text.as_bytes(), 0, text.len()), Ok(RawValue::Integer(value)));
            prop_assert_eq!(time(text.as_bytes(), 0, text.len() - 1), Ok(value));
            let text = format!("{zeros}{size}u ");
            prop_assert_eq!(unquoted(text.as_bytes(), 0, text.len() - 1), Ok(RawValue::Unsigned(size)));
        }

        #[test]
        fn eight_bytes_are_digits_only_if_each_is(text: [u8; 8]) {
            let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let value = text[..count].iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0'));
            prop_assert_eq!(digits(&text, 0, 0), (value, count));
        }
    }
}
