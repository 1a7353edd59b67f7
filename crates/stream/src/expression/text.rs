//! Strings of many rows, stored like tags: each distinct word once, and an index per row.
//!
//! A tag has few words and many rows, so operations are executed once per word where possible. The words of a field are
//! its cells, one per row.

use super::Binary;
use super::fault::Fault;
use crate::batch::Rows;
use crate::block::{Cells, Words};
use std::borrow::Cow;
use std::sync::Arc;

/// The maximum bytes of a string that an expression makes: otherwise a few operators could make a gigabyte
/// from a point.
pub(super) const MAX_TEXT: usize = 1 << 20;

/// Returns the concatenation of both strings.
pub(super) fn joined(left: &str, right: &str) -> Result<Arc<str>, Fault> {
    match left.len() + right.len() <= MAX_TEXT {
        true => Ok([left, right].concat().into()),
        false => Err(Fault::Length),
    }
}

/// A string per row.
#[derive(Debug)]
pub(super) struct Texts<'a> {
    /// The index of each row's word, or [`Words::MISSING`].
    codes: Cow<'a, [u32]>,
    words: Cow<'a, [Arc<str>]>,
    /// True if all words differ.
    distinct: bool,
}

impl<'a> Texts<'a> {
    pub(super) fn of_tag(words: &'a Words, codes: Cow<'a, [u32]>) -> Texts<'a> {
        Texts {
            codes,
            words: Cow::Borrowed(&words.words),
            distinct: true,
        }
    }

    pub(super) fn of_field(cells: &'a Cells<Arc<str>>, rows: &Rows) -> Texts<'a> {
        let code = |row: usize| match &cells.present {
            Some(present) if !present[row] => Words::MISSING,
            _ => row as u32,
        };
        Texts {
            codes: rows.iter().map(code).collect(),
            words: Cow::Borrowed(&cells.values),
            distinct: false,
        }
    }

    pub(super) fn get(&self, at: usize) -> Option<&Arc<str>> {
        self.words.get(self.codes[at] as usize)
    }

    pub(super) fn present(&self) -> Option<Vec<bool>> {
        self.codes.contains(&Words::MISSING).then(|| {
            self.codes
                .iter()
                .map(|&code| code != Words::MISSING)
                .collect()
        })
    }

    /// True if it is faster to compare each word once than each row, because there are fewer words than rows.
    fn repeats(&self) -> bool {
        self.distinct && self.words.len() <= self.codes.len()
    }

    /// Compares with one string. Rows without a word get an arbitrary result.
    pub(super) fn compare_one(&self, operator: Binary, one: &str) -> Vec<bool> {
        let test = |word: &str| operator.holds(Some(word.cmp(one)));
        if !self.repeats() {
            let row = |&code: &u32| self.words.get(code as usize).is_some_and(|word| test(word));
            return self.codes.iter().map(row).collect();
        }
        if operator.is_equality() {
            let same = |word: &Arc<str>| **word == *one;
            let place = self.words.iter().position(same);
            let code = place.map_or(Words::MISSING, |place| place as u32);
            let negated = operator == Binary::NotEqual;
            return self
                .codes
                .iter()
                .map(|&row| (row == code) != negated)
                .collect();
        }
        let verdicts: Vec<bool> = self.words.iter().map(|word| test(word)).collect();
        let row = |&code: &u32| verdicts.get(code as usize).copied().unwrap_or_default();
        self.codes.iter().map(row).collect()
    }

    /// Compares row by row. Rows without a word get an arbitrary result.
    pub(super) fn compare(&self, operator: Binary, other: &Texts<'_>) -> Vec<bool> {
        (0..self.codes.len())
            .map(|at| match (self.get(at), other.get(at)) {
                (Some(left), Some(right)) => operator.holds(Some(left.cmp(right))),
                _ => false,
            })
            .collect()
    }

    /// Concatenates each string with `one`, which is put before or after it.
    pub(super) fn join_one(&self, one: &str, before: bool) -> Result<Texts<'static>, Fault> {
        let joined = |word: &Arc<str>| match before {
            true => joined(one, word),
            false => joined(word, one),
        };
        if self.repeats() {
            return Ok(Texts {
                codes: Cow::Owned(self.codes.to_vec()),
                words: Cow::Owned(self.words.iter().map(joined).collect::<Result<_, _>>()?),
                distinct: true,
            });
        }
        Texts::of_rows((0..self.codes.len()).map(|at| self.get(at).map(joined).transpose()))
    }

    /// Concatenates the two strings of each row.
    pub(super) fn join(&self, other: &Texts<'_>) -> Result<Texts<'static>, Fault> {
        Texts::of_rows((0..self.codes.len()).map(|at| {
            let both = self.get(at).zip(other.get(at));
            both.map(|(left, right)| joined(left, right)).transpose()
        }))
    }

    fn of_rows(
        rows: impl Iterator<Item = Result<Option<Arc<str>>, Fault>>,
    ) -> Result<Texts<'static>, Fault> {
        let mut words = Vec::with_capacity(rows.size_hint().0);
        let code = |row: Result<Option<Arc<str>>, Fault>| {
            Ok(match row? {
                Some(word) => {
                    words.push(word);
                    words.len() as u32 - 1
                }
                None => Words::MISSING,
            })
        };
        let codes = rows.map(code).collect::<Result<_, Fault>>()?;
        Ok(Texts {
            codes: Cow::Owned(codes),
            words: Cow::Owned(words),
            distinct: false,
        })
    }

    /// Converts to the cells of a field.
    pub(super) fn into_cells(self) -> Cells<Arc<str>> {
        let present = self.present();
        let nothing = Arc::<str>::default();
        Cells {
            values: (0..self.codes.len())
                .map(|at| self.get(at).unwrap_or(&nothing).clone())
                .collect(),
            present,
        }
    }
}
