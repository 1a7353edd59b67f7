//! Values that are not strings.

use super::error::LineErrorKind;
use super::scan::RawValue;

/// Powers of ten that a float holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// Up to here every integer is a float.
const EXACT: u64 = 1 << 53;

/// Digits that surely fit into 64 bits.
const DIGITS: usize = 19;

/// A number or a boolean. Linear in its length.
#[inline]
pub(super) fn unquoted(text: &[u8]) -> Result<RawValue, LineErrorKind> {
    match text {
        [b'0'..=b'9' | b'-' | b'.', ..] => number(text),
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => Ok(RawValue::Boolean(true)),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => Ok(RawValue::Boolean(false)),
        [] => Err(LineErrorKind::MissingFieldValue),
        _ => Err(no_value(text)),
    }
}

/// Digits, a sign before them perhaps, of at most 64 bits; `None`: not so.
#[inline]
pub(super) fn integer(text: &[u8], too_large: LineErrorKind) -> Result<Option<i64>, LineErrorKind> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let Some(size) = unsigned(digits, too_large)? else {
        return Ok(None);
    };
    let value = if negative {
        0_i64.checked_sub_unsigned(size)
    } else {
        i64::try_from(size).ok()
    };
    value.map(Some).ok_or(too_large)
}

/// Digits, of at most 64 bits; `None`: something else, or nothing.
#[inline]
fn unsigned(text: &[u8], too_large: LineErrorKind) -> Result<Option<u64>, LineErrorKind> {
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > DIGITS {
        return many_digits(text, too_large);
    }
    let (eights, rest) = text.as_chunks::<8>();
    let mut value = 0_u64;
    for eight in eights {
        match eight_digits(*eight) {
            Some(part) => value = value * 100_000_000 + part,
            None => return Ok(None),
        }
    }
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Ok(None);
        }
        value = value * 10 + u64::from(digit);
    }
    Ok(Some(value))
}

/// More digits than surely fit.
#[cold]
fn many_digits(text: &[u8], too_large: LineErrorKind) -> Result<Option<u64>, LineErrorKind> {
    if !text.iter().all(u8::is_ascii_digit) {
        return Ok(None);
    }
    text.iter()
        .try_fold(0_u64, |value, byte| {
            value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))
        })
        .map(Some)
        .ok_or(too_large)
}

/// The number that eight digits write, all at once: pairs, then fours, then both (Lemire:
/// "Quickly parsing eight digits", 2018).
#[inline]
fn eight_digits(text: [u8; 8]) -> Option<u64> {
    const ZEROS: u64 = u64::from_ne_bytes([b'0'; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0xf0; 8]);
    const SIXES: u64 = u64::from_ne_bytes([6; 8]);
    let word = u64::from_le_bytes(text);
    // A byte is a digit if its upper half is 3, and still is when six are added.
    if word & HIGH != ZEROS || word.wrapping_add(SIXES) & HIGH != ZEROS {
        return None;
    }
    let digits = word - ZEROS;
    let pairs = digits * 10 + (digits >> 8);
    let fours =
        |pairs: u64, high: u64, low: u64| (pairs & 0xff_0000_00ff).wrapping_mul(high + (low << 32));
    let upper = fours(pairs, 100, 1_000_000);
    let lower = fours(pairs >> 16, 1, 10_000);
    Some(upper.wrapping_add(lower) >> 32)
}

/// An integer, an unsigned integer or a float.
#[inline]
fn number(text: &[u8]) -> Result<RawValue, LineErrorKind> {
    let value = match text {
        [digits @ .., b'i'] => {
            integer(digits, LineErrorKind::IntegerOutOfRange)?.map(RawValue::Integer)
        }
        [digits @ .., b'u'] => {
            unsigned(digits, LineErrorKind::UnsignedOutOfRange)?.map(RawValue::Unsigned)
        }
        _ => return float(text).map(RawValue::Float),
    };
    value.ok_or_else(|| no_value(text))
}

/// A float. Where all digits fit into 53 bits and the power of ten is exact, one division rounds
/// once and so is right (Clinger: "How to Read Floating Point Numbers Accurately", PLDI 1990).
#[inline]
fn float(text: &[u8]) -> Result<f64, LineErrorKind> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() <= DIGITS {
        let mut mantissa = 0_u64;
        let mut point = None;
        for (place, &byte) in digits.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                mantissa = mantissa * 10 + u64::from(digit);
            } else if byte == b'.' && point.is_none() {
                point = Some(place);
            } else {
                return any_float(text);
            }
        }
        let decimals = point.map_or(0, |place| digits.len() - 1 - place);
        let count = digits.len() - usize::from(point.is_some());
        if mantissa <= EXACT && count > 0 {
            let size = mantissa as f64 / POWERS[decimals];
            return Ok(if negative { -size } else { size });
        }
    }
    any_float(text)
}

/// A float of any length, with an exponent perhaps.
fn any_float(text: &[u8]) -> Result<f64, LineErrorKind> {
    // The standard library also reads words and a leading plus sign.
    let of_numbers = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    let value = std::str::from_utf8(text)
        .ok()
        .filter(|text| text.bytes().all(|byte| of_numbers(&byte)))
        .and_then(|text| text.parse::<f64>().ok());
    match value {
        Some(value) if value.is_finite() => Ok(value),
        Some(_) => Err(LineErrorKind::FloatOutOfRange),
        None => Err(no_value(text)),
    }
}

/// Why this is no value.
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
