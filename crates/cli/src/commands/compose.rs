//! `corsair compose2arch`: converts a docker-compose file to a definition.

use crate::console::write_or_print;
use anyhow::{Result, anyhow};
use clap::Args;
use std::path::{Path, PathBuf};

/// The flags of `corsair compose2arch`.
#[derive(Debug, Args)]
pub struct ComposeArgs {
    /// docker-compose file of version 1, 2 or 3
    #[arg(required_unless_present = "named", conflicts_with = "named")]
    file: Option<PathBuf>,
    /// The same file, with spigo's name for this argument
    #[arg(long = "file", value_name = "FILE")]
    named: Option<PathBuf>,
    /// Write the definition to this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl ComposeArgs {
    /// Returns the path of the file, which either argument may give.
    fn file(&self) -> &Path {
        let given = self.file.as_deref().or(self.named.as_deref());
        given.unwrap_or(Path::new(""))
    }
}

/// Prints or writes the definition.
///
/// # Errors
/// If the file is invalid, or if the definition cannot be written.
pub fn run(args: &ComposeArgs) -> Result<()> {
    write_or_print(args.out.as_deref(), &definition(args)?)
}

#[cfg(feature = "compose")]
fn definition(args: &ComposeArgs) -> Result<String> {
    let command = format!("[corsair compose2arch {}]", args.file().display());
    let date = jiff::Timestamp::now().to_string();
    let definition = corsair_arch::compose(args.file(), &command, &date);
    let definition = definition.map_err(|error| anyhow!("{error}"))?;
    Ok(definition.to_text())
}

#[cfg(not(feature = "compose"))]
fn definition(args: &ComposeArgs) -> Result<String> {
    Err(anyhow!(
        "this corsair was built without YAML; for {} type: cargo run --features compose -- compose2arch {}",
        args.file().display(),
        args.file().display()
    ))
}
