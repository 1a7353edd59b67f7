//! `--ui` and `--replay`: a run that is held in a session, or does again what was done in one.

use crate::config_file;
use crate::console::Console;
use crate::flags::values::Values;
use crate::options::Options;
use anyhow::{Context, Result, anyhow, bail};
use corsair::{Executor, Time};
use corsair_view::{Make, Recording, World, replay};
use serde_json::{Map, Value};
use std::net::SocketAddr;
use std::path::Path;

/// What the flags ask for of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Where the page is served, if it is.
    page: Option<SocketAddr>,
    /// Open the browser.
    open: bool,
    /// What is done again.
    replay: Option<Recording>,
    /// The flags on which the course of the run depends, which are saved with it.
    flags: Map<String, Value>,
}

impl SessionOptions {
    /// Whether a page is served.
    pub fn has_page(&self) -> bool {
        self.page.is_some()
    }
}

/// Flags on which the course of a run depends beside those that shape what it writes.
const COURSE: [&str; 3] = ["arch-dir", "end", "strict"];

/// Reads the session that `--replay` names, and adds the flags of its run where the command line
/// says nothing.
///
/// # Errors
/// What is wrong with the file.
pub fn recording(values: &mut Values) -> Result<Option<Recording>> {
    let Some(path) = values.given("replay").map(Path::new).map(Path::to_owned) else {
        return Ok(None);
    };
    let recording = Recording::read(&path).context("--replay")?;
    config_file::add(values, recording.flags.clone(), &path, "--replay")?;
    Ok(Some(recording))
}

/// What the flags ask for of a session, if they do.
///
/// # Errors
/// The first value that is wrong, or that does not go with another.
pub fn options(
    values: &Values,
    options: &Options,
    replay: Option<Recording>,
) -> Result<Option<SessionOptions>> {
    let page = page(values)?;
    let open = values.switch("open")?;
    if open && page.is_none() {
        bail!("--open opens the page of --ui; add --ui");
    }
    if page.is_none() && replay.is_none() {
        return Ok(None);
    }
    if options.executor != Executor::Virtual {
        let flag = if page.is_some() { "--ui" } else { "--replay" };
        bail!(
            "{flag} is for virtual time, which can be held and replayed; leave out --executor {}",
            values.text("executor")
        );
    }
    if page.is_some() && !cfg!(feature = "ui") {
        bail!(
            "this build has no page to show; run `cargo run --features ui -- -a {} --ui`",
            options.arch
        );
    }
    let flags = config_file::as_json(values, &options.arch, |flag| {
        flag.shapes || COURSE.contains(&flag.name)
    });
    Ok(Some(SessionOptions {
        page,
        open,
        replay,
        flags,
    }))
}

/// Where the page is served: at a free port of this machine, or where `--ui` says.
fn page(values: &Values) -> Result<Option<SocketAddr>> {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    match values.switch("ui") {
        Ok(false) => Ok(None),
        Ok(true) => Ok(Some(anywhere)),
        Err(_) => {
            let address = address(values.text("ui"));
            address.map(Some).map_err(|wrong| values.wrong("ui", wrong))
        }
    }
}

/// `127.0.0.1:8080`, or `:8080` for this machine alone.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.replace("localhost:", "127.0.0.1:"),
    };
    full.parse()
        .map_err(|_| format!("'{text}' is no address; write one as 127.0.0.1:8080"))
}

/// Runs a world in a session until it is cut, or does again what was done in one. The world is as it
/// is then; it may not have ended.
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
    use corsair_view::{Server, Session};
    let (mut session, handle) = Session::new(world, held.flags.clone(), make);
    if let Some(recording) = &held.replay {
        session.load(recording).context("--replay")?;
    }
    let address = held.page.ok_or_else(|| anyhow!("there is no page"))?;
    let server = Server::start(address, handle).context("--ui")?;
    let url = server.url();
    console.line(format_args!(
        "corsair: the run is held at {url} (Ctrl-C ends it)"
    ));
    if held.open {
        open(&url);
    }
    Ok(session.run(&options.config.cut))
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
        "this build has no page to show (open: {open}, {} flags)",
        flags.len()
    ))
}

/// Opens the browser.
#[cfg(feature = "ui")]
pub fn open(url: &str) {
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
