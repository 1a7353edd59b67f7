//! All flags of the command, defined once, as data.
//!
//! The parser, the help, the man page, the completions, the configuration files and the error
//! messages are all made from [`FLAGS`]. A flag has one long name; most of spigo's also have the
//! letter that spigo's users know.

pub mod command;
pub mod normalise;
pub mod refusal;
pub mod values;

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
    pub pending: Option<Pending>,
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
            Group::Output => "What to write",
            Group::Files => "Flags in files",
        }
    }
}

/// A flag that fsm understands and does not obey.
#[derive(Debug)]
pub struct Pending {
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

/// The candidate most like what was typed, if any is like it: by a slip of the finger or two, or
/// by its beginning.
pub fn nearest<'a>(typed: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let among: Vec<&str> = among.into_iter().collect();
    let slips = |name: &&&str| strsim::osa_distance(&typed, name);
    let likeness = |name: &&str| strsim::jaro_winkler(&typed, name);
    let near = among.iter().min_by_key(slips)?;
    if slips(&near) <= (typed.chars().count() / 3).max(1) {
        return Some(near);
    }
    let by_likeness = |a: &&&str, b: &&&str| likeness(a).total_cmp(&likeness(b));
    among
        .iter()
        .max_by(by_likeness)
        .copied()
        .filter(|name| likeness(name) > 0.8)
}

/// spigo's flags that are words; it writes them with one dash.
const SPIGO_WORDS: [&str; 5] = ["kv", "cpus", "cpuprofile", "config", "saveconfig"];

/// The plain flag from which the entries of [`FLAGS`] differ.
const PLAIN: Flag = Flag {
    name: "",
    letter: None,
    value: Value::Switch,
    default: "",
    group: Group::Simulation,
    help: "",
    shapes: false,
    pending: None,
};

