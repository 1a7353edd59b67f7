//! Converts truth values to rows.

use crate::batch::Rows;
use std::sync::Arc;

/// Returns the marked rows: a range if they are consecutive; the given list if all are marked.
pub(super) fn marked(rows: &Rows, marks: &[bool]) -> Rows {
    let count = marks.iter().filter(|mark| **mark).count();
    if count == marks.len() {
        return rows.clone();
    }
    let ends = (
        marks.iter().position(|mark| *mark),
        marks.iter().rposition(|mark| *mark),
    );
    let (Some(first), Some(last)) = ends else {
        return Rows::Range(0, 0);
    };
    let (from, to) = (rows.get(first) as u32, rows.get(last) as u32);
    if (to - from) as usize + 1 == count {
        return Rows::Range(from, to + 1);
    }
    let marks = &marks[first..=last];
    let mut list: Arc<[u32]> = std::iter::repeat_n(0, count).collect();
    let places = Arc::get_mut(&mut list).expect("no other reference exists yet");
    let mut kept = 0;
    // Each row is written and kept if it is marked, which is faster than an unpredictable branch. The last
    // row is marked, so there is space for each row before it.
    match rows {
        Rows::Range(..) => {
            for (row, mark) in (from..).zip(marks) {
                places[kept] = row;
                kept += usize::from(*mark);
            }
        }
        Rows::List(rows) => {
            for (row, mark) in rows[first..].iter().zip(marks) {
                places[kept] = *row;
                kept += usize::from(*mark);
            }
        }
    }
    Rows::List(list)
}
