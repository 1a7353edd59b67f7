//! `corsair view FILE|DIR`: shows the files of a finished run in the browser.

use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// The arguments of `corsair view`.
#[derive(Args, Clone, Debug)]
pub struct ViewArgs {
    /// A graph file, or the output directory of a run; flows beside the graph are shown too
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
    /// Address of the page [default: a free port of this machine]
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "",
        hide_default_value = true
    )]
    ui: String,
    /// Open the browser
    #[arg(long)]
    open: bool,
}

/// Shows the files until Ctrl-C.
///
/// # Errors
/// If the files cannot be read, or if the page cannot be served.
#[cfg(feature = "ui")]
pub fn run(args: &ViewArgs) -> Result<()> {
    use crate::console::Console;
    use crate::{interrupt, options, session};
    use anyhow::{Context, anyhow};
    use corsair::CancelToken;
    use corsair_view::{OutputView, Server, Session};
    let text = if args.ui.is_empty() { ":0" } else { &args.ui };
    let address = options::session::address(text);
    let address = address
        .map_err(|wrong| anyhow!("{wrong}"))
        .context("--ui")?;
    let drawn = OutputView::read(&args.path)?;
    let (held, handle) = Session::new(drawn, Default::default(), None);
    let server = Server::start(address, handle).context("--ui")?;
    let cancel = CancelToken::default();
    interrupt::on_ctrl_c(cancel.clone());
    let url = server.url();
    Console::new(true).line(format_args!(
        "corsair: {} is shown at {url} (Ctrl-C ends it)",
        args.path.display()
    ));
    session::warn(&server);
    if args.open {
        session::open(&url);
    }
    held.run(&cancel);
    Ok(())
}

/// Fails with an error that names the build with this feature.
///
/// # Errors
/// Always fails.
#[cfg(not(feature = "ui"))]
pub fn run(args: &ViewArgs) -> Result<()> {
    let _ = (&args.ui, args.open);
    anyhow::bail!(
        "this build has no live view; run `cargo run --features ui -- view {}`",
        args.path.display()
    )
}
