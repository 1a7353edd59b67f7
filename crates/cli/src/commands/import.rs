//! `corsair import`: converts the manifests of a system to a definition, and reports the fields that have no effect.

use crate::console::Console;
use crate::format::Format;
use crate::text;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use corsair_arch::{ImportOptions, Imported, ImportedCall, Unused, import};
use corsair_observe::Replacement;
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The flags of `corsair import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// Manifests of Kubernetes, Istio and Envoy, docker-compose files and k6 scripts, or directories of them
    #[arg(required_unless_present = "fields")]
    files: Vec<PathBuf>,
    /// Name of the architecture
    #[arg(long, value_name = "NAME", default_value = "imported")]
    name: String,
    /// Write the definition to this file instead of printing it
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Traces of the same system, from which its structure and times are learned; may be repeated
    #[arg(long, value_name = "FILE")]
    traces: Vec<PathBuf>,
    /// Processor time of a request at each service, exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = text::duration)]
    work: Duration,
    /// Requests per second at each entry point, unless a k6 script specifies a load
    #[arg(long, value_name = "N", default_value_t = 50.0)]
    rate: f64,
    /// A call that no field of the manifests states, for example reviews=ratings; may be repeated
    #[arg(long = "call", value_name = "FROM=TO", value_parser = call)]
    calls: Vec<(String, String)>,
    /// Output: text, or one JSON object that contains the definition
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print the effect of each field of each format, as a table in Markdown
    #[arg(long)]
    fields: bool,
}

/// The complete result, for JSON output.
#[derive(Debug, Serialize)]
struct Report<'a> {
    documents: usize,
    calls: &'a [ImportedCall],
    assumed: &'a [String],
    left_out: &'a [String],
    unused: &'a [Unused],
    objectives: &'a [String],
    definition: Box<RawValue>,
}

/// Reads `reviews=ratings`.
pub fn call(text: &str) -> Result<(String, String), String> {
    let names = text.split_once('=');
    let names = names.filter(|(from, to)| !from.is_empty() && !to.is_empty());
    let (from, to) = names.ok_or_else(|| {
        format!("'{text}' is not a call; write the caller and the called service, for example reviews=ratings")
    })?;
    Ok((from.to_owned(), to.to_owned()))
}

/// Checks the values that replace information missing from manifests.
///
/// # Errors
/// If a value is out of range.
pub fn check(rate: f64, work: Duration) -> Result<()> {
    if !(rate > 0.0 && rate <= 1e6) {
        bail!("--rate: {rate} is out of range; give a number above 0, up to 1000000");
    }
    if work.is_zero() || work > Duration::from_secs(3600) {
        bail!("--work: give a time above 0s, up to 1h");
    }
    Ok(())
}

/// Imports manifests, and writes the definition and a report.
///
/// # Errors
/// If a file is invalid, or if the definition cannot be written.
pub fn run(args: &ImportArgs) -> Result<()> {
    if args.fields {
        let table = corsair_arch::field_table();
        Console::new(true).print(|out| out.write_all(table.as_bytes()));
        return Ok(());
    }
    check(args.rate, args.work)?;
    if args.name.is_empty() {
        bail!("--name: '' is not a name; give the architecture one, for example shop");
    }
    let out = args.out.as_deref().map(Replacement::begin).transpose();
    let out = out.context("--out")?;
    let options = ImportOptions {
        name: args.name.clone(),
        work: args.work,
        rate: args.rate,
        traces: args.traces.clone(),
        calls: args.calls.clone(),
    };
    let mut imported = import(&args.files, &options).map_err(|error| anyhow!("{error}"))?;
    let mut files: Vec<String> = args
        .files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    // The argument shows `gate` that the times were recorded under the processor limits of the manifests.
    files.extend(
        args.traces
            .iter()
            .map(|file| format!("--traces {}", file.display())),
    );
    imported.definition.args = format!("[corsair import {}]", files.join(" "));
    let text = imported.definition.to_text();
    let is_written = out.is_some();
    if let Some(mut file) = out {
        let written = file.writer().write_all(text.as_bytes());
        written.map_err(|error| anyhow!(file.failed(error)))?;
        file.finish().context("--out")?;
    }
    let console = Console::new(true);
    match args.format {
        Format::Json => {
            let report = Report {
                documents: imported.documents,
                calls: &imported.calls,
                assumed: &imported.assumed,
                left_out: &imported.left_out,
                unused: &imported.unused,
                objectives: &imported.objectives,
                definition: RawValue::from_string(text)?,
            };
            console.print(|out| {
                serde_json::to_writer(&mut *out, &report).map_err(io::Error::from)?;
                writeln!(out)
            });
        }
        Format::Text if is_written => lines(&imported, |line| console.line(line)),
        Format::Text => {
            console.print(|out| out.write_all(text.as_bytes()));
            // Remarks go to stderr, so that a pipe receives only the definition.
            lines(&imported, |line| {
                let _ = writeln!(io::stderr(), "{line}");
            });
        }
    }
    Ok(())
}

fn lines(imported: &Imported, print: impl Fn(String)) {
    let definition = &imported.definition;
    let calls: usize = definition
        .services
        .iter()
        .map(|service| service.called().len())
        .sum();
    print(format!(
        "corsair: imported {} services with {calls} calls from {} documents",
        definition.services.len() - definition.load.len(),
        imported.documents
    ));
    for assumed in [false, true] {
        for call in imported
            .calls
            .iter()
            .filter(|call| call.is_assumed == assumed)
        {
            let ImportedCall {
                from, to, because, ..
            } = call;
            let kind = if assumed { "assumed call" } else { "call" };
            let arrow = if call.is_sent { "~>" } else { "->" };
            print(format!("  {kind:<13} {from} {arrow} {to}: {because}"));
        }
    }
    imported
        .assumed
        .iter()
        .for_each(|said| print(format!("  assumed       {said}")));
    imported
        .left_out
        .iter()
        .for_each(|said| print(format!("  left out      {said}")));
    for field in &imported.unused {
        let Unused {
            format,
            kind,
            field,
            why,
            times,
            first,
        } = field;
        print(format!(
            "  no effect     {format} {kind} {field} ({times}, first in {first}): {why}"
        ));
    }
    imported
        .objectives
        .iter()
        .for_each(|slo| print(format!("  objective     --slo '{slo}'")));
}
