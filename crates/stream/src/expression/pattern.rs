//! Regular expressions, for `=~` and `!~`.

use regex::{Regex, RegexBuilder};
use std::fmt;

/// A regular expression. Matching takes time in proportion to the text, whatever the pattern.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// An error in a regular expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

/// The memory that a pattern may take.
const SIZE: usize = 1 << 20;

impl Pattern {
    /// Compiles the text between the slashes.
    ///
    /// # Errors
    /// If the text is not a regular expression, or needs too much memory.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        let built = RegexBuilder::new(text).size_limit(SIZE).build();
        // The last line contains the fault, the lines before it the position.
        let wrong = |error: regex::Error| {
            let text = error.to_string();
            let last = text.lines().next_back().unwrap_or_default();
            PatternError(last.trim_start_matches("error: ").to_owned())
        };
        built.map(Pattern).map_err(wrong)
    }

    /// Returns the text between the slashes.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// True if the pattern matches anywhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Replaces all matches in a text; `None` if the result would be longer than `most` bytes.
    pub(super) fn replace(&self, text: &str, with: &str, most: usize) -> Option<String> {
        let (mut replaced, mut end) = (String::new(), 0);
        for found in self.0.captures_iter(text) {
            let whole = found.get(0)?;
            replaced.push_str(&text[end..whole.start()]);
            found.expand(with, &mut replaced);
            end = whole.end();
            if replaced.len() > most {
                return None;
            }
        }
        replaced.push_str(&text[end..]);
        (replaced.len() <= most).then_some(replaced)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.as_str() == other.as_str()
    }
}

/// Writes the pattern between slashes.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.as_str().replace('/', "\\/"))
    }
}