/// Every flag, in the order of the help.
pub static FLAGS: &[Flag] = &[
    Flag {
        name: "arch",
        letter: Some('a'),
        value: Value::One("NAME"),
        default: "netflixoss",
        help: "Architecture: fsm, migration, one of json_arch/, or a built-in one",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "population",
        letter: Some('p'),
        value: Value::One("N"),
        default: "100",
        help: "How many pirates; for other architectures, percent",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "duration",
        letter: Some('d'),
        value: Value::One("SECONDS"),
        default: "10",
        help: "How long they talk, or how long there is load; 500ms or 1m30s work too",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "kv",
        value: Value::One("KEY:VALUE"),
        help: "Tuning: chat:10ms lets every pirate or entry point talk with this period",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "reload",
        letter: Some('r'),
        value: Value::Optional("FILE"),
        help: "Start from the graph in json/<arch><step>.json, or in FILE (--reload FILE)",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "regions",
        letter: Some('w'),
        value: Value::One("N"),
        default: "1",
        help: "Regions to replicate the architecture into",
        shapes: true,
        pending: Some(Pending {
            what: "more than one region",
            instead: "leave it out, or give -w 1",
        }),
        ..PLAIN
    },
    Flag {
        name: "stopstep",
        letter: Some('s'),
        value: Value::One("N"),
        default: "0",
        help: "The step of -a migration: 0 to 9",
        shapes: true,
        pending: Some(Pending {
            what: "steps of a migration",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "eurekapoll",
        letter: Some('u'),
        value: Value::One("DURATION"),
        default: "1s",
        help: "How often services ask their registry",
        shapes: true,
        pending: Some(Pending {
            what: "service registries",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "seed",
        value: Value::One("N"),
        default: "0",
        help: "Where all random numbers come from; the same seed, the same run",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "executor",
        value: Value::Word(&["virtual", "tokio", "threads", "pool"]),
        default: "virtual",
        group: Group::Execution,
        help: "Virtual time; or by the clock: tasks, a thread per actor, a pool of threads",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "form",
        value: Value::Word(&["async", "handler"]),
        default: "handler",
        group: Group::Execution,
        help: "Run pirates as async bodies or as handlers; the result is the same",
        ..PLAIN
    },
    Flag {
        name: "cpus",
        value: Value::One("N"),
        group: Group::Execution,
        help: "Worker threads [default: one per core]",
        ..PLAIN
    },
    Flag {
        name: "workers",
        value: Value::One("N"),
        group: Group::Execution,
        help: "The same as -cpus",
        ..PLAIN
    },
    Flag {
        name: "latency",
        value: Value::One("TIME|MIN..MAX"),
        group: Group::Execution,
        help: "How long messages travel: 2ms, 1ms..5ms [default: 1.05ms..2.1ms]",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "lookahead",
        value: Value::One("TIME"),
        group: Group::Execution,
        help: "Width of the windows of virtual time [default: the smallest latency]",
        ..PLAIN
    },
    Flag {
        name: "end",
        value: Value::One("TIME"),
        group: Group::Execution,
        help: "Fail if the run goes past this time",
        ..PLAIN
    },
    Flag {
        name: "mailbox",
        value: Value::One("N"),
        default: "256",
        group: Group::Execution,
        help: "Events that a mailbox holds (tokio, threads, pool)",
        ..PLAIN
    },
    Flag {
        name: "overflow",
        value: Value::Word(&["block", "drop_newest", "drop_oldest", "fail"]),
        default: "block",
        group: Group::Execution,
        help: "What happens if a mailbox is full",
        ..PLAIN
    },
    Flag {
        name: "strict",
        group: Group::Execution,
        help: "Messages to actors that have ended, and actors left waiting, are errors",
        ..PLAIN
    },
    Flag {
        name: "graphjson",
        letter: Some('j'),
        group: Group::Output,
        help: "Write nodes and edges to json/<arch><step>.json (GraphJSON 0.4)",
        ..PLAIN
    },
    Flag {
        name: "msglog",
        letter: Some('m'),
        group: Group::Output,
        help: "Print every message, in the order of time",
        ..PLAIN
    },
    Flag {
        name: "graphml",
        letter: Some('g'),
        group: Group::Output,
        help: "Write nodes and edges to gml/<arch><step>.graphml and .gexf",
        pending: Some(Pending {
            what: "GraphML",
            instead: "leave it out, or use -j for GraphJSON",
        }),
        ..PLAIN
    },
    Flag {
        name: "neo4j",
        letter: Some('n'),
        group: Group::Output,
        help: "Write nodes and edges to Neo4j at NEO4JURL, with NEO4JPASSWORD",
        pending: Some(Pending {
            what: "Neo4j",
            instead: "leave it out, or use -j for GraphJSON",
        }),
        ..PLAIN
    },
    Flag {
        name: "collect",
        letter: Some('c'),
        group: Group::Output,
        help: "Measure times (csv_metrics/) and write flows (json_metrics/)",
        pending: Some(Pending {
            what: "flows and histograms",
            instead: "leave it out, or use --per-actor FILE for the totals of every actor",
        }),
        ..PLAIN
    },
    Flag {
        name: "kafka",
        letter: Some('k'),
        value: Value::One("HOST:PORT"),
        group: Group::Output,
        help: "Send flows to Kafka",
        pending: Some(Pending {
            what: "Kafka",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "flow-format",
        value: Value::One("FORMATS"),
        group: Group::Output,
        help: "Write flows as zipkin1,zipkin2,otlp or all [with -c: zipkin1]",
        pending: Some(Pending {
            what: "flows",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "otlp",
        value: Value::One("URL"),
        group: Group::Output,
        help: "Send flows to a collector by OTLP/JSON, as to http://localhost:4318",
        pending: Some(Pending {
            what: "flows",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "zipkin",
        value: Value::One("URL"),
        group: Group::Output,
        help: "Send flows to a Zipkin server, as to http://localhost:9411",
        pending: Some(Pending {
            what: "flows",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "metrics",
        value: Value::One("ADDRESS"),
        group: Group::Output,
        help: "Serve times for Prometheus while running, as at 127.0.0.1:9090",
        pending: Some(Pending {
            what: "times of services",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "filter",
        letter: Some('f'),
        group: Group::Output,
        help: "Collapse instances into services in what is written",
        pending: Some(Pending {
            what: "collapsing instances",
            instead: "leave it out",
        }),
        ..PLAIN
    },
    Flag {
        name: "format",
        value: Value::Word(&["text", "json"]),
        default: "text",
        group: Group::Output,
        help: "Lines, or one JSON object on stdout and nothing else",
        ..PLAIN
    },
    Flag {
        name: "arch-dir",
        value: Value::One("DIR"),
        default: "json_arch",
        help: "Where definitions are: NAME_arch.json",
        ..PLAIN
    },
    Flag {
        name: "out",
        value: Value::One("DIR"),
        default: ".",
        group: Group::Output,
        help: "Where json/, gml/, json_metrics/ and csv_metrics/ are written, and json/ is read",
        ..PLAIN
    },
    Flag {
        name: "epoch",
        value: Value::One("DATE"),
        group: Group::Output,
        help: "The date of time zero in files [default: 1970-01-01T00:00:00Z, or now by the clock]",
        shapes: true,
        ..PLAIN
    },
    Flag {
        name: "per-actor",
        value: Value::One("FILE"),
        group: Group::Output,
        help: "Write what every actor sent and received, as CSV",
        ..PLAIN
    },
    Flag {
        name: "cpuprofile",
        value: Value::One("FILE"),
        group: Group::Output,
        help: "Write a CPU profile for `go tool pprof`",
        ..PLAIN
    },
    Flag {
        name: "config",
        value: Value::One("NAME"),
        group: Group::Files,
        help: "Read flags from json/NAME_conf.json or json_arch/NAME_conf.json",
        ..PLAIN
    },
    Flag {
        name: "saveconfig",
        value: Value::Optional("NAME"),
        group: Group::Files,
        help: "Write the flags of this run to json/NAME_conf.json [default: the architecture]",
        ..PLAIN
    },
];

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
