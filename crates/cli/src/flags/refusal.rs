//! Errors of the parser, one sentence each.

use super::removed::instead_of;
use super::{FLAGS, Flag, nearest};
use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns a sentence about arguments that the parser rejected, with the fault and its remedy. `called` is `corsair`,
/// or a subcommand such as `corsair sum`.
pub fn sentence(error: &clap::Error, called: &Command) -> String {
    let command = called.get_bin_name().unwrap_or("corsair");
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if let Some(instead) = instead_of(argument) => {
            format!("{argument} was removed: {instead}")
        }
        ErrorKind::UnknownArgument if command == "corsair" => unknown(argument),
        ErrorKind::UnknownArgument => match text(ContextKind::SuggestedArg) {
            Some(near) => format!("{command} has no flag {argument}; did you mean {near}?"),
            None => format!("{command} has no flag {argument}; `{command} --help` lists them all"),
        },
        ErrorKind::InvalidValue if value.is_empty() => match flag_of(argument) {
            Some(flag) => no_value(flag),
            None => format!("{argument} needs a value"),
        },
        ErrorKind::InvalidValue => {
            let words: Vec<&str> = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(words)) => words.iter().map(String::as_str).collect(),
                _ => Vec::new(),
            };
            let name = flag_of(argument).map_or(argument.to_owned(), Flag::spelled);
            format!("{name}: {}", not_one_of(value, &words))
        }
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand).unwrap_or_default();
            format!(
                "'{word}' is neither a flag nor a subcommand; flags begin with a dash, as in -a fsm"
            )
        }
        ErrorKind::MissingRequiredArgument if argument == "<SHELL>" => {
            "completions: the shell is missing; type for example `corsair completions bash`"
                .to_owned()
        }
        ErrorKind::MissingRequiredArgument => {
            format!("{command}: {argument} is missing; see `{command} --help`")
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let words = called.get_subcommands().map(Command::get_name);
            let words: Vec<String> = words.map(|word| format!("`{command} {word}`")).collect();
            format!("{command} has no subcommand; type {}", words.join(" or "))
        }
        ErrorKind::InvalidUtf8 => "an argument is not valid UTF-8".to_owned(),
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    }
}

/// Returns the error for a word that is not one of the allowed words.
pub fn not_one_of(word: &str, words: &[&str]) -> String {
    let meant = match nearest(word, words.iter().copied()) {
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    format!("'{word}' is not one of {}{meant}", words.join(", "))
}

/// Returns the error of a flag whose value is missing.
fn no_value(flag: &Flag) -> String {
    let spelled = flag.spelled();
    let example = match flag.value {
        super::Value::Word(words) => words.join(" or "),
        super::Value::One(name) | super::Value::Optional(name) if flag.default.is_empty() => {
            name.to_owned()
        }
        _ => flag.default.to_owned(),
    };
    format!("{spelled} needs a value; type for example {spelled} {example}")
}

/// Returns the error for a flag that does not exist.
fn unknown(argument: &str) -> String {
    let name = argument
        .trim_start_matches('-')
        .split('=')
        .next()
        .unwrap_or_default();
    let names = FLAGS
        .iter()
        .map(|flag| flag.name)
        .chain(["help", "version"]);
    match nearest(name, names) {
        Some(near) => {
            let near = super::named(near).map_or(format!("--{near}"), |flag| match flag.letter {
                Some(letter) => format!("--{near} (-{letter})"),
                None => flag.spelled(),
            });
            format!("there is no flag {argument}; did you mean {near}?")
        }
        None => format!("there is no flag {argument}; `corsair --help` lists them all"),
    }
}

/// Returns the flag that the parser names in an error, as in `--seed <N>`.
fn flag_of(argument: &str) -> Option<&'static Flag> {
    let end = |c: char| c == ' ' || c == '[' || c == '=' || c == '<';
    super::named(argument.trim_start_matches('-').split(end).next()?)
}
