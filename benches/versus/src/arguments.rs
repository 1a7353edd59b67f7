//! The arguments of the command line.

use crate::contenders::{self, Contender};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use versus::Load;

const USAGE: &str = "\
usage: cargo bench --manifest-path benches/versus/Cargo.toml -- [OPTIONS] [CONTENDER...]

CONTENDER        part of a contender's name, e.g. `actix`; none: all of them
--pirates N,N    populations, each at least 2 (default: 10000,100000)
--rounds N       runs of each contender for each population (default: 5)
--seed N         from which all random numbers derive (default: 1)
--save FILE      write the tables as JSON, too
--list           the names of the contenders";

/// The parsed command line.
pub struct Arguments {
    /// The task of this process.
    pub task: Task,
}

/// A task: to compare contenders, or to run one.
pub enum Task {
    /// Run contenders in separate processes and compare them.
    Compare(Plan),
    /// Run this contender in this process, with this load.
    Run(&'static dyn Contender, Load),
    /// List the names of the contenders.
    List,
}

/// A comparison of contenders.
pub struct Plan {
    /// The contenders, in the order of the table.
    pub contenders: Vec<&'static dyn Contender>,
    /// The numbers of pirates, which are measured in turn.
    pub populations: Vec<u32>,
    /// The number of runs of each contender for each population.
    pub rounds: u32,
    /// The seed of every run.
    pub seed: u64,
    /// The file to which the tables are written as JSON, if any.
    pub save: Option<PathBuf>,
}

impl Arguments {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// Names the argument that cannot be parsed, and the expected arguments.
    pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
        let mut arguments = arguments;
        let mut names = Vec::new();
        let mut populations = vec![10_000, 100_000];
        let mut rounds = 5;
        let mut seed = 1;
        let mut save = None;
        while let Some(argument) = arguments.next() {
            let mut value = || {
                arguments
                    .next()
                    .ok_or(format!("{argument} wants a value\n{USAGE}"))
            };
            match argument.as_str() {
                "--bench" => {} // added by cargo
                "--list" => return Ok(Arguments { task: Task::List }),
                "--pirates" => {
                    populations = value()?
                        .split(',')
                        .map(|text| at_least(Load::FEWEST, "--pirates", text))
                        .collect::<Result<_, _>>()?;
                }
                "--rounds" => rounds = at_least(1, "--rounds", &value()?)?,
                "--save" => save = Some(PathBuf::from(value()?)),
                "--seed" => seed = number("--seed", &value()?)?,
                "--run" => {
                    let name = value()?;
                    let contender = contenders::all()
                        .into_iter()
                        .find(|contender| contender.name() == name)
                        .ok_or_else(|| unknown(&name))?;
                    let pirates = at_least(Load::FEWEST, "--run", &value()?)?;
                    let seed = number("--run", &value()?)?;
                    let load = Load { pirates, seed };
                    return Ok(Arguments {
                        task: Task::Run(contender, load),
                    });
                }
                option if option.starts_with('-') => {
                    return Err(format!("unknown option {option}\n{USAGE}"));
                }
                name => names.push(name.to_owned()),
            }
        }
        let contenders = chosen(&names)?;
        Ok(Arguments {
            task: Task::Compare(Plan {
                contenders,
                populations,
                rounds,
                seed,
                save,
            }),
        })
    }
}

/// Returns the contenders whose names contain an element of `names`; all contenders if `names` is empty.
fn chosen(names: &[String]) -> Result<Vec<&'static dyn Contender>, String> {
    let mut contenders = contenders::all();
    if let Some(name) = names
        .iter()
        .find(|name| !contenders.iter().any(|c| c.name().contains(name.as_str())))
    {
        return Err(unknown(name));
    }
    if !names.is_empty() {
        contenders.retain(|c| names.iter().any(|name| c.name().contains(name.as_str())));
    }
    Ok(contenders)
}

fn unknown(name: &str) -> String {
    let known: Vec<_> = contenders::all()
        .iter()
        .map(|contender| contender.name())
        .collect();
    format!(
        "no contender is called {name:?}; there are {}",
        known.join(", ")
    )
}

fn at_least(least: u32, option: &str, text: &str) -> Result<u32, String> {
    match number(option, text)? {
        number if number >= least => Ok(number),
        number => Err(format!("{option} {number}: give at least {least}")),
    }
}

fn number<N: FromStr<Err: Display>>(option: &str, text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|error| format!("{option} {text}: {error}\n{USAGE}"))
}
