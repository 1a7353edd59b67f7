//! Where in its text a part of a definition stands.

use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

/// A file, or whatever else a definition was read from, and the line in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or for instance `built-in netflixoss`.
    pub file: String,
    /// The line, from 1; none if it is not known.
    pub line: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file),
            None => f.write_str(&self.file),
        }
    }
}

/// A step on the way to a part of a JSON document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

/// The line, from 1, of what stands at the end of this way; if the way ends early, of the last
/// part that is there. O(length of the text).
pub(super) fn line(text: &str, way: &[Step<'_>]) -> Option<usize> {
    let mut here: &RawValue = serde_json::from_str(text).ok()?;
    for step in way {
        let next = match *step {
            Step::Key(key) => serde_json::from_str::<HashMap<String, &RawValue>>(here.get())
                .ok()
                .and_then(|map| map.get(key).copied()),
            Step::Index(index) => serde_json::from_str::<Vec<&RawValue>>(here.get())
                .ok()
                .and_then(|list| list.get(index).copied()),
        };
        match next {
            Some(next) => here = next,
            None => break,
        }
    }
    // Raw values borrow from the text they were read from.
    let offset = (here.get().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some(1 + text.get(..offset)?.matches('\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_nested_parts_are_found_and_of_missing_ones_those_around() {
        let text = "{\n \"a\": [\n  {\"b\": 1},\n  {\n\"b\":\n2}]}";
        let line = |way: &[Step<'_>]| line(text, way);
        assert_eq!(line(&[]), Some(1));
        assert_eq!(line(&[Step::Key("a"), Step::Index(0)]), Some(3));
        let second = [Step::Key("a"), Step::Index(1), Step::Key("b")];
        assert_eq!(line(&second), Some(6));
        let missing = [Step::Key("a"), Step::Index(1), Step::Key("c")];
        assert_eq!(line(&missing), Some(4));
    }
}
