//! Converts Go's spelling of flags to the spelling that the parser reads.
//!
//! Go writes a flag with one dash or two, and its value after `=` or as the next argument, even if that argument looks
//! like a flag. Go never joins letters. GNU writes `-d0`, `-jm` and `--duration 0`. Both spellings become
//! `--name=value`, or `--name` without a value (`--name=true` if the value is optional). Flags that are not in
//! [`FLAGS`](super::FLAGS) stay unchanged, and the parser refuses them. The first word that is not a flag, such as a
//! subcommand, and all arguments after it stay unchanged.

use super::{FLAGS, Flag, Value, lettered, named};
use std::ffi::OsString;

/// The arguments (without the program's name) in the parser's spelling.
pub fn normalise(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut args = args.into_iter().peekable();
    let mut normal = Vec::new();
    while let Some(arg) = args.next() {
        let Some(flag) = arg.to_str().and_then(DashedArgument::read) else {
            let is_word = arg
                .to_str()
                .is_none_or(|arg| !arg.starts_with('-') || arg == "--");
            let is_compose = arg == "compose2arch";
            normal.push(arg);
            if is_word {
                normal.extend(args.map(|arg| if is_compose { as_in_go(arg) } else { arg }));
                return normal;
            }
            continue;
        };
        let last = match flag {
            DashedArgument::Unknown(arg) => {
                normal.push(arg.into());
                continue;
            }
            DashedArgument::Joined { switches, last } => {
                normal.extend(
                    switches
                        .iter()
                        .map(|flag| format!("--{}", flag.name).into()),
                );
                last
            }
            DashedArgument::Alone(last) => last,
        };
        let Some(One {
            flag,
            value,
            by_letter,
        }) = last
        else {
            continue;
        };
        let value = value.map(OsString::from).or_else(|| {
            let takes_next = match flag.value {
                Value::Switch => false,
                Value::Optional(_) => !by_letter,
                Value::One(_) | Value::Word(_) => true,
            };
            args.next_if(|next| takes_next && is_value(flag, next))
        });
        let left_out = matches!(flag.value, Value::Optional(_)).then(|| OsString::from("true"));
        let mut joined = OsString::from(format!("--{}", flag.name));
        if let Some(value) = value.or(left_out) {
            joined.push("=");
            joined.push(value);
        }
        normal.push(joined);
    }
    normal
}

/// Converts an argument of spigo's `compose2arch -file FILE` to the parser's spelling.
fn as_in_go(arg: OsString) -> OsString {
    match arg.to_str() {
        Some(text) if text == "-file" || text.starts_with("-file=") => format!("-{text}").into(),
        _ => arg,
    }
}

/// An argument that begins with a dash.
enum DashedArgument<'a> {
    /// A single flag, possibly with its value.
    Alone(Option<One<'a>>),
    /// Letters after one dash: switches, then possibly a flag with a value.
    Joined {
        switches: Vec<&'static Flag>,
        last: Option<One<'a>>,
    },
    /// An unknown flag.
    Unknown(String),
}

/// A flag in the spelling of the command line.
struct One<'a> {
    flag: &'static Flag,
    value: Option<&'a str>,
    by_letter: bool,
}

impl<'a> DashedArgument<'a> {
    /// Parses an argument; returns `None` if it is a word (also `-` alone) or ends the flags (`--`).
    fn read(arg: &'a str) -> Option<DashedArgument<'a>> {
        let body = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?;
        if body.is_empty() {
            return None;
        }
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (body, None),
        };
        let mut letters = name.chars();
        let letter = match (letters.next(), letters.next()) {
            (Some(letter), None) => lettered(letter),
            _ => None,
        };
        if let Some(flag) = named(name).or(letter) {
            return Some(DashedArgument::Alone(Some(One {
                flag,
                value,
                by_letter: letter.is_some(),
            })));
        }
        if !arg.starts_with("--")
            && let Some(joined) = joined(body)
        {
            return Some(joined);
        }
        // The parser has its own flags -h and -V. Go treats several letters after one dash as one long name.
        Some(DashedArgument::Unknown(if name.chars().count() > 1 {
            format!("--{body}")
        } else {
            arg.into()
        }))
    }
}

/// Parses letters that are joined after one dash in GNU's style: switches, then possibly a flag with its value.
///
/// If the flag takes a number, a value joined to its letter must begin with a digit, so that a misspelt long name is
/// not taken for a letter and a value.
fn joined(body: &str) -> Option<DashedArgument<'_>> {
    let mut switches = Vec::new();
    for (at, letter) in body.char_indices() {
        let flag = lettered(letter)?;
        if flag.value == Value::Switch {
            switches.push(flag);
            continue;
        }
        let rest = &body[at + letter.len_utf8()..];
        let number = matches!(flag.value, Value::One("N" | "SECONDS"));
        let fits = !number || rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit());
        if !fits || flag.value == Value::Optional("FILE") && !rest.is_empty() {
            return None;
        }
        let value = (!rest.is_empty()).then_some(rest);
        return Some(DashedArgument::Joined {
            switches,
            last: Some(One {
                flag,
                value,
                by_letter: true,
            }),
        });
    }
    Some(DashedArgument::Joined {
        switches,
        last: None,
    })
}

