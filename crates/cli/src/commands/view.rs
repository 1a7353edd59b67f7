//! `corsair view FILE|DIR`: shows the files of a finished run in the browser.

use crate::session::PageArgs;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;

/// The arguments of `corsair view`.
#[derive(Args, Clone, Debug)]
pub struct ViewArgs {
    /// A graph file, or the output directory of a run; flows beside the graph are shown too
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
    #[command(flatten)]
    page: PageArgs,
}

/// Shows the files until Ctrl-C.
///
/// # Errors
/// If the files cannot be read, or if the page cannot be served.
#[cfg(feature = "ui")]
pub fn run(args: &ViewArgs) -> Result<()> {
    use crate::console::Console;
    use crate::interrupt;
    use corsair_view::{OutputView, Session};
    let drawn = OutputView::read(&args.path)?;
    let cancel = corsair::CancelToken::default();
    interrupt::on_ctrl_c(cancel.clone());
    let session = Session::new(drawn, Default::default(), None);
    args.page.show(session, &cancel, |url| {
        Console::new(true).line(format_args!(
            "corsair: {} is shown at {url} (Ctrl-C ends it)",
            args.path.display()
        ));
    })
}

/// Fails with an error that names the build with this feature.
///
/// # Errors
/// Always fails.
#[cfg(not(feature = "ui"))]
pub fn run(args: &ViewArgs) -> Result<()> {
    anyhow::bail!(
        "this build has no live view; run `cargo run --features ui -- view {}{}`",
        args.path.display(),
        args.page.typed()
    )
}
