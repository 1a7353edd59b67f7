//! The options of a session: `--ui`, `--open` and `--replay`.

use super::Options;
use crate::config_file;
use crate::flags::values::Values;
use anyhow::{Context, Result, bail};
use corsair::Executor;
use corsair_view::Recording;
use serde_json::{Map, Value};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// The address of the page, if it is served.
    pub page: Option<SocketAddr>,
    /// True to open the browser.
    pub open: bool,
    /// The recording to replay.
    pub replay: Option<Recording>,
    /// The flags that affect the result of the run, which are saved with it.
    pub flags: Map<String, Value>,
}

impl SessionOptions {
    /// True if a page is served.
    pub fn has_page(&self) -> bool {
        self.page.is_some()
    }
}

/// Flags that affect the result of a run, in addition to flags that shape its output.
const COURSE: [&str; 3] = ["arch-dir", "end", "strict"];

/// Reads the session of `--replay`, and adds the flags of its run that the command line does not set.
///
/// # Errors
/// If the file cannot be read.
pub fn recording(values: &mut Values) -> Result<Option<Recording>> {
    let Some(path) = values.given("replay").map(Path::new).map(Path::to_owned) else {
        return Ok(None);
    };
    let recording = Recording::read(&path).context("--replay")?;
    config_file::add(values, recording.flags.clone(), &path, "--replay")?;
    Ok(Some(recording))
}

/// Reads the options of a session, if one is requested.
///
/// # Errors
/// Returns the first value that is invalid, or inconsistent with another.
pub fn read(
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
            "{flag} needs virtual time, which can be paused and replayed; leave out --executor {}",
            values.text("executor")
        );
    }
    if page.is_some() && !cfg!(feature = "ui") {
        bail!(
            "this build has no live view; run `cargo run --features ui -- -a {} --ui`",
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

/// Returns the address of the page: the address of `--ui`, or a free port of this machine.
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

/// Parses `127.0.0.1:8080`, `:8080` for loopback, or an IP address without a port, for which a free port is used.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.strip_prefix(':') {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.replace("localhost:", "127.0.0.1:"),
    };
    let bare = |ip: IpAddr| SocketAddr::new(ip, 0);
    full.parse()
        .or_else(|_| full.parse().map(bare))
        .map_err(|_| format!("'{text}' is not an address; write for example 127.0.0.1:8080"))
}
