//! All flags of the command, defined once, as data.
//!
//! The parser, the help, the man page, the completions, the configuration files and the error
//! messages are all made from [`FLAGS`]. A flag has one long name; most of spigo's flags also have
//! the letter that spigo uses.

pub mod normalise;
pub mod refusal;
pub mod removed;
mod table;
pub mod values;

pub use corsair_arch::nearest;
pub use table::FLAGS;

/// The definition of a flag.
#[derive(Debug)]
pub struct Flag {
    /// The long name, which is also the key in configuration files.
    pub name: &'static str,
    /// The letter of the flag in spigo, if it differs from the name.
    pub letter: Option<char>,
    /// The kind of value that the flag takes.
    pub value: Value,
    /// The default value; empty if there is none.
    pub default: &'static str,
    /// The section of the help.
    pub group: Group,
    /// A line of help.
    pub help: &'static str,
    /// True if the result of a run, or its output files, depend on the flag.
    pub shapes: bool,
    /// The warning if the flag is used with fsm; `None` if the flag has an effect on fsm.
    pub services_only: Option<ServicesOnly>,
}

/// The value of a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value, or Go's `=true` and `=false`.
    Switch,
    /// An optional value, with its name in the help.
    Optional(&'static str),
    /// A required value, with its name in the help.
    One(&'static str),
    /// One of the listed words.
    Word(&'static [&'static str]),
}

/// A section of the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Flags about the simulated system.
    Simulation,
    /// Flags about the execution.
    Execution,
    /// The distribution over processes.
    Processes,
    /// Flags about the output.
    Output,
    /// Flags about configuration files.
    Files,
}

impl Group {
    /// Returns the heading of the section in the help.
    pub fn heading(self) -> &'static str {
        match self {
            Group::Simulation => "What to simulate",
            Group::Execution => "How to run it",
            Group::Processes => "How to run it on several processes or machines",
            Group::Output => "What to write",
            Group::Files => "Flags in files",
        }
    }
}

/// The warning about a flag that has no effect on fsm.
#[derive(Debug)]
pub struct ServicesOnly {
    /// The effect that the flag would have.
    pub what: &'static str,
    /// The advice for the user, as a clause, for example `leave it out`.
    pub instead: &'static str,
}

impl Flag {
    /// Returns the first spelling of the flag in the help: `-p`, or `--seed`.
    pub fn spelled(&self) -> String {
        match self.letter {
            Some(letter) => format!("-{letter}"),
            None if SPIGO_WORDS.contains(&self.name) => format!("-{}", self.name),
            None => format!("--{}", self.name),
        }
    }

    /// Returns true if the flag requires a value.
    pub fn needs_value(&self) -> bool {
        matches!(self.value, Value::One(_) | Value::Word(_))
    }
}

/// Returns the flag with this long name.
pub fn named(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// Returns the flag with this letter.
pub fn lettered(letter: char) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.letter == Some(letter))
}

/// spigo's flags with whole words as names; spigo writes them with one dash.
const SPIGO_WORDS: [&str; 5] = ["kv", "cpus", "cpuprofile", "config", "saveconfig"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_letters_are_unique() {
        let mut seen = std::collections::HashSet::new();
        for flag in FLAGS {
            assert!(seen.insert(flag.name.to_owned()), "{}", flag.name);
            if let Some(letter) = flag.letter {
                assert!(seen.insert(letter.to_string()), "{letter}");
            }
        }
    }

    #[test]
    fn spigo_flags_are_all_there() {
        for name in "a p d w g j n m r c k s u f".split(' ') {
            let letter = name.chars().next().unwrap();
            assert_eq!(
                lettered(letter).map(Flag::spelled),
                Some(format!("-{letter}"))
            );
        }
        for name in SPIGO_WORDS {
            assert_eq!(named(name).map(Flag::spelled), Some(format!("-{name}")));
        }
    }

    #[test]
    fn nearest_finds_a_slip_of_the_finger_and_nothing_far() {
        let names = || FLAGS.iter().map(|flag| flag.name);
        assert_eq!(nearest("cpuprofil", names()), Some("cpuprofile"));
        assert_eq!(nearest("sede", names()), Some("seed"));
        assert_eq!(nearest("look", names()), Some("lookahead"));
        assert_eq!(nearest("fms", ["lamp", "fsm"]), Some("fsm"));
        assert_eq!(nearest("zzzz", names()), None);
    }
}
