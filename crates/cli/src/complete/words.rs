//! The words before the cursor: the argument whose value is typed, and the values of other arguments.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use std::collections::HashMap;
use std::path::Path;

/// A command line that ends at the cursor.
#[derive(Debug)]
pub struct Line {
    /// The subcommand, or `corsair`.
    pub subcommand: String,
    /// The name of the argument whose value is typed.
    pub argument: String,
    /// True if the argument is not a flag.
    pub is_word: bool,
    /// The part of the last word before the value, for example `--set=`.
    pub before: String,
    /// The part of the value that is already typed.
    pub typed: String,
    /// The values that the parser lists, each with a description in one line.
    pub listed: Vec<(String, String)>,
    given: HashMap<String, String>,
}

/// Returns the name of an argument; for a flag, its long name.
pub fn name(arg: &Arg) -> &str {
    arg.get_long().unwrap_or_else(|| arg.get_id().as_str())
}

impl Line {
    /// Parses the words; `None` if the last word is not a value.
    pub fn read(root: &Command, words: &[String]) -> Option<Line> {
        let (last, before) = words.split_last()?;
        let mut reader = Reader {
            command: root,
            given: HashMap::new(),
            expected: None,
            positions: 0,
        };
        for word in before {
            reader.read(word);
        }
        let (arg, before, typed) = match reader.expected {
            Some(arg) => (arg, "", last.as_str()),
            None => match reader.flag(last) {
                Some((arg, Some(value))) => (arg, &last[..last.len() - value.len()], value),
                Some((_, None)) => return None,
                None if last.starts_with('-') => return None,
                None => (reader.positional()?, "", last.as_str()),
            },
        };
        let about = |value: &PossibleValue| {
            value
                .get_help()
                .map_or(String::new(), |help| help.to_string())
        };
        let listed = arg.get_possible_values().into_iter();
        Some(Line {
            subcommand: reader.command.get_name().to_owned(),
            argument: name(arg).to_owned(),
            is_word: arg.is_positional(),
            before: before.to_owned(),
            typed: typed.to_owned(),
            listed: listed
                .map(|value| (value.get_name().to_owned(), about(&value)))
                .collect(),
            given: reader.given,
        })
    }

    /// Returns the value that was given to an argument.
    pub fn given(&self, argument: &str) -> Option<&str> {
        self.given.get(argument).map(String::as_str)
    }

    /// Returns the directory of definitions.
    pub fn directory(&self) -> &Path {
        Path::new(self.given("arch-dir").unwrap_or("json_arch"))
    }
}

struct Reader<'a> {
    command: &'a Command,
    given: HashMap<String, String>,
    /// The argument whose value is the next word.
    expected: Option<&'a Arg>,
    /// The number of words that are neither flags nor values of flags.
    positions: usize,
}

impl<'a> Reader<'a> {
    fn read(&mut self, word: &str) {
        if let Some(arg) = self.expected.take() {
            self.given.insert(name(arg).to_owned(), word.to_owned());
        } else if let Some((arg, value)) = self.flag(word) {
            match value {
                Some(value) => {
                    self.given.insert(name(arg).to_owned(), value.to_owned());
                }
                None if takes_next(arg) => self.expected = Some(arg),
                None => {}
            }
        } else if let Some(subcommand) = self.command.find_subcommand(word) {
            self.command = subcommand;
        } else if !word.starts_with('-') {
            if let Some(arg) = self.positional() {
                let given = self.given.entry(name(arg).to_owned());
                given.or_insert_with(|| word.to_owned());
            }
            self.positions += 1;
        }
    }

    /// Returns the flag that a word names in Go's or GNU's spelling, and the value in the same word.
    fn flag<'w>(&self, word: &'w str) -> Option<(&'a Arg, Option<&'w str>)> {
        let body = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let letter = name.chars().next()?;
        let is = |arg: &&Arg| {
            arg.get_long() == Some(name)
                || name.len() == letter.len_utf8() && arg.get_short() == Some(letter)
        };
        if let Some(arg) = self.command.get_arguments().find(is) {
            return Some((arg, value));
        }
        if word.starts_with("--") {
            return None;
        }
        let joined = |arg: &&Arg| arg.get_short() == Some(letter) && takes_next(arg);
        let arg = self.command.get_arguments().find(joined)?;
        Some((arg, Some(&body[letter.len_utf8()..])))
    }

    /// Returns the argument for the next word that is not a flag. The last argument takes all further words if it may
    /// be repeated.
    fn positional(&self) -> Option<&'a Arg> {
        let mut all = self.command.get_positionals();
        let last = self.command.get_positionals().last();
        let repeated = || last.filter(|arg| matches!(arg.get_action(), ArgAction::Append));
        all.nth(self.positions).or_else(repeated)
    }
}

/// True if the word after a flag is its value.
fn takes_next(arg: &Arg) -> bool {
    let takes_values = matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
    takes_values && !arg.is_require_equals_set()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::{Purpose, command};

    fn read(words: &str) -> Option<(String, String, String)> {
        let mut root = command(Purpose::Describe);
        root.build();
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        Line::read(&root, &words).map(|line| (line.argument, line.before, line.typed))
    }

    fn is(argument: &str, before: &str, typed: &str) -> Option<(String, String, String)> {
        Some((argument.to_owned(), before.to_owned(), typed.to_owned()))
    }

    #[test]
    fn values_are_found_in_every_spelling() {
        assert_eq!(read("-a la"), is("arch", "", "la"));
        assert_eq!(read("-ala"), is("arch", "-a", "la"));
        assert_eq!(read("-a=la"), is("arch", "-a=", "la"));
        assert_eq!(read("-arch la"), is("arch", "", "la"));
        assert_eq!(read("--arch=la"), is("arch", "--arch=", "la"));
        assert_eq!(read("-d 5 -j --arch "), is("arch", "", ""));
        assert_eq!(read("capacity --find inst"), is("find", "", "inst"));
        assert_eq!(
            read("sweep -a lamp --set services.w"),
            is("set", "", "services.w")
        );
    }

    #[test]
    fn words_of_a_subcommand_are_its_arguments_in_order() {
        assert_eq!(read("compare la"), is("a", "", "la"));
        assert_eq!(read("compare lamp --seeds 3 ne"), is("b", "", "ne"));
        assert_eq!(read("resume saved --set ser"), is("set", "", "ser"));
        assert_eq!(read("compare lamp netflix more"), None);
        assert_eq!(read("gate new.yaml more"), is("files", "", "more"));
    }

    #[test]
    fn flags_and_subcommands_are_no_values() {
        for words in ["", "-", "--ar", "-j", "cap", "-d 5 "] {
            let found = read(words);
            assert!(found.is_none(), "{words}: {found:?}");
        }
    }
}
