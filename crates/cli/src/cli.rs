//! From arguments to the call that they ask for.

use crate::console::Console;
use crate::courier::{self, CourierArgs};
use crate::flags::command::{Purpose, command};
use crate::flags::values::Values;
use crate::flags::{Value, normalise, refusal};
use crate::marshal::{self, MarshalArgs};
use crate::options::Options;
use crate::sum::{self, SumArgs};
use crate::{config_file, fsm};
use anyhow::{Result, anyhow};
use clap::error::ErrorKind;
use clap::{ArgMatches, FromArgMatches};
use clap_complete::Shell;
use std::ffi::OsString;
use std::process::ExitCode;

/// The exit code where something was refused, or a run failed.
pub const REFUSED: u8 = 2;

/// Does what the arguments (without the program's name) ask for.
///
/// # Errors
/// One sentence about what is wrong.
pub fn main(args: impl Iterator<Item = OsString>) -> Result<ExitCode> {
    let program = std::iter::once(OsString::from("corsair"));
    let args = program.chain(normalise::normalise(args));
    let matches = match command(Purpose::Parse).try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(error) => return answer(&error),
    };
    match matches.subcommand() {
        Some(("completions", given)) => completions(given),
        Some(("man", _)) => man(),
        Some(("sum", given)) => {
            sum::run(&SumArgs::from_arg_matches(given)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(("marshal", given)) => {
            marshal::run(&MarshalArgs::from_arg_matches(given)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(("courier", given)) => courier::run(&CourierArgs::from_arg_matches(given)?),
        _ => simulate(&matches),
    }
}

/// Runs what the flags describe.
fn simulate(matches: &ArgMatches) -> Result<ExitCode> {
    let mut values = Values::from_matches(matches);
    config_file::read(&mut values)?;
    let options = Options::read(&values)?;
    if let Some(path) = config_file::save(&values, &options.arch)? {
        Console::new(!options.json)
            .line(format_args!("corsair: flags saved to {}", path.display()));
    }
    fsm::run(&options, &described(&values))
}

/// The flags on which the run depends, as graph files quote them: the same for the same run.
fn described(values: &Values) -> String {
    let mut args = format!("[corsair -a {}", values.text("arch"));
    for (flag, text) in values
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

/// Help and version are printed; everything else that the parser says is an error.
fn answer(error: &clap::Error) -> Result<ExitCode> {
    let text = match error.kind() {
        ErrorKind::DisplayHelp => help(error),
        ErrorKind::DisplayVersion => error.to_string(),
        _ => return Err(anyhow!("{}", refusal::sentence(error))),
    };
    Console::new(true).print(|out| out.write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}

/// The help that was asked for: of a subcommand, or of all of it.
fn help(error: &clap::Error) -> String {
    let said = error.render().to_string();
    let mut whole = command(Purpose::Describe);
    let usage = whole.render_usage().to_string();
    let first = usage.lines().next().unwrap_or_default();
    if said.contains(first) {
        return whole.render_help().to_string();
    }
    said
}

fn completions(given: &ArgMatches) -> Result<ExitCode> {
    let shell = given.get_one::<Shell>("shell").copied();
    let mut script = Vec::new();
    if let Some(shell) = shell {
        clap_complete::generate(
            shell,
            &mut command(Purpose::Describe),
            "corsair",
            &mut script,
        );
    }
    Console::new(true).print(|out| out.write_all(&script));
    Ok(ExitCode::SUCCESS)
}

fn man() -> Result<ExitCode> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command(Purpose::Describe)).render(&mut page)?;
    Console::new(true).print(|out| out.write_all(&page));
    Ok(ExitCode::SUCCESS)
}
