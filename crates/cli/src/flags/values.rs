//! The values of flags as text: from the command line, from a file, or from the defaults.
//!
//! The command line takes precedence over files, and files over defaults.

use super::{FLAGS, Flag, Value, named};
use anyhow::{Result, anyhow};
use clap::ArgMatches;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The values of all flags that differ from their defaults.
#[derive(Clone, Debug, Default)]
pub struct Values {
    given: BTreeMap<&'static str, GivenValue>,
}

#[derive(Clone, Debug)]
struct GivenValue {
    text: String,
    /// The file from which the value was read; `None` for the command line.
    file: Option<PathBuf>,
}

impl Values {
    /// Returns the values that the parser has found on the command line.
    pub fn from_matches(matches: &ArgMatches) -> Values {
        let mut values = Values::default();
        for flag in FLAGS {
            if let Some(text) = matches.get_one::<String>(flag.name) {
                values.given.insert(
                    flag.name,
                    GivenValue {
                        text: text.clone(),
                        file: None,
                    },
                );
            }
        }
        values
    }

    /// Sets a value as if it was given on the command line.
    ///
    /// # Panics
    /// If there is no flag with this name.
    pub fn give(&mut self, name: &str, text: String) {
        let given = GivenValue { text, file: None };
        self.given.insert(flag(name).name, given);
    }

    /// Adds a value from a file, unless the command line has one.
    pub fn add_from_file(&mut self, flag: &'static Flag, text: String, file: &Path) {
        let given = GivenValue {
            text,
            file: Some(file.to_owned()),
        };
        self.given.entry(flag.name).or_insert(given);
    }

    /// Sets a value from a file, even if the command line has one.
    pub fn set_from_file(&mut self, flag: &'static Flag, text: String, file: &Path) {
        self.given.remove(flag.name);
        self.add_from_file(flag, text, file);
    }

    /// Returns the value as text, or the default.
    ///
    /// # Panics
    /// If there is no flag with this name.
    pub fn text(&self, name: &str) -> &str {
        match self.given.get(name) {
            Some(given) => &given.text,
            None => flag(name).default,
        }
    }

    /// Returns the value as text, if one was given and it is not empty.
    pub fn given(&self, name: &str) -> Option<&str> {
        self.given
            .get(name)
            .map(|given| given.text.as_str())
            .filter(|text| !text.is_empty())
    }

    /// Returns whether a switch is on.
    ///
    /// # Errors
    /// If the value is neither true nor false.
    pub fn switch(&self, name: &str) -> Result<bool> {
        match self.text(name) {
            "true" | "1" | "t" | "T" | "True" | "TRUE" => Ok(true),
            "" | "false" | "0" | "f" | "F" | "False" | "FALSE" => Ok(false),
            other => Err(self.wrong(name, format_args!("'{other}' is neither true nor false"))),
        }
    }

    /// Parses the value with `read`; returns `None` if there is no value.
    ///
    /// # Errors
    /// Returns the error of `read` with the name of the flag, and of the file if the value comes
    /// from one.
    pub fn read<T, E: fmt::Display>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>> {
        match self.text(name) {
            "" if !self.given.contains_key(name) => Ok(None),
            text => read(text)
                .map(Some)
                .map_err(|wrong| self.wrong(name, wrong)),
        }
    }

    /// Returns the error for an invalid value of a flag.
    pub fn wrong(&self, name: &str, wrong: impl fmt::Display) -> anyhow::Error {
        let spelled = flag(name).spelled();
        match self.given.get(name).and_then(|given| given.file.as_ref()) {
            Some(file) => anyhow!("{spelled} (\"{name}\" in {}): {wrong}", file.display()),
            None => anyhow!("{spelled}: {wrong}"),
        }
    }

    /// Returns the flags that differ from their defaults, with their values, in the order of the
    /// help.
    pub fn differing(&self) -> impl Iterator<Item = (&'static Flag, &str)> {
        FLAGS.iter().filter_map(|flag| {
            let text = self.text(flag.name);
            let same = text == flag.default || flag.default.is_empty() && text == "false";
            (!same).then_some((flag, text))
        })
    }

    /// Returns the flags on which the run depends, as graph files quote them. Equal runs have equal
    /// flags here.
    pub fn described(&self) -> String {
        let mut args = format!("[corsair -a {}", self.text("arch"));
        for (flag, text) in self
            .differing()
            .filter(|(flag, _)| flag.shapes && flag.name != "arch")
        {
            args.push(' ');
            args.push_str(&flag.spelled());
            if flag.value != Value::Switch && text != "true" {
                args.push(' ');
                args.push_str(text);
            }
        }
        args.push(']');
        args
    }
}

fn flag(name: &str) -> &'static Flag {
    named(name).unwrap_or_else(|| panic!("no flag is called {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins_over_files_and_files_over_defaults() {
        let mut values = Values::default();
        values.given.insert(
            "seed",
            GivenValue {
                text: "3".into(),
                file: None,
            },
        );
        let file = Path::new("x_conf.json");
        values.add_from_file(flag("seed"), "4".into(), file);
        values.add_from_file(flag("population"), "7".into(), file);
        let texts = ["seed", "population", "duration"].map(|name| values.text(name));
        assert_eq!(texts, ["3", "7", "10"]);
        let said = values.wrong("population", "is odd").to_string();
        assert_eq!(said, "-p (\"population\" in x_conf.json): is odd");
    }

    #[test]
    fn switches_read_what_go_reads() {
        let mut values = Values::default();
        for (text, on) in [
            ("true", Some(true)),
            ("F", Some(false)),
            ("0", Some(false)),
            ("yes", None),
        ] {
            values.given.insert(
                "graphjson",
                GivenValue {
                    text: text.into(),
                    file: None,
                },
            );
            assert_eq!(values.switch("graphjson").ok(), on, "{text}");
        }
    }
}
