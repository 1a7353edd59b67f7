//! The parser, made from [`FLAGS`].

use crate::commands::{SUBCOMMANDS, Subcommand};
use crate::flags::{FLAGS, Flag, Value};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, ValueHint};

/// The purpose of a [`Command`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The parser reads arguments, which [`normalise`](crate::flags::normalise::normalise) has converted to one
    /// spelling.
    Parse,
    /// The parser is used to generate help, man page and completions, without Go's `=true` and `=false` after switches.
    Describe,
}

/// Returns the command with all flags and subcommands.
pub fn command(purpose: Purpose) -> Command {
    Command::new("corsair")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Simulates actors that exchange messages: pirates, and architectures of services")
        .override_usage(
            "corsair -a NAME [FLAGS]\n       corsair capacity -a NAME [FLAGS]\n       corsair compare A [B] [FLAGS] | corsair sweep -a NAME [FLAGS]\n       corsair sweep merge FILES | corsair hunt -a NAME [FLAGS]\n       corsair import FILES | corsair learn TRACES | corsair compose2arch FILE | corsair schema\n       corsair gate FILES --base FILE --slo SLO | corsair patch NAME\n       corsair why NAME [FLAGS] | corsair stability NAME [FLAGS]\n       corsair demo | corsair diff RUN_A RUN_B | corsair view FILE|DIR | corsair usl FILE\n       corsair check FILE --model MODEL [FLAGS]\n       corsair resume DIR [FLAGS] | corsair fork DIR --branches FILE [FLAGS]\n       corsair marshal [FLAGS] [FILE]\n       corsair sum [FLAGS]\n       corsair completions SHELL | corsair man",
        )
        .after_help(AFTER_HELP)
        .args_override_self(true)
        .disable_help_subcommand(true)
        .infer_long_args(false)
        .args(FLAGS.iter().map(|flag| arg(flag, purpose)))
        .subcommand(
            Command::new("completions")
                .about("Print completions for a shell: bash, zsh, fish, elvish, powershell")
                .arg(
                    Arg::new("shell")
                        .value_name("SHELL")
                        .required(true)
                        .value_parser(clap::value_parser!(clap_complete::Shell)),
                ),
        )
        .subcommands(SUBCOMMANDS.iter().map(Subcommand::command))
        .subcommand(Command::new("schema").about("Print the JSON schema of definitions"))
        .subcommand(Command::new("man").about("Print the manual page"))
}

const AFTER_HELP: &str = "\
Flags are spelled as in Go (-d=0, -cpus 2, -kv chat:10ms) or as in GNU (--duration 0, -d0).

Examples:
  corsair demo                                a system that saturates, fails and recovers in two minutes
  corsair -a fsm -p 100000 -d 0               five messages for each of 100,000 pirates
  corsair -a fsm -p 1000 -d 10 -j             ten virtual seconds; writes the graph json/fsm.json
  corsair -a fsm -r                           start again from that graph
  corsair -a fsm --executor tokio -d 2        the same pirates as tokio tasks on the wall clock
  corsair -a netflixoss -d 10 -j -c           services; writes the graph, flows and histograms
  corsair -a migration -s 8 -kv chat:1ms      step 8 of a migration to a ring in two regions
  corsair capacity -a lamp --limit 50ms       the load at which LAMP becomes slow
  corsair compare lamp --load 300/s --set services.memcache.count=3    two variants, from the same seeds
  corsair sweep -a lamp --set load.www.rate=50..200..50 --out lamp.csv";

/// Returns the argument of a flag.
fn arg(flag: &'static Flag, purpose: Purpose) -> Arg {
    let arg = Arg::new(flag.name)
        .long(flag.name)
        .help(help(flag))
        .help_heading(flag.group.heading());
    let arg = match flag.letter {
        Some(letter) => arg.short(letter),
        None => arg,
    };
    let arg = match flag.value {
        Value::Switch if purpose == Purpose::Describe => arg.action(ArgAction::SetTrue),
        Value::Switch => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        Value::Optional(name) => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true")
            .value_name(name),
        Value::One(name) => arg.action(ArgAction::Set).value_name(name),
        Value::Word(words) => {
            let parser = PossibleValuesParser::new(words);
            arg.action(ArgAction::Set)
                .value_name(words.join("|"))
                .value_parser(parser)
                .hide_possible_values(true)
        }
    };
    match flag.value {
        Value::One("FILE") | Value::Optional("FILE") => arg.value_hint(ValueHint::FilePath),
        Value::One("DIR") => arg.value_hint(ValueHint::DirPath),
        // A name that ends in .json is a path.
        Value::One(_) if flag.name == "arch" => arg.value_hint(ValueHint::FilePath),
        Value::One(_) => arg.value_hint(ValueHint::Other),
        _ => arg,
    }
}

/// Returns the help line of a flag. It contains the default, which the parser does not set, because configuration files
/// take precedence over defaults.
fn help(flag: &Flag) -> String {
    let services_only = if flag.services_only.is_some() {
        " (not for fsm)"
    } else {
        ""
    };
    match flag.default {
        "" | "." => format!("{}{services_only}", flag.help),
        default => format!("{}{services_only} [default: {default}]", flag.help),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        command(Purpose::Parse).debug_assert();
        command(Purpose::Describe).debug_assert();
    }

    #[test]
    fn the_last_of_several_wins_as_in_go() {
        let args = [
            "corsair",
            "--duration=1",
            "--duration=2",
            "--graphjson",
            "--graphjson=false",
        ];
        let matches = command(Purpose::Parse).get_matches_from(args);
        assert_eq!(matches.get_one::<String>("duration").unwrap(), "2");
        assert_eq!(matches.get_one::<String>("graphjson").unwrap(), "false");
    }
}
