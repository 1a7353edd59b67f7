//! The command line: runs and subcommands.

use crate::cluster;
use crate::commands::SUBCOMMANDS;
use crate::console::Console;
use crate::flags::values::Values;
use crate::flags::{normalise, refusal};
use crate::options::{self, Options, checkpoints};
use crate::parser::{Purpose, command};
use crate::{complete, config_file, simulation};
use anyhow::{Result, anyhow};
use clap::error::ErrorKind;
use clap::{ArgMatches, Command};
use clap_complete::Shell;
use std::ffi::OsString;
use std::process::ExitCode;

/// The subcommands that are separate programs, and the packages that build these programs.
const PROGRAMS: [(&str, &str); 2] = [("stream", "corsair-stream"), ("courier", "corsair-courier")];

/// Runs the command with these arguments, without the program's name.
///
/// # Errors
/// A sentence about the fault.
pub fn main(args: impl Iterator<Item = OsString>) -> Result<ExitCode> {
    let mut args = args.peekable();
    let first = args.peek().and_then(|word| word.to_str());
    if let Some((word, package)) = PROGRAMS.iter().find(|(word, _)| Some(*word) == first) {
        return Err(anyhow!(
            "`corsair {word}` is a separate program; run `cargo run -p {package} -- --help`"
        ));
    }
    if first == Some(complete::WORD) {
        complete::answer(&args.skip(1).collect::<Vec<_>>());
        return Ok(ExitCode::SUCCESS);
    }
    let given: Vec<OsString> = args.collect();
    let program = std::iter::once(OsString::from("corsair"));
    let args: Vec<OsString> = program.chain(normalise::normalise(given.clone())).collect();
    let matches = match command(Purpose::Parse).try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) => return answer(&error, called(&args)),
    };
    match matches.subcommand() {
        Some(("completions", matches)) => completions(matches),
        Some(("man", _)) => man(),
        Some(("schema", _)) => {
            let schema = corsair_arch::schema();
            Console::new(true).print(|out| writeln!(out, "{schema}"));
            Ok(ExitCode::SUCCESS)
        }
        Some((name, matches)) => {
            let mut all = SUBCOMMANDS.iter();
            match all.find(|subcommand| subcommand.name == name) {
                Some(subcommand) => (subcommand.run)(matches, &given),
                None => Err(anyhow!(
                    "there is no subcommand {name}; `corsair --help` lists them all"
                )),
            }
        }
        None => simulate(&matches, &given),
    }
}

/// Runs the simulation that the flags describe.
fn simulate(matches: &ArgMatches, args: &[OsString]) -> Result<ExitCode> {
    let mut values = Values::from_matches(matches);
    config_file::read(&mut values)?;
    let recording = options::session::recording(&mut values)?;
    let mut options = Options::read(&values)?;
    options.session = options::session::read(&values, &options, recording)?;
    if let Some(code) = cluster::run(&values, &options, args)? {
        return Ok(code);
    }
    options.checkpoints = checkpoints::read(&values, &options)?;
    save(&values, &options.arch, options.json)?;
    simulation::run(&options, &values.described())
}

/// Writes the flags to a file, if the user has requested it.
fn save(values: &Values, arch: &str, json: bool) -> Result<()> {
    if let Some(path) = config_file::save(values, arch)? {
        Console::new(!json).line(format_args!("corsair: flags saved to {}", path.display()));
    }
    Ok(())
}

/// Returns the parser of the subcommand in the arguments, or of the program if the arguments do not name a subcommand.
fn called(args: &[OsString]) -> Command {
    let mut called = command(Purpose::Describe);
    called.build();
    for arg in args.iter().skip(1) {
        match called.find_subcommand(arg) {
            Some(next) => called = next.clone(),
            None => break,
        }
    }
    called
}

/// Prints help or the version. All other results of the parser are errors.
fn answer(error: &clap::Error, mut called: Command) -> Result<ExitCode> {
    let text = match error.kind() {
        ErrorKind::DisplayHelp => called.render_help().to_string(),
        ErrorKind::DisplayVersion => error.to_string(),
        _ => {
            return Err(anyhow!("{}", refusal::sentence(error, &called)));
        }
    };
    Console::new(true).print(|out| out.write_all(text.as_bytes()));
    Ok(ExitCode::SUCCESS)
}

fn completions(given: &ArgMatches) -> Result<ExitCode> {
    let shell = given.get_one::<Shell>("shell").copied();
    let script = shell.map_or(Vec::new(), complete::script);
    Console::new(true).print(|out| out.write_all(&script));
    Ok(ExitCode::SUCCESS)
}

fn man() -> Result<ExitCode> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command(Purpose::Describe)).render(&mut page)?;
    Console::new(true).print(|out| out.write_all(&page));
    Ok(ExitCode::SUCCESS)
}
