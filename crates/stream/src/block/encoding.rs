//! Blocks as bytes, for the write-ahead log.
//!
//! The bytes are a fraction of the lines: a log is limited by the disk, and by the copy of the kernel. Integers, which
//! include times and the codes of tags, are stored as differences from the least one. The differences are divided by a
//! common divisor, and take only as many bytes as the greatest quotient needs; floats lose common zeros at their ends.
//! Missing cells take a bit.

use super::{Block, Cells, Column, Data, Origin, Words};
use std::borrow::Cow;
use std::sync::Arc;

/// The content of a column.
#[derive(serde::Serialize, serde::Deserialize)]
enum Form {
    Tag,
    Float,
    Integer,
    Unsigned,
    Boolean,
    Text,
    Mixed,
}

/// The form of a list of integers.
#[derive(serde::Serialize, serde::Deserialize)]
struct Packing {
    least: i64,
    divisor: u64,
    /// The number of bytes of each quotient.
    width: usize,
}

/// The number of differences from which the common divisor is taken.
const SAMPLE: usize = 16;

impl Block {
    /// Appends the block to `bytes`, without the database and the policy of its origin. O(cells).
    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        let columns = self.columns.len();
        put(&(&*self.origin.measurement, self.rows(), columns), bytes);
        // A byte or more for each time, so that a reader knows that there are not more rows than bytes.
        put_integers(self.times.iter().copied(), 1, bytes);
        for Column { name, data } in &self.columns {
            put(&**name, bytes);
            data.encode(bytes);
        }
    }

    /// Reads a block from the beginning of `bytes`, and removes it from there. Returns `None` if the bytes are not a
    /// block. `origin` returns the origin of a measurement.
    pub(crate) fn decode(
        bytes: &mut &[u8],
        origin: impl FnOnce(Arc<str>) -> Arc<Origin>,
    ) -> Option<Block> {
        let (measurement, rows, columns): (Arc<str>, usize, usize) = take(bytes)?;
        let times = take_integers(rows, 1, bytes)?.into();
        let column = |_| {
            let name = take(bytes)?;
            let data = Arc::new(Data::decode(rows, bytes)?);
            Some(Column { name, data })
        };
        Some(Block {
            origin: origin(measurement),
            times,
            columns: (0..columns).map(column).collect::<Option<_>>()?,
        })
    }
}

impl Data {
    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            Data::Tag(Words { codes, words }) => {
                put(&(Form::Tag, words), bytes);
                // The code of missing words is the greatest one.
                let missing = words.len() as u32;
                put_codes(codes.iter().map(|&code| code.min(missing).into()), bytes);
            }
            Data::Float(cells) => {
                put(&Form::Float, bytes);
                put_floats(&cells.encode(bytes), bytes);
            }
            Data::Integer(cells) => {
                put(&Form::Integer, bytes);
                put_integers(cells.encode(bytes).iter().copied(), 0, bytes);
            }
            Data::Unsigned(cells) => {
                put(&Form::Unsigned, bytes);
                let values = cells.encode(bytes);
                put_integers(values.iter().map(|&value| value.cast_signed()), 0, bytes);
            }
            Data::Boolean(cells) => {
                put(&Form::Boolean, bytes);
                put_bits(&cells.encode(bytes), bytes);
            }
            Data::Text(cells) => {
                put(&Form::Text, bytes);
                let texts = cells.encode(bytes);
                // A string that is shared with the previous row is stored once.
                let is_shared = |row: usize| row > 0 && Arc::ptr_eq(&texts[row - 1], &texts[row]);
                let length = |row: usize| match is_shared(row) {
                    true => 0,
                    false => texts[row].len() as i64 + 1,
                };
                put_integers((0..texts.len()).map(length), 0, bytes);
                for row in (0..texts.len()).filter(|&row| !is_shared(row)) {
                    bytes.extend_from_slice(texts[row].as_bytes());
                }
            }
            Data::Mixed(cells) => put(&(Form::Mixed, cells), bytes),
        }
    }

    fn decode(rows: usize, bytes: &mut &[u8]) -> Option<Data> {
        Some(match take(bytes)? {
            Form::Tag => {
                let words: Vec<Arc<str>> = take(bytes)?;
                let code = |code: i64| match usize::try_from(code) {
                    Ok(code) if code < words.len() => Some(code as u32),
                    Ok(code) if code == words.len() => Some(Words::MISSING),
                    _ => None,
                };
                let codes = take_integers(rows, 0, bytes)?.into_iter().map(code);
                Data::Tag(Words {
                    codes: codes.collect::<Option<_>>()?,
                    words,
                })
            }
            Form::Float => Data::Float(Cells::decode(rows, bytes, |count, bytes| {
                let bits = take_integers(count, 0, bytes)?.into_iter();
                Some(
                    bits.map(|bits| f64::from_bits(bits.cast_unsigned()))
                        .collect(),
                )
            })?),
            Form::Integer => Data::Integer(Cells::decode(rows, bytes, |count, bytes| {
                take_integers(count, 0, bytes)
            })?),
            Form::Unsigned => Data::Unsigned(Cells::decode(rows, bytes, |count, bytes| {
                let values = take_integers(count, 0, bytes)?.into_iter();
                Some(values.map(i64::cast_unsigned).collect())
            })?),
            Form::Boolean => Data::Boolean(Cells::decode(rows, bytes, take_bits)?),
            Form::Text => Data::Text(Cells::decode(rows, bytes, take_texts)?),
            Form::Mixed => match take::<Vec<_>>(bytes)? {
                cells if cells.len() == rows => Data::Mixed(cells),
                _ => return None,
            },
        })
    }
}

