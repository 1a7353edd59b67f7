//! A run that is controlled from the live view, or replays a recorded session.

use crate::console::Console;
use crate::options::{Options, SessionOptions};
use anyhow::{Context, Result, anyhow};
use corsair::Time;
use corsair_view::{Make, World, replay};
#[cfg(feature = "ui")]
use {
    crate::options::session::address,
    corsair::CancelToken,
    corsair_view::{Handle, Server, Session},
};

/// Runs a world in a session until it is cancelled, or replays a session. The world may not have ended
/// afterwards.
///
/// # Errors
/// If the replay differs, or the page cannot be served.
pub fn run<W: World>(
    options: &Options,
    held: &SessionOptions,
    mut world: W,
    make: Option<Make<W>>,
    console: &Console,
) -> Result<W> {
    if held.page.is_some() {
        return watched(options, held, world, make, console);
    }
    if let Some(recording) = &held.replay {
        replay(&mut world, recording).context("--replay")?;
        let count = recording.commands.len();
        console.line(format_args!(
            "corsair: replayed {count} commands until {}, digest {} as in the session",
            Time::from_nanos(recording.until),
            recording.digest
        ));
    }
    Ok(world)
}

/// Serves the page of a world.
#[cfg(feature = "ui")]
fn watched<W: World>(
    options: &Options,
    held: &SessionOptions,
    world: W,
    make: Option<Make<W>>,
    console: &Console,
) -> Result<W> {
    let (mut session, handle) = Session::new(world, held.flags.clone(), make);
    if let Some(recording) = &held.replay {
        session.load(recording).context("--replay")?;
    }
    let address = held.page.ok_or_else(|| anyhow!("there is no page"))?;
    let server = serve(address, handle, held.open, |url| {
        console.line(format_args!(
            "corsair: the run is controlled at {url} (Ctrl-C ends it)"
        ));
    })?;
    let world = session.run(&options.config.cancel);
    drop(server);
    Ok(world)
}

/// The arguments of subcommands that always serve a page.
#[derive(clap::Args, Clone, Debug)]
pub struct PageArgs {
    /// Address of the page [default: a free port of this machine]
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = ":0",
        hide_default_value = true
    )]
    ui: String,
    /// Open the browser
    #[arg(long)]
    open: bool,
}

#[cfg(feature = "ui")]
impl PageArgs {
    /// Serves the page of a session until it is cancelled; `shown` is called with the URL.
    ///
    /// # Errors
    /// If the address is invalid, or the page cannot be served.
    pub fn show<W: World>(
        &self,
        (session, handle): (Session<W>, Handle),
        cancel: &CancelToken,
        shown: impl FnOnce(&str),
    ) -> Result<()> {
        let address = address(&self.ui).map_err(|wrong| anyhow!("{wrong}"));
        let server = serve(address.context("--ui")?, handle, self.open, shown)?;
        session.run(cancel);
        drop(server);
        Ok(())
    }
}

#[cfg(not(feature = "ui"))]
impl PageArgs {
    /// Returns the flags as the command line has them.
    pub fn typed(&self) -> String {
        let open = if self.open { " --open" } else { "" };
        match &*self.ui {
            ":0" => open.to_owned(),
            address => format!(" --ui {address}{open}"),
        }
    }
}

/// Starts the server of a page, calls `shown` with its URL, and opens the browser.
#[cfg(feature = "ui")]
fn serve(
    address: std::net::SocketAddr,
    handle: Handle,
    opens: bool,
    shown: impl FnOnce(&str),
) -> Result<Server> {
    let server = Server::start(address, handle).context("--ui")?;
    let url = server.url();
    shown(&url);
    if let Some(warning) = server.warning() {
        crate::console::complain(format_args!("{warning}"));
    }
    if opens {
        open(&url);
    }
    Ok(server)
}

#[cfg(not(feature = "ui"))]
fn watched<W: World>(
    _: &Options,
    held: &SessionOptions,
    _: W,
    _: Option<Make<W>>,
    _: &Console,
) -> Result<W> {
    let SessionOptions { open, flags, .. } = held;
    Err(anyhow!(
        "this build has no live view (open: {open}, {} flags); build it with --features ui",
        flags.len()
    ))
}

/// Opens the browser.
#[cfg(feature = "ui")]
fn open(url: &str) {
    use std::process::{Command, Stdio};
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.args(["/C", "start", ""]);
        command
    } else {
        Command::new("xdg-open")
    };
    let quiet = command.arg(url).stdin(Stdio::null()).stdout(Stdio::null());
    if let Err(error) = quiet.stderr(Stdio::null()).spawn() {
        crate::console::complain(format_args!(
            "--open: no browser could be opened ({error}); open the address yourself"
        ));
    }
}
