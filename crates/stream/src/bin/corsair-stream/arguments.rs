//! The flags and their errors.

use crate::replay::ReplayArgs;
use crate::serve::ServeArgs;
use crate::show::ShowArgs;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

/// Sends points of the InfluxDB line protocol through tasks.
#[derive(Debug, Parser)]
#[command(name = "corsair-stream", version, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) what: StreamSubcommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StreamSubcommand {
    /// Serve POST /write, /tasks and /metrics until Ctrl-C
    Serve(Box<ServeArgs>),
    /// Send a recording of lines through tasks
    Replay(ReplayArgs),
    /// Draw a task of a running server, with its counters
    Show(ShowArgs),
}

/// Returns a sentence about arguments that the parser refused: the fault and its remedy.
pub(crate) fn sentence(error: &clap::Error) -> String {
    let help = "`corsair-stream --help` lists them all";
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        Some(ContextValue::Strings(texts)) => texts.first().map(String::as_str),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let flag = text(ContextKind::InvalidArg).unwrap_or_default();
            match text(ContextKind::SuggestedArg) {
                Some(near) => format!("there is no flag {flag}; did you mean {near}?"),
                None => format!("there is no flag {flag}; {help}"),
            }
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let command = Arguments::command();
            let names = command.get_subcommands().map(clap::Command::get_name);
            let names: Vec<_> = names
                .map(|name| format!("`corsair-stream {name}`"))
                .collect();
            format!("what is to be done? Type {}", names.join(" or "))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = text(ContextKind::InvalidArg).unwrap_or_default();
            format!("{missing} is missing; `corsair-stream --help` describes it")
        }
        ErrorKind::InvalidValue => {
            let (flag, value) = (
                text(ContextKind::InvalidArg).unwrap_or_default(),
                text(ContextKind::InvalidValue).unwrap_or_default(),
            );
            match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(words)) if !words.is_empty() => {
                    format!("{flag}: '{value}' is none of {}", words.join(", "))
                }
                _ => format!("{flag} needs a value; {help}"),
            }
        }
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Arguments::command().debug_assert();
    }
}