impl<T: Clone + Default> Cells<T> {
    /// Appends which cells have values, and returns these values.
    fn encode(&self, bytes: &mut Vec<u8>) -> Cow<'_, [T]> {
        put(&self.present.is_some(), bytes);
        let Some(present) = &self.present else {
            return Cow::Borrowed(&self.values);
        };
        put_bits(present, bytes);
        let cells = self.values.iter().zip(present);
        let values = cells.filter(|(_, present)| **present);
        values.map(|(value, _)| value.clone()).collect()
    }

    /// Reads cells; `values` reads a number of values.
    fn decode(
        rows: usize,
        bytes: &mut &[u8],
        values: impl FnOnce(usize, &mut &[u8]) -> Option<Vec<T>>,
    ) -> Option<Cells<T>> {
        if !take::<bool>(bytes)? {
            let values = values(rows, bytes)?;
            return Some(Cells {
                values,
                present: None,
            });
        }
        let present = take_bits(rows, bytes)?;
        let count = present.iter().filter(|present| **present).count();
        let mut values = values(count, bytes)?.into_iter();
        let cell = |&present: &bool| match present {
            true => values
                .next()
                .expect("there is a value for each present cell"),
            false => T::default(),
        };
        Some(Cells {
            values: present.iter().map(cell).collect(),
            present: Some(present),
        })
    }
}

/// Appends a value.
pub(crate) fn put<T: serde::Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) {
    let appended = postcard::to_extend(value, std::mem::take(bytes));
    *bytes = appended.expect("plain data can be written");
}

/// Reads a value from the beginning of `bytes`, and removes it from there. Returns `None` if the bytes are not a value.
pub(crate) fn take<'a, T: serde::Deserialize<'a>>(bytes: &mut &'a [u8]) -> Option<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).ok()?;
    *bytes = rest;
    Some(value)
}

/// Appends integers, each in `least_width` bytes or more.
fn put_integers(
    values: impl ExactSizeIterator<Item = i64> + Clone,
    least_width: usize,
    bytes: &mut Vec<u8>,
) {
    let ends = |(least, most): (i64, i64), value: i64| (least.min(value), most.max(value));
    let (least, most) = values.clone().fold((i64::MAX, i64::MIN), ends);
    // Correct even if the difference exceeds the range of signed integers.
    let difference = move |value: i64| value.wrapping_sub(least).cast_unsigned();
    let differences = values.map(difference);
    let most = difference(most);
    let divisor = differences.clone().take(SAMPLE).fold(0, divisor_of).max(1);
    let begin = bytes.len();
    for divisor in [divisor, 1] {
        let width = width_of(most / divisor).max(least_width);
        let packing = Packing {
            least,
            divisor,
            width,
        };
        // If the divisor does not divide a difference, the quotient is too large.
        let quotients = differences.clone().map(exact_division(divisor));
        if put_packed(&packing, quotients, bytes) <= most / divisor {
            return;
        }
        bytes.truncate(begin);
    }
}

/// Appends the codes of words.
fn put_codes(codes: impl ExactSizeIterator<Item = u64> + Clone, bytes: &mut Vec<u8>) {
    let packing = Packing {
        least: 0,
        divisor: 1,
        width: width_of(codes.clone().max().unwrap_or(0)),
    };
    put_packed(&packing, codes, bytes);
}

