//! `corsair-stream show`: prints a task of a running server.

use crate::terminal::print;
use anyhow::{Context, bail};
use clap::ValueEnum;
use std::process::ExitCode;
use std::time::Duration;

/// The flags of `corsair-stream show`.
#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The name of the task
    task: String,
    /// Address of the server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9092")]
    server: String,
    /// Token of the server, if it requires one
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Svg)]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A picture for browsers
    Svg,
    /// A graph for Graphviz
    Dot,
    /// All counters
    Json,
}

/// The time limit for the server's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// The largest answer that is printed.
const MOST: u64 = 256 << 20;

/// Prints a task's graph with its counters.
pub(crate) fn run(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if args.task.is_empty() || !args.task.chars().all(is_name) {
        bail!("no task is called `{}`; GET /tasks lists them", args.task);
    }
    let server = args.server.trim_end_matches('/');
    let format = args.format.to_possible_value();
    let format = format.as_ref().map_or("svg", |format| format.get_name());
    let url = format!("{server}/tasks/{}?format={format}", args.task);
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false);
    let agent: ureq::Agent = agent.build().into();
    let mut request = agent.get(&url);
    if let Some(token) = &args.token {
        request = request.header("authorization", &format!("Bearer {token}"));
    }
    let mut answer = request.call().with_context(|| {
        format!(
            "no answer from {server}; start `corsair-stream serve`, or name another with --server"
        )
    })?;
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(MOST).read_to_string();
    let body = body.with_context(|| format!("the answer from {server} is cut"))?;
    if !status.is_success() {
        let refusal: Option<serde_json::Value> = serde_json::from_str(&body).ok();
        let message = refusal
            .as_ref()
            .and_then(|refusal| refusal["message"].as_str());
        match message {
            Some(message) => bail!("{message}"),
            None => bail!("{url} answers with {status}; is it a `corsair-stream serve`?"),
        }
    }
    print(&body);
    Ok(ExitCode::SUCCESS)
}
