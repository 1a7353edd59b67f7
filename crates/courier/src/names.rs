//! The rules for names of users.
//!
//! Names that look the same should be the same name. So names are compared in Unicode's normal form C, and characters
//! that are invisible or change the direction of text are refused.

use crate::limits::LONGEST_NAME;
use unicode_normalization::UnicodeNormalization;

/// Characters that are invisible, or change how other characters are displayed.
const INVISIBLE: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),        // soft hyphen
    ('\u{34f}', '\u{34f}'),      // combining grapheme joiner
    ('\u{61c}', '\u{61c}'),      // Arabic letter mark
    ('\u{115f}', '\u{1160}'),    // Hangul fillers
    ('\u{17b4}', '\u{17b5}'),    // Khmer inherent vowels
    ('\u{180b}', '\u{180f}'),    // Mongolian selectors
    ('\u{200b}', '\u{200f}'),    // zero width, direction marks
    ('\u{2028}', '\u{202e}'),    // separators, direction embeddings and overrides
    ('\u{2060}', '\u{206f}'),    // word joiner, isolates
    ('\u{2800}', '\u{2800}'),    // empty Braille pattern
    ('\u{3164}', '\u{3164}'),    // Hangul filler
    ('\u{e000}', '\u{f8ff}'),    // private use
    ('\u{fe00}', '\u{fe0f}'),    // variation selectors
    ('\u{feff}', '\u{feff}'),    // byte order mark
    ('\u{ffa0}', '\u{ffa0}'),    // half-width Hangul filler
    ('\u{fff0}', '\u{ffff}'),    // specials
    ('\u{1d173}', '\u{1d17a}'),  // musical formatting
    ('\u{e0000}', '\u{10ffff}'), // tags, selectors, private use
];

/// Returns a name in the stored form.
pub(crate) fn normalized(name: &str) -> String {
    name.nfc().collect()
}

/// Returns the stored form of a name, if the name is valid.
///
/// # Errors
/// The reason why the name is invalid.
pub(crate) fn check(name: &str) -> Result<String, String> {
    // Normal form C may be up to three times as long, so very long names are refused before they are normalised.
    let name = match name.len() <= 3 * LONGEST_NAME {
        true => normalized(name),
        false => name.to_owned(),
    };
    if name.is_empty() || name.len() > LONGEST_NAME {
        let length = name.len();
        return Err(format!(
            "a name has 1 to {LONGEST_NAME} bytes, this one has {length}"
        ));
    }
    if name.trim() != name {
        return Err("a name must not begin or end with a space".to_owned());
    }
    let odd = |c: &char| {
        let space = c.is_whitespace() && *c != ' ';
        let among = |&(first, last): &(char, char)| (first..=last).contains(c);
        c.is_control() || space || INVISIBLE.iter().any(among)
    };
    match name.chars().find(odd) {
        Some(c) => Err(format!(
            "a name has only visible characters; remove U+{:04X}",
            u32::from(c)
        )),
        None => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_alike_are_one_name() {
        assert_eq!(check("Zoe\u{308}").unwrap(), "Zo\u{eb}");
        assert_eq!(check("\u{212b}").unwrap(), "\u{c5}");
        for good in ["anne", "Mary Read", "海賊", "Ольга", "o'neill-7", "🏴"] {
            assert_eq!(check(good).unwrap(), good);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_not_part_of_a_name() {
        for wrong in [
            "",
            " anne",
            "anne ",
            "an\nne",
            "an\tne",
            "an\u{0}ne",
            "an\u{200b}ne",
            "an\u{202e}en",
            "an\u{2066}ne",
            "anne\u{fe0f}",
            "an\u{a0}ne",
            "an\u{e0041}ne",
            "\u{3164}",
            "\u{feff}anne",
        ] {
            assert!(check(wrong).is_err(), "{wrong:?}");
        }
        assert!(check(&"x".repeat(65)).unwrap_err().contains("65"));
    }
}
