//! Completion scripts, and the values that they complete: architectures, services, fields of definitions, flags in files.
//!
//! The scripts contain the flags and subcommands, as clap writes them. Other values depend on the files of the user's
//! directory. For these values the scripts of bash, zsh and fish run `corsair __complete WORDS`, where the last word is
//! the one to complete. The output has a line for each candidate: the complete word, a tab, and a description of the
//! word. A candidate that ends in `.`, `=` or `:` can be continued. If there are no candidates, the rest of the script
//! completes the word.

mod words;

use crate::checkpoint;
use crate::console::Console;
use crate::flags::FLAGS;
use crate::parser::{Purpose, command};
use clap_complete::Shell;
use corsair_arch::{BUILT_IN, DefinitionText};
use std::ffi::OsString;
use std::path::Path;
use words::Line;

/// The hidden subcommand that the scripts call.
pub const WORD: &str = "__complete";

/// A word that can be typed, and a description in one line.
type Candidate = (String, String);

/// Returns the completion script of a shell.
pub fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let mut described = command(Purpose::Describe);
    clap_complete::generate(shell, &mut described, "corsair", &mut script);
    match shell {
        Shell::Bash => script.extend_from_slice(include_bytes!("complete/values.bash")),
        Shell::Fish => {
            script.extend_from_slice(include_bytes!("complete/values.fish"));
            script.extend_from_slice(fish_flags(&described).as_bytes());
        }
        Shell::Zsh => {
            // The script ends with a call or registration of its function. The values must be inserted before that,
            // because they wrap the function.
            let text = String::from_utf8_lossy(&script).into_owned();
            let end = text.rfind("\nif [ \"$funcstack[1]\"").unwrap_or(text.len());
            let (functions, call) = text.split_at(end);
            script = [functions, include_str!("complete/values.zsh"), call]
                .concat()
                .into_bytes();
        }
        _ => {}
    }
    script
}

/// Returns the commands for fish with which the values of flags are completed. They include flags with a list of
/// values, because clap's script completes these values only in the same word, for example after `--form=`.
fn fish_flags(command: &clap::Command) -> String {
    let commands = std::iter::once(command).chain(command.get_subcommands());
    let args = commands.flat_map(clap::Command::get_arguments);
    let mut lines: Vec<String> = args
        .filter(|arg| !arg.is_positional())
        .filter(|arg| Kind::of(words::name(arg)).is_some() || !arg.get_possible_values().is_empty())
        .map(|arg| {
            let short = arg
                .get_short()
                .map_or(String::new(), |letter| format!(" -s {letter}"));
            let long = words::name(arg);
            // The name of an architecture may be a path.
            let files = match long {
                "arch" | "base" => "-r",
                _ => "-x",
            };
            format!("complete -c corsair{short} -l {long} {files} -a '(__corsair_values)'\n")
        })
        .collect();
    lines.sort();
    lines.dedup();
    lines.push(fish_words(command));
    lines.concat()
}

/// Returns the command that tells fish which subcommands have words of such kinds.
fn fish_words(command: &clap::Command) -> String {
    let has_values = |command: &&clap::Command| {
        let mut words = command.get_positionals();
        words.any(|arg| Kind::of_word(command.get_name(), words::name(arg)).is_some())
    };
    let names: Vec<&str> = command
        .get_subcommands()
        .filter(has_values)
        .map(clap::Command::get_name)
        .collect();
    let names = names.join(" ");
    format!(
        "complete -c corsair -n '__fish_seen_subcommand_from {names}' -a '(__corsair_values)'\n"
    )
}

/// Prints the candidates for the last of these words.
pub fn answer(words: &[OsString]) {
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let candidates = candidates(&words);
    Console::new(true).print(|out| {
        for (word, about) in candidates {
            writeln!(out, "{word}\t{about}")?;
        }
        Ok(())
    });
}

/// The kinds of values that are not in the scripts.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Architectures,
    /// Measures of a budget.
    Budget,
    Config,
    /// A service, and its fault.
    Fault,
    Fields,
    Find,
    Host,
    Kv,
    /// A measure of all requests, or of one kind of requests.
    Measure,
    Slo,
}

impl Kind {
    /// Returns the kind of a flag's values, by its name.
    fn of(flag: &str) -> Option<Kind> {
        Some(match flag {
            "arch" | "base" => Kind::Architectures,
            "budget" => Kind::Budget,
            "config" => Kind::Config,
            "fault" => Kind::Fault,
            "set" => Kind::Fields,
            "find" => Kind::Find,
            "kv" => Kind::Kv,
            "of" => Kind::Measure,
            "slo" => Kind::Slo,
            _ => return None,
        })
    }

    /// Returns the kind of a word of a subcommand that is not a flag.
    fn of_word(subcommand: &str, argument: &str) -> Option<Kind> {
        match (subcommand, argument) {
            ("compare", "a" | "b") | ("gate", "files") | (_, "arch") => Some(Kind::Architectures),
            ("host", _) => Some(Kind::Host),
            _ => None,
        }
    }
}