/// Returns true if `next`, which follows `flag`, is the value of `flag` rather than another flag.
///
/// Go takes any argument as the value. Here a known flag is not taken as a value, so that the error says that the value
/// is missing. But `-5` is taken as a value, so that the error is about the number.
fn is_value(flag: &Flag, next: &OsString) -> bool {
    let Some(next) = next.to_str() else {
        return true;
    };
    if !next.starts_with('-') || next == "-" {
        return true;
    }
    let bare = next.trim_start_matches('-');
    let name = bare.split('=').next().unwrap_or(bare);
    let mut letters = name.chars();
    let is_flag = FLAGS.iter().any(|flag| flag.name == name)
        || matches!((letters.next(), letters.next()), (Some(l), None) if lettered(l).is_some());
    flag.needs_value() && !is_flag && !name.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(args: &[&str]) -> Vec<String> {
        let normal = normalise(args.iter().map(OsString::from));
        normal
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect()
    }

    #[test]
    fn the_readme_command_in_both_spellings() {
        let go = normal(&["-a", "fsm", "-p=100000", "-d=0", "-cpus", "2", "-j"]);
        let gnu = normal(&[
            "--arch=fsm",
            "-p100000",
            "--duration",
            "0",
            "--cpus=2",
            "--graphjson",
        ]);
        assert_eq!(go, gnu);
        assert_eq!(go[1], "--population=100000");
    }

    #[test]
    fn letters_may_be_joined() {
        assert_eq!(normal(&["-jm"]), ["--graphjson", "--msglog"]);
        assert_eq!(normal(&["-jd0"]), ["--graphjson", "--duration=0"]);
        assert_eq!(
            normal(&["-jmd", "3"]),
            ["--graphjson", "--msglog", "--duration=3"]
        );
    }

    #[test]
    fn a_misspelt_long_name_stays_one() {
        assert_eq!(normal(&["-saveconfi"]), ["--saveconfi"]);
        assert_eq!(normal(&["-cpuz=3"]), ["--cpuz=3"]);
        assert_eq!(normal(&["-help"]), ["--help"]);
        assert_eq!(normal(&["-h"]), ["-h"]);
    }

    #[test]
    fn negative_values_are_values_and_flags_are_not() {
        assert_eq!(normal(&["-p", "-5"]), ["--population=-5"]);
        assert_eq!(normal(&["-p", "-d", "0"]), ["--population", "--duration=0"]);
        assert_eq!(normal(&["-p"]), ["--population"]);
    }

    #[test]
    fn an_optional_value_follows_a_long_name_only() {
        assert_eq!(normal(&["-r", "man"]), ["--reload=true", "man"]);
        assert_eq!(normal(&["--reload", "a.json"]), ["--reload=a.json"]);
        assert_eq!(
            normal(&["-r=false", "-saveconfig", "-j"]),
            ["--reload=false", "--saveconfig=true", "--graphjson"]
        );
        assert_eq!(normal(&["-saveconfig", "mine"]), ["--saveconfig=mine"]);
    }

    #[test]
    fn subcommands_keep_their_arguments() {
        assert_eq!(
            normal(&["-j", "completions", "-p", "-d=0"]),
            ["--graphjson", "completions", "-p", "-d=0"]
        );
        assert_eq!(normal(&["--", "-p"]), ["--", "-p"]);
    }

    /// Returns all spellings of a flag with a valid value.
    fn spellings(flag: &'static Flag, value: &str) -> Vec<Vec<String>> {
        let mut ways = Vec::new();
        let letter = flag.letter.map(String::from);
        for name in [Some(flag.name.to_owned()), letter].into_iter().flatten() {
            for dashes in ["-", "--"] {
                match flag.value {
                    Value::Switch => ways.push(vec![format!("{dashes}{name}")]),
                    Value::Optional(_) => ways.push(vec![format!("{dashes}{name}={value}")]),
                    Value::One(_) | Value::Word(_) => {
                        ways.push(vec![format!("{dashes}{name}={value}")]);
                        ways.push(vec![format!("{dashes}{name}"), value.to_owned()]);
                    }
                }
            }
        }
        if let (Some(letter), true) = (flag.letter, flag.needs_value()) {
            ways.push(vec![format!("-{letter}{value}")]);
        }
        ways
    }

    proptest! {
        #[test]
        fn all_spellings_of_a_flag_are_equal(
            which in 0..FLAGS.len(),
            value in "[0-9][a-z0-9:./=-]{0,8}",
            then in 0..FLAGS.len(),
        ) {
            let follows = vec![format!("--{}", FLAGS[then].name)];
            let mut normals = spellings(&FLAGS[which], &value).into_iter().map(|mut args| {
                args.extend(follows.clone());
                normal(&args.iter().map(String::as_str).collect::<Vec<_>>())
            });
            let first = normals.next().unwrap();
            prop_assert_eq!(first.len(), 2);
            for other in normals {
                prop_assert_eq!(&first, &other);
            }
        }

        #[test]
        fn normal_arguments_stay_as_they_are(args in proptest::collection::vec("(-{0,2}[a-z=0-9-]{0,9})", 0..6)) {
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let once = normal(&args);
            let twice = normal(&once.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(once, twice);
        }
    }
}
