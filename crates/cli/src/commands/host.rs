//! `corsair host`: runs programs of this machine in a simulation, with the program `corsair-host`.
//!
//! `corsair-host` is a separate program, because it defines symbols of the C library, which this program must not
//! replace.

use anyhow::{Result, anyhow};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// The arguments of `corsair host`.
#[derive(Args, Clone, Debug)]
pub struct HostArgs {
    /// Arguments of corsair-host, for example: run simulation.toml --seeds 10
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    arguments: Vec<OsString>,
}

/// Runs `corsair-host`. The program is searched in the directory of this program and then in `PATH`.
pub fn run(args: &HostArgs) -> Result<ExitCode> {
    let name = format!("corsair-host{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().map(|own| own.with_file_name(&name));
    let program = match beside {
        Ok(path) if path.exists() => path,
        _ => PathBuf::from(name),
    };
    let status = Command::new(program).args(&args.arguments).status();
    let status = status.map_err(|error| {
        anyhow!("corsair-host cannot be started: {error}; cargo build -p corsair-host-run builds it beside corsair")
    })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(code.unwrap_or(1)))
}