fn candidates(words: &[String]) -> Vec<Candidate> {
    let mut root = command(Purpose::Describe);
    root.build();
    let Some(line) = Line::read(&root, words) else {
        return Vec::new();
    };
    let kind = if line.is_word {
        Kind::of_word(&line.subcommand, &line.argument)
    } else {
        Kind::of(&line.argument)
    };
    let mut found = match kind {
        None => line.listed.clone(),
        Some(kind) => of_kind(kind, &line),
    };
    found.retain(|(word, _)| word.starts_with(&line.typed));
    for (word, _) in &mut found {
        word.insert_str(0, &line.before);
    }
    found
}

fn of_kind(kind: Kind, line: &Line) -> Vec<Candidate> {
    match kind {
        Kind::Architectures => architectures(line.directory()),
        Kind::Config => configurations(),
        Kind::Kv => vec![(
            "chat:".to_owned(),
            "the sending period of pirates and entry points".to_owned(),
        )],
        Kind::Host => vec![("run".to_owned(), "run a simulation of a file".to_owned())],
        Kind::Budget => measures(&["p50", "p90", "p99", "p999", "errors"]),
        Kind::Fault | Kind::Fields | Kind::Find | Kind::Measure | Kind::Slo => {
            match definition(line) {
                Some(text) => of_definition(kind, &text, &line.typed),
                None => Vec::new(),
            }
        }
    }
}

/// Returns the definition of the architecture or of the saved run that the command line names.
fn definition(line: &Line) -> Option<DefinitionText> {
    let saved = line.given("directory").and_then(|directory| {
        let manifest = checkpoint::read(Path::new(directory)).ok()?.manifest;
        let flag = |name: &str| {
            let text = manifest.details.get("flags")?.get(name)?.as_str()?;
            Some(text.to_owned())
        };
        Some((flag("arch"), flag("arch-dir")))
    });
    let (arch, directory) = saved.unwrap_or((None, None));
    let names = ["arch", "a", "files"];
    let typed = names.iter().find_map(|name| line.given(name));
    let typed = typed.map(str::to_owned);
    let arch = arch.or(typed);
    let arch = arch.as_deref().unwrap_or(BUILT_IN[0].0);
    let directory = directory.as_deref().map_or(line.directory(), Path::new);
    DefinitionText::find(arch, directory).ok()
}

/// Returns the fields, services or kinds of requests of a definition.
fn of_definition(kind: Kind, text: &DefinitionText, typed: &str) -> Vec<Candidate> {
    if let Kind::Fields = kind {
        let fields = text.fields(typed).into_iter();
        return fields.map(|field| (field.path, field.about)).collect();
    }
    let Ok(checked) = text.with(&[]) else {
        return Vec::new();
    };
    let services = checked.definition().services.iter();
    let each_service = |name: fn(&str) -> String| {
        let named = services
            .clone()
            .map(|service| (name(&service.name), service.package.to_string()));
        named.collect()
    };
    let mut found = match kind {
        Kind::Find => return each_service(|name| format!("instances:{name}")),
        Kind::Fault => return each_service(|name| format!("{name}=")),
        Kind::Slo => measures(&["mean", "p50", "p95", "p99", "errors"]),
        _ => measures(&["mean", "p50", "p95", "p99"]),
    };
    let endpoints = services.flat_map(|service| {
        let of_service = move |endpoint: &corsair_arch::EndpointDefinition| {
            (format!("{}.{}", service.name, endpoint.name), String::new())
        };
        service.endpoints.iter().map(of_service)
    });
    found.extend(endpoints);
    found
}

/// Returns measures of the answers to all requests.
fn measures(names: &[&str]) -> Vec<Candidate> {
    let named = names
        .iter()
        .map(|name| ((*name).to_owned(), "of all requests".to_owned()));
    named.collect()
}

/// Returns the valid values of `-a`: pirates, built-in architectures and the definitions of a directory.
fn architectures(directory: &Path) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = files(directory, "_arch.json")
        .map(|name| (name, format!("a definition in {}", directory.display())))
        .collect();
    let built_in = BUILT_IN.iter().map(|(name, _)| (*name, "built in"));
    let others = [
        ("fsm", "pirates"),
        ("migration", "steps 0 to 9 of a migration, -s"),
    ];
    for (name, about) in built_in.chain(others) {
        if found.iter().all(|(known, _)| known != name) {
            found.push((name.to_owned(), about.to_owned()));
        }
    }
    found.sort();
    found
}

/// Returns the valid values of `--config`.
fn configurations() -> Vec<Candidate> {
    let directories = [
        "json",
        FLAGS
            .iter()
            .find(|flag| flag.name == "arch-dir")
            .map_or("", |flag| flag.default),
    ];
    let of = |directory: &'static str| {
        files(Path::new(directory), "_conf.json").map(move |name| (name, format!("in {directory}")))
    };
    let mut found: Vec<Candidate> = directories.into_iter().flat_map(of).collect();
    found.sort();
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

/// Returns the names of a directory's files with this ending, without the ending.
fn files(directory: &Path, end: &'static str) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(move |entry| Some(entry.file_name().to_str()?.strip_suffix(end)?.to_owned()))
}
