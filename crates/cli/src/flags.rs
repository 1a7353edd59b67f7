//! All flags of the command, defined once, as data.
//!
//! The parser, the help, the man page, the completions, the configuration files and the error
//! messages are all made from [`FLAGS`]. A flag has one long name; most of spigo's also have the
//! letter that spigo's users know.

pub mod normalise;
pub mod refusal;
pub mod removed;
mod table;
pub mod values;

pub use corsair_arch::nearest;
pub use table::FLAGS;

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// Its long name, also its key in configuration files.
    pub name: &'static str,
    /// The letter by which spigo calls it, if that is not its name.
    pub letter: Option<char>,
    /// What follows it.
    pub value: Value,
    /// What it is when it is not given; empty: nothing.
    pub default: &'static str,
    /// The part of the help in which it stands.
    pub group: Group,
    /// One line of help.
    pub help: &'static str,
    /// Whether the course of a run, or what it writes of itself, depends on it.
    pub shapes: bool,
    /// Set where fsm does not do what it asks for, and architectures of services do.
    pub services_only: Option<ServicesOnly>,
}

/// What follows a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Nothing, or in Go's spelling `=true` or `=false`.
    Switch,
    /// Something that may be left out; its name in the help.
    Optional(&'static str),
    /// Something; its name in the help.
    One(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The part of the help in which a flag stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What is simulated.
    Simulation,
    /// How it is executed.
    Execution,
    /// Where it is executed, if not in one process.
    Processes,
    /// What is written, and where to.
    Output,
    /// Flags kept in files.
    Files,
}

impl Group {
    /// The heading in the help.
    pub fn heading(self) -> &'static str {
        match self {
            Group::Simulation => "What to simulate",
            Group::Execution => "How to run it",
            Group::Processes => "How to run it over several processes or machines",
            Group::Output => "What to write",
            Group::Files => "Flags in files",
        }
    }
}

/// A flag that fsm understands and does not obey.
#[derive(Debug)]
pub struct ServicesOnly {
    /// What it would do.
    pub what: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

impl Flag {
    /// The flag as the help spells it first: `-p`, or `--seed`.
    pub fn spelled(&self) -> String {
        match self.letter {
            Some(letter) => format!("-{letter}"),
            None if SPIGO_WORDS.contains(&self.name) => format!("-{}", self.name),
            None => format!("--{}", self.name),
        }
    }

    /// Whether it needs a value after it.
    pub fn needs_value(&self) -> bool {
        matches!(self.value, Value::One(_) | Value::Word(_))
    }
}

/// The flag of this long name.
pub fn named(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// The flag with this letter.
pub fn lettered(letter: char) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.letter == Some(letter))
}

/// spigo's flags that are words; it writes them with one dash.
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