/// Appends floats without the zeros at the end of all of them: few floats of measurements need all bits.
fn put_floats(values: &[f64], bytes: &mut Vec<u8>) {
    let bits = values.iter().map(|value| value.to_bits());
    let used = bits.clone().fold(0, |used, bits| used | bits);
    let zeros = used.trailing_zeros().min(u64::BITS - 1);
    let packing = Packing {
        least: 0,
        divisor: 1 << zeros,
        width: width_of(used >> zeros),
    };
    put_packed(&packing, bits.map(|bits| bits >> zeros), bytes);
}

/// Returns the number of bytes that a number takes: a power of two, or 0.
fn width_of(number: u64) -> usize {
    let bytes = (u64::BITS - number.leading_zeros()).div_ceil(8);
    match bytes {
        0 => 0,
        _ => bytes.next_power_of_two() as usize,
    }
}

/// Appends quotients and their form, and returns the greatest one.
fn put_packed(
    packing: &Packing,
    quotients: impl ExactSizeIterator<Item = u64>,
    bytes: &mut Vec<u8>,
) -> u64 {
    put(packing, bytes);
    match packing.width {
        0 => quotients.max().unwrap_or(0),
        1 => put_quotients::<1>(quotients, bytes),
        2 => put_quotients::<2>(quotients, bytes),
        4 => put_quotients::<4>(quotients, bytes),
        _ => put_quotients::<8>(quotients, bytes),
    }
}

fn put_quotients<const WIDTH: usize>(
    quotients: impl ExactSizeIterator<Item = u64>,
    bytes: &mut Vec<u8>,
) -> u64 {
    let begin = bytes.len();
    bytes.resize(begin + WIDTH * quotients.len(), 0);
    let (places, _) = bytes[begin..].as_chunks_mut::<WIDTH>();
    let mut most = 0;
    for (place, quotient) in places.iter_mut().zip(quotients) {
        place.copy_from_slice(&quotient.to_le_bytes()[..WIDTH]);
        most = most.max(quotient);
    }
    most
}

fn take_integers(count: usize, least_width: usize, bytes: &mut &[u8]) -> Option<Vec<i64>> {
    let packing: Packing = take(bytes)?;
    if packing.width < least_width || packing.width > 8 {
        return None;
    }
    let (quotients, rest) = bytes.split_at_checked(count.checked_mul(packing.width)?)?;
    *bytes = rest;
    let value = |quotient: u64| {
        let difference = quotient.wrapping_mul(packing.divisor);
        packing.least.wrapping_add(difference.cast_signed())
    };
    if packing.width == 0 {
        return Some(vec![packing.least; count]);
    }
    let quotient = |place: &[u8]| {
        let mut quotient = [0; 8];
        quotient[..packing.width].copy_from_slice(place);
        u64::from_le_bytes(quotient)
    };
    let quotients = quotients.chunks_exact(packing.width).map(quotient);
    Some(quotients.map(value).collect())
}

/// Returns the greatest common divisor.
fn divisor_of(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Returns a division of multiples of `divisor`. It takes a multiplication, because an odd number has an inverse modulo
/// 2^64 (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994, section 9). For other
/// numbers the result is greater than that of any multiple.
fn exact_division(divisor: u64) -> impl Fn(u64) -> u64 + Clone {
    let shift = divisor.trailing_zeros();
    let odd = divisor >> shift;
    // An odd number is its own inverse modulo 8. Each step doubles the number of correct bits.
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    move |value| value.wrapping_mul(inverse).rotate_right(shift)
}

fn put_bits(bits: &[bool], bytes: &mut Vec<u8>) {
    let byte = |bits: &[bool]| {
        let bits = bits.iter().rev();
        bits.fold(0, |byte, &bit| byte << 1 | u8::from(bit))
    };
    bytes.extend(bits.chunks(8).map(byte));
}

fn take_bits(count: usize, bytes: &mut &[u8]) -> Option<Vec<bool>> {
    let (bits, rest) = bytes.split_at_checked(count.div_ceil(8))?;
    *bytes = rest;
    let bit = |at: usize| bits[at / 8] >> (at % 8) & 1 == 1;
    Some((0..count).map(bit).collect())
}

fn take_texts(count: usize, bytes: &mut &[u8]) -> Option<Vec<Arc<str>>> {
    let mut texts: Vec<Arc<str>> = Vec::new();
    for length in take_integers(count, 0, bytes)? {
        let text = match usize::try_from(length).ok()?.checked_sub(1) {
            None => texts.last()?.clone(),
            Some(length) => {
                let (text, rest) = bytes.split_at_checked(length)?;
                *bytes = rest;
                str::from_utf8(text).ok()?.into()
            }
        };
        texts.push(text);
    }
    Some(texts)
}

#[cfg(test)]
mod tests;
