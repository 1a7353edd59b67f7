//! `corsair patch`: converts a definition to patches of the manifests from which it was imported.

use crate::commands::variants;
use crate::console::write_or_print;
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use corsair_arch::{PatchFormat, Setting, manifest_patch};
use std::io::{self, Write};
use std::path::PathBuf;

/// The flags of `corsair patch`.
#[derive(Debug, Args)]
pub struct PatchArgs {
    /// Definition: a name or a file
    arch: String,
    /// Set a field before, for example services.web.count=4; may be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = variants::setting)]
    set: Vec<Setting>,
    /// Directory of definitions, NAME_arch.json
    #[arg(long, value_name = "DIR", default_value = "json_arch")]
    arch_dir: PathBuf,
    /// Format of the patch: partial manifests of Kubernetes and Istio, or an overriding docker-compose file
    #[arg(long, value_enum, default_value_t = Manifests::Kubernetes)]
    format: Manifests,
    /// Write the patches to this file instead of printing them
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The value of `--format`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Manifests {
    Kubernetes,
    Compose,
}

/// Prints or writes patches that set replicas, processors, retries, time-outs, pools and ejection.
///
/// # Errors
/// If the definition is invalid, or if the file cannot be written.
pub fn run(args: &PatchArgs) -> Result<()> {
    let text = variants::find(&args.arch, &args.arch_dir)?;
    let checked = text.with(&args.set).map_err(|error| anyhow!("{error}"))?;
    let patch = manifest_patch(
        checked.written(),
        match args.format {
            Manifests::Kubernetes => PatchFormat::Kubernetes,
            Manifests::Compose => PatchFormat::Compose,
        },
    );
    write_or_print(args.out.as_deref(), &patch.to_text())?;
    for said in &patch.left_out {
        let _ = writeln!(io::stderr(), "  left out      {said}");
    }
    Ok(())
}
